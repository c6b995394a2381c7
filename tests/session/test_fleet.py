"""Launches at the same time: they overlap, do not disturb each other, and all end with the search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.core.config import Config, SetFlag
from triage.core.diagnosis import Diagnosis
from triage.core.launch import Capture, Crashed, Ready
from triage.core.trials import Entry, Item, Problem, Seen, Trial
from triage.errors import HostError
from triage.recipe import Recipe
from triage.session import climb
from triage.session.fleet import Fleet, Flight
from triage.session.search import Search, Talk, bisect
from triage.session.stored import open_session
from triage.session.trial import TrialResult

NAMES = "abcdefgh"
FAULTS = ({"b"}, {"e", "g"})


def result(log: Path, seen: Seen, failure: str = "") -> TrialResult:
    """A launch that started, or failed so."""
    outcome = Ready(answer="x") if seen is Seen.STARTS else Crashed(exit_code=1)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(failure)
    return TrialResult(
        capture=Capture(outcome=outcome, seconds=1.0, log=str(log), phase="weight-load"),
        diagnosis=Diagnosis(source=str(log), outcome="failed", cause=failure or None,
                            phase="weight-load"),
        seen=seen,
    )  # fmt: skip


class World:
    """Stands for launches: how many there are, how many at once, and what each shows."""

    def __init__(self) -> None:
        self.made: list[frozenset[str]] = []
        self.inside = self.most = 0
        self.lock = threading.Lock()
        self.breaks: dict[int, BaseException] = {}

    def launch_once(
        self, setup: object, config: Config, folder: Path, *, ended: Callable[[], bool],
        **_: object,
    ) -> TrialResult:  # fmt: skip
        items = frozenset(name for name, _ in config.flag_values().items() if name in NAMES)
        with self.lock:
            self.made.append(items)
            self.inside += 1
            self.most = max(self.most, self.inside)
            number = len(self.made)
        try:
            time.sleep(0.02 if items else 0.05)
            if number in self.breaks:
                raise self.breaks[number]
            if ended():
                raise KeyboardInterrupt
        finally:
            with self.lock:
                self.inside -= 1
        fault = next((f for f in FAULTS if f <= items), None)
        failure = "+".join(sorted(fault)) if fault else ""
        return result(folder / "server.log", Seen.FAILS if fault else Seen.STARTS, failure)


def searched(
    world: World, monkeypatch: pytest.MonkeyPatch, folder: Path, nodes: int
) -> tuple[list[Entry], frozenset[str]]:
    monkeypatch.setattr(climb, "launch_once", world.launch_once)
    problem = Problem(
        name="fleet",
        baseline=Config.of({"model-path": "/m"}),
        items=tuple(Item(key=n, change=SetFlag(n, True)) for n in NAMES),
    )
    search = Search(recipe=Recipe(name="fleet", problem=problem, rungs=("full",), at_once=nodes))
    session, journal = open_session(search, folder, fresh=True)
    quiet = Talk(starting=lambda *_: None, finished=lambda _: None, event=lambda _: None)
    done, found = bisect(search, session, journal, quiet)
    assert done.reason == "found"
    return journal.entries, found.items


def test_three_nodes_give_the_answer_of_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, three = World(), World()
    alone, kept = searched(one, monkeypatch, tmp_path / "1", 1)
    beside, same = searched(three, monkeypatch, tmp_path / "3", 3)
    assert len(kept) == len(same) == len(NAMES) - 2
    assert (one.most, three.most) == (1, 3)
    for entries, world in ((alone, one), (beside, three)):
        assert len({e.items for e in entries}) == len(entries)
        assert len(set(world.made)) == len(world.made)
    numbers = sorted(e.number for e in beside)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= len(beside) + 2, "at most the two in flight at the end have no entry"


def test_what_one_launch_meets_ends_the_search_after_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World()
    world.breaks[4] = HostError("no room", hint="df")
    with pytest.raises(HostError, match="no room"):
        searched(world, monkeypatch, tmp_path / "s", 3)
    made = len(world.made)
    assert made < 9, "nothing more was launched"
    lines = (tmp_path / "s/journal.jsonl").read_text().splitlines()
    assert len(lines) == made - 1, "what the others showed is written down"
    world.breaks.clear()
    entries, kept = searched(world, monkeypatch, tmp_path / "again", 3)
    assert entries
    assert len(kept) == len(NAMES) - 2


def test_whoever_leaves_the_fleet_ends_every_launch() -> None:
    ended: list[int] = []

    def wait(flight: Flight, over: Callable[[], bool]) -> TrialResult:
        while not over():
            time.sleep(0.005)
        ended.append(flight.number)
        raise KeyboardInterrupt

    with Fleet(3) as fleet:
        for _ in range(3):
            number = fleet.number({2})
            fleet.start(number, Trial(items=frozenset(), why=""), wait, left_s=1.0)
        assert fleet.free == 0
    assert sorted(ended) == [1, 3, 4]


def test_a_launch_has_the_devices_of_its_node() -> None:
    recipe = Recipe(
        name="two", problem=Problem(name="two", baseline=Config(), items=()),
        devices=((0, 1), (2, 3)), at_once=2,
    )  # fmt: skip
    search = Search(recipe=recipe)
    assert [search.on_node(node).devices for node in (0, 1)] == [(0, 1), (2, 3)]
