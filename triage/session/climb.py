"""Answer trial after trial by the cheapest rung that can, as many at a time as there are nodes.

In:  a Search, its session, its journal. Out: the journal, longer; Done.
Not: choosing trials (triage.core.search.plan), or threads (fleet.py).

What a launch showed is used as soon as it has ended: the next is chosen then, and those still in
flight count as launched. An error of one lets the others end first, and be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage.core.search.plan import next_trials
from triage.core.trials import Done, Trial
from triage.errors import HostError, hint
from triage.render.documents import diagnosis_document
from triage.session.fleet import Fleet, Flight
from triage.session.ladder import Ladder
from triage.session.trial import TrialResult, ended_by_us, entry_of, launch_once
from triage.store import Journal, SessionFolder

if TYPE_CHECKING:
    from triage.session.search import Search, Talk

# What ends a search whatever the launches in flight would show.
ANSWERED = ("found", "wanted-starts", "baseline-fails")


class Climb:
    """One search on its way; its journal is on disk whenever something is launched."""

    def __init__(
        self, search: Search, session: SessionFolder, journal: Journal, talk: Talk, ladder: Ladder
    ) -> None:
        self.search, self.session, self.journal = search, session, journal
        self.talk, self.ladder = talk, ladder
        self.problem, self.setup = search.recipe.problem, search.setup

    def climb(self) -> Done:
        """Go on until the planner is done.

        Raises:
            HostError: a launch could not be made on this machine; the others have ended.
            KeyboardInterrupt: nothing of any launch is left.
        """
        stop: Done | BaseException | None = None
        with Fleet(self.search.recipe.at_once) as fleet:
            while True:
                if stop is None:
                    flying = [flight.trial.items for flight in fleet.flights.values()]
                    step = next_trials(self.problem, self.journal.entries, fleet.free, flying)
                    if isinstance(step, Done):
                        if step.reason in ANSWERED or not fleet.flights:
                            return step  # what is in flight cannot change it, and is ended
                    elif not self._begun(step, fleet):
                        continue  # answered without a launch: what comes next may be another
                elif not fleet.flights:
                    if isinstance(stop, Done):
                        return stop
                    raise stop
                assert fleet.flights, "nothing is launched and nothing is awaited"  # noqa: S101
                flight, result = fleet.take()
                if isinstance(result, BaseException):
                    stop = stop or result
                else:
                    stop = self._landed(flight, result) or stop

    def _begun(self, trials: Sequence[Trial], fleet: Fleet) -> bool:
        """Start the launches of these trials; False if one needed none, and is answered."""
        for trial in trials:
            number = fleet.number({entry.number for entry in self.journal.entries})
            self.talk.starting(number, trial)
            left_s = self.problem.budget_s - sum(entry.seconds for entry in self.journal.entries)
            cheap = self.ladder.answer(number, trial, self.journal.entries, left_s)
            if cheap is not None:
                self.journal.append(cheap)
                self.talk.finished(cheap)
                return False
            self.session.trial_folder(number)
            fleet.start(number, trial, self._launch, left_s=left_s)
        return True

    def _launch(self, flight: Flight, ended: Callable[[], bool]) -> TrialResult:
        """Launch one trial, in whatever thread."""
        return launch_once(
            self.search.on_node(flight.node).within(flight.left_s),
            self.problem.config(flight.trial.items),
            self._folder(flight.number),
            unset=self.problem.unset_env(flight.trial.items),
            say=lambda text: self.talk.doing(flight.number, text),
            ended=ended,
        )

    def _landed(self, flight: Flight, result: TrialResult) -> Done | HostError | None:
        """Write down what a launch showed; what ends the search, if it does."""
        trial, number = flight.trial, flight.number
        if ended_by_us(result) and self.setup.within(flight.left_s) != self.setup:
            return self._spent() or Done(
                reason="budget",
                say=f"The time is spent: it ended trial {number}, which proves nothing.",
            )
        entry = entry_of(number, trial, self.problem, result, self.journal.entries)
        entry = replace(entry, resolved_key=self.ladder.key(trial.items))
        self.session.write(diagnosis_name(number), diagnosis_document(result.diagnosis))
        self.journal.append(entry)
        self.talk.finished(entry)
        if result.held:  # what follows would fail for want of memory, and blame a flag
            look = hint("triage", "classify", self._folder(number) / "server.log")
            return HostError(f"the launch is not gone: {result.held}", hint=look)
        return None

    def _spent(self) -> Done | None:
        """The answer that stands without another launch: not every one is needed for a proof."""
        spent_s = sum(entry.seconds for entry in self.journal.entries)
        step = next_trials(replace(self.problem, budget_s=spent_s), self.journal.entries)
        return step if isinstance(step, Done) and step.reason in ANSWERED else None

    def _folder(self, number: int) -> Path:
        return self.session.path / f"trials/{number:03d}"


def diagnosis_name(number: int) -> str:
    """Where a session keeps the diagnosis of trial `number`."""
    return f"trials/{number:03d}/diagnosis.json"
