"""How long a launch takes, as far as anybody knows before the first one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from triage.core.config import Config, SetFlag
from triage.core.trials import Entry, Item, Problem, Seen
from triage.recipe import Recipe
from triage.session.pace import known_before
from triage.session.search import Replay, Search
from triage.session.stored import open_session

LANDSCAPE = Path(__file__).parents[2] / "fixtures/landscapes/two-flags.yaml"
PROBLEM = Problem(
    name="p",
    baseline=Config.of({"model-path": "/models/one"}),
    items=(Item(key="a", change=SetFlag("a", True)),),
)
SEARCH = Search(recipe=Recipe(name="p", problem=PROBLEM, takes=(None, 45.0)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(search: Search, *entries: Entry) -> Path:
    """A session of an earlier search."""
    session, journal = open_session(search, None, fresh=True)
    for entry in entries:
        model = search.recipe.problem.baseline
        journal.append(replace(entry, config=model))
    return session.path


STARTED = Entry(number=1, items=frozenset(), seen=Seen.STARTS, seconds=200.0)
FAILED = Entry(number=2, items=frozenset({"a"}), seen=Seen.FAILS, signature="x", seconds=30.0)


def test_earlier_searches_of_the_model_come_first_and_others_do_not_count() -> None:
    other = replace(PROBLEM, baseline=Config.of({"model-path": "/models/two"}))
    made(SEARCH, STARTED, FAILED)
    made(Search(recipe=Recipe(name="o", problem=other)), replace(STARTED, seconds=9000.0))
    pace = known_before(SEARCH)
    assert (pace.starts_s, pace.fails_s) == (200.0, 30.0)
    assert pace.source == "mean of 2 launches of this model in 1 earlier session"


def test_what_no_search_saw_is_taken_from_the_recipe() -> None:
    assert known_before(SEARCH).fails_s == 45.0
    own = made(SEARCH, STARTED)
    pace = known_before(SEARCH)
    assert (pace.starts_s, pace.fails_s) == (200.0, 45.0)
    assert pace.source.endswith(", a failure's as the recipe says")
    assert known_before(SEARCH, own).starts_s is None, "its own session is no earlier one"


def test_a_simulated_launch_takes_what_its_landscape_plays() -> None:
    search = replace(SEARCH, recipe=replace(SEARCH.recipe, takes=(None, None)))
    made(search, STARTED)
    one = known_before(replace(search, replay=Replay(landscape=LANDSCAPE, speed=1.0)))
    ten = known_before(replace(search, replay=Replay(landscape=LANDSCAPE, speed=10.0)))
    assert one.source == "as the landscape plays it"
    assert one.starts_s is not None
    assert ten.starts_s == pytest.approx(one.starts_s / 10)
    assert one.starts_s != 200.0, "a real launch says nothing of a simulated one"
    assert not known_before(replace(search, replay=Replay(landscape=LANDSCAPE, speed=1000.0)))


def test_nobody_knows_where_nothing_was_launched() -> None:
    assert not known_before(Search(recipe=Recipe(name="n", problem=PROBLEM)))
