"""The launch that shows that a proposal works: it came up and answered, twice alike.

In:  nothing. Out: Confirmation, Exchange.
Not: launching or asking (triage.session).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from triage.core.config import Config


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
class Confirmation:
    """One launch of a proposed config, in full.

    `ready_s` counts seconds from the start to the first answered generation,
    None if it never came. `folder` is the trial's folder in the session.
    `reason` says why it is not confirmed, "" if it is.
    """

    config: Config
    ready_s: float | None
    exchanges: tuple[Exchange, ...] = ()
    folder: str = ""
    simulated: bool = False
    provenance: str = "launched"  # recorded or assumed: what a simulated engine says
    reason: str = ""
    items: frozenset[str] = field(default_factory=frozenset)

    @property
    def agree(self) -> bool:
        """Whether there are answers, and each pair of them agrees."""
        return bool(self.exchanges) and all(e.agree for e in self.exchanges)

    @property
    def confirmed(self) -> bool:
        """Whether this launch allows to say "works"."""
        return self.ready_s is not None and self.agree and not self.reason
