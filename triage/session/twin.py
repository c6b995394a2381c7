"""The rung between a question and a launch: a launch with a smaller model.

In:  a Search, its journal, trials. Out: entries that cost no launch in full.
Not: what is made smaller (triage.core.twin).

A twin is believed only after it was held against the real thing: the twin of a launch that
failed in full must fail with the same cause in the same phase. From then on a trial whose twin
fails in just that way fails; whatever else its twin does says nothing, and it is launched.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage.core.config import Config, apply
from triage.core.diagnosis import Diagnosis
from triage.core.search.subsets import Keys
from triage.core.trials import Entry, Seen, Trial, left_out
from triage.core.twin import twin_of
from triage.render.documents import diagnosis_document
from triage.session.trial import (
    Setup,
    TrialResult,
    entry_of,
    launch_once,
    stored_diagnosis,
    stored_outcome,
)
from triage.store import SessionFolder

if TYPE_CHECKING:
    from triage.session.search import Search

_FOLDER = "twin"


class Twins:
    """The twins of one search, once one of them was held against a launch in full."""

    def __init__(
        self,
        search: Search,
        session: SessionFolder,
        *,
        event: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self.search, self.session, self.event, self.note = search, session, event, note
        self._believed: dict[str, bool] = {}  # signature -> whether its twin shows it, too
        self._told: set[str] = set()

    def answer(
        self, number: int, trial: Trial, journal: Sequence[Entry], limit_s: float
    ) -> Entry | None:
        """The trial's entry if its twin fails as a launch in full did; else None."""
        example = _example(trial, journal)
        if example is None or not self._believe(example, limit_s):
            return None
        folder = self.session.trial_folder(number) / _FOLDER
        result = self._launch(trial.items, folder, limit_s)
        if result is None or not _same(result.diagnosis, example, result.seen):
            return None
        for file in folder.iterdir():  # what a trial leaves lies where it always does
            file.replace(folder.parent / file.name)
        folder.rmdir()
        log = str(folder.parent / "server.log")
        result = replace(result, capture=replace(result.capture, log=log))
        self.session.write(
            f"trials/{number:03d}/diagnosis.json",
            diagnosis_document(replace(result.diagnosis, source=log)),
        )
        entry = entry_of(number, trial, self.search.recipe.problem, result, ())
        saved = max(0.0, round(example.seconds - entry.seconds, 2))
        return replace(entry, rung="twin", moved=(), saved_s=saved)

    def _believe(self, example: Entry, limit_s: float) -> bool:
        """Whether the twin of a failing launch fails in the same way; found out once."""
        signature = example.signature or ""
        if signature not in self._believed:
            folder = self.session.path / f"trials/{example.number:03d}" / _FOLDER
            seen, diagnosis = self._stored(folder)
            if diagnosis is None:
                self.event(f"holding a smaller model against trial {example.number}")
                result = self._launch(example.items, folder, limit_s)
                if result is not None:
                    seen, diagnosis = result.seen, result.diagnosis
            same = diagnosis is not None and _same(diagnosis, example, seen)
            if diagnosis is not None and not same:
                shown = diagnosis.signature if seen is Seen.FAILS else seen.value
                self._tell(
                    f"no smaller model for {signature}: with one, trial {example.number} "
                    f"shows {shown} instead"
                )
            self._believed[signature] = same
        return self._believed[signature]

    def _stored(self, folder: Path) -> tuple[Seen, Diagnosis | None]:
        """What the same twin showed before this process began."""
        outcome = stored_outcome(folder)
        if outcome is None:
            return Seen.UNRESOLVED, None
        diagnosis = stored_diagnosis(folder)
        failed = diagnosis.outcome in ("failed", "hung")
        return (Seen.FAILS if failed else Seen.STARTS), diagnosis

    def _launch(self, items: Keys, folder: Path, limit_s: float) -> TrialResult | None:
        """Launch the twin of a subset; None if it has none."""
        problem, setup = self.search.recipe.problem, self.search.setup
        config = problem.config(items)
        twin = twin_of(config, self._model(config, setup), _searched(self.search))
        if isinstance(twin, str):
            self._tell(f"no smaller model: {twin}")
            return None
        self._tell(f"smaller model: {twin.say()}; it does not show {'; '.join(twin.masks)}")
        if folder.exists():
            shutil.rmtree(folder)
        return launch_once(
            setup.within(limit_s),
            apply(config, twin.changes),
            folder,
            unset=problem.unset_env(items),
            say=self.event,
        )

    def _model(self, config: Config, setup: Setup) -> dict[str, object] | None:
        """The model's config.json, if it lies on this machine."""
        path = config.get("model-path")
        try:
            file = setup.cwd / str(path) / "config.json"
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.note(text)


def _searched(search: Search) -> set[str]:
    """The flags that the search sets, or leaves out."""
    choices = search.recipe.problem.choices()
    return {i.change.name for i in choices} | {left_out(i.change) for i in choices} - {""}


def _example(trial: Trial, journal: Sequence[Entry]) -> Entry | None:
    """A launch in full that failed late, with the failure under search: only that is worth one."""
    return next(
        (
            e
            for e in journal
            if e.seen is Seen.FAILS
            and e.rung == "full"
            and e.launched
            and not e.early
            and e.signature == trial.searching
        ),
        None,
    )


def _same(diagnosis: Diagnosis, example: Entry, seen: Seen) -> bool:
    """Whether a twin failed with the same cause, in the same phase."""
    alike = (diagnosis.signature, diagnosis.phase) == (example.signature, example.phase)
    return seen is Seen.FAILS and alike
