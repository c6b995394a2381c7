"""What can be done about a failed launch, as values: proposals, best first, and what is ruled out.

In:  nothing. Out: Proposal, RuledOut, Proposals and their parts.
Not: making them (propose.py), choosing the next launch (chain.py) or printing (triage.render).
"""

from __future__ import annotations

from enum import StrEnum

from triage.core.config import Change, Config
from triage.core.records import dataclass


class Basis(StrEnum):
    """What a proposal rests on, from the firmest to the weakest."""

    LAUNCHED = "launched"  # a launch here came up with it
    REPORTED = "reported"  # maintainers or users report that it helped
    STATED = "stated"  # the engine's own message asks for it
    SUGGESTED = "suggested"  # somebody proposed it in a report
    INFERRED = "inferred"  # follows from what the cause is; nobody reports it


class Kind(StrEnum):
    """What a proposal does to the command."""

    DROP = "drop"  # leaves flags out
    CHANGE = "change"  # gives a flag another value
    REPLACE = "replace"  # one flag goes, its successor comes
    ADD = "add"  # a flag comes
    ENV = "env"  # variables only
    MANUAL = "manual"  # a step outside the configuration


class Disposition(StrEnum):
    """What a proposal costs; the order is that of preference."""

    SAFE = "safe"
    LOSSY = "lossy"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Values of a flag among which one that works may be searched by launching.

    `start` is tried first, in the unit of the flag; the search goes on towards `end` in
    steps of `step` (its sign is that of the direction). What is wanted is the value
    nearest to the flag's own, which lies before `start`.
    """

    flag: str
    start: float
    end: float
    step: float

    def values(self, most: int = 64) -> tuple[str, ...]:
        """The values in the order of the search, as words of a command line; at most `most`."""
        count = min(int(abs(self.end - self.start) / abs(self.step) + 1e-9) + 1, most)
        whole = all(float(n).is_integer() for n in (self.start, self.end, self.step))
        numbers = (self.start + index * self.step for index in range(count))
        return tuple(str(int(n)) if whole else f"{round(n, 4):g}" for n in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One thing to do about the failure, with the configuration that it leads to.

    `changes` turn the failing configuration into `config`; a manual step has neither.
    `config` is None, too, where the failing configuration is not known (`changes` then
    say what to edit). `given_up` names what was set and no longer is, `weight` is how much
    of it was wanted (in the weights of a recipe; 1 a setting without one), `size` the number
    of settings that differ. `unsure` are preconditions that nothing here shows or
    contradicts. A `probe` finds out more and is no configuration to keep. `trial` is the
    number of the launch that came up with it. `key` names the remedy it was made of: equal for
    the same advice in another launch.
    """

    say: str
    kind: Kind
    basis: Basis
    changes: tuple[Change, ...] = ()
    config: Config | None = None
    disposition: Disposition = Disposition.MANUAL
    cost: str = ""
    evidence: str = ""  # the knowledge's own word for it, or who says it
    why: str = ""  # what of this launch makes it fit
    given_up: tuple[str, ...] = ()
    weight: float = 0.0
    size: int = 0
    span: Span | None = None
    unsure: tuple[str, ...] = ()
    probe: bool = False
    trial: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two proposals the same: the edits, or the words of a manual step."""
        return self.changes or (self.say,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOut:
    """A remedy that this launch contradicts, with the fact that does."""

    say: str
    changes: tuple[Change, ...]
    fact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The ways out of one failure, best first.

    `config` is the failing configuration that the changes are edits of, None if no log
    or command tells it. `signature` is that of the diagnosis, `phase` where it failed.
    """

    cause: str | None
    signature: str
    title: str
    phase: str
    config: Config | None
    options: tuple[Proposal, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()

    @property
    def launchable(self) -> tuple[Proposal, ...]:
        """The options that a launch can try, in their order; probes are left out."""
        return tuple(o for o in self.options if o.config is not None and not o.probe)
