"""Launch a command once, as typed, and say what happened.

In:  the words of a server command. Out: Once: its capture and diagnosis.
Not: searching (investigate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.command import read_argv
from triage.core.diagnosis import Diagnosis
from triage.core.launch import Capture, Hung, LaunchSpec, Patience
from triage.errors import UsageError
from triage.launch import free_port, launch
from triage.session.logs import causes, classify, flag_table
from triage.store import SessionFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """One launch and what it showed."""

    capture: Capture
    diagnosis: Diagnosis


def run_once(
    words: Sequence[str],
    folder: Path | None,
    *,
    silent_s: float,
    total_s: float,
    say: Callable[[str], None],
) -> Once:
    """Launch `words`, on the port they name or on a free one, and classify the log.

    Raises:
        UsageError: the program does not exist.
        HostError: the port is taken, the disk is full.
    """
    from triage.core.live import Live

    argv, port = tuple(words), 0
    try:
        command = read_argv(words, flag_table())
    except UsageError:
        # A script of the user's own: nothing can be added to it, so its port is
        # found among the ports that its processes come to listen on.
        command = None
    if command is not None:
        named = command.config.get("port")
        port = int(named) if isinstance(named, str) and named.isdigit() else 0
    session = SessionFolder.create(
        folder, {"name": "run", "digest": "", "engine": "sglang", "simulated": False,
                 "replay": None, "sources": {}, "argv": list(argv)}
    )  # fmt: skip
    say(f"session: {session.path}")
    with free_port() as free:
        if command is not None and port == 0 and not command.wrapper:
            port = free
            argv = (*argv, "--port", str(free))
            say(f"port: {free} (none was given)")
        spec = LaunchSpec(
            argv=argv,
            cwd=str(Path.cwd()),
            port=port,
            patience=Patience(silent_s=silent_s, total_s=total_s),
        )
        capture = launch(spec, session.trial_folder(1), Live(causes()), on_event=say)
    if isinstance(capture.outcome, Hung):
        say(f"silent for {capture.outcome.silent_s:.0f} s; stacks: {capture.stacks or 'none'}")
    return Once(capture=capture, diagnosis=classify(capture.log, outcome=capture.outcome))
