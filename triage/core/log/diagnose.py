"""Why did this launch fail? From the bytes of a log to a Diagnosis.

In:  chunks of a log, the causes, what a launcher saw, the flag table.
Out: Diagnosis. The same bytes give the same answer, however they are cut.
Not: what is said of a failure (failure.py); reading files, launching, or printing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis, Explained, Step
from triage.core.flags import FlagTable
from triage.core.log.candidates import Candidate
from triage.core.log.cascade import Finding, find
from triage.core.log.clock import elapsed
from triage.core.log.endings import Ending, is_probe
from triage.core.log.evidence import Generation
from triage.core.log.facts import config_of, effective_of, of_another_node, total_ranks
from triage.core.log.finder import Compile, Plain
from triage.core.log.gather import FIXED, Gatherer, read
from triage.core.log.signatures import matcher_of
from triage.core.log.survived import deaths_of
from triage.core.records import replace
from triage.core.server_args import ServerArgsDump, find_dump
from triage.core.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.core.launch import Outcome

_STEPS = 400
_NODE_UP = "the ranks of this node came up; the log of node 0 tells whether the server was ready"


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
    if seen == "failed" and outcome is None and _in_vain(generation, matcher.causes, finding.root):
        seen, finding = "hung", Finding()
    if seen in ("healthy", "interrupted", "empty"):
        finding = Finding()
    dump = find_dump(generation.dump) if generation.dump else None
    diagnosis = _facts(gatherer, dump, table, source=source, outcome=seen, explain=steps)
    if finding.root is None and seen in ("hung", "interrupted"):
        from triage.core.log.hang import hung_at  # noqa: PLC0415  few launches stand still

        hang = hung_at(generation, matcher.causes)
        if seen == "hung" or (hang is not None and outcome is None):
            from triage.core.log.failure import of_hang  # noqa: PLC0415  as below

            diagnosis = replace(diagnosis, outcome="hung")
            return of_hang(diagnosis, generation, hang, known=outcome is not None)
    if seen == "failed" or finding.root is not None:
        from triage.core.log.failure import doubted, is_cut, of_failure  # noqa: PLC0415  as above

        diagnosis = of_failure(diagnosis, generation, finding, table, outcome)
        root = finding.root
        if root is not None and is_cut(diagnosis, generation, root):
            diagnosis = doubted(diagnosis, root, matcher.causes)
        return diagnosis
    serves = seen == "healthy" and generation.serves > 0
    if seen == "healthy" and not ready and not serves and outcome is None:
        diagnosis = replace(diagnosis, title=_NODE_UP)
    phase = "serving" if ready or serves else generation.timeline.furthest()
    if seen == "interrupted":
        from triage.core.log.failure import of_stop  # noqa: PLC0415  as above

        diagnosis = of_stop(diagnosis, generation)
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


def _is_up(generation: Generation) -> bool:
    """Whether all that a node other than the first prints of a start that succeeds is there."""
    return generation.joined > 0 and of_another_node(generation)


def _died(generation: Generation, *, after: int) -> bool:
    """Whether a child died after this line, other than by a stop that somebody asked for."""
    stop = generation.stop
    deaths = [
        line.text
        for line in deaths_of(generation)
        if line.number > after and (not stop or line.number < stop)
    ]
    return bool(deaths) and not _signalled(deaths)


def _signalled(deaths: Sequence[str]) -> bool:
    """Whether children ended, and only because a signal told them to."""
    if not deaths:
        return False
    from triage.core.log.stops import only_signalled  # noqa: PLC0415  few launches die

    return only_signalled(deaths)


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
    stopped_first = 0 < generation.told_to_end < root.line if root is not None else False
    if root is not None and not (stopped_first and root.communication):
        return "failed"
    from triage.core.log.hang import stands_still, waited_in_vain  # noqa: PLC0415  as above

    if stands_still(generation):
        return "hung"  # whoever ended it then
    if _died(generation, after=0):
        return "failed"
    if _is_up(generation) or generation.serves:
        return "healthy"
    if generation.told_to_end or _signalled([line.text for line, _ in generation.of(Ending.DEATH)]):
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


def _in_vain(generation: Generation, causes: Sequence[Cause], root: Candidate | None) -> bool:
    """Whether a probe gave up on a launch that had not gone on for longer than any start takes."""
    if root is None or not is_probe(root.text):
        return False
    from triage.core.log.hang import probed_in_vain  # noqa: PLC0415  few launches stand still

    return probed_in_vain(generation, causes, root)


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
    explain: tuple[Explained, ...],
) -> Diagnosis:
    """What holds whatever the reason is."""
    config = config_of(dump, table)
    generation = gatherer.generation
    total = total_ranks(dump, generation)
    return Diagnosis(
        source=source,
        outcome=outcome,
        explain=explain,
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
        timeline=tuple(_steps(generation, gatherer.first_time)),
    )


def _steps(generation: Generation, first: str | None) -> Iterator[Step]:
    """The landmarks; those of ranks that came along together have one time."""
    time, since = None, None
    for reached in generation.timeline.steps[:_STEPS]:
        line = reached.line
        if line.time != time:
            time, since = line.time, elapsed(first, line.time)
        yield Step(rank=reached.rank, phase=reached.phase, line=line.number, seconds=since)
