"""Requirement lines of packages, held against what is installed.

In:  a Package and all packages. Out: what is not met.
Not: extras, URLs, and markers that name more than platform and Python version: passed over.

Source: PEP 440 and PEP 508, as far as the engine's packages use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.machine.packages import Package, release
from triage.core.records import dataclass
from triage.core.regex import regex

#   example  torch==2.9.1 ; sys_platform == "linux"
_LINE = regex(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?$")
#   example  >=0.20.0
_CLAUSE = regex(r"(==|>=|<=|~=|!=|<|>)\s*([0-9][^,\s]*)")
#   example  python_version < "3.15"
_PYTHON = regex(r"python_version\s*(<=|>=|<|>|==)\s*[\"']([0-9.]+)[\"']")

_EXTRA = regex(r"extra\s*==\s*[\"']([\w-]+)[\"']")
# Before 0.5.4 SGLang kept what its server needs in extras.
SERVER_EXTRAS = ("srt", "runtime_common", "runtime-common")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A requirement that the installed version does not meet."""

    name: str
    requirement: str
    installed: str


def broken(
    owner: Package, packages: Mapping[str, tuple[Package, ...]], python: tuple[int, ...]
) -> tuple[Unmet, ...]:
    """The requirements of `owner` that an installed package breaks; absent packages are no breach.

    What is absent shows at once and by its name; a wrong version shows late and by another.
    """
    found = []
    for line in owner.requires:
        parsed = _LINE.match(line)
        if parsed is None or not _applies(parsed.group(3) or "", python):
            continue
        name = parsed.group(1).lower().replace("_", "-").replace(".", "-")
        clauses = _CLAUSE.findall(parsed.group(2))
        for package in packages.get(name, ())[:1]:
            if not all(_meets(package.version, sign, wanted) for sign, wanted in clauses):
                asked = ",".join(sign + wanted for sign, wanted in clauses)
                found.append(Unmet(name=name, requirement=name + asked, installed=package.version))
    return tuple(dict.fromkeys(found))


def _applies(marker: str, python: tuple[int, ...]) -> bool:
    """Whether a marker holds on Linux with this Python; unknown variables make it not hold."""
    extras = _EXTRA.findall(marker)
    if "extra" in marker and not (len(extras) == 1 and extras[0] in SERVER_EXTRAS):
        return False
    for sign, wanted in _PYTHON.findall(marker):
        if not _compare(python[:2], sign, release(wanted)):
            return False
    lowered = marker.lower()
    if "sys_platform" in lowered or "platform_system" in lowered:
        return "linux" in lowered and "!=" not in lowered and "aarch64" not in lowered
    return True


def _meets(installed: str, sign: str, wanted: str) -> bool:
    """Whether a version meets one clause; a local part (+cu130) counts only if it is asked for."""
    mine = installed if "+" in wanted else installed.split("+", maxsplit=1)[0]
    if sign in ("==", "!="):
        if wanted.endswith(".*"):
            prefix = release(wanted)
            same = release(mine)[: len(prefix)] == prefix
        else:
            same = mine == wanted or (
                _plain(mine) and _plain(wanted) and _equal(release(mine), release(wanted))
            )
        return same == (sign == "==")
    if sign == "~=":
        floor = release(wanted)
        here = release(mine) + (0,) * len(floor)
        return _compare(release(mine), ">=", floor) and here[: len(floor) - 1] == floor[:-1]
    return _compare(release(mine), sign, release(wanted))


def _plain(version: str) -> bool:
    """Whether a version is nothing but numbers."""
    return version.replace(".", "").isdigit()


def _equal(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """2.9 and 2.9.0 are one version."""
    width = max(len(one), len(other))
    return one + (0,) * (width - len(one)) == other + (0,) * (width - len(other))


def _compare(mine: tuple[int, ...], sign: str, wanted: tuple[int, ...]) -> bool:
    width = max(len(mine), len(wanted))
    one, other = (v + (0,) * (width - len(v)) for v in (mine, wanted))
    match sign:
        case ">=":
            return one >= other
        case "<=":
            return one <= other
        case ">":
            return one > other
        case "<":
            return one < other
        case _:
            return one == other
