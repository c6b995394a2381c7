"""Other ways to search, on the same landscapes and with the same count.

In:  nothing. Out: PEERS, by goal the strategies to hold triage against.
Not: anything that triage itself uses.
"""

from __future__ import annotations

from bench.search.play import Strategy

PEERS: dict[str, tuple[Strategy, ...]] = {"first": (), "best": (), "all": ()}
