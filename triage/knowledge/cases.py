"""Recorded cases: a log, where it comes from, and the diagnosis that it must give.

In:  a folder of `<cause-id>--<words>/{case.yaml,server.log}`.
Out: cases, and how a diagnosis document differs from what a case expects.
Not: diagnosing (triage.core.log.diagnose).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from triage.core.handover.expected import Way
from triage.errors import UsageError
from triage.yamlfile import load_yaml


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SourceFile(_Strict):
    """Where the log comes from; a reconstructed one says in `note` what was made up."""

    kind: Literal["real", "reconstructed"]
    engine: str
    version: str
    note: str
    url: str = ""


class WayFile(_Strict):
    """A way out that reports confirm: edits that a proposal must have, or words of its sentence."""

    set: dict[str, str | bool | int | float] = {}
    unset: list[str] = []
    env: dict[str, str] = {}
    step: str = ""

    def way(self) -> Way:
        """The way as the core compares it."""
        return Way(
            set_flags=tuple((name, _word(value)) for name, value in self.set.items()),
            unset=tuple(self.unset),
            set_env=tuple(self.env.items()),
            step=self.step,
        )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class ExpectFile(_Strict):
    """Keys of `triage.diagnosis/1`; what is left out is not compared."""

    outcome: Literal["failed", "healthy", "hung", "interrupted", "empty"]
    cause: str | None
    phase: str = ""
    confidence: str = ""
    title: str = ""
    fingerprint: str = ""
    ranks: list[str] = []
    ranks_total: int = 0
    root: dict[str, Any] | None = {}
    traceback: dict[str, Any] | None = {}
    cascade: list[int] = []
    teardown: list[int] = []
    decoys: list[dict[str, Any]] = []
    engine: dict[str, Any] = {}
    config: dict[str, Any] = {}
    effective: dict[str, Any] = {}
    suspects: list[dict[str, Any]] = []
    remedies: list[dict[str, Any]] = []
    also: list[dict[str, Any]] = []
    simulated: bool = False
    provenance: str = ""
    refused: str = ""
    remedy: list[WayFile] = []


class CaseFile(_Strict):
    """One case.yaml. `known_miss` marks a case that the engine is known to get wrong, and why."""

    schema_: Literal["triage.case/1"]
    source: SourceFile
    expect: ExpectFile
    known_miss: bool | Annotated[str, Field(min_length=1)] = False

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=lambda name: name.rstrip("_")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recorded case. `expect` holds only the keys that the file gives."""

    name: str
    log: Path
    kind: str  # real | reconstructed
    version: str
    note: str
    url: str
    expect: dict[str, Any]
    known_miss: bool
    miss: str = ""  # why it is missed, if the file says so
    ways: tuple[Way, ...] = ()  # of which the best proposal must be one; none: not compared

    @property
    def subject(self) -> str:
        """What the folder's name says that the log shows: a cause id, healthy, unknown, hung."""
        return self.name.split("--", maxsplit=1)[0]


def load_cases(folder: Path) -> tuple[Case, ...]:
    """The cases of a folder, by name; raises UsageError with file and line."""
    found = tuple(sorted(folder.glob("*/case.yaml")))
    if not found:
        raise UsageError(f"{folder}: no cases (*/case.yaml) here", hint=f"ls {folder}")
    return tuple(load_case(path) for path in found)


def load_case(path: Path) -> Case:
    """The case of one case.yaml; its log lies beside it."""
    file = load_yaml(path, CaseFile)
    log = path.with_name("server.log")
    if not log.is_file():
        raise UsageError(f"{log}: the log of this case is missing", hint=f"ls {path.parent}")
    return Case(
        name=path.parent.name,
        log=log,
        kind=file.source.kind,
        version=file.source.version,
        note=file.source.note,
        url=file.source.url,
        expect=file.expect.model_dump(exclude_unset=True, exclude={"remedy"}),
        ways=tuple(one.way() for one in file.expect.remedy),
        known_miss=bool(file.known_miss),
        miss=file.known_miss if isinstance(file.known_miss, str) else "",
    )


def differences(expected: Any, found: Any, where: str = "") -> tuple[str, ...]:
    """How `found` departs from `expected`, one sentence each.

    Of a mapping only the expected keys are compared, a list must match item by
    item, and `text` may be any part of the text that was found.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        return tuple(
            difference
            for key, value in expected.items()
            for difference in differences(value, found.get(key), f"{where}.{key}".lstrip("."))
        )
    if isinstance(expected, list) and isinstance(found, list | tuple):
        if len(expected) == len(found):
            return tuple(
                difference
                for index, (one, other) in enumerate(zip(expected, found, strict=True))
                for difference in differences(one, other, f"{where}[{index}]")
            )
    elif where.endswith(".text") and isinstance(expected, str) and isinstance(found, str):
        if expected in found:
            return ()
    elif expected == found:
        return ()
    return (f"{where}: expected {expected!r}, found {found!r}",)
