"""Write up an investigation: what happened, why, what to change, how it was proved.

In:  an Investigation: the values of all earlier stages, and the two commands as text.
Out: a Runbook, a document without markup.
Not: markup (triage.render) or files (triage.store).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.core.diagnosis import Diagnosis, Root
from triage.core.handover.actions import change, next_steps, not_shown, price, proof, undo
from triage.core.handover.document import (
    Block,
    Bullets,
    Code,
    Paragraph,
    Ref,
    Runbook,
    Section,
    Table,
)
from triage.core.handover.faults import faults
from triage.core.handover.investigation import Investigation
from triage.core.handover.ledger import appendix, assumed, escalate, evidence
from triage.core.handover.pictures import phase_figure, trial_figure
from triage.core.handover.stakes import worth
from triage.core.handover.summary import facts, searched_failure, summary
from triage.core.search.journal import signature
from triage.core.trials import Entry, FailingSet, Problem, Seen
from triage.core.wording import braces, moved_text, pin_text, spell

FEW_FRAMES = 6  # of a traceback, innermost ones


# What a failing set rests on where nothing was launched for it.
_ASKED = {"resolution": "the engine's own checks", "static": "rules of triage"}


def build_runbook(found: Investigation) -> Runbook:
    """The whole document; a section that has nothing to say is left out.

    "works" is written only where a confirmation showed it. If any launch was
    simulated, the title and every heading say so.
    """
    mark = " (simulated)" if found.simulated else ""
    parts: tuple[tuple[str, Iterable[Block]], ...] = (
        ("What happened", _happened(found)),
        ("Cause", _cause(found)),
        ("Faults in series", faults(found)),
        ("Minimal failing sets", _sets(found)),
        ("Trials", _trials(found)),
        ("The change", change(found)),
        ("Price", price(found)),
        ("Proof", proof(found)),
        ("How to undo it", undo(found)),
        ("Worth another try?", worth(found)),
        ("When to escalate", escalate(found)),
        ("Evidence", evidence(found)),
        ("What is assumed", assumed(found)),
        ("What is not shown", not_shown(found)),
        ("Next steps", next_steps(found)),
        ("Appendix: environment and commands", appendix(found)),
    )
    written = (Section(f"{title}{mark}", tuple(blocks)) for title, blocks in parts)
    return Runbook(
        title=f"Runbook: {found.problem.name}{mark}",
        sections=tuple(section for section in written if section.blocks),
        summary=summary(found),
        facts=facts(found),
        simulated=found.simulated,
    )


def _happened(found: Investigation) -> Iterable[Block]:
    if found.simulated:
        yield Paragraph(
            "The launches in this document are simulated: the replay engine answered for the "
            "server, from recorded and assumed entries. Nothing here was measured on the machine "
            "in question."
        )
    lost = sum(entry.seen is Seen.UNRESOLVED for entry in found.journal)
    if lost:
        yield Paragraph(
            f"{lost} of {len(found.journal)} trials are unresolved: they prove nothing."
        )
    if found.diagnosis is None:
        yield Paragraph("No log of a launch that shows the failure was given.")
    for one in found.launches:
        figure = phase_figure(one.diagnosis, one.what, ended_s=one.ended_s)
        if figure is not None:
            yield figure


def _cause(found: Investigation) -> Iterable[Block]:
    told = found.diagnosis
    if told is None:
        return
    if told.cause:
        yield Paragraph(f"{told.cause} ({told.confidence} confidence): {told.title.rstrip('.')}.")
        means = next((c.means for c in found.causes if c.id == told.cause and c.means), "")
        if means:
            yield Paragraph(means)
    elif told.fingerprint:
        yield Paragraph(f"No known cause; the failure's fingerprint is {told.fingerprint}.")
    else:
        yield Paragraph("The log names no cause.")
    if told.root is not None:
        yield from _evidence(told, told.root, found)
    if told.outside:
        yield Paragraph("What others than the log say of it:")
        yield Bullets(told.outside)
    if told.decoys:
        yield Paragraph("These lines mislead:")
        yield Bullets(tuple(f"line {decoy.line}: {decoy.why}" for decoy in told.decoys))
    noise = [("of consequences", told.cascade), ("of the shutdown", told.teardown)]
    counted = [
        f"{len(lines)} {'line' if len(lines) == 1 else 'lines'} {what} (from line {min(lines)})"
        for what, lines in noise
        if lines
    ]
    if counted:
        yield Paragraph(f"Further lines that are not the reason: {', '.join(counted)}.")
    if told.suspects:
        yield Paragraph("Before the search, suspicion fell on these flags:")
        yield Bullets(tuple(_suspect(s.flag, s.why, found) for s in told.suspects))


def _suspect(flag: str, why: str, found: Investigation) -> str:
    """A suspect, and what the search made of it."""
    told = found.diagnosis
    own = [s for s in found.recommendation.sets if told and s.signature == told.signature]
    if not own or not {flag} & found.problem.keys():
        return f"{flag}: {why}"
    if any(flag in s.items for s in own):
        return f"{flag}: {why}; the search confirmed it"
    return f"{flag}: {why}; the search cleared it of this failure"


def _evidence(told: Diagnosis, root: Root, found: Investigation) -> Iterable[Block]:
    yield Paragraph(f"The line that this rests on, of rank {root.rank}:")
    if found.context:
        yield Code("\n".join(_numbered(found.context, root.line)), "log")
    else:
        yield Code(f"> {root.line}: {root.text}", "log")
    yield Ref(told.source, root.line, "the line in the raw log")
    if told.traceback is not None:
        frames = told.traceback.frames[-FEW_FRAMES:]
        if frames:
            yield Paragraph(
                f"Innermost frames of the traceback ({told.traceback.exception}), the last one "
                "raised:"
            )
            yield Code("\n".join(f"{f.file}:{f.line} {f.function}" for f in frames))


def _numbered(lines: Sequence[tuple[int, str]], root: int) -> Iterable[str]:
    width = len(str(lines[-1][0]))
    for number, text in lines:
        yield f"{'>' if number == root else ' '} {number:>{width}}: {text}"


def _sets(found: Investigation) -> Iterable[Block]:
    sets = found.recommendation.sets
    if not sets:
        yield Paragraph("No failure was seen, so there is no failing set.")
        return
    yield Paragraph(
        "A minimal set shows its failure; with any one item less, that failure does not show. A "
        "failure in an earlier phase hides later ones, so one set may lie inside another."
    )
    yield Table(
        ("set", "failure", "phase", "trial", "minimal", "basis"),
        tuple(_set_row(s, found) for s in sets),
    )


def _set_row(s: FailingSet, found: Investigation) -> tuple[str, ...]:
    failure = f"{s.title} ({s.signature})" if s.title else s.signature
    minimal = "yes" if s.minimal else "not shown: a smaller set was not resolved"
    rung = next((e.rung for e in found.journal if e.number == s.entry), "full")
    basis = _ASKED.get(rung, "launches")
    if s.assumed:
        basis = "assumed"
    return (braces(s.items, found.problem), failure, s.phase, str(s.entry), minimal, basis)


def _trials(found: Investigation) -> Iterable[Block]:
    if not found.journal:
        yield Paragraph("No trial was launched.")
        return
    searched = searched_failure(found.journal)
    if searched:
        yield Paragraph(f"Verdicts are about the failure under search; at first {searched}.")
    guessed = [entry for entry in found.journal if entry.provenance == "assumed"]
    seen = [entry for entry in found.journal if entry.provenance != "assumed"]
    yield trial_figure(found.problem, found.journal, searched, _trial_table(seen, found, searched))
    if guessed:
        yield Paragraph("Assumed, not recorded from any launch:")
        yield _trial_table(guessed, found, searched)
    yield from _confounded(found.journal)


def _confounded(journal: Iterable[Entry]) -> Iterable[Block]:
    """Trials whose verdict is about more than was meant, and how to take it out."""
    trials = [entry for entry in journal if entry.moved]
    if not trials:
        return
    yield Paragraph(
        "In these trials the engine changed more than was meant: the verdict of each is about "
        "all of it, and the trial is called confounded."
    )
    yield Bullets(tuple(f"trial {e.number}: {'; '.join(map(moved_text, e.moved))}" for e in trials))
    if pin := pin_text(moved for entry in trials for moved in entry.moved):
        yield Paragraph(
            "With this line in the recipe every launch has it, and it tells them apart:"
        )
        yield Code(pin, "yaml")


def _trial_table(entries: Sequence[Entry], found: Investigation, searched: str | None) -> Table:
    return Table(
        ("trial", "on top of the baseline", "verdict", "failure", "phase", "s", "basis"),
        tuple(_trial_row(entry, found.problem, searched) for entry in entries),
    )


def _trial_row(entry: Entry, problem: Problem, searched: str | None) -> tuple[str, ...]:
    items = ", ".join(spell(i.change) for i in problem.items if i.key in entry.items)
    failure = signature(entry) if entry.seen is Seen.FAILS else entry.reason
    mark = " (confounded)" if entry.moved else ""
    return (
        str(entry.number),
        items or "nothing",
        f"{_verdict(entry, searched)}{mark}",
        failure,
        entry.phase,
        f"{entry.seconds:.1f}",
        _origin(entry),
    )


def _origin(entry: Entry) -> str:
    """What a trial's answer rests on."""
    if entry.same_as is not None:
        return f"as trial {entry.same_as}, to the engine"
    return "smaller model" if entry.rung == "twin" else entry.provenance


def _verdict(entry: Entry, searched: str | None) -> str:
    if entry.seen is Seen.PASSES:
        return "PASSES the checks"
    return entry.verdict(entry.searching or searched).value
