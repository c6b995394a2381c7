"""Which ranks a line belongs to that bears no rank's name.

In:  candidates and a Generation. Out: names of ranks; none where nothing tells.
Not: the names that the engine's logger prints (ranks.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.log.candidates import Candidate
from triage.core.log.endings import Ending, ending, is_peer_gone
from triage.core.log.evidence import Generation
from triage.core.log.ranks import dead, members, resolved
from triage.core.regex import regex

# What a process that crashes prints, or the kernel of it, and the number of its signal.
_SIGNALS = (
    (("Segmentation fault", "Segfault encountered", "segfault at ", "*** SIGSEGV"), 11),
    (("Bus error", "*** SIGBUS"), 7),
    (("Illegal instruction", "*** SIGILL"), 4),
    (("Floating point exception", "*** SIGFPE"), 8),
    (("Fatal Python error: Aborted", "terminate called ", "double free", "corrupted size",
      "free(): ", "malloc(): ", "munmap_chunk", "*** SIGABRT"), 6),
)  # fmt: skip
_CODE = regex(r"exit(?:ed with)? code:? (-?\d{1,3})", needs=("code",))
# UCX's `[node:2101:0:2101]` and the kernel's `sglang::schedul[2101]: segfault`.
_PROCESS = regex(
    r"^\[[\w.-]+:(\d+) ?:|(?:\w|\*)\[(\d+)\]: segfault at|traps: \S+\[(\d+)\]|\(@0x0\) received by"
    r" PID (\d+)",
    needs=("[", "received by PID"),
)


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

    Those that raised what gives way to it; else those of which the launcher says that they ended
    by its signal, or whose process it names; else the few that did not lose a peer.
    """
    if root is None or root.tb is not None or root.rank != "main":
        return ()
    crashed = signal_of(root.text)
    if root.cause is None and not crashed:
        return ()
    if not crashed and ending(root.text) not in (Ending.ABORT, Ending.FATAL):
        return ()
    name = root.cause.id if root.cause else ""
    own = {c.rank for c in everything if c.tb and c.cause and name in c.cause.yields_to} - {"main"}
    if not own:
        own = _told(root, crashed, generation)
    if own:
        return tuple(sorted(own))
    gone = [c for c in everything if c.echo and is_peer_gone(c.text) and c.line > root.line]
    return silent_of(gone, generation)


def signal_of(text: str) -> int:
    """The signal by which the process ended that printed such a line; 0 if it tells none."""
    return next((signal for words, signal in _SIGNALS if any(word in text for word in words)), 0)


def _told(root: Candidate, signal: int, generation: Generation) -> set[str]:
    """The ranks that other lines connect with the end of a process without a name."""
    deaths = [line.text for line, _ in generation.of(Ending.DEATH) if line.number > root.line]
    codes = {-signal, 128 + signal} if signal else set()
    own = {
        tag
        for text in deaths
        if (code := _CODE.search(text)) is not None and int(code[1]) in codes
        if (tag := dead(text, generation.tags))
    }
    if own:
        return own
    process = _PROCESS.search(root.text)
    pid = next((int(part) for part in process.groups() if part), 0) if process else 0
    if not pid:
        return set()
    named = {
        tag for text in deaths if f"(pid={pid})" in text if (tag := dead(text, generation.tags))
    }
    label = generation.pids.get(pid, "")
    tag = resolved(label, generation.tags) if label else ""
    return named or ({tag} - {"main", ""})
