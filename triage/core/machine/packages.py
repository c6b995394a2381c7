"""What the engine's Python has installed, and the tools it compiles with, as values.

In:  nothing. Out: Environment, Package, Library, Tools, Tool; `release` for version numbers.
Not: reading them (triage.machine.environment, elf, tools).
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.machine.facts import Fact
from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One installed distribution; the name in lower case with dashes.

    `requires` are the requirement lines of its metadata, read for the few packages
    whose agreement matters.
    """

    name: str
    version: str
    folder: str
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A compiled module of a kernel package, and what of its needs is not there.

    `missing` are libraries that no place of this environment has, `undefined` symbols
    of torch that the installed torch does not define, `glibc` the newest version of the
    C library that it asks for.
    """

    path: str
    package: str
    missing: tuple[str, ...]
    undefined: tuple[str, ...]
    glibc: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One Python installation. `torch_cuda` is the CUDA that torch was built for, "" for none.

    `architectures` are the model classes that the engine defines, `model_types` the
    types that the installed transformers and the engine know. `system_libraries` are
    libraries of the system that packages may bring a second time.
    """

    python: str
    version: tuple[int, ...]
    packages: Mapping[str, tuple[Package, ...]]
    torch_cuda: Fact[str]
    libraries: Fact[tuple[Library, ...]]
    architectures: Fact[frozenset[str]]
    model_types: Fact[frozenset[str]]
    headers: Fact[bool]
    system_libraries: tuple[str, ...] = ()

    def version_of(self, *names: str) -> str:
        """The version of the first of these packages that is installed, or ""."""
        for name in names:
            if self.packages.get(name):
                return self.packages[name][0].version
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that a kernel is compiled with, and its version as numbers."""

    path: str
    release: Fact[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tool chain of compilation at run time. `cuda_home` is the variable as it is set."""

    cuda_home: str
    cuda_home_exists: bool
    toolkit: str
    nvcc: Fact[Tool]
    ptxas: Fact[Tool]
    compiler: Fact[Tool]
    ninja: Fact[Tool]
    cuobjdump: Fact[Tool]
    cuda_headers: Fact[bool]


def release(text: str) -> tuple[int, ...]:
    """The numbers a version begins with: 2.9.1+cu130 -> (2, 9, 1); () if it has none."""
    numbers = []
    for part in text.strip().lstrip("v").split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:  # 0rc1: what follows is no number of the release
            break
    return tuple(numbers)
