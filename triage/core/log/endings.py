"""Lines about the end of a launch that never say why it ended.

In:  the text of a line. Out: what sort of ending it is part of.
Not: reasons; those are causes (signatures.py) and exceptions (tracebacks.py).

Source: the launcher, watchdogs and shutdown paths of SGLang 0.5.23; messages of
torch.distributed, gloo and NVSHMEM on ranks that lost a peer.
"""

from __future__ import annotations

import re
from enum import Enum


class Ending(Enum):
    """What a line of an ending is."""

    DEATH = "death"  # the launcher notices that a child died
    SURVIVOR = "survivor"  # a rank notices that another is gone
    TEARDOWN = "teardown"  # the shutdown itself
    STOP = "stop"  # somebody asked the server to stop
    FATAL = "fatal"  # the process cannot go on, and the line says why
    ADVICE = "advice"  # general advice after an error


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_DEATH = _any(
    r"Received sigquit from a child proces",
    r"SIGQUIT received\. signum",
    r"Rank \d+ scheduler (?:died during initialization|is dead)",
    r"Subprocess \w+ \(pid=\d+\) crashed with exit code",
    r"Initialization failed\. (?:Please see the error messages above|controller_init_state)",
    r"EngineCore failed to start|WorkerProc failed to start|WorkerProc initialization failed",
    r"Engine core initialization failed",
)
_SURVIVOR = _any(
    r"gloo/transport/\w+/pair\.cc:\d+\]? *(?:Connection closed by peer|.*Connection reset by peer)",
    r"gloo/\S*unbound_buffer\.cc:\d+\]? *Timed out waiting",
    r"[Ww]atchdog timeout \(self\.watchdog_timeout=",
    r"\[PG ID \d+ .*(?:detected by watchdog|Process group watchdog thread terminated)",
    r"Process group watchdog thread terminated|Some NCCL operations have failed or timed out",
    r"TP rank \d+ could finish the model loading, but there are other ranks",
    r"NVSHMEM API called before NVSHMEM initialization|connect EPS failed",
    r"operation failed due to a previous error during capture|StreamCaptureInvalidated",
    r"NCCL.*remote process exited or there was a network error|ncclRemoteError",
    r"(?:recvValue|sendBytes|TCPStore).*(?:Broken pipe|Connection (?:reset|was likely closed))",
)
_TEARDOWN = _any(
    r"kill_process_tree called",
    r"Sleeping \d+ seconds before crash diagnostics",
    r"[Pp]yspy (?:failed|dump)|pyspy dump attempts failed",
    r"CUDA (?:user-triggered )?coredump|GPU core dump failed",
    r"Dumping requests before crash",
    r"destroy_process_group\(\) was not called",
    r"resource_tracker: There appear to be",
    r"INFO:     (?:Shutting down|Waiting for application shutdown|Application shutdown complete"
    r"|Finished server process)",
    r"Gracefully exiting",
)
_STOP = _any(r"SIGTERM received\.", r"SIGINT received", r"Draining requests and shutting down")
# A command line that argparse refuses; compilers write "name: error: ..." too.
_REFUSED = _any(
    r"^(?:[\w./-]{1,80}\.py|(?:sglang|vllm)(?: [\w-]+)?): error: ",
    r"^[\w./ -]{1,80}: error: (?:unrecognized arguments|ambiguous option|argument -"
    r"|the following arguments are)",
)
# The interpreter finds no engine to run, and ends. Scripts go on without other modules.
_NO_PROGRAM = re.compile(
    r"^[^ ]*python[\d.]*: (?:Error while finding module specification for|No module named)"
    r" '?(?:sglang|vllm)\b"
)
_FATAL = _any(
    _REFUSED.pattern,
    _NO_PROGRAM.pattern,
    r"\[Errno 98\] error while attempting to bind",
    r"^Fatal Python error: ",
    r"^terminate called after throwing",
    r"^Segmentation fault|^Bus error",
    r"nvidia-container-cli: .*error",
)
_ADVICE = _any(r"^Possible (?:solutions|suggestions):", r"common cause is the OS OOM killer")
BIND = "error while attempting to bind"

LITERALS = frozenset(
    (
        "sigquit from", "SIGQUIT received", "scheduler died", "scheduler is dead", "crashed with",
        "Initialization failed", "failed to start", "initialization failed", "pair.cc", "buffer.cc",
        "atchdog", "could finish the model", "NVSHMEM", "connect EPS", "previous error during",
        "CaptureInvalidated", "NCCL operations", "remote process exited", "ncclRemote", "TCPStore",
        "recvValue", "sendBytes", "kill_process_tree", "crash diagnostics", "yspy", "coredump",
        "core dump", "before crash", "destroy_process_group", "resource_tracker", "Shutting down",
        "shutdown", "Finished server", "Gracefully", "SIGTERM", "SIGINT", "error: ", "[Errno 98]",
        "Fatal Python", "terminate called", "Segmentation fault", "Bus error", "container-cli",
        "Possible s", "OOM killer", "No module named", "module specification",
    )
)  # fmt: skip
_ORDER = (
    (Ending.DEATH, _DEATH),
    (Ending.FATAL, _FATAL),
    (Ending.STOP, _STOP),
    (Ending.SURVIVOR, _SURVIVOR),
    (Ending.TEARDOWN, _TEARDOWN),
    (Ending.ADVICE, _ADVICE),
)

# Heads of exceptions after which the process ends for certain.
FATAL_HEADS = _any(
    r"hit an exception",
    r"Initialization failed",
    r"Exception in run_tp_server",
    r"init[_ ]state",
    r"^Process \S+:$",
    r"failed to start",
)
# Exceptions by which a process obeys a signal.
STOPPED_BY = frozenset(("KeyboardInterrupt", "SystemExit", "CancelledError"))
_COMMUNICATION = re.compile(
    r"gloo|nccl|ProcessGroup|TCPStore|socket|peer\b|Broken pipe|timed? ?out|barrier|watchdog"
    r"|rendezvous|ConnectionRe|connection was",
    re.IGNORECASE,
)


def ending(text: str) -> Ending | None:
    """What sort of ending the line is part of, or None."""
    return next((kind for kind, pattern in _ORDER if pattern.search(text)), None)


def is_refused(text: str) -> bool:
    """Whether the line is argparse's refusal of a command line."""
    return _REFUSED.search(text) is not None


def is_no_program(text: str) -> bool:
    """Whether the line is the interpreter's: there is no engine to run."""
    return _NO_PROGRAM.search(text) is not None


def is_communication(text: str) -> bool:
    """Whether an error could come from another rank: a broken connection, a time-out."""
    return _COMMUNICATION.search(text) is not None
