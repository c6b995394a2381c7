"""docs/doctor.md is what the checks and the reports make of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from triage.core.doctor.catalogue import CHECKS

ROOT = Path(__file__).parents[2]


def made() -> str:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import make_doctor_page
    finally:
        sys.path.pop(0)
    return make_doctor_page.page()


def test_the_page_is_current() -> None:
    assert (ROOT / "docs/doctor.md").read_text() == made(), "run tools/make_doctor_page.py"


def test_the_page_has_every_check_and_more_than_sixty_reports() -> None:
    page = made()
    assert all(f"`{check.id}`" in page for check in CHECKS)
    rows = re.findall(r"^\| \[[\w./-]+#\d+\]\((https://\S+)\) \|.*\| shown \|$", page, re.M)
    assert len(set(rows)) >= 60
