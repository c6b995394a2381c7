"""Drive a search: ask the planner, launch, write the answer down, until it is done.

In:  a recipe and where to keep the session. Out: a journal on disk, a Recommendation.
Not: choosing trials (triage.core.search.plan) or talking to a person (triage.cli).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from triage.core.redact import redact_document, redact_env, redact_text
from triage.core.search.plan import next_trials
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Done, Entry, Seen, Trial
from triage.errors import UsageError
from triage.recipe import Recipe, dump_recipe, load_recipe
from triage.render.documents import config_document, diagnosis_document
from triage.render.search_documents import recommendation_document
from triage.session.logs import causes, classify, flag_table
from triage.session.trial import Setup, entry_of, launch_once, replay_setup
from triage.store import Journal, SessionFolder, find_session


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which landscape the simulated engine plays, and how much faster than life."""

    landscape: Path
    speed: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A recipe made ready to launch.

    `sources` keeps the commands that the user gave, by role (`good`, `bad`), so
    that the runbook can answer in the same form.
    """

    recipe: Recipe
    replay: Replay | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

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
        )
        if self.replay is None:
            return setup
        return replay_setup(setup, self.replay.landscape, self.replay.speed)

    def digest(self) -> str:
        """Equal for the same problem on the same engine: what a verdict depends on."""
        problem = self.recipe.problem
        landscape = self.replay.landscape.read_bytes() if self.replay else b""
        facts = [
            config_document(problem.baseline),
            [[i.key, repr(i.change)] for i in problem.items],
            [problem.requires, problem.not_both],
            [self.recipe.engine, self.recipe.engine_version, list(self.recipe.command)],
            sorted(self.recipe.env),
            hashlib.sha256(landscape).hexdigest() if self.replay else "",
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Whom to tell what happens; each is called with plain values."""

    starting: Callable[[int, Trial], None]
    finished: Callable[[Entry], None]
    event: Callable[[str], None]


def open_session(
    search: Search, folder: Path | None, *, fresh: bool
) -> tuple[SessionFolder, Journal]:
    """The session of this problem: the unfinished one if there is one, else a new one.

    Raises:
        UsageError: `folder` holds another search.
    """
    digest = search.digest()
    found = folder if folder and (folder / "session.json").exists() else None
    if found is None and folder is None and not fresh:
        found = find_session(digest)
    if found is not None:
        session = SessionFolder.open(found)
        if session.facts["digest"] != digest:
            raise UsageError(
                f"{found} investigates another problem ({session.facts['name']})",
                hint="triage bisect --session ANOTHER_FOLDER RECIPE",
            )
    else:
        session = _create(search, folder, digest)
    session.lock()
    return session, Journal(session.path / "journal.jsonl")


def _create(search: Search, folder: Path | None, digest: str) -> SessionFolder:
    recipe, replay = search.recipe, search.replay
    session = SessionFolder.create(
        folder,
        {
            "created": datetime.now().astimezone().isoformat(timespec="seconds"),
            "digest": digest,
            "name": recipe.name,
            "engine": "replay" if replay else recipe.engine,
            "simulated": replay is not None,
            "replay": {"landscape": str(replay.landscape.absolute()), "speed": replay.speed}
            if replay
            else None,
            "sources": {role: redact_text(text) for role, text in search.sources.items()},
        },
    )
    problem = replace(
        recipe.problem,
        baseline=replace(
            recipe.problem.baseline,
            env=tuple(redact_env(recipe.problem.baseline.env_values()).items()),
        ),
    )
    stored = replace(
        recipe,
        problem=problem,
        env=tuple(redact_env(dict(recipe.env)).items()),
        cwd=recipe.cwd.absolute(),
    )
    session.write("recipe.yaml", dump_recipe(stored))
    return session


def reopen(path: Path) -> tuple[SessionFolder, Journal, Search]:
    """A stored session with everything that its later steps need."""
    session = SessionFolder.open(path)
    recipe = load_recipe(path / "recipe.yaml", flag_table())
    facts = session.facts["replay"]
    replay = Replay(landscape=Path(facts["landscape"]), speed=facts["speed"]) if facts else None
    search = Search(recipe=recipe, replay=replay, sources=session.facts["sources"])
    return session, Journal(path / "journal.jsonl"), search


def bisect(
    search: Search, session: SessionFolder, journal: Journal, talk: Talk
) -> tuple[Done, Recommendation]:
    """Launch until the planner is done; each answer is on disk before the next launch.

    Raises:
        HostError: a launch could not be made on this machine; the journal stays.
        KeyboardInterrupt: nothing of the launch is left, the journal stays.
    """
    problem, setup = search.recipe.problem, search.setup
    while not isinstance(step := next_trials(problem, journal.entries), Done):
        trial, number = step[0], len(journal.entries) + 1
        talk.starting(number, trial)
        folder = session.trial_folder(number)
        result = launch_once(setup, problem.config(trial.items), folder, say=talk.event)
        baseline = next((e for e in journal.entries if not e.items and e.seen is Seen.STARTS), None)
        entry = entry_of(number, trial, problem, result, baseline)
        _write_json(folder / "diagnosis.json", diagnosis_document(result.diagnosis))
        journal.append(entry)
        talk.finished(entry)
    found = recommend(problem, journal.entries, causes())
    if (wanted := wanted_entry(journal.entries)) is not None:
        log = session.path / "trials" / f"{wanted.number:03d}" / "server.log"
        session.write("diagnosis.json", diagnosis_document(classify(str(log))))
    session.write("recommendation.json", recommendation_document(found))
    return step, found


def wanted_entry(journal: list[Entry]) -> Entry | None:
    """The trial whose failure is the one under search: the first that failed with items on top."""
    return next((e for e in journal if e.items and e.seen is Seen.FAILS), None)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(redact_document(dict(document)), indent=1) + "\n", encoding="utf-8")
