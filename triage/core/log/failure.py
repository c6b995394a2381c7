"""What a diagnosis says of a launch that failed, or that stands still.

In:  what holds whatever the reason is, the evidence, and what was found in it.
Out: Diagnosis.
Not: whether the launch failed (diagnose.py) or why (cascade.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.causes import Cause
from triage.core.diagnosis import Advice, Alternative, Decoy, Diagnosis, Exc, Root, Suspect
from triage.core.flags import FlagTable
from triage.core.log.candidates import Candidate
from triage.core.log.cascade import Finding
from triage.core.log.confidence import confidence_of
from triage.core.log.endings import STOPPED_BY, Ending
from triage.core.log.evidence import Generation
from triage.core.log.facts import ranks_of
from triage.core.log.fingerprint import fingerprint
from triage.core.log.lines import Line
from triage.core.log.no_start import is_no_start, is_script
from triage.core.log.ranks import dead, members, resolved
from triage.core.log.suspects import advice, suspects, suspects_without_config
from triage.core.phases import order
from triage.core.records import replace
from triage.core.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.core.launch import Outcome
    from triage.core.log.stops import Stop
    from triage.core.log.unexplained import End

_MISSING = "the log may begin later than the launch, and the reason stand in what is missing"
_TOP = 4  # lines at the start of a log: a traceback there has nothing before it


def of_failure(
    diagnosis: Diagnosis,
    generation: Generation,
    finding: Finding,
    table: FlagTable | None,
    known: Outcome | None,
) -> Diagnosis:
    """The diagnosis of a launch that failed; `known` is how a launcher saw it end."""
    root = finding.root
    # A ready line after what ended a process is another start's.
    came_up = generation.ready if root and root.line < generation.ready else None
    common = replace(
        diagnosis,
        came_up=diagnosis.came_up or (None if generation.bind else came_up),
        cascade=finding.cascade,
        teardown=finding.teardown,
        decoys=tuple(Decoy(line=line, why=why) for line, why in finding.decoys),
    )
    if root is None:
        return _unexplained(common, generation, known, finding.silent)
    mark, text = root.fingerprint()
    cause, message = root.cause, _message(root)
    return replace(
        common,
        phase=_where(root, finding),
        cause=cause.id if cause else None,
        title=cause.title if cause else "",
        confidence=confidence_of(root, finding.others, echoed=finding.echoed),
        fingerprint=mark,
        fingerprint_of=text,
        general=root.cause is not None and root.cause.general,
        ranks=ranks_of(
            finding.silent
            or _crashed(root, generation)
            or [*(c.rank for c in finding.same), *finding.woven],
            generation,
            diagnosis.ranks_total,
        ),
        root=_root(root),
        traceback=_exception(root),
        suspects=suspects(cause, message, common.config, root.captures)
        if generation.dump
        else suspects_without_config(message, table),
        remedies=advice(cause, root.captures, message, common.config, table),
        also=tuple(
            Alternative(cause=c.cause.id, confidence="low") for c in finding.others if c.cause
        )[:8],
    )


def is_cut(diagnosis: Diagnosis, generation: Generation, root: Candidate) -> bool:
    """Whether the log may begin later than the launch: with a traceback, behind the arguments."""
    if generation.dump or diagnosis.engine_version:
        return False
    inside = any(tb.headless and tb.frames and tb.head <= _TOP for tb in generation.tracebacks)
    first = root.tb is not None and root.tb.head <= _TOP
    if root.tb is None and (is_no_start(root.text) or is_script(root.text)):
        return False  # nothing of an engine comes before it
    return inside or first or order(root.phase) > order("config-load")


def doubted(diagnosis: Diagnosis, root: Candidate, causes: Sequence[Cause]) -> Diagnosis:
    """The diagnosis of a log of which the start may be missing, and in it the reason."""
    if root.cause is None:
        return replace(diagnosis, title=diagnosis.title or _MISSING)
    if diagnosis.confidence == "high" and _may_follow(root, causes):
        return replace(diagnosis, confidence="medium")
    return diagnosis


def _may_follow(root: Candidate, causes: Sequence[Cause]) -> bool:
    """Whether there are causes to which the root's gives way, or that explain it."""
    cause = root.cause
    if cause is None or cause.yields_to or cause.yields_to_kernels:
        return cause is not None
    return any(cause.id in other.explains for other in causes)


def _where(root: Candidate, finding: Finding) -> str:
    """The phase: of a library's line, that of the exception which passes it on."""
    if root.tb is None:
        return next((c.phase for c in finding.same if c.tb is not None), root.phase)
    if root.phase == "unknown":  # its head is cut off, and another rank's is not
        return next((c.phase for c in finding.same if c.phase != "unknown"), root.phase)
    return root.phase


def _unexplained(
    diagnosis: Diagnosis, generation: Generation, known: Outcome | None, silent: tuple[str, ...]
) -> Diagnosis:
    """A failure of which no line says why: it is named after its end, if the server made that."""
    deaths = [line for line, _ in generation.of(Ending.DEATH)]
    phase = generation.timeline.furthest()
    end = _end(diagnosis, generation, known)
    mark, text = fingerprint(f"{end.how} in {phase}", end.message) if end.how else ("", "")
    if end.nameless and (died := _told_dead(deaths)) is not None:
        after = tuple(number for number in diagnosis.cascade if number > died.number)
        root = Root(line=died.number, offset=died.offset, rank=died.rank, time=died.time,
                    text=died.text[:4096])  # fmt: skip
        diagnosis = replace(diagnosis, root=root, cascade=after)
    return replace(
        diagnosis,
        title=end.title,
        phase=phase,
        fingerprint=mark or None,
        fingerprint_of=text,
        ranks=ranks_of(silent or _dead(deaths, generation), generation, diagnosis.ranks_total),
    )


def _told_dead(deaths: Sequence[Line]) -> Line | None:
    """The first line that says who died: the last resort where no line says how, or why.

    It gives no fingerprint: the same line follows from any reason.
    """
    from triage.core.log.unexplained import says_who_died  # noqa: PLC0415  as above

    return next((line for line in deaths if says_who_died(line.text)), None)


def _dead(deaths: Sequence[Line], generation: Generation) -> list[str]:
    """Who died, if a line says it; else who says that somebody did."""
    told = [tag for line in deaths if (tag := dead(line.text, generation.tags))]
    return told or [resolved(line.rank, generation.tags) for line in deaths]


def _crashed(root: Candidate, generation: Generation) -> list[str]:
    """Whose stack the line stands over, if it is a rank's without a tag and a death names it.

    An interpreter that dies prints no tag; that the line has none says nothing of who it was.
    """
    if root.tb is not None or root.rank != "main":
        return []
    functions = {frame.function for frame in generation.dump_at(root.line)}
    if "run_scheduler_process" not in functions:
        return []
    deaths = [line for line, _ in generation.of(Ending.DEATH)]
    return [tag for line in deaths if (tag := dead(line.text, generation.tags))]


def _end(diagnosis: Diagnosis, generation: Generation, known: Outcome | None) -> End:
    """How the launch ended: a child's death comes before the main process's, which follows it."""
    from triage.core.launch import Crashed  # noqa: PLC0415  a log alone has no outcome
    from triage.core.log.unexplained import (  # noqa: PLC0415  few failures go without a reason
        End,
        end_of_child,
        end_of_server,
        refusal,
    )

    if isinstance(known, Crashed) and known.reason:
        return refusal(known.reason)
    deaths = [line.text for line, _ in generation.of(Ending.DEATH)]
    if told := [end for end in map(end_of_child, deaths) if end]:
        return told[0]
    if deaths:
        return End("a process ended without saying why", nameless=True)
    if not isinstance(known, Crashed) or known.exit_code is None:
        return End("")
    end = end_of_server(known.exit_code)
    # Who lost a peer, was asked to stop or was refused by a simulation ends for another's reason.
    foreign = diagnosis.cascade or generation.told_to_end or diagnosis.refused
    return replace(end, how="") if foreign else end


def of_hang(
    diagnosis: Diagnosis, generation: Generation, hang: Candidate | None, *, known: bool
) -> Diagnosis:
    """The launch stands still, or the log was cut: a launcher tells them apart."""
    from triage.core.log.hang import lacks, no_progress  # noqa: PLC0415  few launches stand still

    furthest = generation.timeline.last
    root = hang or no_progress(generation)
    phase = root.phase if root else (furthest.phase if furthest else "unknown")
    cause = hang.cause if hang else None
    mark, text = fingerprint("hung", f"in {phase}")
    stop = None if cause or known else _stop(generation)
    title = "" if known else "hung, or the log was cut"
    if stop is not None:
        title = f"nothing went on for long before {stop.who} (line {stop.line})"
    if cause is None and (told := lacks(generation)):
        title = f"{title or 'hung'}: {told}"
    found: tuple[Suspect, ...] = ()
    if hang is not None:
        found = suspects(cause, hang.text, diagnosis.config, hang.captures)
    return replace(
        diagnosis,
        phase=phase,
        cause=cause.id if cause else None,
        title=cause.title if cause else title,
        confidence="medium" if known or cause else "low",
        fingerprint=mark,
        fingerprint_of=text,
        ranks=ranks_of(_standing(generation), generation, diagnosis.ranks_total),
        root=_root(root) if root else None,
        suspects=found,
        remedies=advice(cause, hang.captures if hang else {}, "", diagnosis.config),
    )


def of_stop(diagnosis: Diagnosis, generation: Generation) -> Diagnosis:
    """Nothing failed: who ended it, and what a person can do about that."""
    stop = _stop(generation)
    if stop is None:
        return diagnosis
    return replace(diagnosis, title=f"{stop.who} (line {stop.line})", remedies=_remedies_of(stop))


def _stop(generation: Generation) -> Stop | None:
    from triage.core.log.stops import stopped_by  # noqa: PLC0415  few launches are stopped

    told = [
        (line.number, line.text)
        for kind in (Ending.STOP, Ending.SIGNALLED, Ending.DEATH)
        for line, _ in generation.of(kind)
    ]
    asked = [tb for tb in generation.tracebacks if tb.exception in STOPPED_BY]
    return stopped_by([*told, *((tb.line, tb.text) for tb in asked)])


def _remedies_of(stop: Stop) -> tuple[Advice, ...]:
    if not stop.advice:
        return ()
    return (
        Advice(say=stop.advice, changes=(), disposition="manual", cost="none", evidence="inferred"),
    )


def _standing(generation: Generation) -> list[str]:
    """The ranks that came least far: the others wait for them."""
    known = set(members(generation.tags))
    reached = ((resolved(r, generation.tags), p) for r, p in generation.timeline.phases.items())
    phases = {rank: phase for rank, phase in reached if rank in known}
    if not phases:
        return ["main"]
    least = min(map(order, phases.values()))
    return [rank for rank, phase in phases.items() if order(phase) == least]


def _root(c: Candidate) -> Root:
    return Root(line=c.line, offset=c.offset, rank=c.rank, time=c.time, text=c.text[:4096])


def _exception(c: Candidate) -> Exc | None:
    if c.tb is None or not c.tb.exception:
        return None
    # A bare assertion has no message: the line that raised it says what failed.
    message = "\n".join((c.tb.message or c.tb.code, *c.tb.more))[:4096]
    return Exc(exception=c.tb.exception, message=message, frames=tuple(c.tb.frames))


def _message(c: Candidate) -> str:
    return "\n".join((c.text, c.tb.code, *c.tb.more)) if c.tb else c.text
