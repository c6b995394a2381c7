"""One process has one name, however its lines are labelled."""

from __future__ import annotations

import pytest

from triage.core.log.ranks import dead, members, numbered, resolved

EIGHT = {f"TP{n}" for n in range(8)}
STAGES = {f"PP{p} TP{t}" for p in (0, 1) for t in (0, 1)}


@pytest.mark.parametrize(
    ("label", "labels", "tag"),
    [
        ("TP3", EIGHT, "TP3"),
        ("DP0 TP2 EP2", set(), "DP0 TP2 EP2"),
        ("Worker_TP3", set(), "TP3"),
        ("Worker_DP1_TP3_EP11", set(), "DP1 TP3 EP11"),
        ("Worker", set(), "main"),
        ("APIServer", EIGHT, "main"),
        ("EngineCore_DP0", {"EngineCore_DP0"}, "main"),
        ("EngineCore_DP1", {"EngineCore_DP0", "EngineCore_DP1"}, "DP1"),
        ("rank3", EIGHT, "TP3"),
        ("rank3", STAGES, "PP1 TP1"),
        ("rank3", set(), "rank3"),
        ("gpu3", {f"DP{n} TP{n} EP{n}" for n in range(8)}, "DP3 TP3 EP3"),
        ("gpu3", {f"TP{n}" for n in range(8, 16)}, "TP11"),
        ("gpu3", set(), "main"),
        ("main", EIGHT, "main"),
    ],
)
def test_a_label_becomes_the_tag_of_its_process(label: str, labels: set[str], tag: str) -> None:
    assert resolved(label, labels) == tag


def test_the_members_of_a_launch_are_its_tags_in_order() -> None:
    labels = {"TP10", "TP2", "main", "gpu7", "APIServer", "Worker_TP0", "rank1"}
    assert members(labels) == ("TP0", "TP2", "TP10")


def test_a_number_that_fits_two_processes_names_none() -> None:
    assert numbered(1, {"DP0 TP1", "DP1 TP1"}) == ""


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ("Rank 3 scheduler died during initialization (exit code: -9).", "TP3"),
        ("Subprocess scheduler_5 (pid=7) crashed with exit code -11.", "TP5"),
        ("failed (exitcode: -9) local_rank: 2 (pid: 7) of binary", "TP2"),
        ("mpirun noticed that process rank 3 with PID 1 on node a exited", "TP3"),
        ("Rank 0 scheduler died during initialization", ""),
        ("Subprocess detokenizer (pid=7) crashed with exit code -9.", ""),
    ],
)
def test_a_launcher_says_who_died(line: str, tag: str) -> None:
    assert dead(line, set()) == tag
