"""Why did this launch fail? From the bytes of a log to a Diagnosis.

In:  chunks of a log, the causes, what a launcher saw, the flag table.
Out: Diagnosis. The same bytes give the same answer, however they are cut.
Not: reading files, launching, or printing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from triage.core.causes import Cause
from triage.core.diagnosis import Alternative, Decoy, Diagnosis, Exc, Root, Step, Suspect
from triage.core.flags import FlagTable
from triage.core.log.candidates import Candidate
from triage.core.log.cascade import Finding, find
from triage.core.log.clock import elapsed
from triage.core.log.confidence import confidence_of
from triage.core.log.endings import Ending
from triage.core.log.evidence import Generation
from triage.core.log.facts import config_of, effective_of, ranks_of, total_ranks
from triage.core.log.finder import Compile, Plain
from triage.core.log.fingerprint import fingerprint
from triage.core.log.gather import FIXED, Gatherer, read
from triage.core.log.hang import hung_at, no_progress, stands_still, waited_in_vain
from triage.core.log.lines import Line
from triage.core.log.ranks import dead, members, resolved
from triage.core.log.signatures import matcher_of
from triage.core.log.suspects import advice, suspects, suspects_without_config
from triage.core.log.unexplained import End, end_of_child, end_of_server, refusal
from triage.core.phases import order
from triage.core.records import replace
from triage.core.server_args import ServerArgsDump, find_dump

if TYPE_CHECKING:
    from triage.core.launch import Outcome

_STEPS = 400
_MISSING = "the log may begin later than the launch, and the reason stand in what is missing"
_TOP = 4  # lines at the start of a log: a traceback there has nothing before it


def diagnose(
    chunks: Iterable[bytes],
    causes: Sequence[Cause],
    *,
    source: str = "-",
    outcome: Outcome | None = None,
    table: FlagTable | None = None,
    finder: Compile = Plain,
) -> Diagnosis:
    """The diagnosis of one log, read once as a stream.

    Args:
        chunks: The raw bytes, cut anywhere.
        causes: The knowledge base; without it, failures get a fingerprint only.
        source: Name of the log for the answer.
        outcome: How the launch ended, if a launcher saw it; else the log alone decides.
        table: Flags of the engine's version, to tell defaults from choices.
        finder: Makes what finds the literals of the causes; the answer is the same with any.
    """
    matcher = matcher_of(causes, FIXED)
    findings: list[Finding] = []

    def failed(generation: Generation) -> bool:
        findings.append(find(generation, matcher.causes))
        return _fails(generation, findings[-1])

    gatherer, _ = read(chunks, matcher, failed, finder=finder)
    generation = gatherer.generation
    ready = _ready(generation)
    # Of a start that failed nothing was read after it was judged.
    finding = findings[-1] if gatherer.over else find(generation, matcher.causes)
    steps = finding.explain
    if outcome and finding.root and _only_logged(finding.root) and _is_hung(outcome):
        finding = Finding()
    seen = _outcome(gatherer, finding, ready=ready, known=outcome)
    if seen in ("healthy", "interrupted", "empty"):
        finding = Finding()
    dump = find_dump(generation.dump) if generation.dump else None
    diagnosis = _facts(gatherer, dump, table, source=source, outcome=seen)
    diagnosis = replace(diagnosis, explain=steps)
    hang = None
    if finding.root is None:
        hang = hung_at(generation, matcher.causes) if seen in ("hung", "interrupted") else None
        if hang is not None and outcome is None:
            seen = "hung"
    if seen == "hung" and finding.root is None:
        return _hung(replace(diagnosis, outcome=seen), generation, hang, known=outcome is not None)
    if seen == "failed" or finding.root is not None:
        diagnosis = _failed(diagnosis, generation, finding, table, outcome)
        root = finding.root
        if root is not None and _cut(diagnosis, generation, root):
            diagnosis = _doubted(diagnosis, root, matcher.causes)
        return diagnosis
    phase = "serving" if ready else generation.timeline.furthest()
    return replace(diagnosis, phase=phase, confidence="high" if seen != "empty" else "low")


def _fails(generation: Generation, finding: Finding) -> bool:
    """Whether this start of the engine failed, so that what follows is a restart."""
    fatal = finding.root is not None and finding.root.strength == 0
    if _ready(generation) and not fatal and not _died(generation, after=generation.ready):
        return False
    return finding.root is not None or _died(generation, after=0)


def _ready(generation: Generation) -> bool:
    """Whether the ready line is true: a failed bind makes it another server's."""
    return generation.ready > 0 and not generation.bind


def _died(generation: Generation, *, after: int) -> bool:
    """Whether a child died after this line, other than by a stop that somebody asked for."""
    stop = generation.stop
    return any(
        line.number > after and (not stop or line.number < stop)
        for line, _ in generation.of(Ending.DEATH)
    )


def _only_logged(root: Candidate) -> bool:
    """Whether nothing says that a process ended with it: a launch that hangs went on."""
    return root.cause is None and root.strength > 1


def _outcome(gatherer: Gatherer, finding: Finding, *, ready: bool, known: Outcome | None) -> str:
    generation, root = gatherer.generation, finding.root
    if known is not None:
        return _seen_by_a_launcher(
            known, died=root is not None or bool(generation.of(Ending.DEATH))
        )
    fatal = root is not None and root.strength == 0
    if ready and not fatal and not _died(generation, after=generation.ready):
        return "healthy"
    stopped_first = 0 < generation.stop < root.line if root is not None else False
    if root is not None and not (stopped_first and root.communication):
        return "failed"
    if stands_still(generation):
        return "hung"  # whoever ended it then
    if _died(generation, after=0):
        return "failed"
    if generation.stop:
        return "hung" if waited_in_vain(generation) else "interrupted"
    return "hung" if gatherer.engine != "unknown" or generation.timeline.last else "empty"


def _seen_by_a_launcher(known: Outcome, *, died: bool) -> str:
    from triage.core.launch import Crashed, Hung, Interrupted, Ready  # noqa: PLC0415  as below

    match known:
        case Ready():
            return "healthy"
        case Hung():
            return "hung"
        case Interrupted():
            return "interrupted"
        case Crashed(exit_code=124) if not died:
            return "hung"  # what `timeout` ends with
        case Crashed():
            return "failed"


def _is_hung(known: Outcome) -> bool:
    from triage.core.launch import Hung  # noqa: PLC0415  a log alone has no outcome

    return isinstance(known, Hung)


def _facts(
    gatherer: Gatherer,
    dump: ServerArgsDump | None,
    table: FlagTable | None,
    *,
    source: str,
    outcome: str,
) -> Diagnosis:
    """What holds whatever the reason is."""
    config = config_of(dump, table)
    generation = gatherer.generation
    total = total_ranks(dump, generation)
    return Diagnosis(
        source=source,
        outcome=outcome,
        ranks_total=total if outcome != "empty" else 0,
        engine=gatherer.engine,
        engine_version=gatherer.version,
        starts=gatherer.starts,
        came_up=gatherer.came_up or None,
        simulated=gatherer.simulated,
        provenance=gatherer.provenance,
        refused=gatherer.refused,
        config=config,
        effective=effective_of(dump, table, config),
        timeline=tuple(
            Step(
                rank=reached.rank,
                phase=reached.phase,
                line=reached.line.number,
                seconds=elapsed(gatherer.first_time, reached.line.time),
            )
            for reached in generation.timeline.steps[:_STEPS]
        ),
    )


def _failed(
    diagnosis: Diagnosis,
    generation: Generation,
    finding: Finding,
    table: FlagTable | None,
    known: Outcome | None,
) -> Diagnosis:
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
            finding.silent or [*(c.rank for c in finding.same), *finding.woven],
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


def _cut(diagnosis: Diagnosis, generation: Generation, root: Candidate) -> bool:
    """Whether the log may begin later than the launch: with a traceback, behind the arguments."""
    if generation.dump or diagnosis.engine_version:
        return False
    inside = any(tb.headless and tb.frames and tb.head <= _TOP for tb in generation.tracebacks)
    first = root.tb is not None and root.tb.head <= _TOP
    return inside or first or order(root.phase) > order("config-load")


def _doubted(diagnosis: Diagnosis, root: Candidate, causes: Sequence[Cause]) -> Diagnosis:
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
    return root.phase


def _unexplained(
    diagnosis: Diagnosis, generation: Generation, known: Outcome | None, silent: tuple[str, ...]
) -> Diagnosis:
    """A failure of which no line says why: it is named after its end, if the server made that."""
    deaths = [line for line, _ in generation.of(Ending.DEATH)]
    phase = generation.timeline.furthest()
    end = _end(diagnosis, generation, known)
    mark, text = fingerprint(f"{end.how} in {phase}", end.message) if end.how else ("", "")
    return replace(
        diagnosis,
        title=end.title,
        phase=phase,
        fingerprint=mark or None,
        fingerprint_of=text,
        ranks=ranks_of(silent or _dead(deaths, generation), generation, diagnosis.ranks_total),
    )


def _dead(deaths: Sequence[Line], generation: Generation) -> list[str]:
    """Who died, if a line says it; else who says that somebody did."""
    told = [tag for line in deaths if (tag := dead(line.text, generation.tags))]
    return told or [resolved(line.rank, generation.tags) for line in deaths]


def _end(diagnosis: Diagnosis, generation: Generation, known: Outcome | None) -> End:
    """How the launch ended: a child's death comes before the main process's, which follows it."""
    from triage.core.launch import Crashed  # noqa: PLC0415  as above

    if isinstance(known, Crashed) and known.reason:
        return refusal(known.reason)
    deaths = [line.text for line, _ in generation.of(Ending.DEATH)]
    if told := [end for end in map(end_of_child, deaths) if end]:
        return told[0]
    if deaths:
        return End("a process ended without saying why")
    if not isinstance(known, Crashed) or known.exit_code is None:
        return End("")
    end = end_of_server(known.exit_code)
    # Who lost a peer, was asked to stop or was refused by a simulation ends for another's reason.
    foreign = diagnosis.cascade or generation.stop or diagnosis.refused
    return replace(end, how="") if foreign else end


def _hung(
    diagnosis: Diagnosis, generation: Generation, hang: Candidate | None, *, known: bool
) -> Diagnosis:
    """The launch stands still, or the log was cut: a launcher tells them apart."""
    furthest = generation.timeline.last
    root = hang or no_progress(generation)
    phase = root.phase if root else (furthest.phase if furthest else "unknown")
    cause = hang.cause if hang else None
    mark, text = fingerprint("hung", f"in {phase}")
    found: tuple[Suspect, ...] = ()
    if hang is not None:
        found = suspects(cause, hang.text, diagnosis.config, hang.captures)
    return replace(
        diagnosis,
        phase=phase,
        cause=cause.id if cause else None,
        title=cause.title if cause else ("" if known else "hung, or the log was cut"),
        confidence="medium" if known or cause else "low",
        fingerprint=mark,
        fingerprint_of=text,
        ranks=ranks_of(_standing(generation), generation, diagnosis.ranks_total),
        root=_root(root) if root else None,
        suspects=found,
        remedies=advice(cause, hang.captures if hang else {}, "", diagnosis.config),
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
