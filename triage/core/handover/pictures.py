"""The pictures of a runbook as values: who was when in which phase, which trial had what.

In:  diagnoses with the seconds of their end; the journal. Out: Figures.
Not: drawing them (triage.render.charts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.core.diagnosis import Diagnosis, Step
from triage.core.handover.document import (
    OUTCOMES,
    Column,
    Figure,
    PhaseChart,
    Span,
    Table,
    TrialChart,
)
from triage.core.phases import order
from triage.core.search.journal import signature
from triage.core.trials import Entry, Problem, Seen, Verdict
from triage.core.units import format_seconds
from triage.core.wording import listed, spell

MOST_RANKS = 16  # in the picture; the table counts all
MOST_TRIALS = 40
_VERDICTS = dict(
    zip(
        (Verdict.STARTS, Verdict.SAME_FAILURE, Verdict.OTHER_FAILURE, Verdict.UNRESOLVED),
        OUTCOMES[:4],
        strict=True,
    )
)


def phase_figure(told: Diagnosis, what: str, *, ended_s: float | None = None) -> Figure | None:
    """Phases per rank of one launch, called `what`; None if no line of its log is dated.

    Args:
        told: Its timeline is drawn.
        what: "the launch of {a, b}", for the caption.
        ended_s: Second of its end, on the clock of the timeline.
    """
    steps = [step for step in told.timeline if step.seconds is not None]
    if not steps:
        return None
    end = max([ended_s or 0.0, *(step.seconds or 0.0 for step in steps)])
    ranks = _ranks(told)
    spans = _spans(steps, ranks, end)
    ended = {"healthy": "ready", "hung": "hung"}.get(told.outcome, "failed")
    root = told.root.rank if told.root else ranks[-1]
    if ended == "ready":
        spans = [span for span in spans if span.phase != "serving"]
    rank = root if root in ranks else ranks[0]
    phase = told.phase if any(s.phase == told.phase for s in spans) else spans[-1].phase
    if ended == "ready":
        phase = max((s.phase for s in spans), key=order)
    chart = PhaseChart(
        spans=tuple(s for s in spans if s.rank in _shown(ranks, rank)),
        ended=ended,
        at=(phase, rank, end),
    )
    return Figure(
        caption=f"Phases of {what}, in seconds since its first dated line. {_lanes(ranks)}",
        alt=_told(spans, ended, rank, phase, end),
        chart=chart,
        table=_phase_table(spans, ranks),
    )


def _spans(steps: Sequence[Step], ranks: Sequence[str], end: float) -> list[Span]:
    """A bar from each landmark of a rank to what came next, in the order of their beginning.

    What comes next is the rank's own next landmark; or, for the process without a tag, the
    first of a tagged rank; or the landmark that one rank alone prints, for all.
    """
    tagged = [rank for rank in ranks if rank != "main"]
    first: dict[str, float] = {}
    printed: dict[str, set[str]] = {}
    for step in steps:
        first[step.phase] = min(first.get(step.phase, end), step.seconds or 0.0)
        printed.setdefault(step.phase, set()).add(step.rank)
    alone = {p for p, own in printed.items() if len(own & set(tagged)) == 1 < len(tagged)}
    of_ranks = min((s.seconds or 0.0 for s in steps if s.rank != "main"), default=end)
    spans: list[Span] = []
    for rank in ranks:
        own = [step for step in steps if step.rank == rank]
        for step, later in zip(own, (*own[1:], None), strict=True):
            start = step.seconds or 0.0
            until = end if later is None else (later.seconds or 0.0)
            until = min([until, *(first[p] for p in alone if order(p) > order(step.phase))])
            if rank == "main" and start < of_ranks:
                until = min(until, of_ranks)
            spans.append(Span(phase=step.phase, rank=rank, start=start, end=max(until, start)))
    began = {p: min(s.start for s in spans if s.phase == p) for p in {s.phase for s in spans}}
    return sorted(spans, key=lambda s: (began[s.phase], order(s.phase), ranks.index(s.rank)))


def _ranks(told: Diagnosis) -> list[str]:
    """The ranks of the timeline: the process without a tag first, then by their numbers."""
    named = dict.fromkeys(step.rank for step in told.timeline if step.seconds is not None)
    return sorted(named, key=lambda rank: (rank != "main", len(rank), rank))


def _shown(ranks: Sequence[str], root: str) -> set[str]:
    return {root, *[rank for rank in ranks if rank != root][: MOST_RANKS - 1]}


def _lanes(ranks: Sequence[str]) -> str:
    tagged = [rank for rank in ranks if rank != "main"]
    if len(tagged) <= 1:
        return ""
    most = f" (the first {MOST_RANKS} are drawn)" if len(ranks) > MOST_RANKS else ""
    return f"Each phase has a lane for each rank, {tagged[0]} at the top to {tagged[-1]}{most}."


def _told(spans: Iterable[Span], ended: str, rank: str, phase: str, end: float) -> str:
    longest = max(spans, key=lambda s: s.end - s.start)
    how = {
        "ready": f"it was ready after {format_seconds(end)}",
        "hung": f"it came to a halt in {phase}, on {rank}, after {format_seconds(end)}",
        "failed": f"it failed in {phase}, on {rank}, after {format_seconds(end)}",
    }[ended]
    return (
        f"Bars of the phases of a startup over time: {how}. The longest phase, {longest.phase}, "
        f"took {format_seconds(longest.end - longest.start)}."
    )


def _phase_table(spans: Sequence[Span], ranks: Sequence[str]) -> Table:
    rows: list[tuple[str, ...]] = []
    for phase in dict.fromkeys(s.phase for s in spans):
        own = [s for s in spans if s.phase == phase]
        first, last = min(s.start for s in own), max(s.start for s in own)
        start = f"{first:.0f}" if last - first < 1 else f"{first:.0f} to {last:.0f}"
        who = [s.rank for s in own]
        whose = "all" if len(set(who)) == len(ranks) and len(ranks) > 1 else _short(who)
        longest = max(s.end - s.start for s in own)
        rows.append((phase, whose, start, f"{longest:.0f}"))
    return Table(("phase", "ranks", "began (s)", "took at most (s)"), tuple(rows))


def _short(ranks: Sequence[str]) -> str:
    names = sorted(set(ranks), key=lambda rank: (len(rank), rank))
    return f"{names[0]} to {names[-1]} ({len(names)})" if len(names) > 2 else listed(names)  # noqa: PLR2004


def trial_figure(
    problem: Problem, journal: Sequence[Entry], searched: str | None, table: Table
) -> Figure:
    """Items by trials, with verdicts and seconds; `table` is the same in words."""
    names = {item.key: spell(item.change) for item in problem.choices()}
    columns = tuple(
        Column(
            number=e.number,
            on=frozenset(names[key] for key in e.items if key in names),
            verdict=_outcome(e, searched),
            seconds=e.seconds,
            assumed=e.provenance == "assumed",
            launched=e.rung == "full" and e.same_as is None,
        )
        for e in sorted(journal, key=lambda e: e.number)[-MOST_TRIALS:]
    )
    used = {name for column in columns for name in column.on}
    wanted = {names[item.key] for item in problem.items}
    marks = " An asterisk marks an assumed answer." if any(c.assumed for c in columns) else ""
    if not all(c.launched for c in columns):
        marks += " A degree sign marks one for which nothing was launched in full."
    cut = f" The last {MOST_TRIALS} are drawn." if len(journal) > MOST_TRIALS else ""
    counts = [f"{n} {word}" for word in OUTCOMES if (n := sum(c.verdict == word for c in columns))]
    return Figure(
        caption="Trials from left to right; a dot says that the launch had the item, the word "
        f"below what came of it, the bar how long it took.{marks}{cut}",
        alt=f"{len(columns)} trials over {len(names)} items: {listed(counts)}. {_started(journal)}",
        chart=TrialChart(
            rows=tuple(n for n in names.values() if n in wanted | used), columns=columns
        ),
        table=table,
        table_shown=True,
    )


def _outcome(entry: Entry, searched: str | None) -> str:
    if entry.seen is Seen.PASSES:
        return OUTCOMES[4]
    return _VERDICTS[entry.verdict(entry.searching or searched)]


def _started(journal: Sequence[Entry]) -> str:
    good = [str(e.number) for e in journal if e.seen is Seen.STARTS]
    causes = dict.fromkeys(signature(e) for e in journal if e.seen is Seen.FAILS)
    said = f"Trials that started: {listed(good)}." if good else "No trial started."
    return f"{said} Failures: {listed(list(causes))}." if causes else said
