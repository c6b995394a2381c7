"""Write the index of the package's causes: `python -m triage.knowledge.index`.

In:  triage/knowledge/causes/*.yaml. Out: triage/knowledge/index.json.
Not: checking the causes (check.py).
"""

from __future__ import annotations

import sys

from triage.errors import TriageError
from triage.knowledge.loader import load_causes_from
from triage.knowledge.stored import CAUSES, INDEX, encode


def main() -> int:
    """Write the index; say what is wrong with a file that cannot be read."""
    try:
        causes = load_causes_from(CAUSES)
    except TriageError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    INDEX.write_text(encode(causes), encoding="utf-8")
    sys.stderr.write(f"{INDEX}: {len(causes)} causes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
