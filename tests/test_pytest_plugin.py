"""`pytest --triage DIR`, run in a pytest of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CASES = ROOT / "fixtures/cases"


def copied(at: Path, start: str, name: str, **replace: str) -> None:
    case = at / "cases" / name
    shutil.copytree(min(CASES.glob(f"{start}*")), case)
    text = (case / "case.yaml").read_text()
    for old, new in replace.items():
        text = re.sub(rf"(?m)^( *){old}: .*$", rf"\g<1>{old}: {new}", text)
    (case / "case.yaml").write_text(text)


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    # By its module's name, so that it does not matter whether this checkout is installed.
    return pytester.runpytest_subprocess("-p", "no:triage", "-p", "triage.pytest_plugin", *words)


def test_every_case_is_one_test(pytester: pytest.Pytester) -> None:
    copied(pytester.path, "graph-capture-oom--", "a--good")
    copied(pytester.path, "graph-capture-oom--", "b--bad", cause="weight-oom")
    copied(pytester.path, "graph-capture-oom--", "c--miss", cause="weight-oom", known_miss="cut")
    copied(pytester.path, "graph-capture-oom--", "d--mended", known_miss="true")
    copied(pytester.path, "healthy--", "e--broken")
    (pytester.path / "cases/e--broken/case.yaml").write_text("schema: [")
    pytester.makepyfile(test_other="def test_other(): assert True")
    done = run(pytester, "--triage", "cases", "-v", "-rx")
    done.assert_outcomes(passed=1, failed=3, xfailed=1)
    done.stdout.fnmatch_lines(
        [
            "cases/a--good/case.yaml::a--good PASSED*",
            "cases/b--bad/case.yaml::b--bad FAILED*",
            "cases/c--miss/case.yaml::c--miss XFAIL*",
            "*cause: expected 'weight-oom', found 'graph-capture-oom'",
            "*as expected now; set known_miss to false",
            "e--broken: cannot be read",
            "XFAIL *c--miss - cut",
        ]
    )
    done.stdout.no_fnmatch_line("*runtest*")


def test_a_path_beside_the_option_is_collected_too(pytester: pytest.Pytester) -> None:
    copied(pytester.path, "healthy--", "a--good")
    pytester.makepyfile(test_other="def test_other(): assert True")
    run(pytester, "--triage", "cases", "test_other.py").assert_outcomes(passed=2)
    run(pytester, "--triage", "cases").assert_outcomes(passed=1)
    run(pytester).assert_outcomes(passed=1)


def test_a_case_can_be_chosen_by_its_name(pytester: pytest.Pytester) -> None:
    copied(pytester.path, "healthy--", "a--good")
    copied(pytester.path, "healthy--", "b--good")
    run(pytester, "--triage", "cases", "-k", "b--good").assert_outcomes(passed=1, deselected=1)


def test_a_folder_without_a_case_is_an_error_in_a_sentence(pytester: pytest.Pytester) -> None:
    pytester.mkdir("empty")
    for folder, said in (("empty", "holds no case"), ("nowhere", "is no folder")):
        done = run(pytester, "--triage", folder)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines([f"ERROR: *{said}*; try: *"])


def test_without_the_option_nothing_of_triage_is_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_light="""
        import sys

        def test_light():
            ours = sorted(name for name in sys.modules if name.startswith("triage"))
            assert ours == ["triage", "triage.pytest_plugin"]
            assert not {"yaml", "pydantic", "click"} & set(sys.modules)
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_is_announced_to_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"triage": "triage.pytest_plugin"}


def test_triage_itself_needs_no_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\nimport triage.cli, triage.session.check\n"
        "from triage.cli import run\nsys.exit(run(['--help']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
