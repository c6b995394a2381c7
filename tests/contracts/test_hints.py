"""A command that triage tells people to type exists, with the options that it shows."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from triage.cli import COMMANDS, LazyGroup
from triage.session.logs import causes

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "triage").rglob("*.py"))
# A command within a sentence, or after the mark of a hint.
NAMED = re.compile(r"`(triage [^`]*)`|(?:try|next): (triage [^\n]*)")
PLACE = "VALUE"  # for what only the running program knows


def literal(node: ast.expr) -> str | None:
    """The text that an expression makes, with a place for each unknown part."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(literal(part) or PLACE for part in parts)
        case ast.FormattedValue(value=ast.Call() as call):
            return literal(call)
        case ast.Call(func=ast.Name(id="hint"), args=words):
            return " ".join(literal(word) or PLACE for word in words)
        case _:
            return None


def docstrings(tree: ast.Module) -> set[ast.expr]:
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr)
    }


def commands_in(source: str) -> Iterator[str]:
    """Each `triage ...` that a text of this source tells to type, docstrings included."""
    tree = ast.parse(source)
    told = docstrings(tree)
    for node in ast.walk(tree):
        text = literal(node) if isinstance(node, ast.expr) else None
        if text is None:
            continue
        if text.startswith("triage ") and node not in told:
            yield text
        for quoted, marked in NAMED.findall(text):
            yield quoted or marked


def fault(line: str) -> str:
    """What is wrong with a command line of triage; "" if it can be typed."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError as error:
        return str(error)
    at: click.Command = LazyGroup(name="triage", commands={})
    while isinstance(at, click.Group) and words and not words[0].startswith("-"):
        name, words = words[0], words[1:]
        found = at.get_command(click.Context(at), name)
        if name == PLACE:
            return ""
        if found is None:
            return f"there is no command {name}"
        at = found
    known = {spelling for option in at.get_params(click.Context(at)) for spelling in option.opts}
    known |= {"--help", "--version"}
    own = words[: words.index("--")] if "--" in words else words
    unknown = [word for word in own if re.match(r"--?[a-z]", word) and word not in known]
    return f"{at.name} has no option {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_a_source_names_can_be_typed(path: Path) -> None:
    wrong = {line: said for line in commands_in(path.read_text()) if (said := fault(line))}
    assert wrong == {}


def test_every_command_that_a_cause_names_can_be_typed() -> None:
    said = [text for cause in causes() for text in (cause.means, *(r.say for r in cause.remedies))]
    lines = [line for text in said for line in re.findall(r"`(triage [^`]*)`", text)]
    assert lines
    assert [fault(line) for line in lines] == [""] * len(lines)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("raise E('x', hint='triage compare A B')", "there is no command compare"),
        ("H = f'triage bisect --goood {x}'", "bisect has no option --goood"),
        ("raise E(hint=hint('triage', 'confirm', '--now', p))", "confirm has no option --now"),
        ("say(f'x\\n  try: {hint('triage', 'confrim', p)}')".replace("'triage'", '"triage"').replace("'confrim'", '"confrim"'), "there is no command confrim"),
        ("def f():\n    'See `triage causes lst`.'\n", "there is no command lst"),
    ],
)  # fmt: skip
def test_a_command_that_does_not_exist_is_found(source: str, wrong: str) -> None:
    assert wrong in {fault(line) for line in commands_in(source)}


def test_the_sources_name_most_commands() -> None:
    lines = [line for path in SOURCES for line in commands_in(path.read_text())]
    named = {name for line in lines for name in line.split()[1:2]}
    assert named >= COMMANDS.keys()
