"""Unknown failures that are alike are one group, in whatever order they come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.diagnosis import Diagnosis, Exc, Frame, Root
from triage.core.log.cluster import cluster
from triage.core.log.fingerprint import fingerprint, levels

FRAMES = (Frame(file="sglang/srt/a.py", line=3, function="load"),)


def unknown(source: str, message: str, exception: str = "RuntimeError", line: int = 3) -> Diagnosis:
    frames = (replace(FRAMES[0], line=line),)
    mark, of = fingerprint(exception, message, frames)
    return Diagnosis(
        source=source,
        outcome="failed",
        phase="weight-load",
        fingerprint=mark,
        fingerprint_of=of,
        root=Root(line=7, offset=0, rank="TP0", time=None, text=f"{exception}: {message}"),
        traceback=Exc(exception=exception, message=message, frames=frames),
    )


LOGS = (
    unknown("a", "the expert map of layer 3 does not have 128 entries"),
    unknown("b", "the expert map of layer 9 does not have 256 entries"),
    unknown("c", "the expert table of layer 9 does not have 256 entries"),
    unknown("d", "no tactic fits"),
    unknown("e", "the expert map of layer 3 does not have 128 entries", exception="ValueError"),
    replace(unknown("f", "x"), cause="weight-oom"),
    Diagnosis(source="g", outcome="healthy"),
    Diagnosis(source="h", outcome="hung", phase="dist-init", fingerprint="v1:0123456789ab",
              fingerprint_of="hung | in dist-init"),
    Diagnosis(source="i", outcome="failed", phase="weight-load", title="ended by SIGKILL"),
)  # fmt: skip


def grouped(logs: tuple[Diagnosis, ...], level: str = "near") -> list[str]:
    return ["".join(m.source for m in group.members) for group in cluster(logs, level)]


def test_what_differs_in_numbers_or_a_word_is_one_group_and_known_causes_are_none() -> None:
    groups = cluster(LOGS)
    assert sorted("".join(m.source for m in group.members) for group in groups) == [
        "abc", "d", "e", "h", "i",
    ]  # fmt: skip
    assert [m.similarity for m in groups[0].members] == [1.0, 1.0, 0.917]
    assert (groups[0].example, groups[0].line, groups[0].phases) == ("a", 7, ("weight-load",))


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("default", ["ab", "c", "d", "e", "h", "i"]),
        ("exact", ["a", "b", "c", "d", "e", "h", "i"]),
        ("frame", ["abcd", "e", "h", "i"]),
    ],
)
def test_a_level_groups_by_its_fingerprint_alone(level: str, expected: list[str]) -> None:
    assert sorted(grouped(LOGS, level)) == expected


@given(st.permutations(LOGS))
def test_the_order_of_the_logs_changes_nothing(logs: list[Diagnosis]) -> None:
    assert cluster(logs) == cluster(LOGS)


def test_an_end_that_says_nothing_of_the_configuration_has_no_fingerprint() -> None:
    (group,) = cluster([LOGS[-1]])
    assert (group.fingerprint, group.frame, group.text) == ("", "", "ended by SIGKILL")


def test_the_levels_of_a_failure_get_finer() -> None:
    one = levels("E", "got 3 of 4", FRAMES)
    assert levels("E", "got 5 of 6", FRAMES).default == one.default
    assert levels("E", "got 5 of 6", FRAMES).exact != one.exact
    assert levels("E", "something else", FRAMES).default != one.default
    assert levels("E", "something else", FRAMES).frame == one.frame
    assert levels("F", "got 3 of 4", FRAMES).frame != one.frame
    moved = (replace(FRAMES[0], line=4),)
    assert levels("E", "got 3 of 4", moved).default == one.default
    assert levels("E", "got 3 of 4", moved).exact != one.exact


def test_without_an_exception_the_coarse_level_is_the_default_one() -> None:
    one = levels("", "it broke at 3")
    assert one.frame == one.default == fingerprint("", "it broke at 3")[0]
