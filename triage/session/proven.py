"""From a searched session to proposals: what a launch has shown, and what nobody tried.

In:  a session folder. Out: Proven: the recommendation, and proposals with their commands.
Not: searching (search.py), confirming (handover.py), ranking (triage.core.handover.propose).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from triage.command import read_command
from triage.core.config import Config, ServerCommand, apply, diff
from triage.core.handover.proposals import (
    Basis,
    Disposition,
    Kind,
    Proposal,
    Proposals,
    RuledOut,
)
from triage.core.handover.propose import kind_of
from triage.core.search.journal import signature as named
from triage.core.search.recommend import Recommendation
from triage.core.trials import Problem, Seen
from triage.core.wording import listed
from triage.errors import UsageError
from triage.session.handover import proposal_of
from triage.session.logs import flag_table
from triage.session.proposals import Written, machine_facts, proposals_of, written
from triage.session.search import Search, searched_entry
from triage.session.stored import reopen
from triage.session.trial import stored_diagnosis
from triage.store import SessionFolder

UNTRIED = 3  # remedies of the knowledge that are told beside what was launched


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """What a session proposes: first what started, then what would keep more and was not tried."""

    session: SessionFolder
    problem: Problem
    recommendation: Recommendation
    found: Proposals
    command: ServerCommand

    def written(self, option: Proposal) -> Written:
        """The option as the user pastes it, compared with what was wanted."""
        if option.config is None:
            return Written()
        wanted = self.problem.config(self.problem.keys())
        table = flag_table()
        at = placed(option.config, self.command)
        return written(self.command, at, table, failed=placed(wanted, self.command))


def proven(path: Path) -> Proven:
    """The proposals of a session.

    Raises:
        NothingError: the session holds no trial.
    """
    session, journal, search = reopen(path)
    problem = search.recipe.problem
    shown = proposal_of(session, journal, search)
    wanted = problem.config(problem.keys())
    options = list(_started(problem, shown, wanted))
    signature, title, phase = "", "", "unknown"
    ruled_out: tuple[RuledOut, ...] = ()
    if (entry := searched_entry(journal.entries)) is not None:
        signature, title, phase = entry.signature or "", entry.title, entry.phase
        log = session.path / "trials" / f"{entry.number:03d}" / "server.log"
        if log.exists():
            told = proposals_of(
                stored_diagnosis(log.parent),
                problem.config(entry.items),
                tried=[problem.config(e.items) for e in journal.entries if e.seen is Seen.FAILS],
                weights={item.key: item.weight for item in problem.choices()},
                pinned=problem.pinned,
                machine=_machine(session),
            )
            lost = options[0].weight if options else float("inf")
            known = {option.config for option in options}
            options += [
                option
                for option in told.launchable
                if option.weight < lost
                and option.config not in known
                and not _spoken_against(problem, shown, option, named(entry))
            ][:UNTRIED]
            ruled_out = told.ruled_out
    found = Proposals(
        cause=entry.cause if entry else None,
        signature=signature or "none",
        title=title,
        phase=phase,
        config=wanted,
        options=tuple(options),
        ruled_out=ruled_out,
    )
    return Proven(
        session=session,
        problem=problem,
        recommendation=shown,
        found=found,
        command=command_of(search, wanted),
    )


def _spoken_against(problem: Problem, shown: Recommendation, option: Proposal, mended: str) -> bool:
    """Whether the option keeps a smallest set that fails with another failure than it mends.

    A larger set may hold the very flags that the option changes: that tells nothing of it.
    """
    config = option.config
    if config is None:
        return False
    kept = {item.key for item in problem.choices() if apply(config, (item.change,)) == config}
    return any(s.minimal and s.items <= kept and s.signature != mended for s in shown.sets)


def _machine(session: SessionFolder) -> dict[str, str]:
    """What the session has stored of the machine of its launches."""
    stored = session.facts.get("machine") or {}
    gpus = [(str(one["name"]), str(one["capability"] or "")) for one in stored.get("gpus") or ()]
    return machine_facts(gpus, str(stored.get("driver") or ""))


def _started(problem: Problem, shown: Recommendation, wanted: Config) -> list[Proposal]:
    """The configurations that a trial has shown to start, the proposed one first."""
    if shown.config is None or shown.proof is None:
        return []
    found = [(shown.config, shown.items, shown.proof)]
    found += [(problem.config(one.items), one.items, one.entry) for one in shown.alternatives]
    return [_option(problem, wanted, *one) for one in found]


def _option(
    problem: Problem, wanted: Config, config: Config, items: frozenset[str], trial: int
) -> Proposal:
    changes = diff(wanted, config)
    lost = tuple(item.key for item in problem.items if item.key not in items)
    say = f"Give up {listed(lost)}" if lost else "Everything that was wanted"
    return Proposal(
        say=f"{say}: it started in trial {trial}",
        kind=kind_of(changes, wanted) if changes else Kind.CHANGE,
        basis=Basis.LAUNCHED,
        changes=changes,
        config=config,
        disposition=Disposition.LOSSY if lost else Disposition.SAFE,
        evidence=f"trial {trial}",
        given_up=lost,
        weight=problem.weight(problem.keys()) - problem.weight(items),
        size=len(changes),
        trial=trial,
    )


def command_of(search: Search, wanted: Config) -> ServerCommand:
    """The command in whose form the session answers: the one that was launched."""
    for role in ("good", "bad"):
        if text := search.sources.get(role):
            try:
                return read_command(text, flag_table())
            except UsageError:
                continue
    return ServerCommand(form="shell", program=search.recipe.command, config=wanted)


def placed(config: Config, command: ServerCommand) -> Config:
    """The config with the host and port that the user's own command names, or without any."""
    values = config.without(("host", "port")).flag_values()
    for name in ("host", "port"):
        if (value := command.config.get(name)) is not None:
            values[name] = value
    return replace(config, flags=Config.of(values).flags)
