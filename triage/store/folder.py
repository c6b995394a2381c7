"""Where a session lives, what is in it, and who may write to it.

In:  documents as values, a root folder. Out: files, written atomically.
Not: the journal's lines (journal.py) or what the documents mean.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import get_ident
from typing import Any

from triage.core.redact import redact_document, redact_text
from triage.errors import HostError, NothingError, UsageError, hint

ROOT = ".triage"
_SCHEMA = "triage.session/1"
_FACTS = frozenset({"created", "digest", "name", "engine", "simulated", "replay", "sources"})


def sessions_root() -> Path:
    """The folder that holds the sessions of the current directory."""
    return Path(ROOT)


class SessionFolder:
    """One investigation: session.json, journal.jsonl, trials/NNN/ and the documents.

    Open it with `create` or `open`; `lock` before launching anything in it.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.facts = dict(facts)
        self._lock: int | None = None

    @classmethod
    def create(
        cls, path: Path | None, facts: Mapping[str, Any], *, beside: Mapping[str, str] | None = None
    ) -> SessionFolder:
        """A new session with these facts; without a path, one named by date and time.

        Args:
            path: The folder, made if absent; what a killed creation left in it is replaced.
            facts: What session.json holds beside its schema and when it was created.
            beside: File name -> text; written before session.json makes it a session.

        Raises:
            UsageError: the folder holds something else already.
            HostError: it cannot be written.
        """
        created = datetime.now().astimezone().isoformat(timespec="microseconds")
        try:
            folder = path if path is not None else _fresh_name(sessions_root())
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # logs hold what logs hold
            foreign = {p.name for p in folder.iterdir()} - {"trials", "recipe.yaml", "lock"}
            if any(not name.endswith(".new") for name in foreign):
                raise UsageError(
                    f"{folder} is not empty and holds no session", hint=hint("ls", "-la", folder)
                )
            (folder / "trials").mkdir(exist_ok=True)
            session = cls(folder, {"schema": _SCHEMA, "created": created, **facts})
            for name, text in (beside or {}).items():
                session.write(name, text)
            session.write("session.json", session.facts)
        except OSError as error:
            raise unwritable(path or sessions_root(), error) from error
        return session

    @classmethod
    def open(cls, path: Path) -> SessionFolder:
        """The session in this folder.

        Raises:
            NothingError: there is none.
            UsageError: its session.json is damaged.
        """
        file = path / "session.json"
        if not file.exists():
            raise NothingError(f"{path} holds no session", hint="triage bisect --help")
        facts = _parsed(file)
        known = isinstance(facts, dict) and facts.get("schema") == _SCHEMA
        if not known or not facts.keys() >= _FACTS:
            raise UsageError(
                f"{file} is not a session of this version of triage",
                hint=hint("head", "-c", 300, file),
            )
        return cls(path, facts)

    @property
    def single(self) -> bool:
        """Whether it holds one launch of `triage run` and no search."""
        return bool(self.facts["digest"] == "")

    def note(self, **facts: object) -> None:
        """Add to what session.json holds."""
        self.facts.update(facts)
        self.write("session.json", self.facts)

    def lock(self) -> None:
        """Claim the session for this process until it ends, however it ends.

        Raises:
            HostError: another triage works in it.
        """
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise HostError(
                f"another triage works in {self.path}",
                hint=hint("fuser", "-v", self.path / "lock"),
            ) from error
        self._lock = handle

    def trial_folder(self, number: int, *, name: str = "trials") -> Path:
        """A clean folder for launch `number`, from 1; what a killed launch left is replaced."""
        folder = self.path / name / f"{number:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.is_symlink() or not old.is_dir():
                old.unlink()
        return folder

    def write(self, name: str, document: Mapping[str, Any] | str) -> Path:
        """Put a document in place in one step, secrets redacted; a reader never sees half of it."""
        return write_document(self.path / name, document)

    def forget(self, name: str) -> None:
        """Remove a document that is no longer true."""
        (self.path / name).unlink(missing_ok=True)

    def read(self, name: str) -> Any:
        """A document of the session, or None if it was not written yet.

        Raises:
            UsageError: it is no JSON.
        """
        file = self.path / name
        return _parsed(file) if file.exists() else None


def write_document(target: Path, document: Mapping[str, Any] | str) -> Path:
    """Write a file in one step, secrets redacted; a link of its name is replaced, not followed."""
    if isinstance(document, str):
        text = redact_text(document)
    else:
        text = json.dumps(redact_document(dict(document)), indent=1) + "\n"
    # Launches of one search may write at the same time.
    new = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.new")
    new.unlink(missing_ok=True)
    with new.open("x", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(target)
    return target


def session_of(folder: Path) -> Path | None:
    """The session in which the folder of a launch lies, None outside of one."""
    for above in folder.absolute().parents[:4]:
        if (above / "session.json").is_file():
            return above
    return None


def newest_session() -> Path:
    """The newest search among the sessions of the current directory.

    Raises:
        NothingError: there is none.
    """
    found = [session for session in _sessions(sessions_root()) if not session.single]
    if not found:
        raise NothingError(
            f"there is no session under {sessions_root()}/", hint="triage bisect --help"
        )
    return found[-1].path


def find_session(digest: str) -> Path | None:
    """The newest session of the same problem whose verdicts still stand.

    A search that found its answer is not made again; one that ended because the
    baseline failed, everything started or too much stayed unresolved is: what was
    wrong may have been mended.
    """
    for session in reversed(_sessions(sessions_root())):
        ended = session.facts.get("ended")
        if session.facts["digest"] == digest and ended in (None, "budget", "found"):
            return session.path
    return None


def sessions() -> list[SessionFolder]:
    """The sessions of the current directory, oldest first."""
    return _sessions(sessions_root())


def _sessions(root: Path) -> list[SessionFolder]:
    """The sessions below a folder, oldest first; damaged ones are passed over."""
    found = []
    for path in root.iterdir() if root.is_dir() else ():
        with suppress(UsageError, NothingError, OSError):
            found.append(SessionFolder.open(path))
    return sorted(found, key=lambda session: (str(session.facts["created"]), str(session.path)))


def _parsed(file: Path) -> Any:
    """The JSON of a file; raises UsageError naming it."""
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise UsageError(
            f"{file} is damaged: it is no JSON", hint=hint("head", "-c", 300, file)
        ) from error


def _fresh_name(root: Path) -> Path:
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    candidate, number = root / stamp, 1
    while candidate.exists():
        number += 1
        candidate = root / f"{stamp}-{number}"
    return candidate


def unwritable(path: Path, error: OSError) -> HostError:
    """The error for a folder that cannot be written, with what to look at."""
    known = next(p for p in (path.absolute(), *path.absolute().parents) if p.is_dir())
    return HostError(f"cannot write {path}: {error.strerror}", hint=hint("df", "-h", known))
