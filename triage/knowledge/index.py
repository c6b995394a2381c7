"""Write what the package ships as JSON: `python -m triage.knowledge.index`.

In:  triage/knowledge/causes/*.yaml and flags/*.yaml.
Out: triage/knowledge/index.json, flags.json and, from a checkout's cases, seen.json.
Not: checking the causes (check.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

from triage.core.log.gather import FIXED
from triage.errors import TriageError
from triage.knowledge.loader import flag_documents, load_causes_from, successors
from triage.knowledge.seen import write_seen
from triage.knowledge.written import CAUSES, FLAGS, INDEX, encode, encode_flags

CASES = Path(__file__).parents[2] / "fixtures/cases"  # of a checkout; an install has none


def _write(path: Path, text: str) -> None:
    """By rename: who has the old file open reads parts of it later."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def main() -> int:
    """Write the files; say what is wrong with one that cannot be read."""
    try:
        causes, flags = load_causes_from(CAUSES), flag_documents()
        old = successors()
    except TriageError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    _write(INDEX, encode(causes, FIXED))
    _write(FLAGS, encode_flags(flags, old))
    if CASES.is_dir():
        write_seen(CASES)
    sys.stderr.write(f"{len(causes)} causes, {len(flags)} flag tables\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
