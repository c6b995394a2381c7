"""A report to the engine's authors as the document `triage.issue/1`.

In:  UpstreamReport. Out: a JSON object.
Not: its text (triage.session.issue).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from triage.core.handover.document import Runbook
from triage.core.handover.upstream import MOST_CHARACTERS, UpstreamReport
from triage.render.markdown import markdown


def issue_json(found: UpstreamReport) -> dict[str, Any]:
    """The whole report, and each field of the form by its name."""
    book = found.document
    return {
        "schema": "triage.issue/1",
        "engine": found.form.engine,
        "form": found.form.address,
        "title": book.title,
        "fields": [
            {"name": section.title, "text": _text(replace(book, sections=(section,)))}
            for section in book.sections
        ],
        "body": found.text,
        "limit": MOST_CHARACTERS,
        "cut": found.cut,
        "simulated": found.simulated,
        "attachments": [
            {"file": a.file, "what": a.what, "bytes": a.size, "sha256": a.sha256}
            for a in found.attachments
        ],
    }


def _text(book: Runbook) -> str:
    """A single section's blocks, without title and heading."""
    return markdown(book).split("\n\n", 2)[2]
