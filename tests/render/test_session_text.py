"""A search on a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import replace

from triage.core.config import Config, SetEnv, SetFlag
from triage.core.search.pace import Outlook
from triage.core.search.recommend import recommend
from triage.core.trials import Entry, Item, Problem, Seen, Trial
from triage.render.session_text import (
    WIDTH,
    closing_text,
    recommendation_text,
    sets_text,
    trial_event,
    trial_head,
    trial_line,
    trials_text,
)

PROBLEM = Problem(
    name="t",
    baseline=Config.of({"tp-size": "8"}),
    items=(
        Item(key="ep-size", change=SetFlag("ep-size", "8"), weight=2),
        Item(key="env:NCCL_X", change=SetEnv("NCCL_X", "1"), weight=3),
        Item(
            key="enable-flashinfer-allreduce-fusion",
            change=SetFlag("enable-flashinfer-allreduce-fusion", True),
        ),
    ),
)
OTHER = Entry(
    number=3,
    items=frozenset({"ep-size"}),
    seen=Seen.FAILS,
    searching="cublas-mla-absorb-bmm",
    signature="nonetype-capture-batch-field",
    title="A field of the batch is None",
    phase="graph-capture",
    seconds=12.1,
)
JOURNAL = (
    Entry(number=1, items=frozenset(), seen=Seen.STARTS, seconds=165.0),
    replace(OTHER, number=2, items=PROBLEM.keys(), searching=None),
    OTHER,
    Entry(number=4, items=frozenset({"env:NCCL_X"}), seen=Seen.STARTS, searching="x", seconds=3.0),
)


def test_a_trial_says_what_is_tried_and_why_before_it_is_launched() -> None:
    trial = Trial(items=frozenset({"ep-size", "env:NCCL_X"}), why="Do both show it? " + "x " * 40)
    first, *rest = trial_head(trial, 3, 8, PROBLEM).splitlines()
    assert first == "trial 3/8  + ep-size 8, NCCL_X=1"
    assert rest[0].startswith("  Do both show it?")
    assert len(rest) == 2
    assert trial_head(trial, 9, 8, PROBLEM).startswith("trial 9  + ep-size 8")
    baseline = Trial(items=frozenset(), why="It must start.")
    assert trial_head(baseline, 1, 8, PROBLEM) == "trial 1/8  the baseline\n  It must start."


def test_a_finished_trial_is_one_line() -> None:
    assert trial_line(OTHER) == (
        "  OTHER_FAILURE nonetype-capture-batch-field in graph-capture (12 s)"
    )
    assert trial_line(JOURNAL[0]) == "  STARTS (165 s)"
    assert trial_line(JOURNAL[1]) == "  FAILS nonetype-capture-batch-field in graph-capture (12 s)"


def test_a_simulated_trial_says_so_and_what_it_rests_on() -> None:
    entry = replace(
        OTHER,
        signature="flashinfer-allreduce-rendezvous-hang",
        simulated=True,
        provenance="assumed",
    )
    line = "  OTHER_FAILURE flashinfer-allreduce-rendezvous-hang (simulated, assumed, 12 s)"
    assert trial_line(entry) == line
    assert len(line) <= WIDTH


def test_an_unresolved_trial_says_why() -> None:
    lost = Entry(number=1, items=frozenset(), seen=Seen.UNRESOLVED, reason="no entry", seconds=1.0)
    assert trial_line(lost) == "  UNRESOLVED no entry (1.0 s)"
    assert len(trial_line(replace(lost, reason="r" * 200))) <= WIDTH


def test_a_terminal_sequence_in_a_reason_is_made_visible() -> None:
    lost = Entry(number=1, items=frozenset(), seen=Seen.UNRESOLVED, reason="a\x1b[2Jb\nc")
    assert trial_line(lost) == "  UNRESOLVED a\ufffd[2Jb c (0.0 s)"


def test_all_trials_are_listed() -> None:
    assert trials_text(PROBLEM, JOURNAL).splitlines() == [
        "trial 1  the baseline",
        "  STARTS (165 s)",
        "trial 2  + ep-size 8, NCCL_X=1, enable-flashinfer-allreduce-fusion",
        "  FAILS nonetype-capture-batch-field in graph-capture (12 s)",
        "trial 3  + ep-size 8",
        "  OTHER_FAILURE nonetype-capture-batch-field in graph-capture (12 s)",
        "trial 4  + NCCL_X=1",
        "  STARTS (3.0 s)",
    ]


def test_a_recommendation_shows_changes_sets_and_support() -> None:
    found = recommend(PROBLEM, JOURNAL)
    lines = recommendation_text(found, PROBLEM).splitlines()
    assert lines[:5] == [
        "Proposed: keep NCCL_X=1; drop ep-size 8 and enable-flashinfer-allreduce-fusion",
        "  (3 of 6 by weight). It started in trial 4. Best seen so far: The search has",
        "  not ended.",
        "  keep    tp-size 8",
        "  keep    NCCL_X=1",
    ]
    assert "minimal failing sets" in lines
    assert "  shown      {env:NCCL_X} on the baseline started (trial 4)." in lines
    assert lines[-2:] == ["also started", "  {}  weight 0, trial 1"]
    assert max(map(len, lines)) <= WIDTH


def test_a_simulated_recommendation_says_so_first() -> None:
    found = recommend(PROBLEM, [replace(e, simulated=True) for e in JOURNAL])
    assert recommendation_text(found, PROBLEM).startswith("simulated: Proposed: keep")


def test_failing_sets_name_failure_phase_and_trial() -> None:
    sets = recommend(PROBLEM, JOURNAL).sets
    assert sets_text(PROBLEM, sets) == (
        "  {ep-size}\n"
        "    nonetype-capture-batch-field: A field of the batch is None\n"
        "    (graph-capture, trial 3)"
    )


def test_a_trial_is_one_line_where_a_line_is_a_record() -> None:
    entry = Entry(
        number=2, items=frozenset({"ep-size"}), seen=Seen.FAILS, why="To see.\nReally.", searching="other",
        signature="boom", cause="boom", phase="graph-capture", seconds=12.14, simulated=True,
        provenance="assumed",
    )  # fmt: skip
    problem = Problem(
        name="x", baseline=Config.of(), items=(Item(key="ep-size", change=SetFlag("ep-size", "8")),)
    )
    assert trial_event(entry, Outlook(1, 4, 6, None), problem) == (
        "trial 2/6  + ep-size 8  OTHER_FAILURE  boom in graph-capture  "
        "(simulated, assumed, 12 s)  left: at most 4 more launches  why: To see. Really."
    )


def test_the_end_says_how_surely_what_came_free_and_what_was_not_launched() -> None:
    asked = replace(OTHER, number=5, rung="resolution", seconds=0.2)
    found = replace(recommend(PROBLEM, [*JOURNAL, asked]), level="proved")
    said = " ".join(recommendation_text(found, PROBLEM).split())
    assert (
        "claim nothing that keeps more starts: proved, if adding a flag never repairs a failure"
    ) in said
    assert "4 launches; 1 answer without a launch" in said
    assert "not launched: 4 of 8 combinations; " in said
    assert "2 fail, if adding a flag never repairs a failure; of 2 nothing is known" in said
    bare = " ".join(closing_text(recommend(PROBLEM, JOURNAL)).split())
    assert bare.startswith("4 launches in 3 min; no answer came free")
    seen = recommendation_text(replace(found, level="seen"), PROBLEM)
    assert "  claim   best seen so far" in seen.splitlines()
