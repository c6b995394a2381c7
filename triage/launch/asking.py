"""Ask a program of this machine (a service manager, a container engine, a scheduler), and wait.

In:  words. Out: its exit code and what it said.
Not: starting a server, or judging the answer.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from triage.errors import HostError


def ask(
    words: Sequence[str], *, within_s: float, look: str, absent: HostError | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, without input.

    Args:
        words: The whole command.
        within_s: The longest wait.
        look: What to type if it gives no answer.
        absent: Raised instead if there is no such program.

    Raises:
        HostError: it cannot be started, or gives no answer in time.
    """
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=within_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if absent is not None and isinstance(error, FileNotFoundError):
            raise absent from error
        raise HostError(f"{words[0]} gives no answer: {error}", hint=look) from error
