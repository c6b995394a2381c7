"""From a failed launch, or a number that is too large, to a server that answered.

In:  a Broken launch, or a command and the values of one of its flags. Out: a Mending.
Not: what to try next (core.handover.chain, core.search.largest) or proving it (confirm.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from triage.core.config import (
    Change,
    Config,
    ServerCommand,
    SetFlag,
    UnsetEnv,
    apply,
    diff,
)
from triage.core.diagnosis import Diagnosis
from triage.core.handover.chain import Chain, Step, begin, came_up, failed, launches, next_step
from triage.core.handover.confirmation import Confirmation, Result
from triage.core.handover.mending import Attempt, Mending
from triage.core.handover.proposals import Proposals
from triage.core.launch import Patience
from triage.core.search.largest import Ask, Contradiction, Largest, NoneWorks, next_value
from triage.core.wording import spell
from triage.session.candidate import candidate_of
from triage.session.confirm import FLAKY_STARTS, Wish, by_chance, prove
from triage.session.logs import flag_table
from triage.session.proposals import proposals_of, written
from triage.session.search import Replay
from triage.session.trial import stored_diagnosis
from triage.store import SessionFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A launch that failed, with the command that made it and how to make it again."""

    source: str
    diagnosis: Diagnosis
    command: ServerCommand
    cwd: Path
    patience: Patience | None = None
    replay: Replay | None = None


class Bench:
    """Proves one configuration after the other, each in folders of its own."""

    def __init__(
        self, session: SessionFolder, broken: Broken, wish: Wish, say: Callable[[str], None]
    ) -> None:
        self.session, self.broken, self.wish, self.say = session, broken, wish, say
        self.attempts: list[Attempt] = []
        self._next = 1  # number of the next start's folder

    def attempt(
        self, config: Config, said: str, *, fault: int = 1, wish: Wish | None = None
    ) -> Attempt:
        """Launch it in full; what came of it is kept."""
        broken = self.broken
        changes = diff(broken.command.config, config)
        shown_changes = ", ".join(map(spell, changes)) or "unchanged"
        self.say(f"attempt {len(self.attempts) + 1}: {shown_changes}")
        candidate = candidate_of(
            replace(broken.command, config=config),
            cwd=broken.cwd,
            patience=broken.patience,
            replay=broken.replay,
            flaky=by_chance(broken.diagnosis),  # then one start that comes up says little
        )
        gone = tuple(change.name for change in changes if isinstance(change, UnsetEnv))
        began = time.monotonic()
        shown = prove(
            self.session,
            replace(candidate, unset=gone),
            wish or self.wish,
            self.say,
            first=self._next,
        )
        self._next += max(1, len(shown.starts))
        diagnosis = self.diagnosis_of(shown)
        made = Attempt(
            say=said,
            changes=changes,
            shown=shown,
            fault=fault,
            cause=diagnosis.cause if diagnosis else None,
            title=diagnosis.title if diagnosis else "",
            phase=diagnosis.phase if diagnosis else "",
            seconds=round(time.monotonic() - began, 2),
        )
        self.attempts.append(made)
        self.say(f"attempt {len(self.attempts)}: {'passed' if made.works else shown.reason}")
        return made

    def diagnosis_of(self, shown: Confirmation) -> Diagnosis | None:
        """Why the last start that failed did; None if all came up."""
        down = [start for start in shown.starts if not start.up]
        if not down:
            return None
        folder = self.session.path / down[-1].folder
        return stored_diagnosis(folder)

    def proposals(self, attempt: Attempt, chain: Chain) -> Proposals:
        """The ways out of what this attempt showed, as edits of its configuration."""
        config = apply(self.broken.command.config, attempt.changes)
        diagnosis = self.diagnosis_of(attempt.shown)
        if diagnosis is None:  # it came up, and a check failed
            check = next(
                (c.name for c in attempt.shown.checks if c.result is Result.FAILED), "answers"
            )
            return Proposals(
                cause=None,
                signature=f"check:{check}",
                title=attempt.shown.reason,
                phase="serving",
                config=config,
            )
        return proposals_of(diagnosis, config, tried=chain.launched)

    def mending(self, stop: str, say: str, *, config: Config | None = None) -> Mending:
        """All that was tried, and how it ended; with the command to paste, if one works."""
        broken = self.broken
        shown = written(broken.command, config, flag_table()) if config is not None else None
        return Mending(
            source=broken.source,
            cause=broken.diagnosis.cause,
            title=broken.diagnosis.title,
            attempts=tuple(self.attempts),
            stop=stop,
            say=say,
            text=shown.text if shown else "",
            language=shown.language if shown else "sh",
            diff=shown.diff if shown else "",
            notes=shown.notes if shown else (),
        )


def mend(bench: Bench, *, budget: int) -> Mending:
    """Launch one proposal after the other until one works, or nothing is left to try.

    A failure that is the machine's or the moment's is first answered by starting the same
    command again, several times: it may be flaky, and no flag is to blame then.
    """
    broken = bench.broken
    found = proposals_of(broken.diagnosis, broken.command.config)
    if by_chance(broken.diagnosis):
        again = bench.attempt(
            broken.command.config,
            f"{broken.diagnosis.cause} may be of the moment: the same command again",
            fault=0,
            wish=replace(bench.wish, repeat=bench.wish.repeat or FLAKY_STARTS),
        )
        if again.works:
            return bench.mending(
                "came-up",
                f"{again.shown.count} starts of the same command came up, so the failure in the "
                "log was of the moment or of the port, and no flag is to blame",
                config=broken.command.config,
            )
        if again.shown.flaky:
            return bench.mending("flaky", f"the same command is {again.shown.reason}")
        found = bench.proposals(again, begin(found))
    return _along(bench, begin(found, budget=budget))


def _along(bench: Bench, chain: Chain) -> Mending:
    while isinstance(step := next_step(chain), Step):
        made = bench.attempt(step.config, step.proposal.say, fault=step.fault)
        if made.works:
            chain = came_up(chain, step)
            return bench.mending("came-up", _passed(bench), config=step.config)
        if made.shown.flaky:
            return bench.mending("flaky", f"this configuration is {made.shown.reason}")
        found = bench.proposals(made, chain)
        same = found.signature == chain.links[step.fault - 1].found.signature
        if same and step.proposal.span is not None:
            better, spent = _nearest(bench, step, chain)
            chain = replace(chain, launched=(*chain.launched, *spent))
            if better is not None:
                return bench.mending("came-up", _passed(bench), config=better)
        chain = failed(chain, step, found)
    return bench.mending(step.reason, step.say)


def _passed(bench: Bench) -> str:
    number = next(n for n, a in reversed(list(enumerate(bench.attempts, 1))) if a.works)
    return f"attempt {number} came up and passed every check"


def _nearest(bench: Bench, step: Step, chain: Chain) -> tuple[Config | None, list[Config]]:
    """Of the values of the step's span the first that works; the first of all has failed.

    Also every configuration that was launched for it.
    """
    span = step.proposal.span
    assert span is not None  # noqa: S101  the caller has looked
    values = span.values()[::-1]  # from what is wanted least: the largest that works is wanted
    tried = {len(values) - 1: False}
    spent: list[Config] = []
    left = chain.budget - launches(chain) - 1
    while isinstance(ask := next_value(len(values), tried), Ask) and len(spent) < left:
        config = apply(step.config, (SetFlag(span.flag, values[ask.index]),))
        say = f"{step.proposal.say} ({values[ask.index]})"
        tried[ask.index] = bench.attempt(config, say, fault=step.fault).works
        spent.append(config)
    good = [index for index, worked in tried.items() if worked]
    if not good:
        return None, spent
    return apply(step.config, (SetFlag(span.flag, values[max(good)]),)), spent


def largest(bench: Bench, flag: str, values: Sequence[str]) -> Mending:
    """The largest of the rising values of a flag with which the command works.

    Each launch is a confirmation without load; if a load or repeated starts are asked
    for, the value that is found is launched once more with them.
    """
    base = bench.broken.command.config
    tried: dict[int, bool] = {}
    plain = Wish(any_text=bench.wish.any_text)
    while isinstance(ask := next_value(len(values), tried), Ask):
        config = apply(base, (SetFlag(flag, values[ask.index]),))
        said = f"--{flag} {values[ask.index]} (at most {ask.left} launches after this)"
        tried[ask.index] = bench.attempt(config, said, fault=0, wish=plain).works
    match ask:
        case NoneWorks():
            say = f"not even --{flag} {values[0]} came up"
            return bench.mending("none-works", say)
        case Contradiction(works=works, fails=fails):
            say = (
                f"--{flag} {values[works]} came up and {values[fails]} did not: larger is not "
                "harder here, or starts are flaky"
            )
            return bench.mending("contradiction", say)
        case Largest(index=index, bounded=bounded):
            return _settled(bench, flag, values, index, bounded=bounded)


def _settled(
    bench: Bench, flag: str, values: Sequence[str], index: int, *, bounded: bool
) -> Mending:
    """The answer of a search for a number, proved as fully as was asked."""
    change: tuple[Change, ...] = (SetFlag(flag, values[index]),)
    config = apply(bench.broken.command.config, change)
    beyond = f"{values[index + 1]} did not" if bounded else "it is the largest that was asked for"
    say = (
        f"--{flag} {values[index]} is the largest that came up and passed; {beyond} "
        f"({len(bench.attempts)} launches)"
    )
    if bench.wish.levels or bench.wish.repeat:
        made = bench.attempt(config, f"--{flag} {values[index]}, in full", fault=0)
        if not made.works:
            stop = "flaky" if made.shown.flaky else "nothing-left"
            return bench.mending(stop, f"{say}, but in full: {made.shown.reason}")
    return bench.mending("came-up", say, config=config)
