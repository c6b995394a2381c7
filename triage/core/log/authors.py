"""Which ranks a line belongs to that bears no rank's name.

In:  candidates and a Generation. Out: names of ranks; none where nothing tells.
Not: the names that the engine's logger prints (ranks.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.log.candidates import Candidate
from triage.core.log.endings import Ending, ending, is_peer_gone
from triage.core.log.evidence import Generation
from triage.core.log.ranks import members


def silent_of(echoes: Sequence[Candidate], generation: Generation) -> tuple[str, ...]:
    """The few ranks that did not say that they lost a peer, if nearly all did."""
    tags = set(members(generation.tags))
    left = sorted(tags - {c.rank for c in echoes})
    few = len(tags) >= 3 and 0 < len(left) <= max(1, len(tags) // 4)  # noqa: PLR2004
    return tuple(left) if few else ()


def whose(
    root: Candidate | None, everything: Sequence[Candidate], generation: Generation
) -> tuple[str, ...]:
    """The ranks of a root line that native code printed, so that it bears no name.

    Those that raised what gives way to it; else the few that did not lose a peer.
    """
    if root is None or root.tb is not None or root.cause is None or root.rank != "main":
        return ()
    if ending(root.text) not in (Ending.ABORT, Ending.FATAL):
        return ()
    name = root.cause.id
    own = {c.rank for c in everything if c.tb and c.cause and name in c.cause.yields_to} - {"main"}
    if own:
        return tuple(sorted(own))
    gone = [c for c in everything if c.echo and is_peer_gone(c.text) and c.line > root.line]
    return silent_of(gone, generation)
