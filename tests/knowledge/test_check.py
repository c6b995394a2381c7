"""The checks of cause files, each shown by a file that breaks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from triage.core.causes import Role
from triage.core.log.clues import ORDINARY_LINES
from triage.errors import UsageError
from triage.knowledge import check_causes, load_causes, load_causes_from
from triage.knowledge.check import slowest_s
from triage.knowledge.shapes import literal_faults, pattern_faults

GOOD = """\
id: {id}
title: A thing breaks
means: It breaks.
role: root
patterns: ['thing (?P<name>\\w+) broke']
examples: ['Error: thing x broke']
remedies:
  - {{say: 'Mend {{name}}', changes: {{set: {{tp-size: 2}}}}, disposition: safe, cost: none, evidence: inferred}}
sources: ['https://github.com/a/b/issues/1']
"""


def write(folder: Path, name: str = "thing-broke", **replace: str) -> Path:
    text = GOOD.format(id=name)
    for old, new in replace.items():
        assert re.search(rf"(?m)^{old}:.*$", text)
        text = re.sub(rf"(?m)^{old}:.*$", lambda _, new=new: new, text)  # type: ignore[misc]
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def problems(folder: Path) -> list[str]:
    return [problem.removeprefix(f"{folder}/") for problem in check_causes(folder)]


def test_a_sound_file_has_no_problems(tmp_path: Path) -> None:
    write(tmp_path)
    assert problems(tmp_path) == []
    assert load_causes_from(tmp_path)[0].remedies[0].set_flags == (("tp-size", "2"),)


@pytest.mark.parametrize(
    ("replace", "problem"),
    [
        ({"patterns": "patterns: ['thing (?P<name>x) broke', 'thing (?P<name>z) broke']"},
         "thing-broke.yaml: no example for the pattern thing (?P<name>z) broke"),
        ({"examples": "examples: ['Error: thing x broke', 'other']"},
         "thing-broke.yaml: matched by no pattern: 'other'"),
        ({"sources": "sources: [x]\ncounter_examples: ['a thing y broke']"},
         "thing-broke.yaml: thing (?P<name>\\w+) broke matches the counter-example 'a thing y broke'"),
        ({"patterns": "patterns: ['thing (?P<name>\\w+) broke', '(unclosed']"},
         "thing-broke.yaml: does not compile (missing ), unterminated subpattern at position 0): (unclosed"),
        ({"role": "role: root\nphases: [weight-laod]"},
         "thing-broke.yaml: phases: there is no phase weight-laod"),
        ({"role": "role: root\nyields_to: [nobody]"},
         "thing-broke.yaml: yields_to: there is no other cause nobody"),
        ({"role": "role: root\nconfused_with: [thing-broke]"},
         "thing-broke.yaml: confused_with: there is no other cause thing-broke"),
        ({"role": "role: root\ngroup_by: [colour]"},
         "thing-broke.yaml: group_by: no pattern captures colour"),
        ({"patterns": "patterns: ['thing \\w+ broke']"},
         "thing-broke.yaml: remedies: no pattern captures {name}"),
        ({"role": "role: root\nculprits: {flags: [ep_size]}"},
         "thing-broke.yaml: there is no flag ep_size; write its canonical name, or list it in fork_flags"),
        ({"sources": "sources: []"}, "thing-broke.yaml: a root cause needs the key sources"),
        ({"title": "title: A\nrank: 3"},
         "thing-broke.yaml:3: rank: unknown key; known: id, title, means, role, severity, phases,"),
        ({"id": "id: other"}, "thing-broke.yaml: id: other must be the file's name, thing-broke"),
        ({"id": "id: Thing_Broke"}, "thing-broke.yaml:1: id: string should match pattern"),
    ],
)  # fmt: skip
def test_a_flaw_is_named_with_its_file(
    tmp_path: Path, replace: dict[str, str], problem: str
) -> None:
    write(tmp_path, **replace)
    (found,) = problems(tmp_path)
    assert found.startswith(problem)


def test_a_forks_own_flag_is_allowed_if_it_is_marked(tmp_path: Path) -> None:
    write(
        tmp_path, role="role: root\nculprits: {flags: [ddtree-depth]}\nfork_flags: [ddtree-depth]"
    )
    assert problems(tmp_path) == []


def test_causes_that_give_way_to_each_other_are_a_cycle(tmp_path: Path) -> None:
    write(tmp_path, "one", role="role: root\nyields_to: [two]")
    write(tmp_path, "two", role="role: root\nyields_to: [one]")
    assert problems(tmp_path) == [f"{tmp_path}: yields_to goes round: one > two > one"]


def test_a_pattern_that_hits_a_benign_line_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "benign-thing", role="role: benign")
    assert problems(tmp_path) == [
        "thing-broke.yaml: matches the benign line 'Error: thing x broke'"
    ]


def test_a_folder_without_causes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no cause files"):
        check_causes(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        ("(a+)+$", "nested unbounded repeats"),
        ("(?:ab*c)*", "nested unbounded repeats"),
        ("a{0,500}", "a repeat above 200"),
        (r"lib[\w.]+\w*x", "two unbounded repeats of the same characters in a row"),
        (r"a.*(b)?\S+", "two unbounded repeats of the same characters in a row"),
    ],
)
def test_patterns_that_other_engines_lack_or_that_explode_are_named(
    pattern: str, fault: str
) -> None:
    assert list(pattern_faults(pattern)) == [fault]


def test_a_plain_pattern_has_no_fault() -> None:
    assert list(pattern_faults(r"^Error: (?P<x>\d+) of .{1,200} (a|b)?$")) == []


def test_a_quadratic_pattern_is_measured_as_slow() -> None:
    assert slowest_s(re.compile(r"\w+;"), ["ab;"]) > 0.005
    assert slowest_s(re.compile(r"Error: \w+ broke"), ["Error: it broke"]) < 0.005


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (r"\d+ of \d+", "no text of 6 characters is in every line that it matches"),
        ("(?i)out of memory", "no text of 6 characters is in every line that it matches"),
        ("(CUDA|HIP) went away", None),
        (r"token usage: 0\.\d", "every healthy log is full of its text 'token usage: 0.'"),
        ("Decode batch with an error", None),
    ],
)
def test_a_text_that_finds_too_many_lines_or_none_is_named(pattern: str, fault: str | None) -> None:
    assert list(literal_faults(pattern, 6)) == ([fault] if fault else [])


@pytest.mark.parametrize(
    "pattern",
    [r"\d+ \d+", r"[a-z]+[0-9]+", "a*b+", r"\S+ \S+", r"(?:\w+: )?\w+", r".{1,80}.{1,80}"],
)
def test_repeats_that_cannot_share_characters_are_no_fault(pattern: str) -> None:
    assert list(pattern_faults(pattern)) == []


def test_the_ordinary_lines_are_no_findings() -> None:
    causes = [c for c in load_causes() if c.role is Role.ROOT and not c.hang]
    hits = [
        (cause.id, line)
        for cause in causes
        for pattern in cause.patterns
        for line in ORDINARY_LINES
        if re.search(pattern, line)
    ]
    assert hits == []


def test_every_pattern_means_something_to_hyperscan_too() -> None:
    """They are tried with `re` today; this keeps the other way open."""
    hyperscan = pytest.importorskip("hyperscan")
    flags = hyperscan.HS_FLAG_ALLOWEMPTY | hyperscan.HS_FLAG_SINGLEMATCH
    refused = []
    for pattern in load_causes().table.patterns:
        try:
            hyperscan.Database().compile(expressions=[pattern.pattern.encode()], flags=[flags])
        except hyperscan.error as error:
            refused.append((pattern.pattern, str(error)))
    assert refused == []
