"""A module that a docstring, a comment or a document names is where it says."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for folder in ("triage", "tools", "tests") for path in (ROOT / folder).rglob("*.py")
)
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "recipes/*.md", "fixtures/*.md", "fixtures/*/*.md")
    for path in ROOT.glob(pattern)
)
DOTTED = re.compile(r"(?<![\w./-])triage((?:\.[a-z_]\w*)+)(?![\w/-])")
# Said from within triage: `core.log.diagnose`. Other first words are variables as often as not.
CORE = re.compile(r"(?<![\w./-])(core(?:\.[a-z_]\w*)+)(?![\w/-])")
FILE = re.compile(r"(?<![\w./<>*-])((?:(?:log|search|handover)/)?[a-z_]\w*\.py)\b")
# Files of the engine, and one that a test writes.
FOREIGN = frozenset(["launch_server.py", "server_args.py", "stand_in.py"])


def prose(source: str) -> Iterator[str]:
    """The docstrings and comments of a module."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, holders) and (text := ast.get_docstring(node)):
            yield text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    place, *names = dotted.split(".")
    at = ROOT / place
    while names and ((at / names[0]).is_dir() or (at / f"{names[0]}.py").is_file()):
        at = at / names.pop(0)
    if not names:
        return True
    file = at / "__init__.py" if at.is_dir() else at.with_suffix(".py")
    return len(names) == 1 and re.search(rf"\b{names[0]}\b", file.read_text()) is not None


def lost(text: str, beside: Path | None = None) -> list[str]:
    """The modules that the text names and that are not there; `beside`: the folder of the text."""
    dotted = [f"triage{name}" for name in DOTTED.findall(text)]
    files: list[str] = []
    if beside is not None:
        dotted += [f"triage.{name}" for name in CORE.findall(text)]
        files = [
            name
            for name in FILE.findall(text)
            if name not in FOREIGN and not (beside / name).exists()
        ]
    return [name for name in dotted if not exists(name)] + files


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_named_in_a_module_exist(path: Path) -> None:
    assert [name for text in prose(path.read_text()) for name in lost(text, path.parent)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_named_in_a_document_exist(path: Path) -> None:
    assert lost(path.read_text()) == []
    for name in re.findall(
        r"`((?:triage|tools|tests|recipes|fixtures|docs)/[\w./-]+)`", path.read_text()
    ):
        assert (ROOT / name).exists(), name


def test_a_module_that_moved_is_found() -> None:
    text = "See triage.core.runbook, core.plan, triage.core.trials.Problem, gone.py and shell.py."
    beside = ROOT / "triage/command"
    assert lost(text, beside) == ["triage.core.runbook", "triage.core.plan", "gone.py"]
