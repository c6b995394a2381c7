"""What a load of parallel requests showed, as figures.

In:  how each request went. Out: Level.
Not: sending requests (triage.launch.load).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: when its parts came, in seconds after the level began.

    `arrivals` are the times of the parts of the answer that held text, `tokens` the
    generated tokens as the server counts them, else the parts. `error` is "" if it was
    answered; `cut` if it was given up because the level's time was over.
    """

    sent: float
    arrivals: tuple[float, ...] = ()
    ended: float = 0.0
    tokens: int = 0
    error: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One concurrency. Seconds throughout; None where nothing was answered.

    `itl_*` is the time between two parts of one answer; a part holds several tokens if
    the server speculates or sends them together. `client_share` is how much of one
    core the client itself used: near 1 the figures are the client's, not the server's.
    """

    concurrency: int
    requests: int
    answered: int
    cut: int
    seconds: float
    tokens: int
    errors: tuple[tuple[str, int], ...] = ()  # text, how often; the commonest first
    tokens_per_s: float | None = None
    ttft_p50: float | None = None
    ttft_p99: float | None = None
    itl_p50: float | None = None
    itl_p99: float | None = None
    client_share: float | None = None

    @property
    def failed(self) -> int:
        """Requests that the server refused, broke off or never began to answer."""
        return sum(count for _, count in self.errors)


def level_of(
    concurrency: int,
    requests: Sequence[Request],
    seconds: float,
    *,
    client_share: float | None = None,
    measured: bool = True,
) -> Level:
    """The figures of one level; without `measured` (a simulated server) only the counts."""
    answered = [r for r in requests if not r.error and not r.cut]
    tokens = sum(r.tokens for r in requests if not r.error)
    first = [r.arrivals[0] - r.sent for r in answered if r.arrivals]
    gaps = [
        later - sooner
        for r in answered
        for sooner, later in zip(r.arrivals, r.arrivals[1:], strict=False)
    ]
    if not measured:
        first = gaps = []
    return Level(
        concurrency=concurrency,
        requests=len(requests),
        answered=len(answered),
        cut=sum(r.cut for r in requests),
        seconds=round(seconds, 3),
        tokens=tokens,
        errors=tuple(Counter(r.error for r in requests if r.error).most_common()),
        tokens_per_s=round(tokens / seconds, 2) if measured and tokens and seconds > 0 else None,
        ttft_p50=quantile(first, 0.50),
        ttft_p99=quantile(first, 0.99),
        itl_p50=quantile(gaps, 0.50),
        itl_p99=quantile(gaps, 0.99),
        client_share=client_share,
    )


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of all is not above; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 5)
