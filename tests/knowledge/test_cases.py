"""Case files: read with file and line, compared key by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.errors import UsageError
from triage.knowledge import load_cases
from triage.knowledge.cases import differences

CASE = """\
schema: triage.case/1
source: {kind: real, engine: sglang, version: 0.5.23, note: A note.}
expect: {outcome: failed, cause: null, root: {line: 3, text: boom}}
known_miss: false
"""


def folder(at: Path, text: str = CASE, *, log: bool = True) -> Path:
    case = at / "unknown--boom"
    case.mkdir()
    (case / "case.yaml").write_text(text)
    if log:
        (case / "server.log").write_bytes(b"x\n")
    return at


def test_a_case_holds_only_what_its_file_expects(tmp_path: Path) -> None:
    (case,) = load_cases(folder(tmp_path))
    assert (case.name, case.subject, case.version) == ("unknown--boom", "unknown", "0.5.23")
    assert case.expect == {"outcome": "failed", "cause": None, "root": {"line": 3, "text": "boom"}}


def test_a_case_must_name_its_cause_or_say_null(tmp_path: Path) -> None:
    text = CASE.replace("cause: null, ", "")
    with pytest.raises(UsageError, match=r"case\.yaml:3: expect: the key cause is missing"):
        load_cases(folder(tmp_path, text))


def test_a_misspelled_expectation_is_an_error(tmp_path: Path) -> None:
    text = CASE.replace("root:", "roots:")
    with pytest.raises(UsageError, match=r"expect\.roots: unknown key, did you mean root\?"):
        load_cases(folder(tmp_path, text))


def test_a_case_without_its_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the log of this case is missing"):
        load_cases(folder(tmp_path, log=False))


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cases"):
        load_cases(tmp_path)


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ()),
        ({"a": 1}, {"b": 2}, ("a: expected 1, found None",)),
        ({"root": {"text": "oo"}}, {"root": {"text": "boom"}}, ()),
        ({"root": {"text": "xx"}}, {"root": {"text": "boom"}}, ("root.text: expected 'xx', found 'boom'",)),
        ({"root": None}, {"root": {"line": 1}}, ("root: expected None, found {'line': 1}",)),
        ({"decoys": [{"line": 3}]}, {"decoys": [{"line": 3, "why": "w"}]}, ()),
        ({"cascade": [1, 2]}, {"cascade": [1]}, ("cascade: expected [1, 2], found [1]",)),
        ({"ranks": ["TP0"]}, {"ranks": ["TP1"]}, ("ranks[0]: expected 'TP0', found 'TP1'",)),
        ({"title": "oo"}, {"title": "boom"}, ("title: expected 'oo', found 'boom'",)),
    ],
)  # fmt: skip
def test_differences_name_the_place(expected: object, found: object, said: tuple[str, ...]) -> None:
    assert differences(expected, found) == said
