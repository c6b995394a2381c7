"""The peers as strategies of the benchmark, by the names that the tables print.

In:  nothing. Out: Strategy values.
Not: how a peer searches (peers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from bench.search import peers
from bench.search.landscape import Answer
from bench.search.peers import Reducer, Tester
from bench.search.play import Found, Oracle


@dataclass(frozen=True, slots=True)
class _Seen:
    starts: bool
    missing: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Lab:
    """The oracle as the peers know it."""

    oracle: Oracle

    @property
    def n(self) -> int:
        return self.oracle.scape.n

    @property
    def worths(self) -> Sequence[float]:
        return self.oracle.scape.worth

    @property
    def needs(self) -> Sequence[tuple[int, int]]:
        return self.oracle.scape.known

    def launch(self, mask: int) -> _Seen:
        answer: Answer = self.oracle.launch(mask)
        return _Seen(answer.kind == "starts", answer.pair if answer.kind == "rejected" else None)


@dataclass(frozen=True, slots=True)
class First:
    """One failing set by a reducer; failures are not told apart."""

    name: str
    reduce: Reducer
    helped: bool = False
    votes: int = 1

    def ask(self, oracle: Oracle, goal: str) -> Found:
        """For goal `first`."""
        assert goal == "first", goal
        test = Tester(_Lab(oracle), helped=self.helped, votes=self.votes)
        return Found(sets=frozenset({(self.reduce(test, test.full), None)}))


@dataclass(frozen=True, slots=True)
class Best:
    """A subset that starts."""

    name: str
    search: Callable[[Tester], int]
    helped: bool = False
    votes: int = 1

    def ask(self, oracle: Oracle, goal: str) -> Found:
        """For goal `best`."""
        assert goal == "best", goal
        return Found(best=self.search(Tester(_Lab(oracle), helped=self.helped, votes=self.votes)))


@dataclass(frozen=True, slots=True)
class All:
    """All failing sets; failures are not told apart."""

    name: str
    votes: int = 1

    def ask(self, oracle: Oracle, goal: str) -> Found:
        """For goal `all`."""
        assert goal == "all", goal
        found = peers.marco(Tester(_Lab(oracle), helped=True, votes=self.votes))
        return Found(sets=frozenset((mask, None) for mask in islice(found, 200)))


def _by_hitting_sets(reduce: Reducer) -> Callable[[Tester], int]:
    return lambda test: peers.best_by_hitting_sets(test, reduce)


LINEAR = First("leave out one flag at a time", peers.linear)
QUICKXPLAIN = First("QuickXplain", peers.quickxplain)
QUICKXPLAIN_STAR = First("QuickXplain*", peers.quickxplain_polished, helped=True)
FIRST = (
    LINEAR,
    First("picire 21.8 (ddmin)", peers.picire_ddmin),
    First("picire, complements first", peers.picire_complement_first),
    First("ddmin", peers.ddmin),
    First("ProbDD", peers.probdd),
    QUICKXPLAIN,
    QUICKXPLAIN_STAR,
)
ONE_AT_A_TIME = Best("one flag at a time", peers.one_flag_at_a_time, helped=True)
HITTING_SET = Best(
    "QuickXplain* + hitting set", _by_hitting_sets(peers.quickxplain_polished), helped=True
)
BEST = (
    ONE_AT_A_TIME,
    Best("picire + hitting set", _by_hitting_sets(peers.picire_ddmin), helped=True),
    Best("ProbDD + hitting set", _by_hitting_sets(peers.probdd), helped=True),
    Best("QuickXplain + hitting set", _by_hitting_sets(peers.quickxplain), helped=True),
    HITTING_SET,
)
ALL = (All("MARCO"),)
# Where launches are flaky, a peer can only ask again: the answer that came twice.
FIRST_FLAKY = (
    First("QuickXplain*, majority of 3", peers.quickxplain_polished, helped=True, votes=2),
)
BEST_FLAKY = (
    Best(
        "QuickXplain* + hitting set, majority of 3",
        _by_hitting_sets(peers.quickxplain_polished), helped=True, votes=2,
    ),
)  # fmt: skip
