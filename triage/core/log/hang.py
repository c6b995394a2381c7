"""A launch that stands still without an exception: where, and a cause that fits.

In:  a Generation and the causes. Out: Candidate values.
Not: deciding that a launch hangs (diagnose.py, triage.launch).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.causes import Cause, Role
from triage.core.log.candidates import Candidate, eligible
from triage.core.log.clock import seconds
from triage.core.log.endings import Ending, is_standstill, is_timeout
from triage.core.log.evidence import Generation
from triage.core.log.landmarks import Reached, is_of_each
from triage.core.log.lines import Line
from triage.core.log.ranks import members, resolved
from triage.core.phases import order
from triage.core.regex import regex

# Seconds without a landmark after which a stop means that somebody waited in vain.
_PATIENCE, _SLOW_PATIENCE, _PROBED, _OUTER = 600, 1800, 300, 60
_LOADING = ("model-construct", "weight-load")  # which may take any time
_CANCELLED = regex(r"CANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", needs=("CANCELLED AT ",))
_FEW = 4  # of so many ranks one may be behind
_SLOW = frozenset(
    ("model-construct", "weight-load", "memory-profiling", "graph-capture",
     "flashinfer-autotune", "prefill-graph-capture", "draft-worker-init")
)  # fmt: skip


def hung_at(generation: Generation, causes: Sequence[Cause]) -> Candidate | None:
    """The decisive line of the hang cause that fits, the first in the file; None if none fits."""
    phases = {generation.timeline.furthest()}
    if generation.timeline.last is not None:
        phases.add(generation.timeline.last.phase)
    found: list[Candidate] = []
    for hit in generation.all_hits():
        cause = causes[hit.cause]
        if cause.role is not Role.ROOT or not cause.hang:
            continue
        supported = generation.supports(hit.cause, cause.context)
        if not eligible(cause, phases, line=hit.line.number, frames="", supported=supported):
            continue
        phase = hit.phase
        if phase == "attn-backend-init" and "comm-buffer-init" in cause.phases:
            phase = "comm-buffer-init"  # no line separates the two
        if cause.phases and phase not in cause.phases:
            phase = next(iter(sorted(phases & set(cause.phases))), phase)
        found.append(
            Candidate(
                line=hit.line.number, offset=hit.line.offset, rank=hit.line.rank,
                time=hit.line.time, text=hit.line.text, phase=phase, strength=1, cause=cause,
                captures=hit.captures, specific=bool(cause.context) + bool(cause.absent),
            )
        )  # fmt: skip
    ids = {c.cause.id for c in found if c.cause}
    found = [c for c in found if c.cause and not ids & set(c.cause.yields_to)]
    return min(found, key=lambda c: (-c.specific, c.line), default=None)


def stands_still(generation: Generation) -> bool:
    """Whether the engine's watchdog says so before any process died, and nothing went on."""
    deaths = [line.number for line, _ in generation.of(Ending.DEATH)]
    first = min(deaths, default=0)
    last = generation.timeline.last
    since = last.line.number if last else 0
    return any(
        is_standstill(line.text) and line.number > since and (not first or line.number < first)
        for line, _ in generation.of(Ending.SURVIVOR)
    )


def waited_in_vain(generation: Generation) -> bool:
    """Whether the launch was stopped because it had not gone on for too long.

    An outer time-out says so itself; else the silence before the stop has to be long for
    the phase. Without times nobody can tell, and somebody just stopped it.
    """
    stops = [line for kind in (Ending.STOP, Ending.SIGNALLED) for line, _ in generation.of(kind)]
    last = generation.timeline.last
    if not stops or last is None:
        return False
    outer = any(is_timeout(line.text) for line in stops)
    now, then = next(filter(None, map(_told_at, stops)), None), seconds(last.line.time)
    if now is None or then is None:
        return outer and last.phase not in _LOADING
    slow = last.phase in _SLOW
    return now - then >= (_OUTER if outer else _SLOW_PATIENCE if slow else _PATIENCE)


def _told_at(stop: Line) -> float | None:
    """When a line about a stop was printed, or says that it happened."""
    said = _CANCELLED.search(stop.text)
    return seconds(stop.time or (said and said[1]))


def probed_in_vain(generation: Generation, causes: Sequence[Cause], root: Candidate) -> bool:
    """Whether nothing had gone on for too long when a probe failed for the last time.

    A probe has its patience from the start of the process on, so less is left of it here
    than of a time-out.
    """
    last = generation.timeline.last
    then = seconds(last.line.time) if last else None
    if last is None or then is None:
        return False
    told = (hit.line for hit in generation.all_hits() if causes[hit.cause] is root.cause)
    latest = max((now for line in told if (now := seconds(line.time)) is not None), default=then)
    return latest - then >= (_SLOW_PATIENCE if last.phase in _SLOW else _PROBED)


def no_progress(generation: Generation) -> Candidate | None:
    """The line that says that nothing happens (a watchdog's), else the last landmark.

    Where few ranks are behind all others, it is theirs: the others wait for them.
    """
    last = generation.timeline.last
    since = last.line.number if last else 0
    watchdog = [
        line
        for line, _ in generation.of(Ending.SURVIVOR)
        if is_standstill(line.text) and line.number > since
    ]
    watchdog.sort(key=lambda line: "Scheduler" not in line.text)  # the others wait for it
    if not watchdog:
        behind = _behind(generation)
        last = behind[0] if behind else last
    line = watchdog[0] if watchdog else (last.line if last else None)
    if line is None:
        return None
    return Candidate(
        line=line.number, offset=line.offset, rank=line.rank, time=line.time, text=line.text,
        phase=last.phase if last else "unknown", strength=1,
    )  # fmt: skip


def lacks(generation: Generation) -> str:
    """Which rank lacks a landmark that another printed, in words; "" where none stands out."""
    behind = _behind(generation)
    if behind is None:
        return ""
    slow, ahead = behind
    who = resolved(slow.rank, generation.tags)
    first = resolved(ahead.rank, generation.tags)
    return f"{who} has not come to what {first} prints (line {ahead.line.number})"


def _behind(generation: Generation) -> tuple[Reached, Reached] | None:
    """The last landmark of the few ranks that all others have left behind, and the next of those.

    A landmark that one rank prints for all leaves most behind, so they have to be few. Of two or
    three ranks nobody can tell few from most: there it must be one that every rank prints.
    """
    tags = set(members(generation.tags))
    last: dict[str, Reached] = {}
    for step in generation.timeline.steps:
        if (rank := resolved(step.rank, generation.tags)) in tags:
            last[rank] = step
    if len(last) < len(tags) or len(tags) < 2:  # noqa: PLR2004  one rank waits for nobody
        return None
    least = min(order(step.phase) for step in last.values())
    slow = [step for step in last.values() if order(step.phase) == least]
    ahead = [
        step
        for step in generation.timeline.steps
        if order(step.phase) > least and resolved(step.rank, generation.tags) in tags
    ]
    if len(tags) < _FEW:
        ahead = [step for step in ahead if is_of_each(step.line.text)]
    elif len(slow) > len(tags) // _FEW:
        return None
    if not ahead:
        return None
    return max(slow, key=lambda step: step.line.number), ahead[0]
