"""A checkpoint folder as values: its config, its files, what is wrong with them.

In:  nothing. Out: Model, WeightFile, Hub.
Not: reading them (triage.machine.checkpoint, hub).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.core.machine.facts import Fact
from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """A file with weights; `fault` says in which way it is broken, "" if it is not."""

    name: str
    size: int
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A checkpoint. `name` is the path or the hub id as it was given.

    `broken_json` maps a file to what is wrong with it; `missing` are files that the
    index names and the folder lacks.
    """

    name: str
    folder: str
    config: Fact[Mapping[str, object]]
    broken_json: Mapping[str, str]
    weights: tuple[WeightFile, ...]
    missing: tuple[str, ...]

    @property
    def weight_mib(self) -> int:
        """MiB of all weight files together."""
        return sum(file.size for file in self.weights) >> 20

    def text_config(self) -> Mapping[str, object]:
        """The part of the config about the language model; the config itself in most models."""
        config = self.config if isinstance(self.config, Mapping) else {}
        for key in ("text_config", "llm_config", "language_config", "thinker_config"):
            inner = config.get(key)
            if isinstance(inner, Mapping):
                return inner
        return config

    def number(self, *names: str) -> int | None:
        """The first of these keys that holds a whole number, in the text part or at the top."""
        whole = self.config if isinstance(self.config, Mapping) else {}
        for where in (self.text_config(), whole):
            for name in names:
                value = where.get(name)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return None

    def text(self, name: str) -> str:
        """A text of the config, or ""."""
        whole = self.config if isinstance(self.config, Mapping) else {}
        for where in (whole, self.text_config()):
            value = where.get(name)
            if isinstance(value, str):
                return value
        return ""

    def architectures(self) -> tuple[str, ...]:
        """The class names that the config asks for."""
        whole = self.config if isinstance(self.config, Mapping) else {}
        named = whole.get("architectures")
        return (
            tuple(str(n) for n in named)
            if isinstance(named, Sequence) and not isinstance(named, str)
            else ()
        )

    def quantization(self) -> Mapping[str, object]:
        """The quantisation part of the config; empty if there is none."""
        whole = self.config if isinstance(self.config, Mapping) else {}
        for where in (whole, self.text_config()):
            for key in ("quantization_config", "compression_config"):
                found = where.get(key)
                if isinstance(found, Mapping):
                    return found
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A model that is named by its hub id. `answer` is the hub's HTTP status, where it was asked.

    `complete` says whether the local cache has all files that its index names.
    """

    name: str
    cached: bool
    complete: bool
    offline: bool
    token: bool
    answer: Fact[int]
