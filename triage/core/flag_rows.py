"""One flag of an engine, and flags that are made from the rows of a document when asked for.

In:  rows of triage/knowledge/flags/<engine>-<version>.yaml. Out: FlagSpec values by name.
Not: which spelling means which flag (flags.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.core.records import dataclass
from triage.core.typed import Any, Literal

Style = Literal["value", "switch", "bool-optional", "list", "optional-value"]
Scalar = str | int | float | bool | None
Default = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagSpec:
    """One server flag. Spellings stand without their dashes; the first is canonical.

    `field` is the engine's own name for it, as its log prints it. `nargs` is "+"
    or "*" for a list. `config_file`: a --config file may hold it.
    """

    name: str
    field: str
    aliases: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    style: Style = "value"
    nargs: str = ""
    type: str = "str"
    default: Default = None
    choices: tuple[Scalar, ...] = ()
    required: bool = False
    deprecated: bool = False
    replaced_by: str = ""
    config_file: bool = True
    group: str = ""


class Rows(Mapping[str, FlagSpec]):
    """Flags by name, made from the rows of a document."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = rows
        self._by_name = {row["name"]: row for row in rows}
        self._made: dict[str, FlagSpec] = {}

    def styles(self, fields: Mapping[str, str]) -> dict[str, Style]:
        """Styles by field, of flags that are given by field and name."""
        rows = self._by_name
        return {field: rows[name].get("style", "value") for field, name in fields.items()}

    def defaults(self, fields: Mapping[str, str]) -> dict[str, Default]:
        """Defaults by field, of flags that are given by field and name."""
        rows = self._by_name
        found = {field: rows[name].get("default") for field, name in fields.items()}
        return {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}

    def __getitem__(self, name: str) -> FlagSpec:
        if name not in self._made:
            self._made[name] = spec_of(self._by_name[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name


def told_of(spec: FlagSpec) -> dict[str, Any]:
    """What a document would say of the flag, as far as names go."""
    return {
        "name": spec.name, "field": spec.field, "deprecated": spec.deprecated,
        "aliases": spec.aliases, "negative": spec.negative,
    }  # fmt: skip


def field_of(row: Mapping[str, Any]) -> str:
    """The engine's own name for the flag of a row."""
    found: str = row.get("field") or row["name"].replace("-", "_")
    return found


def spec_of(row: dict[str, object]) -> FlagSpec:
    """The flag of a row; raises TypeError or KeyError if it is none."""
    rest = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
    rest.setdefault("field", field_of(row))
    return FlagSpec(**rest)  # type: ignore[arg-type]  # the generator's keys are the fields
