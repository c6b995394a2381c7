"""The general runbook of a cause: what to look at, what to change, how to prove it, whom to ask.

In:  a Cause, and all causes. Out: a Runbook; an index of many.
Not: a runbook of what happened in one investigation (runbook.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from triage.core.causes import Cause, Remedy, Role
from triage.core.config import Flag, words
from triage.core.doctor.catalogue import told_by
from triage.core.handover.document import (
    Block,
    Bullets,
    Code,
    Paragraph,
    Runbook,
    Section,
    Table,
)
from triage.core.log.compute import in_words
from triage.core.phases import PHASES, order

ANY_PHASE = "Any phase"
NEVER = "Never the reason"
EXAMPLES = 3
_ROLES = {
    Role.CONFIRM: "it only supports another cause",
    Role.CASCADE: "it is a consequence of another failure; look for that one, earlier in the log",
    Role.TEARDOWN: "it is noise of the shutdown",
    Role.ADVICE: "it is advice that the program prints, whatever has failed",
    Role.BENIGN: "healthy launches print it too",
}
_BASES = {
    "maintainer-confirmed": "confirmed by a maintainer",
    "user-confirmed": "confirmed by a user",
    "program-output": "the program's own message says so",
    "suggested": "suggested, not confirmed",
    "inferred": "inferred, not tried",
}


Seen = Mapping[str, tuple[str, ...]]  # cause id -> phases in which recorded cases show it


def cause_runbook(cause: Cause, known: Sequence[Cause], seen: Seen | None = None) -> Runbook:
    """What is known of a cause, in the order in which an engineer on call needs it."""
    parts: tuple[tuple[str, Iterable[Block]], ...] = (
        ("What it means", _means(cause)),
        ("How to recognise it", _recognise(cause)),
        ("First checks", _checks(cause)),
        ("What is known to bring it about", _origins(cause)),
        ("What misleads", _misleads(cause, known)),
        ("What helps", _helps(cause)),
        ("How to prove it", _proof(cause)),
        ("When to escalate", _escalate(cause)),
        ("Sources", (Bullets(cause.sources),) if cause.sources else ()),
    )
    written = (Section(title, tuple(blocks)) for title, blocks in parts)
    return Runbook(
        title=f"Runbook: {cause.title}",
        sections=tuple(section for section in written if section.blocks),
        facts=tuple((name, value) for name, value in _facts(cause, seen or {}) if value),
    )


def index_of(known: Sequence[Cause], seen: Seen | None = None) -> Runbook:
    """The first page of a set of runbooks: every cause under each phase in which it shows.

    The phases stand in the order of a startup, so that no search is needed: the last phase
    in the log is where to look.
    """
    by_phase = _by_phase(known, seen or {})
    sections = [
        Section(
            phase,
            (Table(("cause", "what it is"), tuple((c.id, c.title) for c in causes)),),
        )
        for phase, causes in by_phase.items()
    ]
    count = sum(c.role is Role.ROOT for c in known)
    return Runbook(
        title="Runbooks for launches that fail",
        summary=(
            f"{count} causes, by the phase in which they may show or were seen; the phases stand "
            "in the order of a startup. Look where the log ends.",
            "To have the cause named, and with it the page to read: triage classify LOG",
        ),
        sections=tuple(sections),
    )


def remedy_words(remedy: Remedy) -> str:
    """What the remedy changes, as it would be typed; placeholders stay."""
    changes = [" ".join(words(Flag(name, value))) for name, value in remedy.set_flags]
    changes += [f"{name}={value}" for name, value in remedy.set_env]
    changes += [f"without --{name}" for name in remedy.unset]
    changes += [f"without {name}" for name in remedy.unset_env]
    return ", ".join(changes)


def _by_phase(known: Sequence[Cause], seen: Seen) -> Mapping[str, list[Cause]]:
    roots = [(c, _shows_in(c, seen)) for c in known if c.role is Role.ROOT]
    found = {p: [c for c, phases in roots if p in phases] for p in PHASES}
    found[ANY_PHASE] = [c for c, phases in roots if not phases]
    found[NEVER] = [c for c in known if c.role is not Role.ROOT]
    return {name: sorted(causes, key=lambda c: c.id) for name, causes in found.items() if causes}


def _shows_in(cause: Cause, seen: Seen) -> tuple[str, ...]:
    """Where it may be the root, or else where cases showed it; () for anywhere."""
    return tuple(sorted(cause.phases or seen.get(cause.id, ()), key=order))


def _facts(cause: Cause, seen: Seen) -> Iterable[tuple[str, str]]:
    yield "cause", cause.id
    if cause.role is not Role.ROOT:
        yield "role", f"{cause.role.value}: never the reason of a failure"
    phases = ", ".join(_shows_in(cause, seen))
    if cause.phases or not phases:
        yield "shows in", phases or "any phase"
    else:
        yield "shows in", f"any phase; seen in {phases}"
    if cause.role is Role.ROOT:
        yield "how it ends", "the launch hangs, without an error" if cause.hang else "an error"
    yield "suspects", ", ".join([*(f"--{f}" for f in cause.culprit_flags), *cause.culprit_env])
    if cause.transient:
        yield "transient", "it is the machine's, not the configuration's: launch again first"


def _means(cause: Cause) -> Iterable[Block]:
    if cause.means:
        yield Paragraph(cause.means)
    if cause.role in _ROLES:
        yield Paragraph(f"It is never the reason of a failure: {_ROLES[cause.role]}.")


def _recognise(cause: Cause) -> Iterable[Block]:
    if cause.examples:
        yield Paragraph("Lines that show it:")
        yield Code("\n".join(cause.examples[:EXAMPLES]))
    if cause.frames:
        yield Paragraph("together with one of these in the files and functions of the traceback:")
        yield Code("\n".join(cause.frames))
    if cause.hang:
        yield Paragraph(
            "There is no error: the log stops. It counts only where no exception was printed."
        )


def _checks(cause: Cause) -> Iterable[Block]:
    if cause.role is not Role.ROOT:
        return
    yield Paragraph(
        f"Is it this? The answer must name {cause.id}, the first failing rank and the line; exit "
        "code 10."
    )
    yield Code("triage classify LOG", "sh")
    if checks := told_by(cause.id):
        yield Paragraph(
            f"The state of the machine that leads to it, before any launch ({', '.join(checks)}); "
            "exit code 14 where a check finds something:"
        )
        yield Code("triage doctor", "sh")
    if cause.probe:
        yield Paragraph("Told apart from its look-alikes within a minute, without a launch:")
        for name in cause.probe:
            yield Code(f"triage probe {name}", "sh")
    if cause.culprit_flags or cause.culprit_env:
        yield Paragraph(
            "Which of its suspects does the command set? Where several are set, a search tells "
            "which of them are needed for the failure:"
        )
        yield Code("triage config COMMAND", "sh")
        yield Code("triage bisect --good WORKING --bad FAILING", "sh")


def _origins(cause: Cause) -> Iterable[Block]:
    if cause.origins:
        yield Table(
            ("what", "how it is known", "how to tell"),
            tuple((o.say, ", ".join((o.basis, *o.sources)), o.look) for o in cause.origins),
        )
    if cause.discriminator:
        yield Paragraph(f"The one test that would discriminate: {cause.discriminator}")


def _misleads(cause: Cause, known: Sequence[Cause]) -> Iterable[Block]:
    if cause.decoys:
        yield Paragraph("Lines beside it that are no evidence:")
        yield Code("\n".join(cause.decoys))
    titles = {c.id: c.title for c in known}
    near = [(name, titles[name]) for name in cause.confused_with if name in titles]
    if near:
        yield Paragraph("It is taken for, or mistaken for:")
        yield Table(("cause", "what it is"), tuple(near))


def _helps(cause: Cause) -> Iterable[Block]:
    if cause.remedies:
        yield Table(
            ("what", "change", "kind", "costs", "basis"),
            tuple(
                (
                    in_words(r.say),
                    in_words(remedy_words(r)),
                    "finds out more" if r.probe else r.disposition.value,
                    r.cost,
                    _BASES.get(r.evidence, r.evidence),
                )
                for r in cause.remedies
            ),
        )
    elif cause.role is Role.ROOT:
        yield Paragraph("No remedy is known.")


def _proof(cause: Cause) -> Iterable[Block]:
    if cause.role is not Role.ROOT:
        return
    yield Paragraph(
        "A server that starts is not yet one that works. The proposal from the log, and the launch "
        "that proves it (exit code 0 only if it answered):"
    )
    yield Code("triage recommend LOG", "sh")
    yield Code("triage confirm COMMAND", "sh")


def _escalate(cause: Cause) -> Iterable[Block]:
    if cause.role is not Role.ROOT:
        return
    steps = [cause.escalate[:1].upper() + cause.escalate[1:]] if cause.escalate else []
    steps += [
        "Nothing in the table helps, or the same line comes back after a change that should have "
        "mattered: stop changing flags, and write the report: triage issue LOG",
        "Another cause is named after a change: that is a second fault, with a page of its own.",
    ]
    yield Bullets(tuple(steps))
