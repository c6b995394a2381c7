"""The launches of one search that go on at the same time, each on a node of its own.

In:  trials, and what launches each. Out: their results, in the order in which they come.
Not: choosing trials (triage.core.search), or what a launch is (trial.py).

With one node the launch is made by whoever waits for it. With more, each has a thread, and
whatever ends the wait (an answer that ends the search, Ctrl-C) ends every launch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from triage.core.trials import Trial
from triage.launch import signals_interrupt
from triage.session.trial import TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """A launch that goes on: its number in the session, its node, from 0, and its time.

    `left_s` are the seconds of launches that the budget had left when it began.
    """

    number: int
    trial: Trial
    node: int
    left_s: float


# Launches the flight; the second argument tells it, asked often, that it has to end.
Launcher = Callable[[Flight, Callable[[], bool]], TrialResult]


class Fleet:
    """At most `nodes` launches at a time; as a context it ends those that are left."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.flights: dict[int, Flight] = {}
        self._waiting: list[tuple[Flight, Launcher]] = []
        self._threads: dict[int, threading.Thread] = {}
        self._done: SimpleQueue[tuple[Flight, TrialResult | BaseException]] = SimpleQueue()
        self._ended = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """SIGTERM and SIGHUP act like Ctrl-C on the thread that waits."""
        self._stack.enter_context(signals_interrupt())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still goes on, and wait until nothing of it is left."""
        self._ended.set()
        for thread in self._threads.values():
            thread.join()
        self._stack.close()

    @property
    def free(self) -> int:
        """Nodes without a launch."""
        return self.nodes - len(self.flights)

    def number(self, taken: set[int]) -> int:
        """The smallest number that no finished trial and no flight has, from 1."""
        number = 1
        while number in taken or number in self.flights:
            number += 1
        return number

    def start(self, number: int, trial: Trial, launcher: Launcher, *, left_s: float) -> Flight:
        """Begin a launch on a free node."""
        used = {flight.node for flight in self.flights.values()}
        node = next(node for node in range(self.nodes) if node not in used)
        flight = Flight(number=number, trial=trial, node=node, left_s=left_s)
        self.flights[number] = flight
        if self.nodes == 1:
            self._waiting.append((flight, launcher))
            return flight
        thread = threading.Thread(
            target=self._launch, args=(flight, launcher), name=f"trial-{number}"
        )
        self._threads[number] = thread
        thread.start()
        return flight

    def take(self) -> tuple[Flight, TrialResult | BaseException]:
        """The next launch that ended, and how; an error of one is no end of the others."""
        if self._waiting:
            flight, launcher = self._waiting.pop()
            try:
                return flight, launcher(flight, self._ended.is_set)
            finally:
                del self.flights[flight.number]
        flight, result = self._done.get()
        self._threads.pop(flight.number).join()
        del self.flights[flight.number]
        return flight, result

    def _launch(self, flight: Flight, launcher: Launcher) -> None:
        try:
            self._done.put((flight, launcher(flight, self._ended.is_set)))
        except BaseException as error:  # noqa: BLE001  it is told to the thread that waits
            self._done.put((flight, error))
