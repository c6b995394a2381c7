"""Who ended a launch of which nothing had failed: a person, a time limit, a scheduler, a probe.

In:  the text of lines about an end. Out: Stop values, the one that says most.
Not: whether the launch was stopped, failed or stood still (diagnose.py).

Source: what slurmstepd, srun, the kubelet, systemd, Docker Compose, bash, PBS and LSF print, and
the numbers of signal(7). srun's `task 3: Terminated` and an exit code of 143 say SIGTERM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from triage.core.records import dataclass
from triage.core.regex import regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Who stopped it, in words; `advice` is what a person can do, "" if there is nothing to do."""

    who: str
    advice: str = ""
    line: int = 0


_LONGER = "Give the job more time, or make the start quicker: weights on local disks, kept caches"
_AGAIN = "Start the same command again; nothing of it failed"
_ROWS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        regex(r"CANCELLED AT \S+ DUE TO TIME LIMIT", needs=("TIME LIMIT",)),
        "Slurm ended the job at its time limit",
        f"{_LONGER} (sbatch --time)",
    ),
    (
        regex(
            r"walltime \d+ exceeded limit|TERM_RUNLIMIT|exceeded (?:its )?(?:wall|run) ?time limit",
            needs=("walltime ", "TERM_RUNLIMIT", "exceeded "),
        ),
        "the scheduler ended the job at its time limit",
        _LONGER,
    ),
    (
        regex(r"CANCELLED AT \S+ DUE TO (?:PREEMPTION|JOB REQUEUE)", needs=("DUE TO ",)),
        "Slurm took the nodes back for another job",
        f"{_AGAIN}, in a partition or with a QOS that is not preempted",
    ),
    (
        regex(r"CANCELLED AT \S+ DUE TO NODE FAILURE", needs=("NODE FAILURE",)),
        "Slurm ended the job because a node failed",
        f"{_AGAIN}, without that node (sbatch --exclude)",
    ),
    (
        regex(r"job is preempted|TERM_PREEMPT|\bPreempted (?:by|in) ", needs=("reempt", "PREEMPT")),
        "the scheduler took the machine back for other work",
        _AGAIN,
    ),
    (
        regex(
            r"failed (?P<probe>liveness|startup) probe, will be restarted",
            needs=(" probe, will be restarted",),
        ),
        "the kubelet ended the container because a probe failed",
        "Let the probe wait as long as the slowest start takes (failureThreshold x periodSeconds)",
    ),
    (
        regex(r"imminent node shutdown"),
        "Kubernetes removed the pod from its node",
        f"{_AGAIN}, with requests that reserve what it needs",
    ),
    (
        regex(
            r"timeout: sending signal|start operation timed out"
            r"|(?:code|status)[ =]124\b",
            needs=("timeout: ", "start operation timed", "124"),
        ),
        "a time-out around the server ended it",
        "Raise that limit above the slowest start (TimeoutStartSec= of a unit)",
    ),
    (
        regex(r"CANCELLED AT \S+ \*\*\*|CANCELLED AT \S+ DUE TO SIGNAL", needs=("CANCELLED AT ",)),
        "the job was cancelled, by hand or by what started it",
        "",
    ),
    (
        regex(r"Stopping ", needs=("Stopping ",)),
        "the service manager or the container engine was told to stop it",
        "",
    ),
    (
        regex(
            r"SIGTERM|signal 15\b|\b15/TERM\b|Terminated\b|(?:code|status)[ =:]+(?:143|-15)\b",
            needs=("SIGTERM", "signal 15", "15/TERM", "Terminated", "143", "-15"),
        ),
        "SIGTERM was sent to it, as `docker stop`, a service manager or a scheduler does",
        "",
    ),
    (
        regex(
            r"SIGINT|KeyboardInterrupt|signal 2\b|(?:code|status)[ =:]+(?:130|-2)\b",
            needs=("SIGINT", "KeyboardInterrupt", "signal 2", "130", "-2"),
        ),
        "somebody stopped it by Ctrl-C",
        "",
    ),
)  # fmt: skip
_ONLY_TERM = regex(
    r"exit(?:ed with)? code:? -(?:15|2)\b|exit(?:ed with)? code 1(?:43|30)\b", needs=("code",)
)
_TOLD = regex(r"exit(?:ed with)? code:? (-?\d+)", needs=("code",))


def stopped_by(lines: Iterable[tuple[int, str]]) -> Stop | None:
    """Who stopped it, by the lines (number, text) that are about it; None if none says.

    A line that names a reason says more than one that only tells of the signal.
    """
    found: list[tuple[int, Stop]] = []
    for number, text in lines:
        for rank, (pattern, who, advice) in enumerate(_ROWS):
            if pattern.search(text) is not None:
                found.append((rank, Stop(who=who, advice=advice, line=number)))
                break
    return min(found, key=lambda one: one[0])[1] if found else None


def only_signalled(deaths: Sequence[str]) -> bool:
    """Whether all that is told of the deaths is that a signal to stop ended processes.

    The engine itself ends its processes by SIGKILL alone.
    """
    told = [text for text in deaths if _TOLD.search(text) is not None]
    return bool(told) and all(_ONLY_TERM.search(text) is not None for text in told)
