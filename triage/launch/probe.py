"""Run a probe with another Python, and end everything of it.

In:  the Python, the probe's name and arguments, limits. Out: Ran: output and how it ended.
Not: reading the output (triage.core.probes), or what the probes do (triage.probes).

The same guard as for a server stands between triage and the probe: whatever the probe
starts is ended with it, also when triage is killed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.core.launch import LaunchSpec
from triage.launch.process import ProcessTarget

SCRIPTS = Path(__file__).parents[1] / "probes"
START_S = 60.0  # importing torch from a cold disk
SLACK_S = 10.0  # beyond an experiment's own limit
_MARK = b"triage-probe "
_MOST = 4 << 20  # bytes of output that are kept
# The probes as a package of their own: the Python that runs them need not have triage.
_MAIN = """\
import sys
sys.path[:] = [place for place in sys.path if place]  # not the folder that it happens to run in
import importlib.util
folder, *words = sys.argv[1:]
made = importlib.util.spec_from_file_location(
    'triage_probes', folder + '/__init__.py', submodule_search_locations=[folder])
module = importlib.util.module_from_spec(made)
sys.modules['triage_probes'] = module
made.loader.exec_module(module)
from triage_probes.main import main
sys.exit(main(words))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a probe's process left. `by` says who took it from us; `silent`: we ended it."""

    output: bytes
    exit_code: int | None
    by: str
    silent: bool
    seconds: float


def run_probe(
    python: str,
    name: str,
    *,
    device: str,
    limit_s: float,
    arguments: Mapping[str, Any],
    start_s: float = START_S,
    on_line: Callable[[bytes], None] | None = None,
) -> Ran:
    """Run one probe and return when nothing of it is left.

    Args:
        python: The interpreter, that of the engine.
        name: The probe.
        device: auto, cpu or cuda.
        limit_s: Seconds of one experiment.
        arguments: What the probe takes beside.
        start_s: Seconds until its first event.
        on_line: Told of each event as it comes.

    Raises:
        UsageError: There is no such interpreter.
        HostError: It cannot be started.
    """
    words = (str(SCRIPTS), name, device, repr(limit_s), json.dumps(dict(arguments)))
    target = ProcessTarget(LaunchSpec(argv=(python, "-u", "-c", _MAIN, *words), port=0))
    started = time.monotonic()
    output, silent, partial = b"", False, b""
    try:
        target.start()
        deadline = started + start_s
        while True:
            chunk = target.logs(0.2)
            if chunk:
                output = (output + chunk)[-_MOST:]
                *lines, partial = (partial + chunk).split(b"\n")
                events = [line for line in lines if line.startswith(_MARK)]
                if events:
                    deadline = time.monotonic() + limit_s + SLACK_S
                for line in events if on_line else ():
                    on_line(line)  # type: ignore[misc]
            if target.poll() is not None and not chunk:
                break
            if time.monotonic() > deadline:
                silent = True
                break
        ended = target.poll()
    finally:
        target.close()
    return Ran(
        output=output,
        exit_code=ended.exit_code if ended else None,
        by=ended.by if ended else "",
        silent=silent,
        seconds=time.monotonic() - started,
    )
