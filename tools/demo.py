"""The founding case, end to end, on the simulated engine: `make demo`.

Runs the commands that an engineer would type, one after the other, and fails if
one of them does not end as it should.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECIPE = "recipes/kimi-k2.6-b300.yaml"
SPEED = "200"  # 165 s of weight loading become less than one


def main() -> int:
    """Bisect, recommend, confirm and write the runbook; the exit code of the first that fails."""
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    session = Path(".triage") / f"{stamp}-demo"
    triage = str(Path(sys.executable).with_name("triage"))
    started = time.monotonic()
    for words in (
        ["bisect", RECIPE, "--engine", "replay", "--speed", SPEED, "--session", str(session)],
        ["confirm", str(session)],
        ["runbook", str(session)],
    ):
        print(f"\n$ triage {shlex.join(words)}", flush=True)
        code = subprocess.run([triage, *words], cwd=ROOT, check=False).returncode
        if code:
            print(f"triage {words[0]} ended with exit code {code}", file=sys.stderr)
            return code
    confirmation = json.loads((ROOT / session / "confirmation.json").read_text())
    print(f"\nThe whole took {time.monotonic() - started:.0f} s, simulated at {SPEED} times life.")
    print(f"The runbook: {session / 'runbook.html'} (for a browser), {session / 'runbook.md'}")
    return 0 if confirmation["confirmed"] else 12


if __name__ == "__main__":
    sys.exit(main())
