"""One launch as a comparison sees it.

In:  nothing. Out: Side and its parts, as values.
Not: finding them in a log (startup.py) or in a session (triage.session.diff).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from triage.core.config import Config
from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A size that the startup printed: of each rank that did, in its unit ("GB", "tokens", "")."""

    unit: str
    ranks: Mapping[str, float]

    @property
    def low(self) -> float:
        """The smallest: that of the rank which has least."""
        return min(self.ranks.values())

    @property
    def high(self) -> float:
        """The largest of any rank."""
        return max(self.ranks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A line in which the engine says what it chose; `line` is its first, by `ranks` in order.

    `phase` is the one that the first of them was in.
    """

    text: str
    line: int
    phase: str = "unknown"
    ranks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two launches.

    `typed` is what the user set, None where only the engine's resolved values are
    known. `resolved` holds those by the engine's field names, nested ones joined by
    dots; None where nothing tells them, and then `unresolved` says why. `env` holds variables
    that the log or the command tells, `complete_env` whether those are all that were set; `made`
    those that the engine set on its own, None where it was not asked.
    `seconds` is when each phase was first reached, from the first dated line on; None: undated.
    """

    source: str
    kind: str  # log | trial | command
    trial: int | None = None
    outcome: str = ""
    phase: str = "unknown"
    cause: str | None = None
    fingerprint: str | None = None
    engine: str = "unknown"
    engine_version: str | None = None
    simulated: bool = False
    typed: Config | None = None
    resolved: Mapping[str, object] | None = None
    unresolved: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    complete_env: bool = False
    made: Mapping[str, str] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float | None] = field(default_factory=dict)
    memory: Mapping[str, Reading] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()


def flat(values: Mapping[str, object]) -> dict[str, object]:
    """The values with nested mappings taken apart: `a: {b: 1}` becomes `a.b: 1`."""
    return dict(_flat(values, ""))


def _flat(values: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and value and len(name) < 200:  # noqa: PLR2004  a hostile nest
            yield from _flat(value, f"{name}.")
        else:
            yield name, tuple(value) if isinstance(value, list) else value
