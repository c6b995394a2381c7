"""The document of an inspection, key by key.

In:  nothing. Out: Inspection. Not: making it (triage/render/inspection_text.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import Closed, Document

Check = Literal[
    "moe-pair", "moe-quantization", "speculative-algorithm", "plugin", "package", "divisibility",
]  # fmt: skip


class InstalledEngine(Closed):
    """The engine as it is installed."""

    name: Literal["sglang"]
    """Always sglang."""
    version: str | None
    """As its package says; null if that is not told."""
    python: str | None
    """The Python that would run it; null if the command does not tell."""
    root: str | None
    """The folder of its source; null if there is none. Places in findings are relative to it."""


class InspectedModel(Closed):
    """The model whose sizes were read."""

    path: str | None
    """As the command names it; null if it names none."""
    file: str | None
    """The config.json that was read; null if none was."""
    architecture: str | None
    """The first of its architectures; null if it names none."""


class Finding(Closed):
    """Something that cannot work."""

    check: Check
    """Which check found it."""
    say: str
    """What it is."""
    sure: bool
    """False where the engine may take another way at run time."""
    where: list[str]
    """Where that stands: file:line in the engine's source, a key of config.json, a package."""
    flags: list[str]
    """The flags, or env:NAME, that it is about."""


class OpenCheck(Closed):
    """A check that could not be made."""

    check: Check
    """Which one."""
    why: str
    """What it lacked."""


class Inspection(Document):
    """What cannot work with the installed engine and the model, found without running either."""

    engine: InstalledEngine
    """The engine."""
    model: InspectedModel
    """The model."""
    findings: list[Finding]
    """What cannot work; none is no proof that it will."""
    checked: list[Check]
    """The checks that were made."""
    open: list[OpenCheck]
    """The checks that were not."""
