"""Drive a search: ask the planner, launch, write the answer down, until it is done.

In:  a recipe and where to keep the session. Out: a journal on disk, a Recommendation.
Not: choosing trials (triage.core.search.plan) or talking to a person (triage.cli).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from triage.core.hide import hide_problem
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Done, Entry, Seen, Trial
from triage.recipe import Recipe
from triage.render.documents import config_document
from triage.render.search_documents import recommendation_document
from triage.session.climb import Climb, diagnosis_name
from triage.session.ladder import Ladder
from triage.session.logs import causes
from triage.session.places import place_facts, place_of
from triage.session.trial import (
    Setup,
    replay_setup,
)
from triage.store import Journal, SessionFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which landscape the simulated engine plays, and how much faster than life."""

    landscape: Path
    speed: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A recipe made ready to launch.

    `sources` keeps the commands that the user gave, by role (`good`, `bad`), so
    that the runbook can answer in the same form; `origin` their files, by role
    (`recipe`, `good`, `bad`), where a stored session finds its secrets again.
    """

    recipe: Recipe
    replay: Replay | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Path] = field(default_factory=dict)

    @property
    def setup(self) -> Setup:
        """How each launch is made."""
        recipe = self.recipe
        setup = Setup(
            program=recipe.command,
            env=recipe.env,
            cwd=recipe.cwd,
            patience=recipe.patience,
            engine=recipe.engine,
            place=place_of(recipe, self.sources, self.replay.landscape if self.replay else None),
            sources=self.sources,
        )
        if self.replay is None:
            return setup
        return replay_setup(setup, self.replay.landscape, self.replay.speed)

    def on_node(self, node: int) -> Setup:
        """How a launch is made on one of several nodes, counted from 0."""
        devices = self.recipe.devices
        return replace(self.setup, devices=devices[node]) if devices else self.setup

    def digest(self) -> str:
        """Equal for the same problem on the same engine: what a verdict depends on."""
        problem = self.recipe.problem
        landscape = self.replay.landscape.read_bytes() if self.replay else b""
        facts = [
            config_document(problem.baseline),
            [[i.key, repr(i.change)] for i in problem.choices()],
            [problem.requires, problem.not_both],
            [self.recipe.engine, self.recipe.engine_version, list(self.recipe.command)],
            [sorted(self.recipe.env), str(self.recipe.cwd.absolute()), repr(self.recipe.patience)],
            hashlib.sha256(landscape).hexdigest() if self.replay else "",
            *place_facts(self.recipe),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def print_nothing(*_: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Whom to tell what happens; each is called with plain values.

    An event goes on meanwhile, and may be overlooked; a note may not. `doing` is what the
    launch of that number does, and comes from any thread.
    """

    starting: Callable[[int, Trial], None]
    finished: Callable[[Entry], None]
    event: Callable[[str], None]
    doing: Callable[[int, str], None] = print_nothing
    note: Callable[[str], None] = print_nothing


def bisect(
    search: Search, session: SessionFolder, journal: Journal, talk: Talk
) -> tuple[Done, Recommendation]:
    """Launch until the planner is done; each answer is on disk before the next launch.

    Raises:
        HostError: a launch could not be made on this machine; the journal stays.
        KeyboardInterrupt: nothing of the launch is left, the journal stays.
    """
    with Ladder(search, session, event=talk.event, note=talk.note) as ladder:
        ladder.screen(journal, talk.finished)
        if "full" in search.recipe.rungs:
            step = Climb(search, session, journal, talk, ladder).climb()
        else:
            step = Done(
                reason="resolved",
                say="Nothing was launched, as the rungs of this search hold no launch in full.",
            )
    # What is shown and stored of the proposal has no secrets; the launches had them.
    problem = hide_problem(search.recipe.problem)
    found = recommend(problem, journal.entries, causes())
    if step.reason == "resolved":
        found = replace(found, reason=step.reason, say=f"No configuration is proposed. {step.say}")
    if (searched := searched_entry(journal.entries)) is not None:
        session.write("diagnosis.json", session.read(diagnosis_name(searched.number)))
    session.write("recommendation.json", recommendation_document(found))
    session.note(ended=step.reason)
    return step, found


def searched_entry(journal: Sequence[Entry]) -> Entry | None:
    """The trial whose failure is the one under search: the first that failed with items on top."""
    return next((e for e in journal if e.items and e.seen is Seen.FAILS), None)
