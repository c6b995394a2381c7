"""Lines about the end of a launch: who notices it, who asked for it, who cannot go on.

In:  the text of a line. Out: what sort of ending it is part of.
Not: reasons; those are causes (signatures.py) and exceptions (tracebacks.py).

Source: the launcher, watchdogs and shutdown paths of SGLang 0.5.23; messages of
torch.distributed, gloo and NVSHMEM on ranks that lost a peer; the words by which bash,
systemd, Slurm, mpirun, Docker, Kubernetes, Ray and torchrun report that a process ended.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from triage.core.log import no_start
from triage.core.log.wordings import Wordings
from triage.core.regex import regex


class Ending(Enum):
    """What a line of an ending is."""

    DEATH = "death"  # the launcher notices that a child died
    SURVIVOR = "survivor"  # a rank notices that another is gone, or waits in vain for it
    TEARDOWN = "teardown"  # the shutdown itself
    STOP = "stop"  # somebody asked the server to stop
    SIGNALLED = "signalled"  # a process ended as it was told to: the server, or a helper beside it
    FATAL = "fatal"  # the process cannot go on, and the line says why
    ABORT = "abort"  # the process ends in native code: the reason may stand above
    TROUBLE = "trouble"  # a library's error; it may be the reason if nothing else is
    ADVICE = "advice"  # general advice after an error


# What a program says that does without a logger.
PLAIN = r"^\[?(?:error|ERROR|Error|fatal|FATAL|Fatal)\]?: "
_DEATH = Wordings(
    "Received sigquit from a child proces",
    "SIGQUIT received. signum",
    (r"Rank \d+ scheduler (?:died during initialization|is dead)", " scheduler "),
    (r"Subprocess \w+ \(pid=\d+\) crashed with exit code", ") crashed with exit code"),
    "Initialization failed. Please see the error messages above",
    "Initialization failed. controller_init_state",
    "EngineCore failed to start",
    "WorkerProc failed to start",
    "WorkerProc initialization failed",
    "Engine core initialization failed",
    "Engine process failed to start",
    (r"(?:Worker proc|EngineCore|Engine core proc)\S* .*died unexpectedly", "died unexpectedly"),
    (
        r"^Killed$|^(?:\S+: )?line \d+: +\d+ (?:Killed|Aborted)\b",
        " Aborted",
        "Killed",
    ),
    "Server process died",
    "Server process exited with code",
    "Server process terminated unexpectedly",
    "server process died",
    "server process exited with code",
    "server process terminated unexpectedly",
    (r"ActorDiedError|The actor (?:is dead|died) (?:because|unexpectedly)|SYSTEM_ERROR.*[Ww]orker",
     "ActorDiedError", "SYSTEM_ERROR", "The actor "),
    ".service: Failed with result",
    "Control process exited, code=",
    "Main process exited, code=",
    (
        r"^(?:srun|slurmstepd): error: (?!Detected |\*\*\* |Unable to |Task launch )"
        r".*(?:[Tt]ask|STEP|step)",
        ": error: ",
    ),
    "PRTE has lost",
    "mpirun has exited due to process",
    "mpirun noticed that process",
    "prterun noticed",
    (r"failed \(exitcode: -?\d+\) local_rank: \d+|^Root Cause \(first observed failure\)",
     "Root Cause (first observed failure)", "failed (exitcode: "),
    (r"exitcode *: -?\d+ \(pid: \d+\)|Signal \d+ \(SIG\w+\) received by PID \d+",
     ") received by PID ", "exitcode"),
    (r"Sending process \d+ closing signal SIG", " closing signal SIG"),
    (r"^command terminated with exit code [1-9]\d*$", "command terminated with "),
    (r"^\S+ exited with code [1-9]\d*$|Back-off restarting failed container|CrashLoopBackOff",
     " exited with code ", "Back-off restarting failed container", "CrashLoopBackOff"),
    (r"ChildFailedError|ProcessExitedException: process \d+ terminated",
     "ChildFailedError", "ProcessExitedException: process "),
)  # fmt: skip
_PEER_GONE = Wordings(
    (r"gloo/transport/\w+/pair\.cc:\d+\]? *"
     r"(?:Connection closed by peer|.*Connection reset by peer)", "gloo/transport/"),
    (r"NCCL.*remote process exited or there was a network error|ncclRemoteError",
     "ncclRemoteError", "remote process exited or there was a network error"),
    (r"(?:recvValue|sendBytes|TCPStore).*(?:Broken pipe|Connection (?:reset|was likely closed))",
     "Broken pipe", "Connection reset", "Connection was likely closed"),
    (r"via c10d key-value store by key .* got error: |DistStoreError: (?:wait timeout|Socket T)",
     "DistStoreError: Socket T", "DistStoreError: wait timeout",
     "via c10d key-value store by key "),
    "Connection closed by remote peer",
    "socketProgress: Connection closed by remote peer",
    (
        r"^(?:BrokenPipeError|ConnectionResetError|ConnectionAbortedError|EOFError)\b",
        "BrokenPipeError",
        "ConnectionAbortedError",
        "ConnectionResetError",
        "EOFError",
    ),
)  # fmt: skip
_SURVIVOR = Wordings(
    *_PEER_GONE.rows,
    (r"gloo/\S*unbound_buffer\.cc:\d+\]? *Timed out waiting", "unbound_buffer.cc:"),
    "Watchdog timeout (self.watchdog_timeout=",
    "watchdog timeout (self.watchdog_timeout=",
    "Watchdog caught collective operation timeout",
    (
        r"\[PG ID \d+ .*(?:detected by watchdog|Process group watchdog thread terminated)",
        " watchdog",
    ),
    (
        r"\[PG ID \d+ .*(?:Timeout at NCCL work|Exception \(either an error)",
        "Exception (either an error",
        "Timeout at NCCL work",
    ),
    "Process group watchdog thread terminated",
    "Some NCCL operations have failed or timed out",
    "To avoid data inconsistency, we are taking the entire process down",
    (
        r"TP rank \d+ could finish the model loading, but there are other ranks",
        " could finish the model loading, but there are other ranks",
    ),
    "NVSHMEM API called before NVSHMEM initialization",
    "connect EPS failed",
    "nvshmem setup connections failed",
    "StreamCaptureInvalidated",
    "operation failed due to a previous error during capture",
)
_TEARDOWN = Wordings(
    "kill_process_tree called",
    (r"Sleeping \d+ seconds before crash diagnostics", " seconds before crash diagnostics"),
    "Pyspy dump",
    "Pyspy failed",
    "pyspy dump",
    "pyspy dump attempts failed",
    "pyspy failed",
    "CUDA coredump",
    "CUDA user-triggered coredump",
    "GPU core dump failed",
    "Dumping requests before crash",
    "destroy_process_group() was not called",
    "resource_tracker: There appear to be",
    "INFO:     Application shutdown complete",
    "INFO:     Finished server process",
    "INFO:     Shutting down",
    "INFO:     Waiting for application shutdown",
    "Gracefully exiting",
    (
        r"Worker: shutting down|Shutting down (?:engine|workers)"
        r"|NCCL INFO comm .* - Abort COMPLETE",
        " - Abort COMPLETE",
        "Shutting down engine",
        "Shutting down workers",
        "Worker: shutting down",
    ),
)
_STOP = Wordings(
    "SIGTERM received.",
    "SIGINT received",
    "Draining requests and shutting down",
    (r"Received (?:SIGTERM|SIGINT|signal 15|signal 2)\b", "Received "),
    (
        r"systemd\[\d+\]: Stopping |\.service: Stopping|^Stopping \S+\.service\b"
        r"|Stopping \S*(?:sglang|vllm)\S*\.{3}$",
        "Stopping",
    ),
    (r"CANCELLED AT \S+ (?:DUE TO|\*\*\*)", "CANCELLED AT "),
    (r"^timeout: sending signal (?:TERM|KILL|INT)", "timeout: sending signal "),
    "start operation timed out. Terminating",
    "PBS: job killed: walltime ",
    "TERM_RUNLIMIT: job killed",
    "TERM_PREEMPT: job killed",
    "this job is preempted",
    "Preempted in order to admit",
    (r"\bPreempted by (?:a )?pod ", "Preempted by "),
    (r"\bStopping container \S+$", "Stopping container "),
    "imminent node shutdown",
    (
        r"\bexit(?:ed with)? (?:code|status) 124\b",
        "exit code 124",
        "exit status 124",
        "exited with code 124",
        "exited with status 124",
    ),
)
# A process that ended because it was told to: SIGTERM or SIGINT, and nothing else, is said of it.
_SIGNALLED = Wordings(
    (r"^(?:srun|slurmstepd): error: .*\btasks? [\d,-]+: Terminated$", ": Terminated"),
    (r"^Terminated$|^(?:\S+: )?line \d+: +\d+ Terminated\b", "Terminated"),
    (r"^\S+ exited with code (?:143|130)$", " exited with code 1"),
    (
        r"Main process exited, code=(?:killed, status=(?:15/TERM|2/INT)|exited, status=143)",
        "Main process exited, code=",
    ),
)
_FATAL = Wordings(
    *no_start.ROWS,
    (r"\[Errno -?\d+\] error while attempting to bind", "error while attempting to bind"),
    (r"^thread '[^']*' (?:\(\d+\) )?panicked at ", "panicked at "),
    (r"^F\d{4,8} [\d:.]+ +\d+ \S+:\d+\] ", "] "),
    (r"block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion .* failed", "], thread: ["),
    (r"^panic: \S", "panic: "),  # of Go
    (r"^[\w./+-]{1,80}(?:\[\d+\])?: (?:fatal|FATAL): \S", ": fatal: ", ": FATAL: "),
    (r"^[\w.:/+-]+: \S+:\d+: .*Assertion .* failed\.$", "Assertion "),
    (r"^Memory access fault by GPU node-\d+ ", "fault by GPU"),
)
_ABORT = Wordings(
    (r"^(?:Fatal Python error: )+", "Fatal Python error: "),
    (r"^terminate called (?:after throwing|without an active)", "terminate called "),
    (
        r"(?:^|line \d+: +\d+ )(?:Segmentation fault|Bus error|Illegal instruction|Floating point"
        r" exception)(?: \(core dumped\)|$|\s)",
        "Bus error",
        "Floating point exception",
        "Illegal instruction",
        "Segmentation fault",
    ),
    (r"^Aborted(?: \(core dumped\))?$", "Aborted"),
    (r"^!{3,} ?Segfault encountered", "Segfault encountered"),
    (r"^\*\*\* SIG(?:SEGV|ABRT|BUS|FPE|ILL) ", "*** SIG"),
    (
        r"^(?:double free or corruption|malloc\(\): |free\(\): |corrupted size|munmap_chunk)",
        "corrupted size",
        "double free or corruption",
        "free(): ",
        "malloc(): ",
        "munmap_chunk",
    ),
)
_TROUBLE = Wordings(
    (r"^E\d{4,8} [\d:.]+ +\d+ \S+:\d+\] ", "] "),
    (r"^\[E\d{3,4} [\d:.]+ \S+:\d+\] ", "] "),
    "NCCL WARN ",
    (
        # A path begins a word and ends soon, so that a line without a space is read once.
        r"(?:^|\s)\S{1,300}\.(?:cpp|cc|cu|c|h|hpp):\d{1,9}:? "
        r"(?:NULL value|non-zero status|.{0,400}\b[Ee]rror\b)",
        "Error",
        "NULL value",
        "error",
        "non-zero status",
    ),
    (r"^(?:ERROR|CRITICAL|FATAL)\b[ :]", "CRITICAL", "ERROR", "FATAL"),
    (PLAIN, "ERROR", "Error", "error", "FATAL", "atal"),
    *no_start.SCRIPT,
)
_ADVICE = Wordings(
    (r"^Possible (?:solutions|suggestions):", "Possible s"), "common cause is the OS OOM killer"
)
_PLAIN = Wordings(
    (PLAIN, "ERROR", "Error", "error", "FATAL", "atal"),
    (r"^(?:ERROR|CRITICAL|FATAL)\b[ :]", "CRITICAL", "ERROR", "FATAL"),
)
_TIMEOUT = regex(
    r"(?:code|status) 124\b|DUE TO TIME LIMIT|timeout: sending signal|start operation timed out"
    r"|job killed: walltime|TERM_RUNLIMIT",
    needs=(
        " 124",
        "DUE TO TIME LIMIT",
        "timeout: sending signal",
        "start operation timed out",
        "job killed: walltime",
        "TERM_RUNLIMIT",
    ),
)
_PROBE = regex(
    r"(?:[Ss]tartup|[Ll]iveness|[Rr]eadiness) probe(?: failed|, will be restarted)",
    needs=(" probe failed", " probe, will be restarted"),
)
_KERNEL = regex(r"\[ *\d+\.\d{3,6}\] ")
_SETUP = regex(
    r"\b(?:ibvwrap|ibvsymbols|nvls|shmutils|shm|init|bootstrap|socket|net_ib|transport)\.cc"
)
_NATIVE = regex(
    r"[\w)]\.(?:cpp|cc|cu|c|h|hpp|cuh|rs):\d+|NCCL WARN ",
    needs=(".c", ".h", ".rs:", "NCCL WARN "),
)
_STANDSTILL = "timeout (self.watchdog_timeout="
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
        "Possible s", "OOM killer", "No module named", "module specification", "fault by GPU",
        "died unexpectedly", "Killed", "Terminated", "Aborted", "erver process ", "ActorDied",
        "The actor ", "Main process exited", "Failed with result", "Control process exited",
        "slurmstepd", "srun: error", "mpirun", "prterun", "PRTE", "exitcode", "Root Cause (first",
        "closing signal", "exited with code", "Back-off restarting", "CrashLoop",
        "ChildFailed", "ProcessExited", "remote peer", "BrokenPipe", "ConnectionReset",
        "ConnectionAborted", "Timeout at NCCL", "data inconsistency", "setup connections",
        "Abort COMPLETE", "signal 15", "signal 2", "Stopping", "CANCELLED AT", "sending signal",
        "start operation timed", " code 124", " status 124", "can't open file",
        "command not found", ": not found",
        "No such file", "ermission denied", "exec format", "executable file", "container process",
        "OCI runtime", "from daemon", "Failed at step", "panicked at", "Assertion ",
        "Illegal instruction", "Floating point", "Segfault encountered", "*** SIG", "double free",
        "malloc():", "free():", "corrupted size", "munmap_chunk", "NCCL WARN", "NULL value",
        "non-zero status", ".cpp:", ".cc:", ".cu:", "ERROR", "CRITICAL", "EOFError",
        "Received signal", "SYSTEM_ERROR", "PBS: job killed", "TERM_RUNLIMIT", "TERM_PREEMPT",
        "job is preempted", "Preempted ", "imminent node", "panic: ", "terminated with exit",
        "FATAL", "atal: ", "Error: ", ": no such file", "failed to run", "failed to execute",
        ": execution of", ": line ", ".sh: ", "/sh: ", "bash: ", "sh: 1: ", "sh: 0: ", "env: ",
    )
)  # fmt: skip
_ORDER = (
    (Ending.SIGNALLED, _SIGNALLED),
    (Ending.DEATH, _DEATH),
    (Ending.FATAL, _FATAL),
    (Ending.STOP, _STOP),
    (Ending.SURVIVOR, _SURVIVOR),
    (Ending.TEARDOWN, _TEARDOWN),
    (Ending.ABORT, _ABORT),
    (Ending.ADVICE, _ADVICE),
    (Ending.TROUBLE, _TROUBLE),
)

# Heads of exceptions after which the process ends for certain.
FATAL_HEADS = Wordings(
    "hit an exception",
    "Initialization failed",
    "Exception in run_tp_server",
    "init state",
    "init_state",
    (r"^Process \S+:$", "Process "),
    "failed to start",
    "Failed to start",
    "terminated with the following error:",
)
# Exceptions by which a process obeys a signal.
STOPPED_BY = frozenset(("KeyboardInterrupt", "SystemExit", "CancelledError"))
_COMMUNICATION = regex(
    r"gloo|nccl|ProcessGroup|TCPStore|socket|peer\b|Broken pipe|timed? ?out|barrier|watchdog"
    r"|rendezvous|ConnectionRe|connection was",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)  # eight ranks say the same
def ending(text: str) -> Ending | None:
    """What sort of ending the line is part of, or None."""
    return next((kind for kind, pattern in _ORDER if pattern.search(text)), None)


def is_plain(text: str) -> bool:
    """Whether a program, or the script around it, says in its own words that it cannot go on."""
    return _PLAIN.search(text) or no_start.is_script(text)


def is_load_barrier(text: str) -> bool:
    """Whether a rank that has its weights says that others have not."""
    return "could finish the model loading" in text


def is_standstill(text: str) -> bool:
    """Whether the engine's own watchdog says that nothing happens: a hang, whoever ends it."""
    return _STANDSTILL in text and "atchdog" in text


def is_panic(text: str) -> bool:
    """Whether the line says where Rust code panicked, and no more."""
    return "panicked at" in text and text.startswith("thread '")


def is_end(text: str) -> bool:
    """Whether the launcher ends all its processes, for whatever reason."""
    return text.startswith("kill_process_tree called")


def is_timeout(text: str) -> bool:
    """Whether the stop came from a time-out outside of the server."""
    return _TIMEOUT.search(text) is not None


def is_probe(text: str) -> bool:
    """Whether an orchestrator says that its probe of a server failed."""
    return "probe" in text and _PROBE.search(text) is not None


def is_kernel(text: str) -> bool:
    """Whether the operating system's kernel printed the line."""
    return text[:1] == "[" and _KERNEL.match(text) is not None


def is_communicator(text: str) -> bool:
    """Whether NCCL warns while it sets up a communicator."""
    return "NCCL WARN" in text and _SETUP.search(text) is not None


def is_native(text: str) -> bool:
    """Whether the line was printed by a library, not by the engine's logger."""
    return _NATIVE.search(text) is not None


def is_peer_gone(text: str) -> bool:
    """Whether the line says that another rank is gone for certain."""
    return _PEER_GONE.search(text)


@lru_cache(maxsize=512)
def is_communication(text: str) -> bool:
    """Whether an error could come from another rank: a broken connection, a time-out."""
    return _COMMUNICATION.search(text) is not None
