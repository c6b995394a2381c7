"""A search as plain text for a terminal of 80 columns: trials, sets, the proposal.

In:  trials, entries, a Recommendation. Out: strings of one or more lines, without colour
and without a newline at the end. Characters that a terminal would obey are replaced.
Not: printing (triage.cli) or Markdown (markdown.py).
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Sequence

from triage.core.search.explain import what
from triage.core.search.journal import signature
from triage.core.search.pace import Outlook
from triage.core.search.plan import LEVELS
from triage.core.search.recommend import Choice, Recommendation
from triage.core.search.rungs import MASKS, Spent
from triage.core.trials import Entry, FailingSet, Problem, Seen, Trial
from triage.core.units import format_seconds
from triage.core.wording import braces, moved_text, spell, spell_setting
from triage.render.markdown import visible

WIDTH = 80
# What a search for each goal claims in the end, followed by how surely.
CLAIMS = {
    "best": "nothing that keeps more starts",
    "first": "with any flag less it does not fail",
    "all": "these are all the failing sets",
}
NOTHING_FAILS = "nothing that the rules allow fails"
MANY = 3  # items of a trial; of more, those that are left out may be fewer to name
LATER = "  "  # before the second and later lines of one thing


def trial_head(trial: Trial, number: int, most: int, problem: Problem) -> str:
    """Before a launch: its number, what is added to the baseline, and why.

    Args:
        trial: What the planner asks for.
        number: Of this launch, from 1.
        most: The forecast's upper end; left out once the search has passed it.
        problem: Gives the items their values.
    """
    of = f"/{most}" if number <= most else ""
    head = _wrapped(f"trial {number}{of}  {_what(trial.items, problem)}", LATER * 2)
    return f"{head}\n{_indented(trial.why, LATER)}"


def trial_line(entry: Entry, *, numbered: bool = False) -> str:
    """After a launch: the verdict, the failure and its phase, the seconds, on one line.

    The verdict is about the failure that was under search; the first failure, which
    sets the search, says FAILS. The phase is left out where the line has no room.
    `numbered`: the trial's number stands before it, as others go on at the same time.
    """
    number = f"trial {entry.number}: " if numbered else ""
    start = f"{LATER}{number}{_verdict(entry)}"
    end = f" ({_origin(entry)}{format_seconds(entry.seconds)})"
    if entry.seen is Seen.FAILS:
        start += f" {signature(entry)}"
        phase = f" in {entry.phase}" if entry.phase != "unknown" else ""
        if len(start) + len(phase) + len(end) <= WIDTH:
            start += phase
    elif entry.seen is Seen.UNRESOLVED and entry.reason:
        start += f" {_cut(entry.reason, WIDTH - len(start) - len(end) - 1)}"
    return "\n".join([_wrapped(f"{start}{end}", LATER * 2), *_confounded(entry)])


def _confounded(entry: Entry) -> list[str]:
    """What the verdict is about as well, indented."""
    if not entry.moved:
        return []
    return [_indented(f"confounded: {'; '.join(map(moved_text, entry.moved))}", LATER * 2)]


def trial_event(entry: Entry, ahead: Outlook, problem: Problem) -> str:
    """A finished trial on one line, however long: what, verdict, seconds, and why.

    For logs and pipes, where a line is a record. `ahead` is what the search takes after it.
    """
    of = f"/{ahead.total}" if entry.number <= ahead.total else ""
    shown = [f"trial {entry.number}{of}", _what(entry.items, problem), _verdict(entry)]
    if entry.seen is Seen.FAILS:
        shown.append(f"{signature(entry)} in {entry.phase}")
    elif entry.seen is Seen.UNRESOLVED and entry.reason:
        shown.append(entry.reason)
    shown.append(f"({_origin(entry)}{format_seconds(entry.seconds)})")
    if entry.moved:
        shown.append(f"confounded: {'; '.join(map(moved_text, entry.moved))}")
    return _line(f"{'  '.join(shown)}  left: {ahead.say()}  why: {entry.why}")


def trials_text(problem: Problem, journal: Sequence[Entry]) -> str:
    """All finished trials, two lines each: what was on top of the baseline, and what it showed."""
    lines: list[str] = []
    for entry in journal:
        what = _what(entry.items, problem)
        lines += [_wrapped(f"trial {entry.number}  {what}", LATER * 2), trial_line(entry)]
    return "\n".join(lines)


def sets_text(problem: Problem, sets: Sequence[FailingSet]) -> str:
    """The minimal failing sets: each with its failure, phase and trial, indented."""
    lines: list[str] = []
    for s in sets:
        notes = [s.phase, f"trial {s.entry}"]
        notes += ["assumed"] if s.assumed else []
        notes += [] if s.minimal else ["a smaller set was not resolved"]
        lines.append(_wrapped(f"{LATER}{braces(s.items, problem)}", LATER * 2))
        lines.append(_indented(f"{s.signature}: {s.title}" if s.title else s.signature, LATER * 2))
        lines.append(_indented(f"({', '.join(notes)})", LATER * 2))
    return "\n".join(lines)


def recommendation_text(found: Recommendation, problem: Problem) -> str:
    """The proposal, its failing sets and how far the evidence goes."""
    mark = "simulated: " if found.simulated else ""
    parts = [_wrapped(f"{mark}{found.say}", "  ")]
    if found.level:
        claim = LEVELS[found.level]
        if found.level != "seen":
            nothing = problem.goal != "best" and not found.sets
            claim = f"{NOTHING_FAILS if nothing else CLAIMS[problem.goal]}: {claim}"
        parts.append(_wrapped(f"  claim   {claim}", " " * 10))
    for word, choices in (
        ("keep", found.keep),
        ("drop", found.drop),
        ("change", found.change),
        ("add", found.add),
    ):
        parts += [_choice(word, choice) for choice in choices]
    if found.sets:
        parts += ["", "minimal failing sets"]
        parts.append(sets_text(problem, found.sets))
    if found.claims:
        parts += ["", "how far this is supported"]
        parts += [_wrapped(f"  {c.kind.value:9s}  {c.say}", " " * 13) for c in found.claims]
    parts += ["", closing_text(found)]
    if found.alternatives:
        parts += ["", "also started"]
        parts += [
            _wrapped(
                f"  {braces(one.items, problem)}  weight {one.weight:g}, trial {one.entry}", "    "
            )
            for one in found.alternatives
        ]
    return "\n".join(parts)


def closing_text(found: Recommendation) -> str:
    """What the answer cost, what came free, and what was not launched as it is implied."""
    spent = found.spent
    lines = [spent_text(spent)]
    if not spent.asked:
        many = f"{spent.launches} launch{'' if spent.launches == 1 else 'es'}"
        lines = [f"{many} in {format_seconds(spent.seconds)}; no answer came free"]
    if (left := found.implied) is not None and (left.fails or left.starts or left.open):
        told = [f"{left.fails} fail"] if left.fails else []
        told += [f"{left.starts} start"] if left.starts else []
        sure = f"{' and '.join(told)}, if adding a flag never repairs a failure" if told else ""
        rest = f"of {left.open} nothing is known" if left.open else ""
        if left.open and found.level == "proved":
            rest += ", and none of them keeps more"
        lines.append(
            _wrapped(
                f"not launched: {left.total - left.asked} of {left.total} combinations; "
                + "; ".join(filter(None, (sure, rest))),
                LATER,
            )
        )
    return "\n".join(lines)


def spent_text(spent: Spent) -> str:
    """How many launches a search took, and what the answers without one saved."""
    launches = f"{spent.launches} launch{'' if spent.launches == 1 else 'es'}"
    twins = f", {spent.twins} of them with a smaller model" if spent.twins else ""
    saved = ""
    if spent.saved_s:
        many = f"{spent.saved_launches} launch{'' if spent.saved_launches == 1 else 'es'}"
        saved = f": {many} and at least {format_seconds(spent.saved_s)} saved"
    answers = f"{spent.asked} answer{'' if spent.asked == 1 else 's'} without a launch"
    head = f"{launches}{twins}; {answers}{saved}"
    masks = [f"{LATER}{rung} does not see: {MASKS[rung]}" for rung in spent.rungs if rung != "full"]
    return "\n".join([_wrapped(head, LATER), *(_wrapped(mask, LATER * 2) for mask in masks)])


def _choice(word: str, choice: Choice) -> str:
    text = f"  {word:6s}  {spell_setting(choice.key, choice.value)}"
    lines = [_wrapped(text, " " * 12)]
    if word != "keep":
        lines.append(_indented(choice.why, " " * 12))
        if choice.price:
            lines.append(_indented(f"price: {choice.price}", " " * 12))
    return "\n".join(lines)


def _verdict(entry: Entry) -> str:
    if entry.seen is Seen.PASSES:
        return "PASSES"
    if entry.seen is Seen.FAILS and entry.searching is None:
        return "FAILS"
    return entry.verdict(entry.searching).value


def _origin(entry: Entry) -> str:
    """What a simulated answer rests on, and a rung below the launch in full, before its seconds."""
    simulated = f"simulated, {entry.provenance}, " if entry.simulated else ""
    rung = f"as trial {entry.same_as}, " if entry.same_as else f"{entry.rung}, "
    return simulated + (rung if entry.rung != "full" or entry.same_as else "")


def _what(keys: Iterable[str], problem: Problem) -> str:
    """What is on top of the baseline, or of many items what of all that is wanted is not."""
    chosen = frozenset(keys)
    names = [spell(i.change) for i in problem.choices() if i.key in chosen]
    if len(names) <= MANY:
        return f"+ {', '.join(names)}" if names else "the baseline"
    return what(problem, chosen)


def pasted(words: Sequence[str]) -> str:
    """A command to paste, over as many lines of the terminal as it needs."""
    lines = [""]
    for word in map(shlex.quote, words):
        if lines[-1] and len(lines[-1]) + len(word) + len(LATER) > WIDTH - 1:
            lines.append(LATER)
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return " \\\n".join(lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 2, 0)]}.."


def _line(text: str) -> str:
    return visible(" ".join(text.splitlines())).rstrip()


def _wrapped(text: str, later: str) -> str:
    """Text over as many lines as it needs; the second and later ones begin with `later`."""
    return textwrap.fill(
        _line(text),
        WIDTH,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
        drop_whitespace=True,
    )


def _indented(text: str, indent: str) -> str:
    return _wrapped(f"{indent}{text}", indent)
