"""The rungs below a launch: what can answer a trial for less.

In:  a Search, its journal, trials. Out: entries of the journal that cost no launch in full.
Not: choosing trials (triage.core.search), or launches in full (search.py).

A rung answers only where its answer is that of the launch: a configuration that the engine
itself refuses fails in a launch, with the same words; one that is the same to the engine as
one that was launched has its verdict. That the engine accepts a configuration, or that a
smaller model starts, says nothing, and the next rung is asked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from triage.core.constraints import Rule, judged
from triage.core.diagnosis import Diagnosis
from triage.core.hide import hide_config
from triage.core.launch import Capture, Crashed, Process, Unit
from triage.core.resolution import Resolution, effective_key, overrides, unknown
from triage.core.search.rungs import Refused, refused_sets
from triage.core.search.subsets import Keys, distinct
from triage.core.trials import Entry, Seen, Trial
from triage.knowledge.rules import load_rules
from triage.render.documents import diagnosis_document
from triage.render.resolution_text import resolution_document
from triage.session.logs import flag_table
from triage.session.resolve import Engine, diagnosis_of
from triage.session.trial import TrialResult, entry_of, what_is_seen
from triage.session.twin import Twins
from triage.store import Journal, SessionFolder

if TYPE_CHECKING:
    from triage.session.search import Search

SCREENED = "Before any launch the engine was asked what it refuses."


@dataclass(frozen=True, slots=True)
class Asked:
    """A subset's resolution, with what the classifier says of a refusal."""

    resolution: Resolution
    diagnosis: Diagnosis | None
    key: str

    @property
    def signature(self) -> str | None:
        """Names the refusal as a launch would; None if it is none that counts."""
        if self.diagnosis is None or _seen(self) is not Seen.FAILS:
            return None
        if self.resolution.basis == "knowledge" and self.diagnosis.cause is None:
            return None  # a fingerprint has the frames of a launch, which a rule does not know
        return self.diagnosis.signature


class Ladder:
    """The rungs of one search; the engine is imported when it is first asked, and once."""

    def __init__(
        self,
        search: Search,
        session: SessionFolder,
        *,
        event: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self.search, self.session, self.event, self.note = search, session, event, note
        self._asked: dict[Keys, Asked] = {}
        self._engine: Engine | None = None
        setup, rungs = search.setup, search.recipe.rungs
        self._twins: Twins | None = None
        if "twin" in rungs:
            self._twins = Twins(search, session, event=event, note=note)
        self._table = flag_table()
        self._rules: tuple[Rule, ...] = ()
        if search.replay is not None or setup.engine != "sglang":
            return
        # An engine of a container or another node is not at hand.
        here = isinstance(setup.place, Process | Unit)
        if "resolution" in rungs and here:
            self._engine = Engine(setup.program, setup.env, setup.cwd)
            if self._engine.why:
                self.note(f"the engine is not asked before a launch: {self._engine.why}")
        # Of an engine whose version is not known, rules hold only if the user says so.
        found = self._engine.version if self._engine else ""
        known = "resolution" not in rungs or found == self._table.version
        if "static" in rungs and known and search.recipe.engine_version == self._table.version:
            self._rules = load_rules(self._table.version)

    def __enter__(self) -> Self:
        """The ladder."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the engine's interpreter, if there is one."""
        if self._engine is not None:
            self._engine.close()

    @property
    def asks(self) -> bool:
        """Whether the engine can be asked, as far as is known, or there are rules in its place."""
        return bool(self._rules) or self._imports

    @property
    def _imports(self) -> bool:
        """Whether the engine itself can be asked, as far as is known."""
        return self._engine is not None and not self._engine.why

    def screen(self, journal: Journal, finished: Callable[[Entry], None]) -> None:
        """Before the first launch: ask for everything that is wanted, and explain a refusal.

        The refused sets go into the journal, each with the subsets that show it to be minimal.
        """
        if journal.entries or not self.asks:
            return
        problem = distinct(self.search.recipe.problem)
        found = refused_sets(problem, lambda keys: self.ask(keys).signature)
        if self._engine is not None and self._engine.why:
            self.note(f"the engine is not asked before a launch: {self._engine.why}")
        for refused in found:
            self._write(refused, journal, finished)

    def _write(self, refused: Refused, journal: Journal, finished: Callable[[Entry], None]) -> None:
        """Write a refused set and its neighbours into the journal, each once."""
        known = {entry.items for entry in journal.entries}
        searching = next((e.signature for e in journal.entries if e.seen is Seen.FAILS), None)
        for keys in (refused.items, *refused.smaller):
            if keys in known:
                continue
            trial = Trial(items=keys, why=SCREENED, searching=searching)
            number = len(journal.entries) + 1
            entry = self._entry(number, trial, self.ask(keys), passes=True)
            if entry is not None:
                journal.append(entry)
                finished(entry)
            searching = searching or (entry.signature if entry else None)

    def answer(
        self, number: int, trial: Trial, journal: Sequence[Entry], left_s: float
    ) -> Entry | None:
        """The trial's entry if a rung below the launch answers it; None if it must be launched.

        `left_s` are the seconds that a launch with a smaller model may take.
        """
        found = self._answered(number, trial, journal)
        if found is None and self._twins is not None:
            found = self._twins.answer(number, trial, journal, left_s)
        return found

    def _answered(self, number: int, trial: Trial, journal: Sequence[Entry]) -> Entry | None:
        """The trial's entry if it can be had without any launch."""
        if not self.asks:
            return None
        asked = self.ask(trial.items)
        if (entry := self._entry(number, trial, asked)) is not None:
            return entry
        same = self._same(asked.key, journal)
        if same is None:
            return None
        config = self.search.recipe.problem.config(trial.items)
        self._lend(same.number, number)
        return replace(
            same,
            number=number,
            items=trial.items,
            why=trial.why,
            searching=trial.searching,
            config=config,
            seconds=round(asked.resolution.seconds, 2),
            moved=(),
            rung="resolution",
            same_as=same.number,
            saved_s=same.seconds,
        )

    def _lend(self, owner: int, number: int) -> None:
        """Give a trial the files of the launch whose verdict it has: its log is its evidence."""
        folder = self.session.trial_folder(number)
        for file in (self.session.path / f"trials/{owner:03d}").iterdir():
            if file.is_file() and file.name != "resolution.json":
                try:
                    (folder / file.name).hardlink_to(file)
                except OSError:  # a file system without them
                    shutil.copyfile(file, folder / file.name)

    def _same(self, key: str, journal: Sequence[Entry]) -> Entry | None:
        """A launch of a configuration that is the same to the engine, where launches do not lie."""
        if not key or self.search.recipe.problem.noise:
            return None
        answers = [
            e
            for e in journal
            if e.resolved_key == key and e.launched and e.seen in (Seen.STARTS, Seen.FAILS)
        ]
        alike = {(e.seen, e.signature) for e in answers}
        return answers[-1] if len(alike) == 1 else None

    def key(self, items: Keys) -> str:
        """The effective key of a subset; "" if the engine cannot be asked."""
        return self.ask(items).key if self.asks else ""

    def ask(self, items: Keys) -> Asked:
        """What the engine makes of a subset, asked once."""
        if items not in self._asked:
            problem = self.search.recipe.problem
            config, unset = problem.config(items), problem.unset_env(items)
            found = unknown("the engine is not asked")
            if self._engine is not None and not self._engine.why:
                if not self._asked:
                    self.event("importing the engine, to ask it before anything is launched")
                found = self._engine.resolve(config, unset)
            if not self._imports:
                found = judged(config, self._rules, self._table, self._table.version)
            given = config.env_values() | dict.fromkeys(unset, "(unset)")
            if (seed := config.get("random-seed")) is not None:  # else it is drawn
                given["--random-seed"] = str(seed)
            key = effective_key(found, given)
            self._asked[items] = Asked(found, diagnosis_of(found), key)
        return self._asked[items]

    def _entry(
        self, number: int, trial: Trial, asked: Asked, *, passes: bool = False
    ) -> Entry | None:
        """The entry of a refusal, and with `passes` of an acceptance; None if it is no answer."""
        resolution = asked.resolution
        if resolution.verdict == "unknown":
            return None
        refused = asked.signature is not None
        if not refused and not (passes and resolution.verdict == "accepted"):
            return None
        folder = self.session.trial_folder(number)
        log = self._store(folder, trial, asked)
        diagnosis = asked.diagnosis
        problem = self.search.recipe.problem
        if diagnosis is None:
            return Entry(
                number=number,
                items=trial.items,
                seen=Seen.PASSES,
                why=trial.why,
                searching=trial.searching,
                phase=resolution.phase,
                seconds=round(resolution.seconds, 2),
                config=problem.config(trial.items),
                provenance="resolved",
                rung="resolution",
                resolved_key=asked.key,
            )
        self.session.write(
            f"trials/{number:03d}/diagnosis.json",
            diagnosis_document(replace(diagnosis, source=str(log))),
        )
        result = TrialResult(
            capture=_capture(asked, log), diagnosis=diagnosis, seen=Seen.FAILS, reason=""
        )
        entry = entry_of(number, trial, problem, result, ())
        rung = "resolution" if resolution.basis == "engine" else "static"
        told = "resolved" if rung == "resolution" else "rule"
        saved = self._saved(resolution)
        return replace(entry, early=True, rung=rung, provenance=told, saved_s=saved)

    def _saved(self, resolution: Resolution) -> float:
        """Seconds of the launch that a refusal saved, at least: it would import the engine, too."""
        import_s = self._engine.import_s if self._engine else 0.0
        return round(import_s + resolution.seconds, 2)

    def _store(self, folder: Path, trial: Trial, asked: Asked) -> Path:
        """Keep what the engine said, as of a launch: its output, and the resolution."""
        name = f"trials/{folder.name}"
        log = folder / "server.log"
        log.write_text(asked.resolution.log, encoding="utf-8", errors="replace")
        config = self.search.recipe.problem.config(trial.items)
        self.session.write(
            f"{name}/resolution.json",
            resolution_document(
                asked.resolution,
                hide_config(config),
                diagnosis=asked.diagnosis,
                overridden=overrides(config, asked.resolution, flag_table()),
                import_s=self._engine.import_s if self._engine else 0.0,
            ),
        )
        return log


def _capture(asked: Asked, log: Path) -> Capture:
    """The resolution as the capture of a launch that ended where it did."""
    return Capture(
        outcome=Crashed(exit_code=asked.resolution.exit_code),
        seconds=asked.resolution.seconds,
        log=str(log),
        phase=asked.resolution.phase,
    )


def _seen(asked: Asked) -> Seen:
    """What the refusal proves, as a launch would: a cause of the moment proves nothing."""
    if asked.diagnosis is None:
        return Seen.UNRESOLVED
    return what_is_seen(_capture(asked, Path()), asked.diagnosis)[0]
