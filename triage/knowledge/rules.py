"""The rules of what a version of the engine refuses: `triage.constraints/1`.

In:  triage/knowledge/constraints/sglang-<version>.yaml. Out: rules, by version.
Not: applying them (triage.core.constraints).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from triage.core.config import Config, Value
from triage.core.constraints import Condition, Rule
from triage.yamlfile import load_yaml

FOLDER = Path(__file__).with_name("constraints")
Words = str | tuple[str, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConditionPart(_Strict):
    """One condition; `is` and `not` take a word or a list of words."""

    flag: str
    given: bool | None = None
    equals: Words | None = Field(default=None, alias="is")
    other_than: Words | None = Field(default=None, alias="not")
    over: float | None = None
    under: float | None = None
    not_multiple_of: str | None = None
    holds: str | None = None


class RulePart(_Strict):
    """One rule with its two examples."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    when: Annotated[tuple[ConditionPart, ...], Field(min_length=1)]
    exception: str
    message: Annotated[str, Field(min_length=10)]
    refused: dict[str, JsonValue]
    accepted: dict[str, JsonValue]


class RulesFile(_Strict):
    """The rules of one version."""

    schema_: Literal["triage.constraints/1"] = Field(alias="schema")
    engine: Literal["sglang"]
    version: str
    rules: tuple[RulePart, ...]


def load_rules(version: str, folder: Path = FOLDER) -> tuple[Rule, ...]:
    """The rules of a version; none for a version that nobody wrote rules for."""
    path = folder / f"sglang-{version}.yaml"
    if not path.exists():
        return ()
    return tuple(_rule(part) for part in load_yaml(path, RulesFile).rules)


def _rule(part: RulePart) -> Rule:
    return Rule(
        id=part.id,
        when=tuple(
            Condition(
                flag=c.flag,
                given=c.given,
                equals=_words(c.equals),
                other_than=_words(c.other_than),
                over=c.over,
                under=c.under,
                not_multiple_of=c.not_multiple_of,
                holds=c.holds,
            )
            for c in part.when
        ),
        exception=part.exception,
        message=part.message,
        refused=_config(part.refused),
        accepted=_config(part.accepted),
    )


def _words(given: Words | None) -> tuple[str, ...] | None:
    return (given,) if isinstance(given, str) else given


def _config(flags: dict[str, JsonValue]) -> Config:
    values: dict[str, Value] = {}
    for name, given in flags.items():
        match given:
            case bool() | str():
                values[name] = given
            case list():
                values[name] = tuple(map(str, given))
            case _:
                values[name] = str(given)
    return Config.of(values)
