"""The subsets of a problem as bit masks: what may be launched, and what each is worth.

In:  a Problem. Out: Space; masks in it and sets of keys, one for the other.
Not: what launches showed (evidence.py).

Bit j is item j, then the repairs. A repair's bit says that it is *not* used: so a
larger mask is always worth more, a smaller one always nearer to what starts, and one
rule holds for all: adding a bit never repairs a failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from triage.core.trials import CHOICES, Problem, left_out
from triage.core.wording import settings

Keys = frozenset[str]
# How often a cause takes four flags. Public reports name one or two nearly always; who
# searches a cause itself pays for a large one with many launches, so there it is weighed more;
# less so among fewer than MANY flags, where a large one is soon found.
RARE, LARGE, MANY = 0.03, 0.20, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A problem in bits; bit j belongs to `keys[j]`.

    `needs[j]` holds j and all that it needs; `users[j]` j and all that need it.
    `excluded` are masks that must not be inside a launch. `base` is the baseline,
    `full` every bit that a launch may ever have, `top` the worthiest mask of all.
    """

    keys: tuple[str, ...]
    worth: tuple[float, ...]
    needs: tuple[int, ...]
    users: tuple[int, ...]
    excluded: tuple[int, ...]
    repairs: int
    full: int
    suspicion: tuple[float, ...]
    large: float  # share of the causes that take the most flags, before any launch

    @property
    def n(self) -> int:
        """How many bits there are."""
        return len(self.keys)

    @property
    def base(self) -> int:
        """The baseline alone."""
        return self.repairs & self.full

    def value(self, mask: int) -> float:
        """The worth of a mask."""
        return sum(w for j, w in enumerate(self.worth) if mask >> j & 1)

    def mask(self, keys: Iterable[str]) -> int:
        """The mask of a launch that has these items and repairs on top of the baseline."""
        chosen = set(keys)
        mask = sum(1 << j for j, key in enumerate(self.keys) if key in chosen)
        return mask ^ self.repairs

    def items(self, mask: int) -> Keys:
        """The items and repairs of a launch."""
        used = mask ^ self.repairs
        return frozenset(key for j, key in enumerate(self.keys) if used >> j & 1)

    def bits(self, mask: int) -> list[int]:
        """Which bits are set, from the lowest."""
        return [j for j in range(self.n) if mask >> j & 1]

    def closed(self, mask: int) -> int:
        """The mask with all that its bits need."""
        found = mask
        for j in self.bits(mask):
            found |= self.needs[j]
        return found

    def without(self, mask: int, gone: int) -> int:
        """The mask without these bits and what needs them."""
        for j in self.bits(gone):
            mask &= ~self.users[j]
        return mask

    def lawful(self, mask: int) -> bool:
        """Whether a launch may have exactly these bits."""
        if mask & ~self.full or any(pair & ~mask == 0 for pair in self.excluded):
            return False
        return all(self.needs[j] & ~mask == 0 for j in self.bits(mask))

    def trimmed(self, mask: int) -> int:
        """A lawful part of the mask: bits without their needs go, and the cheap of pairs."""
        mask &= self.full
        for j in range(self.n):
            if mask >> j & 1 and self.needs[j] & ~mask:
                mask &= ~self.users[j]
        for pair in self.excluded:
            if pair & ~mask == 0:
                mask = max((self.without(mask, 1 << j) for j in self.bits(pair)), key=self.value)
        return mask


class _Rules:
    """The rules of a problem in bits: what needs or excludes what, what can never be had."""

    def __init__(self, problem: Problem) -> None:
        self.choices = problem.choices()
        self.place = {choice.key: j for j, choice in enumerate(self.choices)}
        self.wanted = len(problem.items)
        self.needs: list[set[int]] = [{j} for j in range(len(self.choices))]
        self.excluded: list[int] = []
        self.barred: set[int] = set()
        present = {key for key, _ in settings(problem.baseline)}
        for a, b in problem.requires:
            if a in self.place:
                self._require(a, b, in_baseline=b in present)
        for a, b in problem.not_both:
            if a == b and a in self.place:
                self.barred.add(self.place[a])
            elif a in self.place and b in self.place:
                self._exclude(a, b)

    def _require(self, a: str, b: str, *, in_baseline: bool) -> None:
        """An item without what it needs is never launched; a repair's bit says that it is off."""
        if b in self.place and not in_baseline:
            i, j = self.place[a], self.place[b]
            if i < self.wanted and j < self.wanted:
                self.needs[i].add(j)
            elif i >= self.wanted and j >= self.wanted:
                self.needs[j].add(i)
            elif j >= self.wanted:
                self.excluded.append(1 << i | 1 << j)
        elif not in_baseline:
            self.barred.add(self.place[a])
        elif b not in self.place:
            for leaver in (c.key for c in self.choices if left_out(c.change) == b):
                if leaver == a:
                    self.barred.add(self.place[a])
                else:
                    self._exclude(a, leaver)

    def _exclude(self, a: str, b: str) -> None:
        i, j = sorted((self.place[a], self.place[b]))
        if j < self.wanted:
            self.excluded.append(1 << i | 1 << j)
        elif i < self.wanted:
            self.needs[i].add(j)

    def closed(self) -> list[int]:
        """By bit all that it needs, itself included; bits that can never be had are barred."""
        reached = [_reach(self.needs, j) for j in range(len(self.choices))]
        masks = [sum(1 << i for i in found) for found in reached]
        for j, mask in enumerate(masks):
            if self.barred & reached[j] or any(pair & ~mask == 0 for pair in self.excluded):
                self.barred.add(j)
        return masks


@lru_cache(maxsize=16)
def space_of(problem: Problem) -> Space:
    """The problem in bits; `problem` holds only items that change something (`distinct`).

    Raises:
        ValueError: the problem has more than CHOICES choices.
    """
    if len(problem.choices()) > CHOICES:
        raise ValueError(f"{len(problem.choices())} choices, and a search can tell {CHOICES} apart")
    rules = _Rules(problem)
    masks = rules.closed()
    size = len(rules.choices)
    suspicion = dict(problem.suspicion)
    return Space(
        keys=tuple(rules.place),
        worth=tuple(choice.weight for choice in rules.choices),
        needs=tuple(masks),
        users=tuple(
            sum(1 << i for i, mask in enumerate(masks) if mask >> j & 1) for j in range(size)
        ),
        excluded=tuple(dict.fromkeys(rules.excluded)),
        repairs=sum(1 << j for j in range(rules.wanted, size)),
        full=sum(1 << j for j in range(size) if j not in rules.barred),
        large=LARGE * min(1.0, size / MANY) if problem.goal == "first" else RARE,
        suspicion=tuple(max(0.1, min(8.0, suspicion.get(key, 1.0))) for key in rules.place),
    )


def _reach(needs: list[set[int]], start: int) -> set[int]:
    """All that a bit needs, itself included."""
    found, queue = {start}, [start]
    while queue:
        for j in needs[queue.pop()] - found:
            found.add(j)
            queue.append(j)
    return found
