"""Start a server once, prove that it answers, end it, and leave nothing of it behind.

In:  a LaunchSpec, a folder for the raw log, a Watcher that reads along.
Out: a Capture; on disk server.log, arrivals.jsonl, exit.json and, of a hung server, stacks.txt.
Not: naming causes (triage.core) or choosing what to launch (triage.session).

The guard, a process of its own, imports this package and must start in a few
milliseconds: so what only triage needs is imported where it is used.
"""

from __future__ import annotations

from triage.launch.server import Refused, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from triage.core.launch import Capture, LaunchSpec
    from triage.core.watch import Watcher

__all__ = ["Refused", "Server", "free_port", "launch", "signals_interrupt"]


def launch(
    spec: LaunchSpec,
    folder: Path,
    watcher: Watcher,
    *,
    while_ready: Callable[[Server], None] | None = None,
    on_event: Callable[[str], None] | None = None,
    stop_grace_s: float = 10.0,
    ended: Callable[[], bool] | None = None,
) -> Capture:
    """Launch once and return when nothing of the launch is left.

    Args:
        spec: The command; `spec.port` is where it will listen.
        folder: Where the log and its companions are written; made if absent.
        watcher: Fed with the log's bytes as they arrive.
        while_ready: Called once the server has answered a generation, in a thread of its own.
            An OSError of it (a broken connection, a timeout) is the server's failure if the
            server ends or falls silent; everything else is raised to the caller.
        on_event: Told in a few words what happens; never the server's output.
        stop_grace_s: Seconds that a ready server gets to end after SIGTERM.
        ended: Asked often; once it says so, the launch ends as by Ctrl-C. For launches in
            threads, which no signal reaches.

    Raises:
        UsageError: The program, or the folder to start it in, does not exist.
        HostError: The port is taken, the folder cannot be written, the disk is full.
        KeyboardInterrupt: Ctrl-C, or SIGTERM or SIGHUP to triage, once everything is ended.
    """
    from triage.launch.places import target_of
    from triage.launch.supervise import Graces, supervise

    return supervise(
        target_of(spec, folder),
        spec,
        folder,
        watcher,
        while_ready=while_ready,
        say=on_event or (lambda _: None),
        graces=Graces(stop_s=stop_grace_s),
        ended=ended or (lambda: False),
    )


def signals_interrupt() -> AbstractContextManager[None]:
    """SIGTERM and SIGHUP to the main thread act like Ctrl-C meanwhile."""
    from triage.launch.supervise import signals_interrupt as interrupt

    return interrupt()


def free_port(span: int = 250) -> AbstractContextManager[int]:
    """Hold a block of `span` ports that no other triage uses; gives its first port.

    Raises:
        HostError: No block is free.
    """
    from triage.launch.ports import reserve

    return reserve(span)
