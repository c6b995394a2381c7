"""triage's own planner as a strategy.

In:  an Oracle. Out: Found, from the planner's own journal.
Not: anything that a user of triage would not have.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bench.search.landscape import Answer
from bench.search.play import Found, Oracle
from bench.search.problem import entry_of, mask_of, problem_of
from triage.core.search.plan import next_trials
from triage.core.search.recommend import best_started
from triage.core.search.suspected import suspected
from triage.core.trials import Done, Entry, Noise, Trial

QUIET = Noise()


@dataclass(slots=True)
class Ours:
    """next_trials, one launch at a time, until Done."""

    stop: str = "proved"
    noise: Noise = QUIET
    audit: bool = False
    name: str = "triage"

    def ask(self, oracle: Oracle, goal: str) -> Found:
        """Drive the planner as a session does."""
        scape = oracle.scape
        problem = problem_of(scape, goal, stop=self.stop, noise=self.noise, audit=self.audit)
        nothing = Trial(items=frozenset(), why="")
        wanted = Trial(items=problem.keys(), why="")
        journal: list[Entry] = [
            entry_of(1, nothing, Answer("starts", 0.0)),
            entry_of(2, wanted, oracle.wanted),
        ]
        spent: list[float] = []
        while True:
            began = time.process_time()
            step = next_trials(problem, journal)
            spent.append(time.process_time() - began)
            if isinstance(step, Done):
                break
            answer = oracle.launch(mask_of(scape, step[0].items))
            journal.append(entry_of(len(journal) + 1, step[0], answer))
        found = Found(
            level=step.level,
            say=step.say,
            decisions=len(spent),
            deciding_s=sum(spent),
            slowest_s=max(spent),
        )
        if goal == "best":
            return replace(found, best=mask_of(scape, best_started(problem, journal)))
        sets = suspected(problem, journal)
        if goal == "first":
            sets = sets[:1]
        named = frozenset((mask_of(scape, s.items), s.signature) for s in sets)
        return replace(found, sets=named)
