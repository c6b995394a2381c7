"""A request to start a server once, and how such a launch ended.

In:  nothing. Out: LaunchSpec, Place, Patience, Outcome, Capture.
Not: starting anything (triage.launch).
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.records import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds that a launch may take before it counts as hung.

    `phases` gives a quiet phase longer or shorter than `silent_s`, by phase id.
    Both count from the last new byte of output; `total_s` from the start. `settle_s` is how
    long, after the fatal line, the other ranks are given to say how they fail.
    """

    silent_s: float = 600.0
    total_s: float = 5400.0
    settle_s: float = 2.0
    phases: Mapping[str, float] = field(default_factory=dict)

    def silent_in(self, phase: str) -> float:
        """Seconds of silence that this phase is given."""
        return self.phases.get(phase, self.silent_s)


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine, below triage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A transient unit of the service manager.

    `text` is the user's own unit, whose settings it takes over (user, limits,
    environment); "" makes one from the command alone. `whole`: its ExecStart= is the
    command to run as it stands; else the launch's argv takes its place.
    """

    text: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container; `run` are the words of `docker run` up to the image, the image included."""

    run: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A batch job with one task a node; `options` are words for sbatch (`--partition=gpu`)."""

    nodes: int = 1
    options: tuple[str, ...] = ()


Place = Process | Unit | Container | Job


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """The complete request for one launch.

    `argv` is the whole command. A process inherits our environment without the
    variables that `unset_env` names and with those of `env` on top; the other places
    have an environment of their own, to which the same is done. `port` is where
    the server will listen; the launcher has put it into `argv`.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    unset_env: tuple[str, ...] = ()
    cwd: str = "."
    port: int = 0
    engine: str = "sglang"
    patience: Patience = field(default_factory=Patience)
    place: Place = field(default_factory=Process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Our own listener answered a generation."""

    answer: str  # the text generated, or the token ids where there is no text


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The server ended, printed a line after which it cannot start, or does not do its work."""

    exit_code: int | None  # negative: the signal; None: we stopped it
    fatal_line: int | None = None  # number of the line that made us stop, from 1
    reason: str = ""  # else why we stopped it: "it answers no generation: HTTP 500: ..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """No new output and no exit for longer than the patience."""

    silent_s: float
    limit: str  # which patience ended: a phase id, "silent" or "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """Somebody ended the launch: us on Ctrl-C, or a signal from outside."""

    by: str


Outcome = Ready | Crashed | Hung | Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How one process of a launch ended.

    `rank` is the tag that its title holds, "" without one. `exit_code` is negative for a
    signal and None if nobody could tell; `seconds` from the start. `by_us`: triage was
    ending the launch by then, so that a signal may be its own.
    """

    pid: int
    name: str
    rank: str = ""
    exit_code: int | None = None
    seconds: float | None = None
    by_us: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Everything that one launch left behind.

    `log` is the path of the raw output, bytes untouched; beside it lies
    `arrivals.jsonl` (`[offset, seconds]` of each chunk as it came).
    `phase` is the last landmark's phase. `leftovers` names what the launch
    left and we removed (shared-memory files, temporary files), and `stuck` too: the
    processes, or the job, that could not be ended, in words.
    """

    outcome: Outcome
    seconds: float
    log: str
    phase: str
    pids: tuple[int, ...] = ()
    leftovers: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    said: tuple[str, ...] = ()  # what the hand that ran it, or the kernel, told of its end
    stacks: str = ""  # path of the stack dumps of a launch that failed while it lived, or ""
    exits: tuple[Exit, ...] = ()  # in the order of time
    unseen: str = ""  # why nothing is known of them
