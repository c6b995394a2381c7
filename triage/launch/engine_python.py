"""Which Python runs the engine: the one that a launch command starts it with.

In:  the words before the server's flags. Out: the words of an interpreter, or None.
Not: whether that Python has the engine (resolver.py).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*\Z")
_ENGINE = ("sglang.launch_server", "sglang")
_SCRIPTS = ("sglang",)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Options of Python that take a word; `-m` ends the interpreter's own.
_WITH_WORD = ("-X", "-W")
_HEAD = 256  # bytes of a script's first line


def engine_python(program: Sequence[str], cwd: Path = Path(), path: str = "") -> str | None:
    """The interpreter that runs the engine in this command, as an absolute path if it is one.

    `python -m sglang.launch_server` and the script `sglang` are known, behind whatever wrapper.
    None for everything else: a shell script could start any Python.

    Args:
        program: The words of the command before the server's flags.
        cwd: Where the command runs.
        path: Its PATH; "" for ours.
    """
    for at, word in enumerate(program):
        if _ASSIGNMENT.match(word):
            continue
        if _PYTHON.match(Path(word).name) and _runs_engine(program[at + 1 :]):
            return _found(word, cwd, path)
        if Path(word).name in _SCRIPTS and list(program[at + 1 : at + 2]) == ["serve"]:
            script = _found(word, cwd, path)
            return _interpreter(Path(script)) if script else None
    return None


def engine_version(python: str) -> str:
    """The version of the SGLang that this Python has, as its package says; "" if unknown.

    Nothing is run: the folder of its packages tells it.
    """
    root = Path(python).parent.parent
    found = sorted(root.glob("lib/python*/site-packages/sglang-*.dist-info"))
    if len(found) != 1:
        return ""
    return found[0].name.removeprefix("sglang-").removesuffix(".dist-info")


def _runs_engine(words: Sequence[str]) -> bool:
    """Whether an interpreter with these words runs the engine as a module."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in _WITH_WORD else 1
    match list(words[at : at + 2]):
        case ["-m", module]:
            return module in _ENGINE
        case _:
            return False


def _found(word: str, cwd: Path, path: str) -> str | None:
    """Where the shell finds the word; the links of a virtual environment are kept."""
    if os.sep in word:
        place = cwd / word
        return os.path.abspath(place) if os.access(place, os.X_OK) else None  # noqa: PTH100
    return shutil.which(word, path=path or None)


def _interpreter(script: Path) -> str | None:
    """The interpreter of a console script, as its first line or its second says."""
    try:
        with script.open("rb") as file:
            head = file.read(_HEAD).decode(errors="replace").splitlines()
    except OSError:
        return None
    if not head or not head[0].startswith("#!"):
        return None
    words = head[0].removeprefix("#!").split()
    if words[:1] == ["/bin/sh"] and len(head) > 1:  # a path that is too long for a first line
        words = head[1].replace("'", " ").replace('"', " ").split()[1:]
    if not words or not _PYTHON.match(Path(words[0]).name):
        return None
    return words[0] if os.access(words[0], os.X_OK) else None
