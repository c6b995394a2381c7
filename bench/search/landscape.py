"""Random landscapes: which sets of flags fail, how, and what is true of them.

In:  a seed and the shape of a landscape. Out: Landscape, which answers launches.
Not: a strategy, or counting (play.py).

A set of flags is a bit mask. 0 is the baseline, `full` is all that is wanted; where
there are repairs, a set bit says that the repair is *not* used, and the baseline is
the mask `base`. A launch dies of the fault inside it whose phase comes first; later
ones are hidden.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

PHASES = ("weight-load", "kv-pool-init", "graph-capture", "warmup-request")
SECONDS = (70.0, 130.0, 260.0, 340.0)  # until a launch dies in each phase
START_S, HANG_S, REJECT_S = 400.0, 600.0, 2.0
TRANSIENT = "nccl-timeout"


@dataclass(frozen=True, slots=True)
class Fault:
    """Flags that together fail, as `name`, unless one flag of `repaired` is there too."""

    flags: int
    phase: int
    name: str
    hang: bool = False
    repaired: int = 0

    def fires(self, mask: int) -> bool:
        """Whether a launch of this set can die of it."""
        return self.flags & ~mask == 0 and not self.repaired & mask


@dataclass(frozen=True, slots=True)
class Answer:
    """What a launch showed: it started, failed as `name`, or was rejected for want of a flag."""

    kind: str  # starts | fails | rejected
    seconds: float
    name: str = ""
    phase: str = ""
    pair: tuple[int, int] | None = None  # rejected: this flag needs that one


@dataclass(frozen=True, slots=True)
class Landscape:
    """One truth. `known` are the pairs of `requires` that are told beforehand."""

    seed: int
    n: int
    worth: tuple[int, ...]
    faults: tuple[Fault, ...]
    requires: tuple[tuple[int, int], ...] = ()
    known: tuple[tuple[int, int], ...] = ()
    suspicion: tuple[float, ...] = ()  # weight of each flag in the prior; () if there is none
    flake: float = 0.0
    unsteady: tuple[bool, ...] = ()  # faults that fail to fire now and then
    repairs: int = 0  # mask of the bits that mean "without this repair"

    @property
    def full(self) -> int:
        """All that is wanted, without any repair."""
        return (1 << self.n) - 1

    @property
    def base(self) -> int:
        """The baseline: nothing wanted, no repair used."""
        return self.repairs

    def value(self, mask: int) -> int:
        """What the set is worth."""
        return sum(w for i, w in enumerate(self.worth) if mask >> i & 1)

    def closed(self, mask: int) -> int:
        """The set with all that its flags need."""
        changed = True
        while changed:
            more = mask
            for a, b in self.requires:
                if mask >> a & 1:
                    more |= 1 << b
            changed, mask = more != mask, more
        return mask

    def without(self, mask: int, flag: int) -> int:
        """The set without the flag and without what needs it."""
        mask &= ~(1 << flag)
        changed = True
        while changed:
            less = mask
            for a, b in self.requires:
                if mask >> a & 1 and not mask >> b & 1:
                    less &= ~(1 << a)
            changed, mask = less != mask, less
        return mask

    def launch(self, mask: int, luck: random.Random | None = None) -> Answer:
        """The answer of one launch; without `luck` the true one."""
        for a, b in self.requires:
            if mask >> a & 1 and not mask >> b & 1:
                return Answer("rejected", REJECT_S, f"needs-{a}-{b}", "arg-validation", (a, b))
        firing = [f for i, f in enumerate(self.faults) if f.fires(mask) and self._fires(i, luck)]
        first = min(firing, key=lambda f: f.phase, default=None)
        if luck is not None and self.flake and luck.random() < self.flake:
            phase = luck.randrange(len(PHASES))
            if first is None or phase <= first.phase:
                return Answer("fails", SECONDS[phase], TRANSIENT, PHASES[phase])
        if first is None:
            return Answer("starts", START_S)
        seconds = HANG_S if first.hang else SECONDS[first.phase]
        return Answer("fails", seconds, first.name, PHASES[first.phase])

    def _fires(self, index: int, luck: random.Random | None) -> bool:
        if luck is None or not self.flake or not self.unsteady[index]:
            return True
        return luck.random() >= self.flake

    # --- what is true ------------------------------------------------------------------------

    def best_value(self) -> int:
        """The largest worth of a set that starts."""
        if any(f.repaired for f in self.faults):
            return max(self.value(m) for m in self.valid() if self.launch(m).kind == "starts")
        flags = [[i for i in range(self.n) if f.flags >> i & 1] for f in self.faults]
        best = 0
        for dropped in product(*flags):
            mask = self.full
            for flag in dropped:
                mask = self.without(mask, flag)
            best = max(best, self.value(mask))
        return best

    def valid(self) -> Iterator[int]:
        """Every set that the engine does not reject; few flags only."""
        for mask in range(1 << self.n):
            if self.closed(mask) == mask:
                yield mask

    def observable(self) -> frozenset[tuple[int, str]]:
        """Each (smallest set, name) that a launch can show."""
        found = set()
        for fault in self.faults:
            mask = self.closed(fault.flags) | self.repairs & fault.flags
            if self.launch(mask).name == fault.name and self._smallest(mask, fault.name):
                found.add((mask, fault.name))
        return frozenset(found)

    def shows(self, mask: int, name: str) -> bool:
        """Whether the mask fails as `name`, and with any flag less it does not."""
        return self.launch(mask).name == name and self._smallest(mask, name)

    def _smallest(self, mask: int, name: str) -> bool:
        return all(
            self.launch(self.without(mask, i)).name != name for i in range(self.n) if mask >> i & 1
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What landscapes of one family have in common."""

    n: int
    causes: int = 2
    sizes: tuple[float, ...] = (0.40, 0.45, 0.15)  # shares of faults of 1, 2, 3 ... flags
    prior: str = "none"  # none | good | misleading
    flake: float = 0.0
    repaired: float = 0.0  # share of faults that another wanted flag repairs
    levels: int = 0  # so many of the n flags are the levels of one number
    repairs: int = 0  # so many of the n bits stand for flags from outside that repair


WORTHS = (1, 2, 3, 5, 8)
FLAGS_A_NEED = 6  # one pair of `requires` for so many whole flags: none among four
NESTED, SAME_CLASS, HANGS = 0.20, 0.15, 0.10


def draw(shape: Shape, seed: int) -> Landscape:
    """The landscape of a seed: the same for every strategy.

    A nested fault takes one flag more than the fault before it, which must have at most
    two; it strikes in an earlier phase under another name. Faults of one name share their
    phase. No fault is hidden from every launch, and none holds another of its name.
    """
    # A prior changes what is believed, not what is true.
    dice = random.Random(f"{replace(shape, prior='none')}/{seed}")
    while True:
        scape = _attempt(shape, seed, dice)
        if scape is not None:
            return scape


def _attempt(shape: Shape, seed: int, dice: random.Random) -> Landscape | None:
    n = shape.n
    worth = [dice.choice(WORTHS) for _ in range(n)]
    levels = range(n - shape.repairs - shape.levels, n - shape.repairs)
    repairs = [n - 1 - i for i in range(shape.repairs)]
    for i in levels:
        worth[i] = 2
    for i in repairs:
        worth[i] = 4
    plain = n - shape.levels - shape.repairs
    chain = [(i, i - 1) for i in levels if i - 1 in levels]
    pairs = chain + _requires(dice, plain)
    known = tuple(chain) + tuple(p for p in pairs[len(chain) :] if dice.random() < 0.5)
    scape = Landscape(
        seed=seed,
        n=n,
        worth=tuple(worth),
        faults=(),
        requires=tuple(pairs),
        known=known,
        repairs=sum(1 << i for i in repairs),
    )
    faults = _faults(shape, dice, scape, n - shape.repairs, repairs)
    if faults is None:
        return None
    scape = replace(scape, faults=faults)
    if len(scape.observable()) < len({(scape.closed(f.flags), f.name) for f in faults}):
        return None
    if scape.launch(scape.full).kind != "fails" or scape.launch(scape.base).kind != "starts":
        return None
    return replace(
        scape,
        suspicion=_suspicion(shape, dice, scape),
        flake=shape.flake,
        unsteady=tuple(dice.random() < 0.5 for _ in faults),
    )


def _requires(dice: random.Random, plain: int) -> list[tuple[int, int]]:
    order = list(range(plain))
    dice.shuffle(order)
    pairs: list[tuple[int, int]] = []
    for _ in range(plain // FLAGS_A_NEED):
        a, b = sorted(dice.sample(order, 2), key=order.index)
        if (a, b) not in pairs:
            pairs.append((a, b))
    return pairs


def _faults(
    shape: Shape, dice: random.Random, scape: Landscape, flags: int, repairs: Sequence[int]
) -> tuple[Fault, ...] | None:
    faults: list[Fault] = []
    borrowed = shape.flake and dice.random() < 0.3
    for index in range(shape.causes):
        size = dice.choices(range(1, len(shape.sizes) + 1), shape.sizes)[0]
        name, phase = f"cause-{index}", dice.randrange(len(PHASES))
        mask = sum(1 << i for i in dice.sample(range(flags), min(size, flags)))
        roll = dice.random()
        before = faults[-1] if faults else None
        if index == 1 and before and roll < NESTED:
            if before.phase > 0 and before.flags.bit_count() <= 2:
                rest = [i for i in range(flags) if not before.flags >> i & 1]
                mask = before.flags | 1 << dice.choice(rest)
                phase = dice.randrange(before.phase)
        elif before and NESTED <= roll < NESTED + SAME_CLASS:
            name, phase = before.name, before.phase
        if repairs and size <= 2 and dice.random() < 0.5:
            mask |= 1 << dice.choice(repairs)
        hang = dice.random() < HANGS
        repaired = 0
        if shape.repaired and dice.random() < shape.repaired:
            rest = [i for i in range(flags) if not scape.closed(mask) >> i & 1]
            repaired = 1 << dice.choice(rest) if rest else 0
        faults.append(Fault(mask, phase, name, hang, repaired))
    if borrowed:
        victim = dice.choice(faults).name
        faults = [replace(f, name=TRANSIENT) if f.name == victim else f for f in faults]
    closed = [scape.closed(f.flags) for f in faults]
    for (i, a), (j, b) in combinations(enumerate(closed), 2):
        if faults[i].name == faults[j].name and (a & ~b == 0 or b & ~a == 0):
            return None
    return tuple(faults)


def _suspicion(shape: Shape, dice: random.Random, scape: Landscape) -> tuple[float, ...]:
    if shape.prior == "none":
        return ()
    guilty = 0
    for fault in scape.faults:
        guilty |= fault.flags
    if shape.prior == "good":
        shares = [0.8 if guilty >> i & 1 else 0.1 for i in range(scape.n)]
        return tuple(8.0 if dice.random() < share else 1.0 for share in shares)
    innocent = [i for i in range(scape.n) if not guilty >> i & 1]
    named = set(dice.sample(innocent, min(3, len(innocent))))
    return tuple(8.0 if i in named else 1.0 for i in range(scape.n))
