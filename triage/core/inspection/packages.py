"""Packages that do not fit the engine, or one another.

In:  an installed engine with the packages beside it, a configuration. Out: findings.
Not: reading the packages (triage.installed.environment).
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.config import Config
from triage.core.inspection.facts import Finding, Installed, Wanted
from triage.core.regex import regex

# These are built together: a kernel cache of another version is not found, or does not load.
FAMILY = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")
_NUMBERS = regex(r"\d+")
_NEEDS = {"flashinfer-python": ("attention-backend", "prefill-attention-backend",
                                "decode-attention-backend", "sampling-backend")}  # fmt: skip


def differing_packages(installed: Installed, config: Config) -> Iterator[Finding]:
    """FlashInfer's packages in different versions, and versions that the engine refuses."""
    have = {name: installed.packages[name] for name in FAMILY if name in installed.packages}
    if len({_public(version) for version in have.values()}) > 1:
        yield Finding(
            check="package",
            say="the packages of FlashInfer differ: "
            + ", ".join(f"{name} {version}" for name, version in have.items()),
            where=tuple(f"package {name}" for name in have),
        )
    for wanted in installed.wanted:
        if (finding := _unmet(wanted, installed, config)) is not None:
            yield finding


def _unmet(wanted: Wanted, installed: Installed, config: Config) -> Finding | None:
    have = installed.packages.get(wanted.package)
    flags = tuple(
        flag for flag in _NEEDS.get(wanted.package, ()) if config.get(flag) == "flashinfer"
    )
    word = "exactly" if wanted.exact else "at least"
    if have is None:
        if not flags:
            return None  # not needed by anything that was asked for
        return Finding(
            check="package",
            say=f"{wanted.package} is not installed, and the configuration asks for it",
            where=(str(wanted.at), f"package {wanted.package}"),
            flags=flags,
        )
    enough = _key(have) >= _key(wanted.version)
    if _public(have) == wanted.version if wanted.exact else enough:
        return None
    return Finding(
        check="package",
        say=f"{wanted.package} is {have}, and the engine asks for {word} {wanted.version}",
        where=(str(wanted.at), f"package {wanted.package}"),
        flags=flags,
        sure=not wanted.exact,  # what a package's metadata wishes is not checked at the start
    )


def _public(version: str) -> str:
    """The version without what a build appended (`0.7.2+cu130`)."""
    return version.partition("+")[0]


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in _NUMBERS.findall(_public(version).partition("rc")[0])[:4])
