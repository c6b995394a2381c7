"""The other ways to search for the flags that break a launch, on the same laboratory.

In:  a laboratory: flags as bits, what they are worth, what is known to be required, `launch(mask)`.
Out: for goal `first` one failing set, for `best` a subset that starts, for `all` failing sets.
Not: counting launches or judging answers (the laboratory and the runner do).

The reducers know pass and fail only, as the originals do: a launch that is refused for a missing
requirement counts as one that passes. picire is the real package; the others are written from
their papers. `QuickXplain*` is the strongest that we could make of the originals without a model
of causes: it closes sets over known and learned requirements, and launches nothing that follows
from what was launched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Answer(Protocol):
    """What one launch showed."""

    @property
    def starts(self) -> bool: ...  # noqa: D102
    @property
    def missing(self) -> tuple[int, int] | None: ...  # noqa: D102  flag and what it requires


class Lab(Protocol):
    """What a strategy may know and do; everything wanted (`full`) fails, nothing wanted starts."""

    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def worths(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def needs(self) -> Sequence[tuple[int, int]]: ...  # noqa: D102  known beforehand
    def launch(self, mask: int) -> Answer: ...  # noqa: D102


def bits(mask: int) -> list[int]:
    """Positions of the ones, lowest first."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def mask_of(flags: Sequence[int]) -> int:
    """The mask with these ones."""
    return sum(1 << i for i in flags)


@dataclass
class Tester:
    """Launches no subset twice; with `helped`, none of which the answer is known.

    `fails` are subsets seen to fail, `starts` subsets seen to start, `needs` what is required.
    """

    lab: Lab
    helped: bool = False
    votes: int = 1  # launches that must agree, where answers are not to be trusted
    fails: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    needs: list[tuple[int, int]] = field(default_factory=list)
    _seen: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take what is known: everything wanted fails, and half of the requirements."""
        self.full = (1 << self.lab.n) - 1
        self.fails.append(self.full)
        self._seen[self.full] = True
        self._seen[0] = False
        self.needs += self.lab.needs if self.helped else ()

    def closed(self, mask: int) -> int:
        """The subset with all that it is known to require."""
        while True:
            more = mask
            for flag, needed in self.needs:
                if more >> flag & 1:
                    more |= 1 << needed
            if more == mask:
                return mask
            mask = more

    def without(self, mask: int, flag: int) -> int:
        """The subset without the flag and without what is known to require it."""
        mask &= ~(1 << flag)
        while True:
            less = mask
            for one, needed in self.needs:
                if mask >> one & 1 and not mask >> needed & 1:
                    less &= ~(1 << one)
            if less == mask:
                return mask
            mask = less

    def failing(self, mask: int) -> bool:
        """Whether a launch of the subset fails; a refused launch does not."""
        while True:
            if self.helped:
                mask = self.closed(mask)
            if mask in self._seen:
                return self._seen[mask]
            if self.helped and any(bad & ~mask == 0 for bad in self.fails):
                return True
            if self.helped and any(mask & ~good == 0 for good in self.starts):
                return False
            answer, fails = self._vote(mask)
            if answer.missing is None:
                break
            if not self.helped:
                self._seen[mask] = False
                return False
            self.needs.append(answer.missing)
        self._seen[mask] = fails
        (self.fails if fails else self.starts).append(mask)
        return fails

    def _vote(self, mask: int) -> tuple[Answer, bool]:
        """The last answer, and whether most launches of the subset failed."""
        count = [0, 0]
        while True:
            answer = self.lab.launch(mask)
            if answer.missing is not None:
                return answer, False
            count[not answer.starts] += 1
            if max(count) >= self.votes:
                return answer, count[1] > count[0]


Reducer = Callable[[Tester, int], int]  # a failing subset -> a smaller one that fails


def linear(test: Tester, failing: int) -> int:
    """Leave out one flag after the other for as long as it fails."""
    for flag in bits(failing):
        if test.failing(failing & ~(1 << flag)):
            failing &= ~(1 << flag)
    return failing


def picire_ddmin(test: Tester, failing: int, *, complement_first: bool = False) -> int:
    """The delta debugging of the picire package."""
    import picire

    def run(config: Sequence[int], _id: object) -> object:
        bad = test.failing(mask_of(config))
        return picire.Outcome.FAIL if bad else picire.Outcome.PASS

    reducer = picire.DD(run, subset_first=not complement_first)
    return mask_of(list(reducer(bits(failing))))


def picire_complement_first(test: Tester, failing: int) -> int:
    """picire, complements before subsets."""
    return picire_ddmin(test, failing, complement_first=True)


def ddmin(test: Tester, failing: int) -> int:
    """Delta debugging (ddmin) of Zeller and Hildebrandt (2002), from the paper."""
    kept, parts = bits(failing), 2
    while len(kept) >= 2:
        chunks = _split(kept, parts)
        smaller = next((c for c in chunks if test.failing(mask_of(c))), None)
        if smaller is not None:
            kept, parts = smaller, 2
            continue
        rests = ([f for f in kept if f not in c] for c in chunks)
        smaller = next((r for r in rests if test.failing(mask_of(r))), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(len(kept), 2 * parts)
        else:
            break
    return mask_of(kept)


def _split(items: Sequence[int], parts: int) -> list[list[int]]:
    """Into this many pieces whose sizes differ by one at most."""
    size, rest = divmod(len(items), parts)
    chunks, at = [], 0
    for number in range(parts):
        end = at + size + (number < rest)
        chunks.append(list(items[at:end]))
        at = end
    return [c for c in chunks if c]


def probdd(test: Tester, failing: int) -> int:
    """ProbDD of Wang et al. (2021): leave out the subset with the largest expected gain."""
    flags = bits(failing)
    chance = dict.fromkeys(flags, 0.1)  # of being needed
    kept = list(flags)
    while any(chance[f] < 1 for f in kept):
        order = sorted((f for f in kept if chance[f] < 1), key=lambda f: chance[f])
        best, gain, passes = 0, 0.0, 1.0
        for size, flag in enumerate(order, 1):
            passes *= 1 - chance[flag]
            if passes * size > gain:
                best, gain = size, passes * size
        left_out = order[: max(best, 1)]
        rest = [f for f in kept if f not in left_out]
        if test.failing(mask_of(rest)):
            kept = rest
            continue
        if len(left_out) == 1:
            chance[left_out[0]] = 1.0
            continue
        passes = math.prod(1 - chance[f] for f in left_out)
        for flag in left_out:
            chance[flag] = min(chance[flag] / (1 - passes), 1.0)
    return mask_of(kept)


def quickxplain(test: Tester, failing: int) -> int:
    """QuickXplain of Junker (2004); the flags that are worth least are blamed first."""
    flags = sorted(bits(failing), key=lambda f: -test.lab.worths[f])
    return mask_of(_conflict(test, [], [], flags))


def _conflict(test: Tester, base: list[int], added: list[int], flags: list[int]) -> list[int]:
    if added and test.failing(mask_of(base)):
        return []
    if len(flags) <= 1:
        return flags
    half = len(flags) // 2
    first, second = flags[:half], flags[half:]
    right = _conflict(test, base + first, first, second)
    left = _conflict(test, base + right, right, first)
    return left + right


def quickxplain_polished(test: Tester, failing: int) -> int:
    """QuickXplain, then flags left out one by one: requirements may have come in by closing."""
    found = test.closed(quickxplain(test, failing))
    if not test.failing(found):
        return found
    for flag in bits(found):
        less = test.without(found, flag)
        if less and test.failing(less):
            found = less
    return test.closed(found)


def lightest_hit(sets: Sequence[int], worths: Sequence[float], banned: Callable[[int], int]) -> int:
    """The subset of least worth with a flag of each set; branch and bound.

    `banned` closes a choice: what else goes if these flags go.
    """
    best: list[float] = [math.inf]
    found = [0]

    def worth(mask: int) -> float:
        return sum(worths[i] for i in bits(mask))

    def search(chosen: int) -> None:
        cost = worth(chosen)
        if cost >= best[0]:
            return
        open_ = [s for s in sets if not s & chosen]
        if not open_:
            best[0], found[0] = cost, chosen
            return
        smallest = min(open_, key=int.bit_count)
        for flag in sorted(bits(smallest), key=lambda f: worths[f]):
            search(banned(chosen | 1 << flag))

    search(0)
    return found[0]


def best_by_hitting_sets(test: Tester, reduce: Reducer) -> int:
    """MaxHS: leave out the lightest hitting set of the conflicts; if that fails, reduce it."""
    conflicts: list[int] = [reduce(test, test.full)]
    while True:

        def without(gone: int) -> int:
            while True:
                more = gone | mask_of([a for a, b in test.needs if gone >> b & 1])
                if more == gone:
                    return gone
                gone = more

        kept = test.full & ~lightest_hit(conflicts, test.lab.worths, without)
        known = len(test.needs)
        if not test.failing(kept):
            return test.closed(kept) if test.helped else kept
        if len(test.needs) > known:
            continue  # it was refused: what was left out has company
        conflict = reduce(test, kept)
        if conflict in conflicts or conflict == 0:
            return max(test.starts, key=lambda m: sum(test.lab.worths[i] for i in bits(m)))
        conflicts.append(conflict)


def one_flag_at_a_time(test: Tester) -> int:
    """What engineers do: add the flag that is wanted most, keep it if the server starts."""
    kept = 0
    for flag in sorted(range(test.lab.n), key=lambda f: -test.lab.worths[f]):
        tried = test.closed(kept | 1 << flag)
        if tried != kept and not test.failing(tried):
            kept = tried
    return kept


def marco(test: Tester, most: int = 200) -> Iterator[int]:
    """MARCO of Liffiton et al. (2016): all minimal failing sets, one after the other."""
    failing: list[int] = []
    starting: list[int] = [0]
    for _ in range(most):
        seed = _unexplored(test.full, failing, starting)
        if seed is None:
            return
        if test.failing(seed):
            found = quickxplain_polished(test, seed)
            failing.append(found)
            yield found
        else:
            grown = seed
            for flag in bits(test.full & ~seed):
                more = test.closed(grown | 1 << flag)
                if not any(f & ~more == 0 for f in failing) and not test.failing(more):
                    grown = more
            starting.append(grown)


def _unexplored(full: int, failing: Sequence[int], starting: Sequence[int]) -> int | None:
    """A large subset above no failing and below no starting one, or None: all is explored."""

    def search(mask: int) -> int | None:
        bad = next((f for f in failing if f & ~mask == 0), None)
        if bad is None:
            return None if any(mask & ~good == 0 for good in starting) else mask
        for flag in bits(bad):
            found = search(mask & ~(1 << flag))
            if found is not None:
                return found
        return None

    return search(full)
