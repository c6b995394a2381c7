"""A Recipe as a file that `load_recipe` reads back to the same value.

In:  Recipe. Out: YAML text.
Not: a general YAML writer: only text that cannot be taken for anything else goes unquoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields

from triage.core.config import SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.trials import Item, Problem
from triage.core.wording import ENV
from triage.recipe import Figure, Recipe, Workload

# Words that no YAML reader takes for a number, a truth value, a date or syntax.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*\Z")
_TAKEN = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,15})\Z")


def write_recipe(recipe: Recipe) -> str:
    """See triage.recipe.dump_recipe."""
    problem = recipe.problem
    lines = [
        "schema: triage.recipe/1",
        *(f"# {' '.join(note.split())}" for note in recipe.notes),
        f"name: {_text(recipe.name)}",
        f"engine: {recipe.engine}",
        f"engine_version: {_quoted(recipe.engine_version)}",
        *_launch(recipe),
        "baseline:",
        f"  flags: {_flow(problem.baseline.flag_values())}",
        f"  env: {_flow(problem.baseline.env_values(), words=True)}",
        *_section("wanted", map(_wanted, problem.items)),
        *_section(
            "repairs",
            (
                f"{{flag: {_text(r.change.name)}, value: {_value(r.change.value)},"
                f" cost: {_quoted(r.cost)}, price: {r.price!r}}}"
                for r in recipe.repairs
            ),
        ),
        *_section(
            "ranges",
            (
                f"{{flag: {_text(r.flag)}, from: {r.start!r}, to: {r.end!r}, step: {r.step!r},"
                f" price: {r.price!r}}}"
                for r in recipe.ranges
            ),
        ),
        *_rules(problem),
        f"noise: {{miss: {problem.noise.miss!r}, transient: {problem.noise.transient!r}}}",
        f"budget: {{trials: {problem.budget_trials}, hours: {problem.budget_s / 3600!r},"
        f" nodes: {recipe.at_once}}}",
        f"confirm: {{requests: {recipe.confirm.requests},"
        f" concurrency: {list(recipe.confirm.concurrency)}, tokens: {recipe.confirm.tokens},"
        f" text: {'any' if recipe.confirm.any_text else 'judged'}}}",
        *_section("assumptions", map(_mapping, recipe.assumptions)),
        *_workload(recipe.workload),
        *_section("reported", map(_quoted, recipe.reported)),
        *_section("worth", map(_mapping, recipe.worth)),
        *_section("not_shown", map(_mapping, recipe.not_shown)),
    ]
    if recipe.landscape:
        lines.append(f"landscape: {_quoted(str(recipe.landscape))}")
    lines.append(f"speed: {recipe.speed!r}")
    lines.append(f"rungs: [{', '.join(recipe.rungs)}]")
    return "\n".join(lines) + "\n"


def _launch(recipe: Recipe) -> list[str]:
    patience = recipe.patience
    seconds = {"silent": patience.silent_s, "total": patience.total_s}
    seconds |= {"settle": patience.settle_s, **patience.phases}
    pairs = zip(("starts", "fails"), recipe.takes, strict=True)
    takes = [f"{name}: {value!r}" for name, value in pairs if value is not None]
    waits = ", ".join(f"{name}: {value!r}" for name, value in seconds.items())
    return [
        "launch:",
        f"  target: {recipe.target}",
        *([f"  unit: {_text(str(recipe.unit))}"] if recipe.unit else []),
        *([_words("container", recipe.container)] if recipe.container else []),
        *([f"  nodes: {recipe.nodes}"] if recipe.nodes != 1 else []),
        *([_words("sbatch", recipe.sbatch)] if recipe.sbatch else []),
        *([f"  devices: {[list(slot) for slot in recipe.devices]}"] if recipe.devices else []),
        _words("command", recipe.command),
        f"  env: {_flow(dict(recipe.env), words=True)}",
        f"  cwd: {_text(str(recipe.cwd))}",
        f"  patience: {{{waits}}}  # seconds",
        *([f"  takes: {{{', '.join(takes)}}}  # seconds"] if takes else []),
    ]


def _workload(workload: Workload) -> list[str]:
    return [
        "workload:",
        f"  gpu: {_quoted(workload.gpu)}",
        f"  gpus: {workload.gpus}",
        f"  input_tokens: {workload.input_tokens}",
        f"  output_tokens: {workload.output_tokens}",
        *(f"  {line}" for line in _section("figures", map(_figure, workload.figures))),
    ]


def _figure(one: Figure) -> str:
    without = ", ".join(map(_text, one.without))
    return (
        f"{{concurrency: {one.concurrency}, tokens_per_s: {one.tokens_per_s!r},"
        f" source: {_quoted(one.source)}, without: [{without}]}}"
    )


def _words(name: str, words: Iterable[str]) -> str:
    return f"  {name}: [{', '.join(map(_text, words))}]"


def _rules(problem: Problem) -> list[str]:
    wanted = problem.keys()
    return [
        f"pin: [{', '.join(map(_text, problem.pinned))}]",
        *_section(
            "requires",
            (
                f"{{flag: {_text(a)}, needs: {_text(b)}}}"
                for a, b in problem.requires
                if a in wanted  # the levels of a range follow from the range
            ),
        ),
        *_section("not_both", (f"[{_text(a)}, {_text(b)}]" for a, b in problem.not_both)),
        f"goal: {problem.goal}",
    ]


def _wanted(item: Item) -> str:
    match item.change:
        case SetFlag(name, value):
            return f"{{flag: {_text(name)}, value: {_value(value)}, weight: {item.weight!r}}}"
        case SetEnv(name, text):
            return f"{{env: {_text(name)}, value: {_quoted(text)}, weight: {item.weight!r}}}"
        case UnsetFlag(name):
            return f"{{unset: {_text(name)}, weight: {item.weight!r}}}"
        case UnsetEnv(name):
            return f"{{unset: {_text(ENV + name)}, weight: {item.weight!r}}}"


def _section(name: str, entries: Iterable[str]) -> list[str]:
    lines = [f"  - {entry}" for entry in entries]
    return [f"{name}:", *lines] if lines else []


def _mapping(part: Assumption | Worth | Doubt) -> str:
    """A text, or texts, under each field's name; what is empty is left out."""
    shown = [
        f"{name}: [{', '.join(map(_quoted, value))}]"
        if isinstance(value, tuple)
        else f"{name}: {_quoted(value)}"
        for name, value in ((f.name, getattr(part, f.name)) for f in fields(part))
        if value
    ]
    return f"{{{', '.join(shown)}}}"


def _flow(values: Mapping[str, Value], *, words: bool = False) -> str:
    shown = (
        f"{_text(name)}: {_quoted(str(value)) if words else _value(value)}"
        for name, value in values.items()
    )
    return f"{{{', '.join(shown)}}}"


def _value(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value if _WHOLE.match(value) else _text(value)
        case parts:
            return f"[{', '.join(_value(part) for part in parts)}]"


def _text(text: str) -> str:
    if _PLAIN.match(text) and text.lower() not in _TAKEN:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\' or not char.isprintable():
        return f"\\U{ord(char):08X}"
    return char
