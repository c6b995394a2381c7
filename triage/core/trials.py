"""A search for failing sets, as values: the problem, its trials, what they showed.

In:  nothing. Out: Problem, Item, Trial, Entry, Verdict.
Not: choosing the next trial (search/plan.py) or launching it (triage.session).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from triage.core.config import Change, Config, UnsetEnv, UnsetFlag, apply
from triage.core.records import dataclass


class Verdict(StrEnum):
    """What a trial says about the failure under search; derived, never stored alone."""

    STARTS = "STARTS"
    SAME_FAILURE = "SAME_FAILURE"
    OTHER_FAILURE = "OTHER_FAILURE"
    UNRESOLVED = "UNRESOLVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One change that the user wants on top of the baseline.

    `key` is the flag's name, or `env:NAME`; where leaving a baseline's flag out is
    what is wanted, `without:` stands before it. `weight` says how much it is wanted (> 0).
    """

    key: str
    change: Change
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a launch can be trusted; shares of launches, 0 to 1.

    `miss`: a failing configuration starts all the same. `transient`: a launch dies of
    the machine, whatever its configuration. Both 0: a launch is never asked twice.
    """

    miss: float = 0.0
    transient: float = 0.0

    def __bool__(self) -> bool:
        return self.miss > 0 or self.transient > 0


CHOICES = 63  # wanted changes, repairs and levels of numbers that one search can tell apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Which of the wanted changes can the baseline have?

    `requires` holds (item, needed item or baseline flag); `not_both` pairs of items.
    `repairs` are changes that nobody wants but that may be added where they help: an
    item whose `weight` is the price, in the unit of the wanted weights. `suspicion`
    says how much likelier than others an item is to be part of a cause, 1 if it is
    not named; it is mixed with an even prior, so it costs launches if it misleads, and
    never the answer. `goal`: best, first or all. `stop`: "proved" goes on until every
    better configuration holds a set that failed, and launches besides what is likely
    to start though it holds one; "97%" goes on until that is so likely under the model.
    `audit` launches what "adding a flag never repairs" would rule out.
    """

    name: str
    baseline: Config
    items: tuple[Item, ...]
    repairs: tuple[Item, ...] = ()
    pinned: tuple[str, ...] = ()
    requires: tuple[tuple[str, str], ...] = ()
    not_both: tuple[tuple[str, str], ...] = ()
    goal: str = "best"
    stop: str = "proved"
    audit: bool = False
    noise: Noise = Noise()
    suspicion: tuple[tuple[str, float], ...] = ()
    budget_trials: int = 24
    budget_s: float = 7200.0
    retries: int = 1  # how often an unresolved trial is launched again

    def keys(self) -> frozenset[str]:
        """The keys of all wanted items."""
        return frozenset(item.key for item in self.items)

    def choices(self) -> tuple[Item, ...]:
        """Everything that a launch may have on top of the baseline: items, then repairs."""
        return (*self.items, *self.repairs)

    def config(self, keys: Iterable[str]) -> Config:
        """The baseline with the named items and repairs on top."""
        chosen = set(keys)
        return apply(self.baseline, (i.change for i in self.choices() if i.key in chosen))

    def unset_env(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Variables that the named items leave out, also where the launch would inherit them."""
        chosen = set(keys)
        left = {
            i.change.name
            for i in self.choices()
            if i.key in chosen and isinstance(i.change, UnsetEnv)
        }
        return tuple(sorted(left - self.config(chosen).env_values().keys()))

    def weight(self, keys: Iterable[str]) -> float:
        """Sum of the weights of the named items, less the prices of the named repairs."""
        chosen = set(keys)
        gain = sum(item.weight for item in self.items if item.key in chosen)
        return gain - sum(repair.weight for repair in self.repairs if repair.key in chosen)

    def allowed(self, keys: Iterable[str]) -> bool:
        """Whether the subset meets `requires` and `not_both`."""
        chosen = set(keys)
        return not self.unmet(chosen) and not any(
            a in chosen and b in chosen for a, b in self.not_both
        )

    def unmet(self, keys: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """The pairs of `requires` whose item is among these without what it needs.

        What the baseline has is needed no more than what an item sets, unless
        another of these items leaves it out.
        """
        chosen = set(keys)
        present = {flag.name for flag in self.baseline.flags}
        present |= {f"env:{name}" for name, _ in self.baseline.env}
        present -= {left_out(i.change) for i in self.choices() if i.key in chosen}
        present |= chosen
        return tuple((a, b) for a, b in self.requires if a in chosen and b not in present)


def left_out(change: Change) -> str:
    """What the change takes away: a flag's name or `env:NAME`; "" if it sets something."""
    match change:
        case UnsetFlag(name):
            return name
        case UnsetEnv(name):
            return f"env:{name}"
        case _:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One launch that a search asks for, and why.

    `searching` is the signature of the failure under search, None before any failure was seen.
    """

    items: frozenset[str]
    why: str
    searching: str | None = None


class Seen(StrEnum):
    """What was observed in a trial, whatever it was searched for."""

    STARTS = "starts"
    FAILS = "fails"
    UNRESOLVED = "unresolved"
    PASSES = "passes"  # the engine accepts it before it starts a process; it was not launched


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An effective value that a trial changed although it was not meant to.

    `before` is that of trial `against`; None: the engine's default. With `against` 0 it is the
    value that the trial itself set, and `after` what the engine made of it. `by` are
    the items that it moved with: one, or those of which one did it.
    """

    name: str
    before: str | None
    after: str | None
    against: int
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finished trial in the journal.

    `signature` names the failure: cause id, else fingerprint; None unless it fails.
    `provenance` is what a simulated engine says about its answer: recorded or
    assumed; "launched" for a real engine, "resolved" where it was asked only, "rule" for a
    rule of triage. `rung` is the cheapest trial that could
    answer: static (rules of the knowledge base), resolution (the engine was asked and
    nothing launched), twin (a smaller model was launched), or full. `same_as` is the
    number of a trial whose configuration is the same to the engine, and whose verdict
    this is. `saved_s` are the seconds of a launch that the rung saved, at least.
    """

    number: int  # from 1, in launch order
    items: frozenset[str]
    seen: Seen
    why: str = ""
    searching: str | None = None
    signature: str | None = None
    cause: str | None = None
    title: str = ""
    phase: str = "unknown"
    ranks: tuple[str, ...] = ()
    seconds: float = 0.0
    reason: str = ""  # why it is unresolved
    provenance: str = "launched"
    simulated: bool = False
    early: bool = False  # rejected before any weight was read
    config: Config = field(default_factory=Config)
    effective: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[Moved, ...] = ()  # effective values that moved beside what the trial set
    suspects: tuple[str, ...] = ()  # flags that the diagnosis points at
    log_digest: str = ""
    rung: str = "full"
    resolved_key: str = ""  # equal for configurations that are the same to the engine
    same_as: int | None = None
    saved_s: float = 0.0

    @property
    def launched(self) -> bool:
        """Whether a server was started for it."""
        return self.rung in ("twin", "full") and self.same_as is None

    @property
    def confounded(self) -> tuple[str, ...]:
        """The names of what moved: the verdict is about them as well."""
        return tuple(moved.name for moved in self.moved)

    def verdict(self, searched: str | None) -> Verdict:
        """What this entry says about the failure `searched` (None: any failure is the same)."""
        match self.seen:
            case Seen.STARTS:
                return Verdict.STARTS
            case Seen.UNRESOLVED | Seen.PASSES:
                return Verdict.UNRESOLVED
            case Seen.FAILS:
                same = searched is None or self.signature == searched
                return Verdict.SAME_FAILURE if same else Verdict.OTHER_FAILURE


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingSet:
    """Items that together show one failure, while dropping any one of them does not.

    `minimal` is False where nothing is known of a smaller set. `implied` holds if a
    smaller one was not launched itself, but lies inside a launch without the failure.
    `assumed` holds if an entry that it rests on is not recorded from a real launch.
    """

    items: frozenset[str]
    signature: str
    cause: str | None
    title: str
    phase: str
    entry: int  # number of the trial that showed it
    minimal: bool = True
    implied: bool = False
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The search has ended, and why.

    `level` says how surely the goal is reached: proved (if adding a flag never repairs a
    failure), 97% (under the model), seen (no more than the best seen so far); "" where
    there is no answer.

    `reason` is one of: found (the best allowed subset starts and each failure
    seen has a minimal set), baseline-fails, wanted-starts, budget, stuck
    (unresolved trials are in the way).
    """

    reason: str
    say: str
    level: str = ""
