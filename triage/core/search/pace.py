"""How long the rest of a search takes: launches that are left, times what one takes.

In:  seconds of launches, by outcome, with their origin; a Problem and its journal. Out: Outlook.
Not: where such seconds lie (triage.session.pace), or what is launched (plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from statistics import fmean

from triage.core.search.plan import forecast
from triage.core.trials import Entry, Problem, Seen
from triage.core.units import format_seconds

EVEN = 0.5  # of the launches start, as long as nobody knows better
ENOUGH = 4  # launches of a search that say how many of them start


@dataclass(frozen=True, slots=True)
class Pace:
    """Mean seconds of a launch that starts and of one that does not; None: not known.

    `source` says in words where they are from, "" where nothing is known.
    """

    starts_s: float | None = None
    fails_s: float | None = None
    source: str = ""

    def __bool__(self) -> bool:
        return self.starts_s is not None or self.fails_s is not None

    def mean(self, starting: float = EVEN) -> float:
        """Seconds of a launch, if this share of them starts."""
        a = self.fails_s if self.starts_s is None else self.starts_s
        b = self.starts_s if self.fails_s is None else self.fails_s
        return starting * (a or 0.0) + (1 - starting) * (b or 0.0)

    def say(self) -> str:
        """`a start takes 4 min, a failure 71 s: SOURCE`."""
        parts = []
        if self.starts_s is not None:
            parts.append(f"a start takes {format_seconds(self.starts_s)}")
        if self.fails_s is not None:
            lead = "a failure" if parts else "a failure takes"
            parts.append(f"{lead} {format_seconds(self.fails_s)}")
        return f"{', '.join(parts)}: {self.source}" if parts else ""


def pace_of(entries: Sequence[Entry], source: str) -> Pace:
    """The means of launches in full; those that proved nothing do not count."""
    full = [e for e in entries if e.launched and e.rung == "full" and e.same_as is None]
    starts = [e.seconds for e in full if e.seen is Seen.STARTS]
    fails = [e.seconds for e in full if e.seen is Seen.FAILS]
    return Pace(
        fmean(starts) if starts else None,
        fmean(fails) if fails else None,
        source if starts or fails else "",
    )


def filled(pace: Pace, other: Pace) -> Pace:
    """The first, and where it knows no seconds of an outcome those of the other."""
    if not other or (pace.starts_s is not None and pace.fails_s is not None):
        return pace
    if not pace:
        return other
    lacks = "a start's" if pace.starts_s is None else "a failure's"
    return Pace(
        other.starts_s if pace.starts_s is None else pace.starts_s,
        other.fails_s if pace.fails_s is None else pace.fails_s,
        f"{pace.source}, {lacks} {other.source}",
    )


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a search still takes: launches, fewest and in 9 of 10 cases at most; minutes of these.

    `total` is the most launches in all. The minutes are None where no seconds are known.
    """

    fewest: int
    most: int
    total: int
    minutes: tuple[float, float] | None

    def say(self) -> str:
        """`at most 5 more launches, 12 min`, in few words."""
        if self.most == 0:
            return "nothing more to launch"
        launches = f"at most {self.most} more launch{'' if self.most == 1 else 'es'}"
        return launches if self.minutes is None else f"{launches}, {span(self.minutes[1])}"


def outlook(problem: Problem, journal: Sequence[Entry], pace: Pace, nodes: int = 1) -> Outlook:
    """What is left of a search, with `nodes` launches at the same time.

    More nodes save less than their number: about log2(nodes + 1), as bench/NODES.md shows.
    """
    low, high = forecast(problem, journal)
    made = len(journal)
    launched = [e for e in journal if e.launched]
    starting = EVEN
    if len(launched) >= ENOUGH:
        starting = sum(e.seen is Seen.STARTS for e in launched) / len(launched)
    fewest, most = max(0, low - made), max(0, high - made)
    if not pace:
        return Outlook(fewest, most, high, None)
    # The fewest launches of a search that has not begun are the two that start.
    least = fewest * pace.mean(1.0 if not journal else starting)
    minutes = (least / 60 / log2(nodes + 1), most * pace.mean(starting) / 60 / log2(nodes + 1))
    return Outlook(fewest, most, high, minutes)


def span(minutes: float) -> str:
    """Minutes for people."""
    return format_seconds(minutes * 60)
