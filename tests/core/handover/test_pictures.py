"""What the pictures of a runbook show, as values."""

from __future__ import annotations

from dataclasses import replace

from runbook_data import CAME_UP, FAILED, JOURNAL, PROBLEM, RANKS

from triage.core.diagnosis import Diagnosis, Step
from triage.core.handover.document import PhaseChart, Table, TrialChart
from triage.core.handover.pictures import MOST_RANKS, MOST_TRIALS, phase_figure, trial_figure
from triage.core.trials import Seen


def chart_of(told: Diagnosis, ended_s: float | None = None) -> PhaseChart:
    figure = phase_figure(told, "the launch", ended_s=ended_s)
    assert figure is not None
    assert isinstance(figure.chart, PhaseChart)
    return figure.chart


def step(rank: str, phase: str, seconds: float | None) -> Step:
    return Step(rank=rank, phase=phase, line=1, seconds=seconds)


def test_a_phase_lasts_until_the_next_landmark_of_its_rank() -> None:
    chart = chart_of(FAILED, 193.0)
    own = [(s.phase, s.start, s.end) for s in chart.spans if s.rank == "TP0"]
    assert own == [
        ("dist-init", 4.0, 20.0),
        ("weight-load", 20.0, 185.0),
        ("kv-pool-init", 185.0, 190.0),
        ("graph-capture", 190.0, 193.0),
    ]


def test_the_end_is_put_on_the_rank_and_phase_that_failed() -> None:
    chart = chart_of(FAILED, 193.0)
    assert (chart.ended, chart.at) == ("failed", ("graph-capture", "TP3", 193.0))
    assert chart_of(replace(FAILED, outcome="hung"), 193.0).ended == "hung"


def test_a_launch_that_came_up_ends_where_it_serves() -> None:
    chart = chart_of(CAME_UP)
    assert chart.ended == "ready"
    assert chart.at is not None
    assert chart.at[0] == "graph-capture"
    assert chart.at[2] == 240.0
    assert "serving" not in {s.phase for s in chart.spans}


def test_what_one_rank_alone_prints_ends_the_phase_before_it_on_all() -> None:
    told = Diagnosis(
        source="x",
        outcome="failed",
        timeline=(
            step("TP0", "model-construct", 1.0),
            step("TP1", "model-construct", 1.0),
            step("TP0", "weight-load", 2.0),
            step("TP0", "kv-pool-init", 60.0),
            step("TP1", "kv-pool-init", 60.0),
        ),
    )
    spans = {(s.rank, s.phase): (s.start, s.end) for s in chart_of(told, 61.0).spans}
    assert spans["TP1", "model-construct"] == (1.0, 2.0)
    assert spans["TP0", "weight-load"] == (2.0, 60.0)
    assert ("TP1", "weight-load") not in spans


def test_the_process_that_waits_for_its_ranks_is_not_drawn_as_busy() -> None:
    told = Diagnosis(
        source="x",
        outcome="failed",
        timeline=(step("main", "process-spawn", 1.0), step("TP0", "dist-init", 9.0)),
    )
    (main, *_) = chart_of(told, 100.0).spans
    assert (main.start, main.end) == (1.0, 9.0)


def test_a_log_without_dates_has_no_picture() -> None:
    undated = tuple(replace(s, seconds=None) for s in FAILED.timeline)
    assert phase_figure(replace(FAILED, timeline=undated), "x") is None
    assert phase_figure(replace(FAILED, timeline=()), "x") is None


def test_of_many_ranks_some_are_drawn_and_the_one_that_failed_is_among_them() -> None:
    many = tuple(step(f"TP{n}", "dist-init", 1.0) for n in range(64))
    assert FAILED.root is not None
    told = replace(FAILED, timeline=many, root=replace(FAILED.root, rank="TP63"))
    figure = phase_figure(told, "x", ended_s=2.0)
    assert figure is not None
    assert isinstance(figure.chart, PhaseChart)
    drawn = {s.rank for s in figure.chart.spans}
    assert len(drawn) == MOST_RANKS
    assert "TP63" in drawn
    assert f"the first {MOST_RANKS} are drawn" in figure.caption
    assert figure.table.rows[0][1] == "all"


def test_the_table_beside_the_picture_has_its_numbers() -> None:
    figure = phase_figure(FAILED, "x", ended_s=193.0)
    assert figure is not None
    rows = {row[0]: row[1:] for row in figure.table.rows}
    assert rows["weight-load"] == (f"TP0 to TP7 ({len(RANKS)})", "20 to 22", "165")
    assert rows["config-load"] == ("main", "0", "4")
    assert "it failed in graph-capture, on TP3" in figure.alt


def test_trials_are_columns_with_verdict_seconds_and_basis() -> None:
    chart = trial_figure(PROBLEM, JOURNAL, "boom", Table((), ())).chart
    assert isinstance(chart, TrialChart)
    assert [(c.number, c.verdict) for c in chart.columns] == [
        (1, "starts"),
        (2, "same failure"),
        (3, "starts"),
        (4, "other failure"),
        (5, "same failure"),
        (6, "unresolved"),
        (7, "other failure"),
    ]
    assert [c.number for c in chart.columns if c.assumed] == [7]
    assert chart.columns[3].on == frozenset({"ep-size 4"})
    assert chart.rows[0] == "ep-size 4"


def test_what_passes_the_checks_is_told_from_what_is_unresolved() -> None:
    passed = replace(JOURNAL[5], seen=Seen.PASSES, rung="resolution")
    figure = trial_figure(PROBLEM, (passed,), None, Table((), ()))
    assert isinstance(figure.chart, TrialChart)
    (column,) = figure.chart.columns
    assert (column.verdict, column.launched) == ("passes checks", False)
    assert "A degree sign marks" in figure.caption


def test_of_a_long_search_the_last_trials_are_drawn() -> None:
    journal = tuple(replace(JOURNAL[0], number=n) for n in range(1, 100))
    figure = trial_figure(PROBLEM, journal, None, Table((), ()))
    assert isinstance(figure.chart, TrialChart)
    assert [c.number for c in figure.chart.columns] == list(range(100 - MOST_TRIALS, 100))
    assert f"The last {MOST_TRIALS} are drawn." in figure.caption
