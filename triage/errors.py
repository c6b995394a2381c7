"""Our own failures. The server's failure is data and never one of these.

    TriageError          1   triage itself failed
    ├── UsageError       2   the command line or a file given to it is wrong
    ├── NothingError     3   there is nothing to examine
    ├── HostError        4   this machine cannot do what was asked
    ├── NotFoundWorking 12   no working configuration within the budget, or not confirmed
    └── Inconclusive    13   flaky, unresolved or interrupted launch

Every error is one sentence and the next command to type. Only the command
line's outermost function turns one into text.
"""

from __future__ import annotations


def hint(*words: object) -> str:
    """A command to type, its words quoted as a shell needs them."""
    from shlex import join  # noqa: PLC0415  only what went wrong has a hint

    return join([str(word) for word in words])


class TriageError(Exception):
    """A failure of ours: one sentence, a hint, an exit code.

    Args:
        message: What could not be done, to what, and why, in one sentence.
        hint: The next command to type, or "" if there is none.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(TriageError):
    """The command line, or a file named on it, is wrong."""

    exit_code = 2


class NothingError(TriageError):
    """There is nothing to examine: an empty log, an empty session."""

    exit_code = 3


class HostError(TriageError):
    """This machine cannot do it: no permission, a busy port, a full disk."""

    exit_code = 4


class NotFoundWorking(TriageError):  # noqa: N818  it names a result, not a fault
    """No working configuration within the budget, or the proposal was not confirmed."""

    exit_code = 12


class Inconclusive(TriageError):  # noqa: N818  it names a result, not a fault
    """The launches proved nothing: flaky, unresolved, interrupted."""

    exit_code = 13
