"""The journal of a session: one finished trial a line, on disk before the next launch.

In:  entries as values. Out: journal.jsonl, append-only, fsynced; entries read back.
Not: deciding what an entry means (triage.core).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triage.core.redact import redact_document
from triage.core.trials import Entry, Moved, Seen
from triage.errors import UsageError
from triage.render.documents import config_of
from triage.render.search_documents import trial_document


class Journal:
    """The finished trials of one session, in launch order.

    Raises:
        UsageError: a line before the last is damaged; the sentence names it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = self._read()

    def append(self, entry: Entry) -> None:
        """Put the entry on disk, then into memory: what was not stored never happened.

        The caller holds the session's lock; only then is the file touched.
        """
        line = json.dumps(redact_document(trial_document(entry)), separators=(",", ":")) + "\n"
        created = not self.path.exists()
        self._mend()
        with self.path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        if created:
            sync_folder(self.path.parent)
        self.entries.append(entry)

    def _mend(self) -> None:
        """Cut off a last line that a kill left unfinished; it is kept beside the journal."""
        raw = self._bytes()
        whole = raw.rfind(b"\n") + 1
        if whole != len(raw):
            self.path.with_suffix(".torn").write_bytes(raw[whole:])
            with self.path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())

    def _bytes(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def _read(self) -> list[Entry]:
        """The finished lines; an unfinished last one may be in the writing, or torn."""
        entries = []
        for number, line in enumerate(self._bytes().split(b"\n")[:-1], 1):
            try:
                entries.append(entry_of(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UsageError(
                    f"{self.path}:{number}: this line is not a trial of a journal",
                    hint="triage bisect --fresh RECIPE",
                ) from error
        return entries


def entry_of(document: Mapping[str, Any]) -> Entry:
    """The entry of a journal line; the inverse of `trial_document`."""
    return Entry(
        number=int(document["number"]),
        items=frozenset(document["items"]),
        seen=Seen(document["seen"]),
        why=document["why"],
        searching=document["searching"],
        signature=document["signature"],
        cause=document["cause"],
        title=document["title"],
        phase=document["phase"],
        ranks=tuple(document["ranks"]),
        seconds=float(document["seconds"]),
        reason=document["reason"],
        provenance=document["provenance"],
        simulated=bool(document["simulated"]),
        early=bool(document["early"]),
        config=config_of(document["config"]),
        effective=dict(document["effective"]),
        moved=tuple(
            Moved(
                name=moved["name"],
                before=moved["before"],
                after=moved["after"],
                against=moved["against"] or 0,
                by=tuple(moved["with"]),
            )
            for moved in document.get("moved", ())  # sessions of 0.1 have the names only
        ),
        suspects=tuple(document["suspects"]),
        log_digest=document["log_digest"],
        # Sessions of before there were rungs have launches only.
        rung=document.get("rung", "full"),
        resolved_key=document.get("resolved_key", ""),
        same_as=document.get("same_as"),
        saved_s=float(document.get("saved_seconds", 0.0)),
    )


def sync_folder(folder: Path) -> None:
    """Make a new name in the folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
