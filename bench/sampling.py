"""What reading eight GPUs five times a second costs, by the real pynvml over the stand-in library.

In:  seconds. Out: Sampled, None where no C compiler is. Not: a real driver, whose calls cost more
or less: the recorder reads less often where they take more than 0.8 % of a core.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "tests/parts/nvml/fake_nvml.c"
_READ = """
import json, sys, time
from pathlib import Path
from triage.machine.recorder import Recorder
made = Recorder(Path(sys.argv[1]), lambda: "weight-load")
made.begin(); time.sleep(float(sys.argv[2])); made.end()
print(json.dumps([made.share, made.readings, Path(sys.argv[1]).stat().st_size]))
"""


class Sampled(NamedTuple):
    """The share of one core, how often all GPUs were read, and the size of the file."""

    share: float
    readings: int
    size: int


def sample(seconds: float) -> Sampled | None:
    """Read for so long in a process of its own."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as name:
        folder = Path(name)
        library = folder / "libnvidia-ml.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
        done = subprocess.run(
            [sys.executable, "-c", _READ, str(folder / "gpus.jsonl"), str(seconds)],
            capture_output=True, text=True, check=True,
            env={**os.environ, "LD_LIBRARY_PATH": name},
        )  # fmt: skip
    return Sampled(*json.loads(done.stdout))
