"""The table of real failures that triage mended from their logs, as Markdown.

In:  rows that the tests of `make e2e-full` wrote (JSON lines; the last of a name counts).
Out: a page, with the date and the commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HEAD = """# Real failures, mended from their logs

Written by `make e2e-full`, {date}, commit {commit}. Rows of earlier sittings are kept. Do not edit.

SGLang 0.5.23 on two CPU cores without a GPU, tiny models with random weights, other work on the
machine. Each launch fails, its log goes to `triage confirm --from-log`, and nobody types anything
further. Attempts are full confirmations; a reason follows each that was refused.

| failure | cause named | attempts | starts | seconds |
|---|---|---|---|---|
"""


def line(row: dict[str, Any]) -> str:
    """One failure."""
    tried = "; ".join(
        f"`{changes}`{f' ({_short(reason)})' if reason else ''}"
        for changes, reason in row["attempts"]
    )
    count = row["count"] or {"up": 0, "starts": 0}
    ended = f"{count['up']}/{count['starts']}" if row["works"] else "**none works**"
    cells = (row["what"], row["cause"] or "unknown", tried or "none", ended, str(row["seconds"]))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _short(reason: str) -> str:
    text = reason.removeprefix("the launch failed this time ").strip("()")
    return text if len(text) <= 90 else f"{text[:88]}.."


def main(rows: Path, page: Path) -> None:
    """Write the page."""
    found = [json.loads(text) for text in rows.read_text(encoding="utf-8").splitlines()]
    every = {row["name"]: row for row in found}
    last = {name: row for name, row in every.items() if "said" not in row}
    others = [row for row in every.values() if "said" in row]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    head = HEAD.format(date=datetime.now(UTC).date().isoformat(), commit=commit or "unknown")
    works = sum(row["works"] for row in last.values())
    end = f"\n{works} of {len(last)} ended in a server that answered.\n"
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/e2e"))
    from mended import FAILURES  # noqa: PLC0415  the tests' own list

    if missing := [failure.what for name, failure in FAILURES.items() if name not in last]:
        end += f"\nNot played as they now stand: {'; '.join(missing)}.\n"
    if others:
        end += "\n| also played | came out as |\n|---|---|\n"
        end += "".join(f"| {row['what']} | {row['said']} |\n" for row in others)
    page.write_text(head + "\n".join(map(line, last.values())) + "\n" + end, encoding="utf-8")
    print(page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:]))
