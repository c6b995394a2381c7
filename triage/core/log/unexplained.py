"""A name for a failure of which no line says why: how the server ended, and in which phase.

In:  exit codes, what the server answered. Out: End: a title and what its fingerprint is made of.
Not: ends that a line explains (cascade.py).

A signal that others send (KILL, TERM, ...) says nothing about the configuration, so
such an end has no name. Source: numbers of signal(7) on x86-64 and arm64.
"""

from __future__ import annotations

import re

from triage.core.records import dataclass
from triage.core.regex import regex

_OWN = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV",
        31: "SIGSYS"}  # fmt: skip
_BY_OTHERS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 9: "SIGKILL", 15: "SIGTERM"}
_SHELL = 128  # what a shell and a container's runtime add to the signal that ended their program
_TOLD = regex(r"exit code:? (-?\d+)")
_REFUSAL = regex(r"(.*?HTTP \d+):? ?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class End:
    """How it ended, for people; `how` is "" if the same configuration may end another way.

    `message` may hold what differs between equal failures; `nameless` says that lines tell of
    the end, and none of them how.
    """

    title: str
    how: str = ""
    message: str = ""
    nameless: bool = False


def end_of_server(code: int) -> End:
    """The end of the main process with this exit code (negative: the signal)."""
    how, own = _how(code)
    return End(f"the server {how} and no line says why", how if own else "")


def end_of_child(line: str) -> End | None:
    """The end of a process of the server, by the line that tells its exit code."""
    told = _TOLD.search(line)
    if told is None:
        return None
    how, own = _how(int(told[1]))
    return End(f"a process of the server {how} and no line says why", how if own else "")


def says_who_died(line: str) -> bool:
    """Whether a line about a death names who died, and no more."""
    return "unexpectedly" in line or "scheduler is dead" in line


def refusal(reason: str) -> End:
    """The end of a server that came up and refused to do its work; `reason` is safe to print."""
    found = _REFUSAL.fullmatch(reason)
    how, message = (found[1], found[2]) if found else (reason, "")
    return End(f"the server came up, but {reason}", how, message)


def _how(code: int) -> tuple[str, bool]:
    """The end in words, and whether the server made it itself."""
    number = -code if code < 0 else code - _SHELL
    if number in _OWN:
        return f"ended by {_OWN[number]}", True
    if number in _BY_OTHERS:
        return f"ended by {_BY_OTHERS[number]}", False
    return (
        (f"ended with exit code {code}", True)
        if code >= 0
        else (f"ended by signal {number}", False)
    )
