"""Read facts side by side, and give up on those that do not come.

In:  readers. Out: their facts, or `Unavailable` with the reason.
Not: ending what hangs: a thread in the driver or on a dead network disk cannot be ended, and
this process does not wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from triage.core.machine.facts import Unavailable

T = TypeVar("T")


class Reading(Generic[T]):
    """A reader that runs; `fact` waits for it as long as its patience lasts."""

    def __init__(self, what: str, read: Callable[[], T | Unavailable], patience_s: float) -> None:
        self._what, self._read = what, read
        self._silent = Unavailable(f"{what} did not answer within {patience_s:g} s")
        self._until = time.monotonic() + patience_s
        self._found: list[T | Unavailable] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread may be started here, which a check tells
            self._run()

    def _run(self) -> None:
        try:
            self._found.append(self._read())
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            self._found.append(Unavailable(f"{where}{error.strerror or error}"))
        except Exception as error:  # noqa: BLE001  one fact that cannot be read hides no other
            said = f"{self._what} could not be read: {type(error).__name__}: {error}"
            self._found.append(Unavailable(said))

    def fact(self) -> T | Unavailable:
        """What was read, or why it was not."""
        if not self._found:
            self._thread.join(max(0.0, self._until - time.monotonic()))
        return self._found[0] if self._found else self._silent
