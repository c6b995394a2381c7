"""What a report to the engine's authors holds, key by key.

In:  nothing. Out: Issue.
Not: writing it (triage/render/issue_document.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.parts import Closed, Document


class IssueField(Closed):
    """One field of the form."""

    name: str
    """The field's name in the form; Attachments is none of its fields."""
    text: str
    """What to put there, in Markdown."""


class IssueFile(Closed):
    """A log to be attached."""

    file: str
    """Its path, names of this site taken out."""
    what: str
    """Whose log it is."""
    bytes: Annotated[int, Field(ge=0)]
    """Its size."""
    sha256: str
    """Digest of the raw log, in hexadecimal."""


class Issue(Document):
    """The report to the engine's authors, without secrets and names."""

    engine: Literal["sglang", "vllm"]
    """Whose form it is."""
    form: str
    """Address of the form."""
    title: str
    """The title."""
    fields: list[IssueField]
    """The form's fields, in its order."""
    body: str
    """The whole as one text in Markdown, at most `limit` long."""
    limit: int
    """Characters that the site takes (UTF-16 units)."""
    cut: bool
    """Whether something was left out so that it fits."""
    simulated: bool
    """Whether a launch in it was simulated: then it must not be filed."""
    attachments: list[IssueFile]
    """All logs of it, of all ranks."""
