"""The sections on how far to trust a runbook, and what to do when it does not hold.

In:  an Investigation. Out: the blocks of each section, without markup.
Not: the change and its proof (actions.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import join as shell_join

from triage.core.config import argv
from triage.core.handover.document import Block, Bullets, Code, Facts, Paragraph, Table
from triage.core.handover.investigation import Investigation
from triage.core.search.claims import Kind
from triage.core.trials import Seen

_MOST = 20  # differences that are shown
_EVIDENCE = {Kind.IMPLIED: "reasoning over the launches", Kind.ASSUMED: "an assumed answer"}


def assumed(found: Investigation) -> Iterable[Block]:
    """The ledger: what is taken for granted, on which evidence, and whether it was verified."""
    rows = [(a.say, a.evidence or "the recipe's word", a.verified) for a in found.assumptions]
    trials = [str(e.number) for e in found.journal if e.provenance == "assumed"]
    if trials:
        rows.append((f"The answers of trials {', '.join(trials)}.", "an assumed entry", "no"))
    rows += [
        (claim.say, _EVIDENCE[claim.kind], "no")
        for claim in found.recommendation.claims
        if claim.kind in _EVIDENCE
    ]
    if rows:
        yield Table(("assumed", "on which evidence", "verified"), tuple(rows))


def evidence(found: Investigation) -> Iterable[Block]:
    """What the launches that matter left beside their logs, a line for each file."""
    rows = [
        (
            str(number),
            item.kind,
            f"trials/{number:03d}/{item.file}" if item.file and not item.missing else "-",
            item.say or f"not available: {item.missing}",
        )
        for number, kept in found.evidence
        for item in kept.pieces
    ]
    if rows:
        yield Table(("trial", "what", "file", "what it shows"), tuple(rows))
    for number, kept in found.evidence:
        if kept.differences:
            yield Paragraph(f"What trial {number} ran with was not as at the first launch:")
            yield Table(
                ("what", "before", "after"),
                tuple((d.name, d.before or "-", d.after or "-") for d in kept.differences[:_MOST]),
            )


def escalate(found: Investigation) -> Iterable[Block]:
    """When to stop trying alone, and to whom to go with what."""
    told, plan = found.diagnosis, found.recommendation
    steps: list[str] = []
    if plan.config is not None:
        steps.append(
            "The proposed command fails, or ends in a failure that is not in the table of failing "
            "sets: that is a new fault. Classify its log before anything else is changed: "
            "triage classify LOG"
        )
    elif plan.reason in {"unfinished", "budget"}:
        steps.append(
            "The search has not ended. Go on with it before anybody is asked: "
            f"{found.command('bisect', '--session')}"
        )
    else:
        steps.append(
            "No configuration is known to start: go back to what started last, engine and machine "
            "included, and search from there."
        )
    by_id = {cause.id: cause for cause in found.causes}
    names = [s.cause for s in plan.sets] + ([told.cause] if told else [])
    steps += [
        f"{name}: {by_id[name].escalate}"
        for name in dict.fromkeys(names)
        if name in by_id and by_id[name].escalate
    ]
    if told is not None and told.cause is None and told.fingerprint:
        steps.append(
            f"No cause is known for this failure (fingerprint {told.fingerprint}); if it comes up "
            "again, on this or another machine, it is worth a report."
        )
    if told is not None or any(entry.seen is Seen.FAILS for entry in found.journal):
        gone = plan.drop or plan.change
        needed = "What is dropped is needed after all" if gone else "The failure stands in the way"
        steps.append(
            f"{needed}: report the failure to the engine's authors. The "
            f"report, with a command that starts beside one that fails: {found.command('issue')}"
        )
    yield Bullets(tuple(steps))


def appendix(found: Investigation) -> Iterable[Block]:
    """The environment, and every command that was launched, by trial."""
    if found.environment:
        yield Facts(found.environment)
    commands = [
        (e.number, shell_join([*(f"{n}={v}" for n, v in e.config.env), *argv(e.config)]))
        for e in found.journal
    ]
    if any(line for _, line in commands):
        yield Paragraph("The flags of each trial:")
        yield Code("\n".join(f"# trial {n}\n{line}" for n, line in commands))
    yield Paragraph("The commands of triage, to see the same again:")
    again = ("recommend", "confirm", "runbook", "issue")
    yield Code("\n".join(found.command(name) for name in again), "sh")
