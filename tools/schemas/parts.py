"""Types and parts that several documents share.

In:  nothing. Out: Closed and Document, the bases of all models; types of single values.
Not: whole documents.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from triage.core.phases import PHASES

Value = bool | int | float | str | list[int | float | str]
Line = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
Weight = Annotated[float, Field(ge=0)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")]
Phase = Annotated[str, Field(json_schema_extra={"enum": list(PHASES)})]
Fingerprint = Annotated[str, Field(pattern=r"^v1:[0-9a-f]{12}$")]
Confidence = Literal["high", "medium", "low"]
Disposition = Literal["safe", "lossy", "manual"]
RoleName = Literal["root", "confirm", "cascade", "teardown", "advice", "benign"]


class Closed(BaseModel):
    """A part of a document; the text below a key is the key's description."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Document(Closed):
    """A document whose first key is `schema`; a key with a default may be left out."""


class Settings(Closed):
    """Flags and environment that were set; never a default."""

    flags: dict[str, Value]
    """Canonical flag name without dashes -> value as text; true: the switch is present, false:
    its negative form is; a list for a flag that takes several words."""
    env: dict[str, str]
    """Variable name -> value; in a stored document secrets are REDACTED."""


class SetFlag(Closed):
    """Set a flag, or replace its value."""

    set: str
    """Canonical flag name without dashes."""
    value: Value
    """The new value; true for a switch."""


class UnsetFlag(Closed):
    """Take a flag off the command line."""

    unset: str
    """Canonical flag name without dashes."""


class SetEnv(Closed):
    """Set a variable of the environment."""

    set_env: str
    """The variable's name."""
    value: str
    """The new value."""


class UnsetEnv(Closed):
    """Take a variable out of the environment."""

    unset_env: str
    """The variable's name."""
