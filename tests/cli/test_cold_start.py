"""What a short command loads and compiles: its start is most of what it takes.

Times are measured by `make bench`; here is what they come from, which no busy machine moves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[2] / "fixtures/cases"
FAILED = CASES / "graph-capture-oom--one-rank-of-eight/server.log"
HEALTHY = CASES / "healthy--native-tp2/server.log"
# Modules of the standard library that take a millisecond or more, and ours that do other work.
HEAVY = {
    "ast", "dataclasses", "datetime", "dis", "gettext", "hyperscan", "json", "locale", "pathlib",
    "platform", "shlex", "textwrap", "tokenize", "typing", "urllib", "uuid", "yaml", "pydantic", "rich", "jinja2", "numpy", "stringzilla",
    "triage.yamlfile",
    "triage.knowledge.schema", "triage.render.documents", "triage.launch", "triage.machine",
}  # fmt: skip
_PROBE = """
import re._compiler as compiler, sys
made, compile_ = [], compiler.compile
compiler.compile = lambda pattern, flags=0: made.append(pattern) or compile_(pattern, flags)
import triage.cli, triage.finder.kept
triage.finder.kept._beside_modules = lambda: KEPT
before = len(made)
code = triage.cli.run(sys.argv[1:])
loaded = [m for m in sorted(sys.modules) if type(sys.modules[m]).__name__ != "_Postponed"]
patterns = len(made) - before
import json
print(json.dumps([code, patterns, loaded]), file=sys.stderr)
"""


def probe(*words: str, kept: str = "") -> tuple[int, int, set[str]]:
    """Exit code, patterns compiled beside click's own, and modules of one command.

    `kept` is the file of compiled patterns; without it all that are needed are compiled.
    """
    ours = {"TRIAGE_KNOWLEDGE", "PYTEST_CURRENT_TEST", "PYTHONDONTWRITEBYTECODE"}
    env = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.replace("KEPT", repr(kept)), *words],
        capture_output=True, text=True, check=True, env=env,
    )  # fmt: skip
    code, patterns, modules = json.loads(done.stderr.splitlines()[-1])
    return code, patterns, set(modules)


@pytest.mark.parametrize(
    ("log", "code", "most"), [(FAILED, 10, 90), (HEALTHY, 0, 50)], ids=["failed", "healthy"]
)
def test_naming_the_cause_of_a_short_log_loads_nothing_heavy(
    log: Path, code: int, most: int
) -> None:
    found, patterns, modules = probe("classify", str(log))
    assert found == code
    assert not HEAVY & modules
    assert patterns <= most  # of more than 900 that triage has


def test_a_second_run_compiles_nothing_that_the_first_one_did(tmp_path: Path) -> None:
    file = str(tmp_path / "patterns")
    first, second = (probe("classify", str(FAILED), kept=file) for _ in range(2))
    assert first[0] == second[0] == 10
    assert second[1] * 4 < first[1]


def complaints(code: str) -> str:
    """What a process that runs this code says on its error stream."""
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=False).stderr


def test_a_postponed_module_is_itself_once_it_is_used() -> None:
    code = (
        "import sys, triage.cli, inspect; from triage.cli.postponed import postpone;"
        "assert 'ast' not in sys.modules; assert inspect.cleandoc(' a') == 'a';"
        "assert 'ast' in sys.modules; import inspect as again; assert again is inspect;"
        "assert type(inspect) is type(sys); postpone('inspect'); assert inspect.isclass(int)"
    )
    assert complaints(code) == ""


def test_a_stand_in_fetches_the_true_thing_and_leaves_the_module_to_others() -> None:
    code = (
        "import sys, triage.cli, click; assert not {'uuid', 'datetime', 'gettext'} & {*sys.modules};"
        "day = click.DateTime().convert('2026-07-01', None, None); import datetime, uuid;"
        "assert type(day) is datetime.datetime; assert type(uuid.UUID) is type;"
        "assert click.DateTime().convert(day, None, None) is day;"
        "text = '12345678-1234-5678-1234-567812345678';"
        "assert click.UUID.convert(text, None, None) == uuid.UUID(text)"
    )
    assert complaints(code) == ""


def test_a_name_without_a_stand_in_comes_from_the_module_itself() -> None:
    code = (
        "from triage.cli.postponed import stand_ins\n"
        "with stand_ins(colorsys=('rgb_to_hsv',)):\n"
        "    from colorsys import rgb_to_hsv, hsv_to_rgb\n"
        "import colorsys\n"
        "assert hsv_to_rgb is colorsys.hsv_to_rgb and rgb_to_hsv is not colorsys.rgb_to_hsv\n"
        "assert rgb_to_hsv(1, 0, 0) == (0, 1, 1)"
    )
    assert complaints(code) == ""


def test_click_and_typing_are_themselves_to_who_imports_them_later() -> None:
    code = (
        "import sys, triage.cli, click; assert 'typing' not in sys.modules;"
        "import typing; assert typing.Optional[int] == typing.Union[int, None];"
        "from triage.core import typed; assert click.types.t.Any is typed.Any is not typing.Any;"
        "assert click.types.t.Union is typing.Union; assert sys.modules['typing'] is typing;"
        "assert click.Choice(['a'])('a') == 'a'; assert click.IntRange(1, 3)('2') == 2;"
        "assert isinstance(click.Path(), click.ParamType); import pydantic;"
        "pydantic.create_model('Made', x=(typing.Any, 1))()"
    )
    assert complaints(code) == ""


def test_help_is_shown_as_click_shows_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triage", "classify", "--help"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "Show this message and exit." in done.stdout
    assert "--knowledge DIR" in done.stdout
    assert "Use the cause files of DIR too" in done.stdout


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triage", "classify", "--junit", str(tmp_path), str(FAILED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "is a directory" in done.stderr
