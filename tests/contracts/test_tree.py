"""What ARCHITECTURE.md and CONTRIBUTING.md promise about the tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "triage").rglob("*.py"))


def tracked() -> list[Path]:
    """Files of the checkout; of the folder where there is no git (a source archive)."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    if listed.returncode:
        return [
            p
            for d in ("triage", "recipes", "docs", "tests", "tools")
            for p in (ROOT / d).rglob("*")
        ]
    return [ROOT / name for name in listed.stdout.split("\0") if name]


@pytest.mark.parametrize("module", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_is_at_most_500_lines_and_says_what_it_is(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= 500
    assert text.startswith('"""'), "a module begins with what it is"


def test_median_module_is_small() -> None:
    sizes = sorted(len(m.read_text().splitlines()) for m in MODULES)
    assert sizes[len(sizes) // 2] <= 160


def test_every_module_is_in_a_layer_of_the_architecture() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {
        p.stem if p.is_file() else p.name
        for p in (ROOT / "triage").iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    } - {"__init__", "__main__"}
    named = set(re.findall(r"`triage\.(\w+)`", table))
    assert packages <= named


def test_files_named_in_the_architecture_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folder = ""
    for name in re.findall(r"`(triage/[\w/.-]+|\w+\.py)`", text):
        if name.startswith("triage/") and "<" not in name:
            folder = name.rsplit("/", 1)[0]
            assert (ROOT / name).exists(), name
        elif not name.startswith("triage/"):
            assert (ROOT / folder / name).exists(), f"{folder}/{name}"


def test_no_path_or_name_of_a_development_machine_is_tracked() -> None:
    forbidden = re.compile(
        rb"/wo" rb"rk/|/ro" rb"ot/\.pyenv|bash_" rb"jobs|pypi-" rb"more|/home/(?!user\b)\w+/\."
    )
    guilty = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.is_file()
        and path.stat().st_size < 4_000_000
        and forbidden.search(path.read_bytes())
    ]
    assert guilty == []


DOCUMENTS = sorted(
    {
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", ".ci/run")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "recipes").glob("*.md"),
        *(ROOT / "fixtures").glob("*.md"),
    }
)


def targets_named(text: str, *, code: bool = False) -> set[str]:
    """The targets of each `make ...` in the code spans and blocks of a text; `code`: in all of it."""
    spans = [text] if code else re.findall(r"```.*?\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    lines = "\n".join(span if isinstance(span, str) else "\n".join(span) for span in spans)
    calls = re.findall(r"(?:^|[;&|]) *make((?: +\w[\w-]*)+)", lines, re.MULTILINE)
    return {target for call in calls for target in call.split()}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_make_targets_in_a_document_exist(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets_named(path.read_text(), code=path.name == "run") <= targets


def test_targets_are_found_where_a_reader_would_type_them() -> None:
    text = (
        "```sh\nmake instal   # x\n$ ls; make demo\n```\nThey make nothing. `make lint tpyes` ends."
    )
    assert targets_named(text) == {"instal", "demo", "lint", "tpyes"}
    named = [targets_named(path.read_text()) for path in DOCUMENTS]
    assert {"install", "demo", "lint", "types", "test", "e2e", "models"} <= set().union(*named)


def test_every_test_module_asserts_something() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert re.search(r"\bassert\b|pytest\.raises", path.read_text()), path
