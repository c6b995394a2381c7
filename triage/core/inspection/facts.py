"""What is known of an installed engine and of a model, and what an inspection found.

In:  nothing. Out: Installed, Model, Finding, Inspection.
Not: reading them (triage.installed) or judging (checks.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from triage.core.records import dataclass

Check = Literal[
    "moe-pair", "moe-quantization", "speculative-algorithm", "plugin", "package", "divisibility",
]  # fmt: skip
CHECKS: tuple[Check, ...] = (
    "moe-pair", "moe-quantization", "speculative-algorithm", "plugin", "package", "divisibility",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class At:
    """A place in a source file, relative to the engine's package root or absolute."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeSupport:
    """Which MoE runners the engine's source registers for which all-to-all backends.

    `fused` holds (backend, runner), `pre` (dispatch format, runner), `post` (runner, format):
    each where it is registered. `formats` says what a backend dispatches. `coreless`
    runners have nothing but fused functions. `schemes` holds, by source file of a
    quantisation, the runners that it makes; None where it chooses one at run time.
    """

    fused: Mapping[tuple[str, str], At] = field(default_factory=dict)
    pre: Mapping[tuple[str, str], At] = field(default_factory=dict)
    post: Mapping[tuple[str, str], At] = field(default_factory=dict)
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coreless: Mapping[str, At] = field(default_factory=dict)
    known: frozenset[str] = frozenset()  # runners that the engine has a branch for
    schemes: Mapping[str, tuple[tuple[str, At], ...] | None] = field(default_factory=dict)

    def works(self, backend: str, runner: str) -> bool:
        """Whether something is registered for the pair."""
        if (backend, runner) in self.fused:
            return True
        return runner not in self.coreless and any(
            (form, runner) in self.pre and (runner, form) in self.post
            for form in self.formats.get(backend, ())
        )

    def runners(self, backend: str) -> tuple[str, ...]:
        """The runners that the backend has, by name."""
        named = {runner for _, runner in (*self.fused, *self.pre)}
        return tuple(sorted(runner for runner in named if self.works(backend, runner)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An entry point that the engine loads at its start, and what is wrong with it, if anything.

    `algorithms` are the speculative algorithms that its source registers.
    """

    group: str
    name: str
    value: str
    package: str
    trouble: str = ""
    at: At | None = None
    algorithms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A package that the engine asks for: at least this version, or exactly this one."""

    package: str
    version: str
    exact: bool
    at: At


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One engine as it is installed, read without running it.

    `root` is the folder of its source; "" where none was found, and then `why` says why.
    `packages` are the distributions beside it: name in canonical form -> version.
    `unread` holds checks for which the source does not look as expected.
    """

    python: str = ""
    root: str = ""
    version: str = ""
    why: str = ""
    moe: MoeSupport = MoeSupport()
    algorithms: Mapping[str, At] = field(default_factory=dict)
    plugins: tuple[Plugin, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[Wanted, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The numbers of a model's config.json by key, those of its text part first; `why` not."""

    path: str = ""
    file: str = ""
    why: str = ""
    architecture: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    prefix: str = ""  # of the keys in the file: "text_config." or ""

    def number(self, *names: str) -> tuple[int, str]:
        """The first of these keys that holds a number above 0, and its name; 0 and "" if none."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value, f"{self.prefix}{name}"
        return 0, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that cannot work, with the place or key that says so.

    `where` are places in the engine's source, keys of config.json, packages. `flags` are
    those of the configuration that it is about. `sure` is false where the engine may take
    another way at run time.
    """

    check: Check
    say: str
    where: tuple[str, ...]
    flags: tuple[str, ...] = ()
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was looked at, what was found, and what could not be looked at (check -> why)."""

    installed: Installed
    model: Model
    findings: tuple[Finding, ...] = ()
    open: tuple[tuple[Check, str], ...] = ()
