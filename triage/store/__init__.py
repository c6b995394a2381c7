"""A session directory on disk, written so that a kill loses at most one launch."""

from triage.store.folder import (
    SessionFolder,
    find_session,
    newest_session,
    session_of,
    sessions,
    unwritable,
    write_document,
)
from triage.store.journal import Journal

__all__ = [
    "Journal",
    "SessionFolder",
    "find_session",
    "newest_session",
    "session_of",
    "sessions",
    "unwritable",
    "write_document",
]
