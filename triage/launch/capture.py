"""What one launch leaves on disk: the raw log, when each part came, and how it ended.

In:  chunks of output as they arrive. Out: server.log, arrivals.jsonl, exit.json in one folder.
Not: changing a byte of the log but those of known secrets, or reading it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Self

from triage.errors import HostError, hint
from triage.launch.hiding import Mask

LOG, ARRIVALS, EXIT = "server.log", "arrivals.jsonl", "exit.json"


class Record:
    """Writes one launch's files; unbuffered, so that a reader sees what has arrived.

    Raises:
        HostError: From every method: the folder cannot be written, or the disk is full.
    """

    def __init__(self, folder: Path, secrets: Iterable[str] = ()) -> None:
        self.folder = folder
        self.mask = Mask(secrets)
        self.log = folder / LOG
        self._offset = 0
        self._log: BinaryIO | None = None
        self._arrivals: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._log = create(self.log)
            self._arrivals = create(self.folder / ARRIVALS)
        except OSError as error:
            self.__exit__()
            raise cannot_write(self.folder, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._log, self._arrivals):
            if file is not None:
                file.close()

    def take(self, chunk: bytes, seconds: float) -> bytes:
        """Append a chunk that arrived `seconds` after the start; what is written of it.

        An empty one says that nothing follows for now.
        """
        chunk = self.mask.take(chunk) if chunk else self.mask.rest()
        if not chunk:
            return chunk
        try:
            _write(self._log, chunk)
            _write(self._arrivals, f"[{self._offset}, {seconds:.3f}]\n".encode())
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        self._offset += len(chunk)
        return chunk

    def finish(self, facts: dict[str, object]) -> None:
        """Write how the launch ended."""
        text = self.mask.text(json.dumps({"schema": "triage.exit/1"} | facts, indent=2)) + "\n"
        try:
            with create(self.folder / EXIT) as file:
                _write(file, text.encode())
        except OSError as error:
            raise cannot_write(self.folder, error) from error


def create(path: Path) -> BinaryIO:
    """The file, new or emptied, unbuffered; never one that a link points to."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb", buffering=0)


def _write(file: BinaryIO | None, data: bytes) -> None:
    """All of `data`: a nearly full disk takes a part, and only then says that it is full."""
    assert file is not None  # noqa: S101  used inside the `with` block only
    while data:
        data = data[file.write(data) :]


def cannot_write(folder: Path, error: OSError) -> HostError:
    """The sentence for a folder that takes no more."""
    if error.errno == errno.ELOOP and error.filename:
        return HostError(
            f"{error.filename} is a link, and the launch's files are not written through links.",
            hint=hint("rm", error.filename),
        )
    look = hint("df", "-h", folder) if error.errno == errno.ENOSPC else hint("ls", "-ld", folder)
    why = os.strerror(error.errno) if error.errno else str(error)
    return HostError(f"The launch's files cannot be written to {folder}: {why}.", hint=look)
