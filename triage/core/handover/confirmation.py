"""The launches that show that a configuration works, and each check that was made of them.

In:  nothing. Out: Confirmation and its parts.
Not: launching or asking (triage.session), or judging what was seen (checks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from triage.core.config import Config
from triage.core.gpu_symptoms import GpuReport
from triage.core.handover.load import Level


class Result(StrEnum):
    """What a check came to. Only `FAILED` stands in the way of "works"."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"  # not as asked, and no reason to doubt that it works: to be read
    CANNOT_TELL = "cannot tell"  # nothing that was seen says it


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, and what was seen, in a sentence."""

    name: str
    result: Result
    say: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One prompt and the two answers to it, both generated at temperature 0."""

    prompt: str
    answers: tuple[str, str]

    @property
    def agree(self) -> bool:
        """Whether the answers are equal and not empty."""
        first, second = self.answers
        return bool(first) and first == second


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One of the repeated starts: it answered, or `reason` says why not.

    `ready_s` counts seconds to the first answered generation, None if it never came.
    """

    folder: str
    ready_s: float | None
    reason: str = ""
    cause: str | None = None

    @property
    def up(self) -> bool:
        """Whether it came up, stayed up and answered."""
        return self.ready_s is not None and not self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """One config, launched in full as often as was asked.

    `ready_s`, `exchanges` and `folder` are of the first start that came up, else of the
    first. `reason` says why it is not confirmed, "" if it is. `date` is ISO 8601 with its
    zone; `versions` hold (what, version). `levels` and `gpus` are what a load showed, if
    one was asked for. `starts` is empty in what earlier versions stored: one start then.
    """

    config: Config
    ready_s: float | None
    exchanges: tuple[Exchange, ...] = ()
    folder: str = ""
    simulated: bool = False
    provenance: str = "launched"  # recorded or assumed: what a simulated engine says
    reason: str = ""
    items: frozenset[str] = field(default_factory=frozenset)
    checks: tuple[Check, ...] = ()
    starts: tuple[Start, ...] = ()
    levels: tuple[Level, ...] = ()
    gpus: GpuReport | None = None
    date: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    command: str = ""  # what was launched, less the port, secrets hidden

    @property
    def agree(self) -> bool:
        """Whether there are answers, and each pair of them agrees."""
        return bool(self.exchanges) and all(e.agree for e in self.exchanges)

    @property
    def confirmed(self) -> bool:
        """Whether these launches allow to say "works"."""
        return (
            self.ready_s is not None
            and self.agree
            and not self.reason
            and not any(check.result is Result.FAILED for check in self.checks)
            and all(start.up for start in self.starts)
        )

    @property
    def up(self) -> int:
        """How many of the starts came up and answered."""
        return sum(start.up for start in self.starts)

    @property
    def flaky(self) -> bool:
        """Whether the same configuration started and did not start."""
        return 0 < self.up < len(self.starts)

    @property
    def count(self) -> str:
        """`3/3`: starts that came up, of all that were made."""
        if not self.starts:
            return "1/1" if self.confirmed else "0/1"
        return f"{self.up}/{len(self.starts)}"


def why_not(checks: Sequence[Check], starts: Sequence[Start]) -> str:
    """Why this is not confirmed, in a sentence without its full stop; "" if nothing says so."""
    down = [(number, s) for number, s in enumerate(starts, start=1) if not s.up]
    up = len(starts) - len(down)
    if down:
        number, first = down[0]
        if up:
            return f"flaky: {up} of {len(starts)} starts came up; start {number}: {first.reason}"
        times = f" (so did all {len(starts)} starts)" if len(starts) > 1 else ""
        return f"{first.reason}{times}"
    return next((check.say for check in checks if check.result is Result.FAILED), "")
