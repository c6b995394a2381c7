"""Read what a comparison leaves out and what follows from what.

In:  triage/knowledge/diff.yaml and moves/sglang-<version>.json. Out: Rules.
Not: comparing (triage.core.diff).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from triage.core.diff.rules import (
    EnvRule,
    Follower,
    Masked,
    Place,
    Rules,
    Suppression,
    Tolerance,
)
from triage.yamlfile import load_yaml

FILE = Path(__file__).with_name("diff.yaml")
MOVES = Path(__file__).with_name("moves")


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return text


Text = Annotated[str, Field(min_length=1)]
Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SuppressPart(_Strict):
    """One sort of difference that is left out."""

    part: Literal["resolved", "env", "versions", "decisions", "memory"]
    key: Pattern
    reason: Text
    idle: dict[Text, Text] = Field(default_factory=dict)


class MaskedPart(_Strict):
    """A part of a line that is another at each launch."""

    pattern: Pattern
    put: str
    reason: Text


class FollowsPart(_Strict):
    """A field that is another name or a parameter of others."""

    name: Pattern
    leaders: Annotated[tuple[Text, ...], Field(min_length=1)]
    reason: Text
    hidden: bool = False


class EnvPart(_Strict):
    """A variable that the engine sets by its fields."""

    name: Text
    fields: Annotated[tuple[Text, ...], Field(min_length=1)]
    on: str
    off: str
    wins: bool
    where: Text
    own: Text


class TolerancePart(_Strict):
    """How far readings may be apart."""

    times: Annotated[float, Field(gt=1)]
    seconds: Annotated[float, Field(ge=0)]
    share: Annotated[float, Field(ge=0, lt=1)]
    gigabytes: Annotated[float, Field(ge=0)]


class RulesFile(_Strict):
    """diff.yaml as it is written."""

    schema_: Literal["triage.diff-rules/1"] = Field(alias="schema")
    suppress: tuple[SuppressPart, ...]
    masked: tuple[MaskedPart, ...]
    follows: tuple[FollowsPart, ...]
    env: tuple[EnvPart, ...]
    tolerance: TolerancePart


def load_diff_rules(path: Path = FILE, moves: Path = MOVES) -> Rules:
    """The rules; raises UsageError with file and line."""
    file = load_yaml(path, RulesFile)
    tables = sorted(moves.glob("sglang-*.json"))
    table: dict[str, Any] = json.loads(tables[-1].read_bytes()) if tables else {"moves": {}}
    return Rules(
        suppress=tuple(
            Suppression(
                section=one.part,
                key=re.compile(one.key),
                reason=one.reason,
                idle=tuple(one.idle.items()),
            )
            for one in file.suppress
        ),
        masked=tuple(
            Masked(pattern=re.compile(one.pattern), put=one.put, reason=one.reason)
            for one in file.masked
        ),
        followers=tuple(
            Follower(
                name=re.compile(one.name),
                leaders=one.leaders,
                reason=one.reason,
                hidden=one.hidden,
            )
            for one in file.follows
        ),
        env=tuple(
            EnvRule(
                name=one.name,
                fields=one.fields,
                on=one.on,
                off=one.off,
                wins=one.wins,
                where=one.where,
                own=one.own,
            )
            for one in file.env
        ),
        tolerance=Tolerance(**file.tolerance.model_dump()),
        moves={
            field: tuple(Place(where=where, looks_at=tuple(looks)) for where, looks in places)
            for field, places in table["moves"].items()
        },
        moves_version=str(table.get("version", "")),
    )
