"""Proposals against a failure: text for a terminal, and the document `triage.proposals/1`.

In:  Proposals, and each option as the command to paste. Out: strings; a dict of JSON values.
Not: writing commands (triage.command) or printing (triage.cli).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag
from triage.core.handover.proposals import Basis, Kind, Proposal, Proposals, Span
from triage.core.hide import hide_change, hide_config
from triage.core.printable import visible
from triage.core.records import dataclass
from triage.core.wording import spell, spell_setting
from triage.render.documents import Json, change_document, config_document

WIDTH = 80
_BASIS = {
    Basis.LAUNCHED: "a launch here came up with it",
    Basis.REPORTED: "reports confirm it",
    Basis.STATED: "the engine's message asks for it",
    Basis.SUGGESTED: "suggested in a report",
    Basis.INFERRED: "inferred, no report says so",
}
_MOST = 6  # options that are printed; the document has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One option as it is pasted: see triage.session.proposals.Written."""

    text: str = ""
    language: str = "sh"
    diff: str = ""
    notes: tuple[str, ...] = ()


def proposals_text(
    found: Proposals,
    shown: Sequence[Shown],
    *,
    picked: int = 0,
    every: bool = False,
    budget: int = 6,
) -> str:
    """The options in their order; the picked one with diff and command.

    Args:
        found: The options and what is ruled out.
        shown: For each option, in the same order, its command.
        picked: Number of the option to print in full, from 1; 0 for the first that has a command.
        every: Print all that have a command in full.
        budget: The most launches of the plan.
    """
    parts = [_head(found)]
    number = picked or first_with_command(found)
    for at, option in enumerate(found.options[: max(_MOST, number)], 1):
        parts.append(_option(at, option, found.config))
    if len(found.options) > _MOST:
        parts.append(f"and {len(found.options) - _MOST} more; --json has all of them")
    if not found.options:
        parts.append("No proposal: nothing in the knowledge or in the log says what helps.")
    if found.ruled_out:
        lines = [_wrap(f"  {visible(r.say)}: {visible(r.fact)}", "    ") for r in found.ruled_out]
        parts.append("\n".join(["ruled out", *lines]))
    if plan := plan_say(found, budget):
        parts.append(_wrap(f"plan: {plan}", "  "))
    if every:
        for at, one in enumerate(shown, 1):
            parts += command_text(at, one)
    elif 0 < number <= len(shown):
        parts += command_text(number, shown[number - 1])
    return "\n\n".join(parts)


def first_with_command(found: Proposals) -> int:
    """The number of the first option that a launch can try, from 1; 0 if there is none."""
    return next(iter(_order(found, len(found.options))), 0)


def _head(found: Proposals) -> str:
    name = found.cause or f"unknown failure ({found.signature})"
    where = "" if found.phase == "unknown" else f" in {found.phase}"
    title = f": {visible(found.title)}" if found.title else ""
    return _wrap(f"{name}{where}{title}", "  ")


def _option(number: int, option: Proposal, base: Config | None) -> str:
    mark = "look: " if option.probe else ""
    lines = [_wrap(f"{number}. {mark}{visible(option.say)}", "   ")]
    edits = (visible(change_words(change, base)) for change in option.changes)
    lines += [_wrap(f"   {edit}", "     ") for edit in edits]
    facts = [_BASIS[option.basis], option.disposition.value]
    if option.cost and option.cost != "none":
        facts.append(f"costs: {visible(option.cost)}")
    if option.trial is not None:
        facts[0] = f"trial {option.trial} came up with it"
    lines.append(_wrap(f"   ({'; '.join(facts)})", "    "))
    if option.unsure:
        lines.append(_wrap(f"   if: {', '.join(option.unsure)} (not known here)", "     "))
    if option.span is not None:
        lines.append(_wrap(f"   search: {span_words(option.span)}", "     "))
    return "\n".join(lines)


def change_words(change: Change, base: Config | None) -> str:
    """One edit as people say it: `ep-size 8 -> 4`, `add trust-remote-code`, `drop ep-size 8`."""
    shown = hide_change(change)
    base = hide_config(base) if base is not None else None
    flags = base.flag_values() if base is not None else {}
    env = base.env_values() if base is not None else {}
    match shown:
        case SetFlag(name, value) if name in flags:
            return f"change {spell_setting(name, flags[name])} -> {_value(value)}"
        case SetEnv(name, text) if name in env:
            return f"change {name}={env[name]} -> {text}"
        case SetFlag() | SetEnv():
            return f"add {spell(shown)}"
        case UnsetFlag(name):
            return f"drop {spell_setting(name, flags.get(name, True))}"
        case UnsetEnv(name):
            return f"drop {name}" + (f"={env[name]}" if name in env else "")


def _value(value: object) -> str:
    match value:
        case True:
            return "on"
        case False:
            return "off"
        case tuple():
            return " ".join(map(str, value))
        case _:
            return str(value)


def span_words(span: Span) -> str:
    """A span as people say it: `mem-fraction-static from 0.86 to 0.7 in steps of 0.02`."""
    values = span.values()
    return (
        f"--{span.flag} from {values[0]} to {values[-1]} in steps of {abs(span.step):g},"
        f" {len(values)} values"
    )


def _order(found: Proposals, budget: int) -> list[int]:
    """The numbers of the options that a launch can try, in their order."""
    return [
        number
        for number, option in enumerate(found.options, 1)
        if option.config is not None and not option.probe
    ][:budget]


def plan_say(found: Proposals, budget: int) -> str:
    """How the options are tried in a chain of launches, in a sentence or two; "" without any."""
    numbers = _order(found, budget)
    if not numbers:
        return ""
    order = ", then ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")  # noqa: PLR2004
    return (
        f"launch {order}, at most {budget} launches. The same failure again: the next of them."
        " Another failure further on: a second fault, whose own proposals are made on top."
    )


def untried_text(found: Proposals) -> str:
    """Remedies that no launch has tried and that would keep more, of a search; "" without any."""
    lines = [
        _option(number, option, found.config)
        for number, option in enumerate(found.options, 1)
        if option.trial is None
    ]
    return "\n".join(["not tried here, would keep more", *lines]) if lines else ""


def option_documents(options: Sequence[Proposal], shown: Sequence[Shown]) -> list[Json]:
    """Each option with its edits, its config and the command to paste."""
    return [
        _document(number, option, one)
        for number, (option, one) in enumerate(zip(options, shown, strict=True), 1)
    ]


def command_text(number: int | None, shown: Shown) -> Iterator[str]:
    """The parts of the answer that are pasted: the diff, the command, what to know before.

    `number` is that of the option, None where the answer numbers none.
    """
    if shown.diff:
        lead = "what is proposed" if number is None else f"with {number}."
        yield f"{lead}, as a diff:\n{shown.diff}"
    if shown.text:
        yield f"to paste:\n{shown.text.rstrip(chr(10))}"
    for note in shown.notes:
        yield _wrap(f"note: {note}", "  ")


def _wrap(text: str, later: str) -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=later, break_on_hyphens=False, break_long_words=False
    )


def proposals_document(
    source: str,
    found: Proposals,
    shown: Sequence[Shown],
    *,
    given: bool,
    budget: int = 6,
) -> dict[str, Json]:
    """`triage.proposals/1`: every option with its edits, its config and the command to paste.

    Secrets are hidden by the one that prints it.
    """
    return {
        "schema": "triage.proposals/1",
        "source": source,
        "cause": found.cause,
        "signature": found.signature,
        "title": found.title,
        "phase": found.phase,
        "config": _config(found.config),
        "given": given,
        "proposals": option_documents(found.options, shown),
        "ruled_out": [
            {
                "say": r.say,
                "changes": [change_document(hide_change(c)) for c in r.changes],
                "fact": r.fact,
            }
            for r in found.ruled_out
        ],
        "plan": {
            "budget": budget,
            "order": list[Json](_order(found, budget)),
            "say": plan_say(found, budget),
        },
    }


def _config(config: Config | None) -> Json:
    return None if config is None else config_document(hide_config(config))


def _document(number: int, option: Proposal, shown: Shown) -> dict[str, Json]:
    return {
        "number": number,
        "say": option.say,
        "kind": option.kind.value,
        "basis": option.basis.value,
        "evidence": option.evidence,
        "disposition": option.disposition.value,
        "cost": option.cost,
        "changes": [change_document(hide_change(change)) for change in option.changes],
        "config": _config(option.config),
        "given_up": list[Json](option.given_up),
        "weight": option.weight,
        "size": option.size,
        "span": _span(option.span),
        "unsure": list[Json](option.unsure),
        "probe": option.probe,
        "trial": option.trial,
        "manual": option.kind is Kind.MANUAL,
        "command": shown.text,
        "language": shown.language,
        "diff": shown.diff,
        "notes": list[Json](shown.notes),
    }


def _span(span: Span | None) -> Json:
    if span is None:
        return None
    return {"flag": span.flag, "values": list[Json](span.values())}
