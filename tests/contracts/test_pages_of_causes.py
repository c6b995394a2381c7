"""docs/causes is what the knowledge base says now, and leads nowhere that is not there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/causes"


def test_the_pages_are_those_that_the_knowledge_makes(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "tools/make_pages.py", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    made = {path.name: path.read_text() for path in tmp_path.glob("*.md")}
    stored = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    assert sorted(stored) == sorted(made), "make knowledge"
    old = [name for name, text in made.items() if stored[name] != text]
    assert old == [], "make knowledge"


def test_links_of_the_pages_lead_to_pages() -> None:
    links = {
        (path.name, target)
        for path in FOLDER.glob("*.md")
        for target in re.findall(r"\]\(([^)]+\.md)\)", path.read_text())
    }
    assert len(links) > len(list(FOLDER.glob("*.md")))
    assert [link for link in links if not (FOLDER / link[1]).is_file()] == []


def test_every_cause_has_a_page_under_its_id() -> None:
    causes = {path.stem for path in (ROOT / "triage/knowledge/causes").glob("*.yaml")}
    assert {path.stem for path in FOLDER.glob("*.md")} - {"README"} == causes
