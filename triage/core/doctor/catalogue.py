"""All checks, in the order of a report; which of them a search makes before its first launch.

In:  the modules of checks. Out: CHECKS, BEFORE_A_SEARCH, `told_by`.
Not: making them (checks.py).
"""

from __future__ import annotations

from triage.core.doctor import (
    backend_checks,
    container_checks,
    draft_checks,
    file_checks,
    gpu_checks,
    host_checks,
    link_checks,
    model_checks,
    package_checks,
    tool_checks,
)
from triage.core.doctor.checks import Check

CHECKS: tuple[Check, ...] = (
    *gpu_checks.CHECKS,
    *link_checks.CHECKS,
    *package_checks.CHECKS,
    *tool_checks.CHECKS,
    *host_checks.CHECKS,
    *container_checks.CHECKS,
    *file_checks.CHECKS,
    *model_checks.CHECKS,
    *backend_checks.CHECKS,
    *draft_checks.CHECKS,
)

# Whether these flags can start is what a search is for; a search has ports of its own.
_ASKED_BY_LAUNCHING = frozenset({"flags", "ports", "cache-fleeting"})
BEFORE_A_SEARCH: tuple[Check, ...] = tuple(c for c in CHECKS if c.id not in _ASKED_BY_LAUNCHING)


def told_by(cause: str) -> tuple[str, ...]:
    """The checks that would have found before a launch what this cause comes from."""
    return tuple(check.id for check in CHECKS if cause in check.prevents)
