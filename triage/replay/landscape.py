"""Which sets of flags end how: the file that the replay engine acts out.

In:  a YAML file `triage.landscape/1`, or a table from sets of items to endings.
Out: Landscape; `Landscape.find` gives the entry of a configuration, or why there is none.
Not: parsing a command line (arguments.py) or printing anything (script.py).

A landscape never guesses: a flag that it does not know to be neutral, set to
a value that no entry covers, has no answer.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from triage.core.config import Value
from triage.core.phases import PHASES
from triage.yamlfile import load_yaml

Scalar = str | bool | int | float
Setting = Scalar | tuple[Scalar, ...]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Gigabytes = Annotated[float, Field(ge=0, le=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9:][\w:.-]*$")]
Line = Annotated[str, Field(max_length=20_000)]

# Phases of the launcher, before it starts a rank.
MAIN_PHASES = ("arg-validation", "tokenizer-processor", "process-spawn")
# Phases that a rank goes through. A landscape runs those it gives seconds for.
RANK_PHASES = tuple(
    phase
    for phase in PHASES[PHASES.index("device-init") :]
    if phase not in ("pd-init", "router-start", "warmup-or-first-forward", "serving", "unknown")
)
DEFAULT_SECONDS: dict[str, float] = {
    "process-spawn": 10,
    "dist-init": 4,
    "weight-load": 30,
    "kv-pool-init": 2,
    "graph-capture": 20,
    "scheduler-init": 1,
    "warmup-request": 3,
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KnownFlag(_Strict):
    """One option of the simulated server.

    A neutral flag changes no ending (the port, the log level); any other flag
    must be an item, be fixed, or have its default value.
    """

    flag: Name
    aliases: tuple[Name, ...] = ()
    kind: Literal["value", "int", "switch", "list"] = "value"
    choices: tuple[str, ...] = ()
    default: Scalar | None = None
    required: bool = False
    neutral: bool = False


class FrameAt(_Strict):
    """One traceback entry; `file` is below the engine's package root."""

    file: Line
    line: Annotated[int, Field(ge=1)]
    function: Line
    text: Line = ""


class Serving(_Strict):
    """What a simulated server that started does: its answers, and what it tells of itself.

    `words` are different and the same again; `garbage` is one token over and over, `noise`
    replacement characters, `empty` nothing, `changing` never the same twice, and `error`
    is HTTP 500 to every generation, while /health stays green.
    """

    answers: Literal["words", "garbage", "noise", "empty", "changing", "error"] = "words"
    accept_length: Annotated[float, Field(ge=1, le=100)] | None = None
    fails_after: Annotated[int, Field(ge=1)] | None = None  # so many answers: then HTTP 503


class Ending(_Strict):
    """How a launch ends, and what it prints last.

    `ranks` names the ranks that show it: tags as printed (`TP3`), `all`, or
    `main` for the launcher. `before` is printed by each of them first; `{rank}`
    and `{ranks}` stand for its number and their count.
    """

    ends: Literal["starts", "exception", "signal", "exit", "hang"]
    phase: str = ""
    ranks: tuple[str, ...] = ("all",)
    exception: Line = ""
    message: Line = ""
    frames: tuple[FrameAt, ...] = ()
    wrapped: bool = False
    signal: str = "SIGKILL"
    code: Annotated[int, Field(ge=0, le=255)] = 1
    before: tuple[Line, ...] = ()
    orphan: bool = False
    serves: Serving = Serving()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        known = (*MAIN_PHASES, *RANK_PHASES)
        if self.ends != "starts" and self.phase not in known:
            raise ValueError(f"phase {self.phase!r} is none of {', '.join(known)}")
        if self.ends == "exception" and not self.exception:
            raise ValueError("an ending by exception needs the exception's type")
        if self.signal not in signal.Signals.__members__:
            raise ValueError(f"{self.signal!r} is no signal")
        if self.ends != "starts" and self.in_main != (self.phase in MAIN_PHASES):
            raise ValueError(f"{self.phase} and ranks {', '.join(self.ranks)} do not go together")
        if self.wrapped and self.phase != "graph-capture":
            raise ValueError("only graph-capture wraps an exception")
        return self

    @property
    def in_main(self) -> bool:
        """Whether the launcher shows the ending rather than a rank."""
        return "main" in self.ranks


class LandscapeEntry(Ending):
    """The ending of one exact set of items, with where it comes from.

    `more`: also of every set that holds these and more, if no entry before it says otherwise
    and none is for exactly that set.
    """

    when: tuple[Name, ...]
    more: bool = False
    provenance: Literal["recorded", "assumed"]
    source: Line


class Override(_Strict):
    """What the engine changes on its own, without a word, where all of these items are set.

    `sets` holds values as the log prints them, by flag or by the engine's own field.
    """

    when: Annotated[tuple[Name, ...], Field(min_length=1)]
    sets: dict[Name, Setting]


class Limit(Ending):
    """How every launch ends whose number is beyond this one, whatever its items.

    Within the limit the flag's value decides nothing.
    """

    flag: Name
    above: float | None = None
    below: float | None = None
    provenance: Literal["recorded", "assumed"]
    source: Line

    def passed(self, value: Value | None) -> bool:
        """Whether the value is beyond the limit; a value that is no number is not."""
        try:
            number = float(str(value))
        except ValueError:
            return False
        over = self.above is not None and number > self.above
        return over or (self.below is not None and number < self.below)

    def entry(self) -> LandscapeEntry:
        """The ending as that of a set of items."""
        own = self.model_dump(exclude={"flag", "above", "below"}, exclude_defaults=True)
        return LandscapeEntry(when=(), **own)


class ModelFacts(_Strict):
    """Sizes that the log mentions, per rank; they decide nothing."""

    type: Line = "SimulatedForCausalLM"
    free_gb: Gigabytes = 80.0
    weights_gb: Gigabytes = 20.0
    kv_gb: Gigabytes = 40.0
    kv_tokens: Annotated[int, Field(ge=0)] = 262_144
    context: Annotated[int, Field(ge=1)] = 32_768
    shards: Annotated[int, Field(ge=1, le=10_000)] = 8


class Landscape(_Strict):
    """All that the replay engine knows."""

    schema_: Literal["triage.landscape/1"] = Field(alias="schema")
    name: Name
    wording: Literal["0.5.23"] = "0.5.23"
    root: Line = "/opt/venv/lib/python3.11/site-packages/sglang/srt"
    model: ModelFacts = ModelFacts()
    flags: tuple[KnownFlag, ...]
    fixed: dict[Name, Setting] = Field(default_factory=dict)
    items: dict[Name, Setting]
    seconds: dict[str, Seconds] = Field(default_factory=lambda: dict(DEFAULT_SECONDS))
    overrides: tuple[Override, ...] = ()
    entries: tuple[LandscapeEntry, ...]
    limits: tuple[Limit, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        spellings = [s for known in self.flags for s in (known.flag, *known.aliases)]
        _unique("flag", spellings)
        flags = {known.flag for known in self.flags}
        for name in (*self.fixed, *self.items, *(limit.flag for limit in self.limits)):
            if not name.startswith("env:") and name not in flags:
                raise ValueError(f"{name} is not among the flags")
        for phase in self.seconds:
            if phase not in (*MAIN_PHASES, *RANK_PHASES):
                raise ValueError(f"seconds: the replay engine has no phase {phase}")
        named = [("an entry", entry.when) for entry in self.entries]
        named += [("an override", override.when) for override in self.overrides]
        for what, when in named:
            if unknown := set(when) - set(self.items):
                raise ValueError(f"{what} names {min(unknown)}, which is not among the items")
        _unique("entry for", [", ".join(sorted(entry.when)) or "no item" for entry in self.entries])
        return self

    def find(self, flags: Mapping[str, Value], env: Mapping[str, str]) -> LandscapeEntry | str:
        """The entry of what was set, or the names (with values) that no entry covers."""
        chosen: set[str] = set()
        odd: list[str] = []
        for name, wanted in self.items.items():
            have = _present(name, flags, env)
            if have == as_value(wanted):
                chosen.add(name)
            elif have is not None and have != self._default(name):
                odd.append(f"{name}={have}")
        for name, wanted in self.fixed.items():
            have = _present(name, flags, env)
            if (self._default(name) if have is None else have) != as_value(wanted):
                odd.append(f"{name}={'(not set)' if have is None else have}")
        for known in self.flags:
            settled = known.neutral or known.flag in self.items or known.flag in self.fixed
            settled = settled or any(limit.flag == known.flag for limit in self.limits)
            have = flags.get(known.flag)
            if not settled and have not in (None, self._default(known.flag)):
                odd.append(f"{known.flag}={have}")
        for limit in self.limits if not odd else ():
            if limit.passed(flags.get(limit.flag)):
                return limit.entry()
        entry = None if odd else self._entry(frozenset(chosen))
        return entry or ", ".join([*sorted(chosen), *odd]) or "the baseline"

    def _entry(self, chosen: frozenset[str]) -> LandscapeEntry | None:
        """The entry of exactly this set, else the first that holds for it and more."""
        for entry in self.entries:
            if set(entry.when) == chosen and not entry.more:
                return entry
        for entry in self.entries:
            if entry.more and chosen.issuperset(entry.when):
                return entry.model_copy(update={"when": tuple(sorted(chosen))})
        return None

    def overridden(self, entry: LandscapeEntry) -> dict[str, object]:
        """What the engine makes of fields that nobody set, or set otherwise; later ones win."""
        return {
            name.replace("-", "_"): list(value) if isinstance(value, tuple) else value
            for override in self.overrides
            if set(override.when) <= set(entry.when)
            for name, value in override.sets.items()
        }

    def _default(self, name: str) -> Value | None:
        for known in self.flags:
            if known.flag == name:
                return None if known.default is None else as_value(known.default)
        return None


def load_landscape(path: Path) -> Landscape:
    """Read and check a landscape.

    Raises:
        UsageError: the file cannot be read or is no landscape.
    """
    return load_yaml(path, Landscape)


def write_landscape(
    path: Path,
    table: Mapping[frozenset[str], Ending],
    *,
    name: str = "table",
    provenance: Literal["recorded", "assumed"] = "recorded",
    tp_size: int = 1,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Write the landscape of a table: each item is a switch of that name (or `env:NAME` set to 1).

    A set of items that the table lacks has no entry, so the engine refuses it.
    """
    items = sorted({item for items in table for item in items})
    switches = [item for item in items if not item.startswith("env:")]
    document = {
        "schema": "triage.landscape/1",
        "name": name,
        "flags": [
            {"flag": "model-path", "aliases": ["model"], "neutral": True},
            {"flag": "host", "default": "127.0.0.1", "neutral": True},
            {"flag": "port", "kind": "int", "default": 30000, "neutral": True},
            {"flag": "tp-size", "aliases": ["tp"], "kind": "int", "default": 1},
            *({"flag": switch, "kind": "switch"} for switch in switches),
        ],
        "fixed": {"tp-size": tp_size},
        "items": {item: "1" if item.startswith("env:") else True for item in items},
        "seconds": dict(DEFAULT_SECONDS if seconds is None else seconds),
        "entries": [
            {
                "when": sorted(when),
                "provenance": provenance,
                "source": "a table",
                **ending.model_dump(mode="json", exclude_defaults=True),
            }
            for when, ending in table.items()
        ],
    }
    # JSON is YAML but for text outside of ASCII: YAML has no surrogate pairs.
    text = json.dumps(document, indent=1, ensure_ascii=False)
    text = re.sub(r"[^\n -~]", lambda char: f"\\U{ord(char[0]):08X}", text)
    path.write_text(text + "\n", encoding="utf-8")


def as_value(setting: Setting) -> Value:
    """A YAML value as the command line gives it: numbers become text."""
    if isinstance(setting, tuple):
        return tuple(str(part) for part in setting)
    return setting if isinstance(setting, bool) else str(setting)


def _present(name: str, flags: Mapping[str, Value], env: Mapping[str, str]) -> Value | None:
    return env.get(name[4:]) if name.startswith("env:") else flags.get(name)


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"more than one {what} {name}")
