"""Write the knowledge base as pages: docs/causes, a page a cause and an index by phase.

    .venv/bin/python tools/make_pages.py [FOLDER]

A page of a cause that is no more is removed. A test fails where a page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

from triage.knowledge import load_causes
from triage.session.handbook import handbook

FOLDER = Path(__file__).parents[1] / "docs/causes"


def pages() -> dict[str, str]:
    """File name -> content, of triage's own causes; the user's folders have no page here."""
    return dict(handbook(tuple(sorted(load_causes(), key=lambda c: c.id)), html=False))


def main(folder: Path = FOLDER) -> None:
    """Write every page; remove those of causes that are gone."""
    made = pages()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    for file in folder.glob("*.md"):
        if file.name not in made:
            file.unlink()
    print(f"{folder}: {len(made)} pages")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:]))
