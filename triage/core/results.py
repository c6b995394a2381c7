"""What came out for one log of a run over many: its diagnosis, and how it compares.

In:  nothing. Out: Result, Difference, Status.
Not: comparing (triage.session.check) or reporting (triage.render).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from triage.core.diagnosis import Diagnosis
from triage.core.records import dataclass


class Status(StrEnum):
    """How a log compares with what its case expects."""

    EXPECTED = "expected"
    DIFFERS = "differs"
    KNOWN_MISS = "known-miss"  # differs, and its case says that it does
    MENDED = "mended"  # its case says that it is a known miss, and it is none any more
    UNREADABLE = "unreadable"  # the case or its log cannot be read
    UNCOMPARED = "uncompared"  # there is no case: the diagnosis is all there is


FINDINGS = frozenset((Status.DIFFERS, Status.MENDED, Status.UNREADABLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One departure from what a case expects; `line` of the log, 0 where it has none."""

    key: str  # of triage.diagnosis/1, as in `root.line`
    say: str  # expected and found, in words
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One log.

    `place` is its path with forward slashes, relative to the folder of the report where it
    lies within; `note` says why it is unreadable, or why the miss is known.
    """

    name: str
    place: str
    status: Status
    diagnosis: Diagnosis | None = None
    expected: str | None = None  # the cause that the case names
    differences: tuple[Difference, ...] = ()
    note: str = ""

    @property
    def line(self) -> int:
        """The line of the log that the result rests on; 0 where there is none."""
        if self.differences and self.differences[0].line:
            return self.differences[0].line
        if self.diagnosis is None:
            return 0
        if self.diagnosis.root:
            return self.diagnosis.root.line
        return self.diagnosis.cascade[0] if self.diagnosis.cascade else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The results of a folder of cases, by name; `without` are logs that have no case.yaml."""

    folder: str
    results: tuple[Result, ...]
    without: tuple[str, ...] = ()

    def count(self, *statuses: Status) -> int:
        """How many results have one of these statuses."""
        return sum(result.status in statuses for result in self.results)


def found(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results that a check must report."""
    return tuple(result for result in results if result.status in FINDINGS)
