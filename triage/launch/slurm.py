"""The target `slurm`: a batch job, one task and one log a node.

In:  a LaunchSpec whose place is a Job. Out: the nodes' lines, each behind its number as
     `srun --label` writes them; how the job ended.
Not: the script (jobscript.py), or when to stop (supervise.py).

Source: squeue(1) and scontrol(1), "JOB STATE CODES"; SGLang needs the same command on each node
with its --node-rank. With proctrack/linuxproc a daemon that left its session outlives scancel;
such a one is looked for on this machine's own nodes and told.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import signal
import socket
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess

from triage.core.launch import Job, LaunchSpec
from triage.errors import HostError, hint
from triage.launch import leftovers, tree
from triage.launch.asking import ask
from triage.launch.deaths import Death
from triage.launch.jobscript import environment_text, job_script, stacks_program
from triage.launch.keeper import Keeper
from triage.launch.secret_values import secret_values
from triage.launch.stacks import dump
from triage.launch.target import Ended, Remains

_CALL_S = 30.0
_STEP_S = 1.0  # to start a step beside the server's
_ASK_S = 0.5
_GONE_S = 15.0
_REAP_S = 1.0  # for the reapers to end their nodes' processes and remove what they left
_LONGEST = 1 << 20  # bytes of a line that are held back before it ends
_OVER = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT", "SPECIAL_EXIT", "REVOKED"),
    )
)
# Ends that are no failure of the server.
_NOT_OURS = {
    "NODE_FAIL": "a node failed",
    "BOOT_FAIL": "a node did not boot",
    "PREEMPTED": "another job took the nodes",
    "TIMEOUT": "the job's time limit ended",
    "DEADLINE": "the job's deadline ended",
    "CANCELLED": "the job was cancelled",
    "REVOKED": "the job was revoked",
}
_DIED = 128  # the shell's way to tell a signal
# Source: srun's own words, in the order in which the tasks ended.
_SIGNALS = {
    "Killed": signal.SIGKILL,
    "Terminated": signal.SIGTERM,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating point exception": signal.SIGFPE,
}
_FIRST_END = re.compile(
    r"srun: error: [^\n]*: tasks? [^\n]*: (?:Exited with exit code (?P<code>\d+)|(?P<how>"
    + "|".join(_SIGNALS)
    + "))"
)
# Words of the scheduler after which a task's end is not the server's own.
_TAKEN = re.compile(r"CANCELLED AT|[Nn]ode failure|oom[_-]kill|DUE TO")

_END = re.compile(
    r"(?P<pid>\d{1,9}) (?P<code>-?\d{1,4}|\?) (?P<at>\d{1,12}\.\d{3}) (?P<ours>[01])"
    r" (?P<name>.{0,200})"
)
_UNSEEN = "no node told how its processes ended: it has no python3, or its files came too late"


def _code(found: re.Match[str]) -> int:
    """The exit code in srun's words; negative: the signal."""
    return int(found["code"]) if found["code"] else -_SIGNALS[found["how"]]


class _NodeLog:
    """The log of one node as it grows; gives whole lines, each behind the node's number."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.mark = path, f"{number}: ".encode()
        self._held = b""
        self._at = 0

    def more(self, *, last: bool) -> bytes:
        """What came since; with `last` also a line that does not end."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._at)
                raw = file.read(1 << 20)
        except OSError:
            return b""
        self._at += len(raw)
        lines = (self._held + raw).split(b"\n")
        self._held = lines.pop()
        if len(self._held) > _LONGEST or (last and not raw):
            if self._held:
                lines.append(self._held)
            self._held = b""
        return b"".join(self.mark + line + b"\n" for line in lines)


class SlurmTarget:
    """Submits a job and follows it; see Target."""

    def __init__(self, spec: LaunchSpec, job: Job, folder: Path) -> None:
        self._spec, self._job = spec, job
        self._name = f"triage-{secrets.token_hex(4)}"
        # A folder of its own for each start: what still ends an earlier one of this trial, whose
        # triage was killed, removes and writes its files by their paths.
        self._folder = folder.absolute() / f"nodes-{self._name.removeprefix('triage-')}"
        self._id = ""
        self._logs: dict[str, _NodeLog] = {}
        self._state = "PENDING"
        self._facts: dict[str, str] = {}
        self._ended: Ended | None = None
        self._drained = self._stopped = False
        self._first: Ended | None = None
        self._batch_size = -1
        self._asked = self._listed_at = 0.0
        self._listed = ""  # what the scheduler last said of its processes
        self._seen: dict[int, int] = {}
        # By name: the order is given before the job has a number. The files hold the command
        # and its variables as they are, secrets too.
        self._secret = [self._folder / "environment", self._folder / "job.sh"]
        self._keeper = Keeper(
            [
                ["scancel", "--signal=USR1", f"--name={self._name}"],  # to each node's reaper
                ["sleep", str(_REAP_S)],
                ["scancel", "--signal=KILL", "--full", f"--name={self._name}"],
                ["scancel", f"--name={self._name}"],
            ],
            [str(path) for path in self._secret],
            hide=(str(self._folder), secret_values(spec, os.environ)),
        )

    @property
    def head(self) -> str:
        """Address of the first node, "" before the job runs."""
        with contextlib.suppress(OSError):
            return (self._folder / "head").read_text(encoding="ascii", errors="replace").strip()
        return ""

    def start(self) -> None:
        """Submit the job; see Target."""
        try:
            for old in self._folder.parent.glob("nodes-*"):
                leftovers.remove_folder(str(old))
            self._folder.mkdir(parents=True)
            variables, script = self._secret
            for path in self._secret:
                path.touch(mode=0o600)
            variables.write_text(environment_text(self._spec), encoding="utf-8")
            script.write_text(
                job_script(self._spec, self._job, name=self._name, folder=str(self._folder)),
                encoding="utf-8",
            )
        except OSError as error:
            raise HostError(
                f"The job's files cannot be written to {self._folder}: {error.strerror}.",
                hint=hint("ls", "-ld", self._folder.parent),
            ) from error
        self._keeper.start()
        done = self._run(["sbatch", "--parsable", str(script)])
        if done.returncode or not done.stdout.strip():
            said = " ".join(done.stderr.split()) or f"exit {done.returncode}"
            raise HostError(f"sbatch took no job: {said}", hint="sinfo")
        self._id = done.stdout.strip().partition(";")[0]

    def begun(self) -> bool:
        """Whether the job runs by now; before, it waits for its nodes."""
        self._ask()
        return self._ended is not None or bool(self._logs) or self.head != ""

    def poll(self) -> Ended | None:
        """How the server ended; None while the job waits or runs.

        A job is over only after its nodes' epilogs, which may take minutes; srun tells of a task
        at once, and ends the others.
        """
        self._ask()
        return self._ended or self._first_told()

    def stop(self, *, force: bool) -> None:
        """SIGTERM to each task's main process only, or the end of the job."""
        if not self._id:
            return
        if force:
            self._stopped = True
            self._listed_at = 0.0
            self.pids()  # who must be gone: a process stuck in the kernel may outlive its job
            self._run(["scancel", "--signal=USR1", f"{self._id}.0"])
            deadline = time.monotonic() + _REAP_S
            while self._ended is None and time.monotonic() < deadline:
                self._asked = 0.0
                self._ask()
                time.sleep(0.05)
            self._run(["scancel", "--signal=KILL", "--full", self._id])
            self._run(["scancel", self._id])
        else:
            self._run(["scancel", "--signal=TERM", f"{self._id}.0"])

    def logs(self, wait_s: float) -> bytes | None:
        """The next lines of all nodes."""
        deadline = time.monotonic() + wait_s
        while True:
            self._find_logs()
            over = self._ended is not None or self._stopped
            chunk = b"".join(log.more(last=over) for log in self._logs.values())
            if chunk:
                return chunk
            if over:
                # The nodes' files may come later than the end of the job over a network.
                if self._drained:
                    return None
                self._drained = True
                return b""
            if time.monotonic() >= deadline:
                self._ask()
                return b""
            time.sleep(min(0.05, max(0.0, deadline - time.monotonic())))

    def pids(self) -> tuple[int, ...]:
        """Those processes of the job that run on this machine: a node may be this one."""
        now = time.monotonic()
        if self._id and now - self._listed_at >= _ASK_S:
            self._listed_at = now
            self._listed = self._run(["scontrol", "listpids", self._id]).stdout
        found = []
        for line in self._listed.splitlines()[1:]:
            words = line.split()
            if words and words[0].isdigit() and (proc := tree.look(int(words[0]))) and proc.alive:
                self._seen.setdefault(proc.pid, proc.start)
                found.append(proc.pid)
        return tuple(found)

    def stacks(self, within_s: float) -> str:
        """Where its processes stand, read on each node by a step beside the server's."""
        if not self._id:
            return ""
        command = (
            f"PATH=$PATH:{shlex.quote(str(Path(sys.executable).parent))} python3 -c "
            f"{shlex.quote(stacks_program())} {shlex.quote(str(self._folder))}/exits- "
            f'"$SLURM_NODEID" {max(0.5, within_s - _STEP_S):.1f}'
        )
        words = ["srun", f"--jobid={self._id}", "--overlap", f"--nodes={self._job.nodes}"]
        words += ["--ntasks-per-node=1", "--gres=none", "--mem=0", "--quiet"]
        try:
            done = ask([*words, "bash", "-c", command], within_s=within_s, look="squeue")
            said = done.stderr
        except HostError as error:
            done, said = None, str(error)
        if done is not None and "== process " in done.stdout:
            return done.stdout
        text = dump(self.pids(), within_s=within_s)  # those of this machine, at least
        why = " ".join(said.split())[-300:] or "no process was found there"
        return text and f"== nodes could not be read by srun --overlap: {why}\n{text}"

    def reach(self, port: int) -> str:
        """The head node's address once a process of ours listens there, "" before.

        The node's reaper looks who it is. Of a node without one it is not proved by more than
        this: nobody did before the job ran.
        """
        head = self.head
        seen = any((self._folder / name).exists() for name in ("listens-0", "bare-0"))
        if not head or not seen or self._ended is not None:
            return ""
        with contextlib.suppress(OSError), socket.create_connection((head, port), timeout=2.0):
            return head
        return ""

    def close(self) -> Remains:
        """Cancel the job, wait until it is over, and say what the scheduler knows of it."""
        self._keeper.finish()
        deadline = time.monotonic() + _GONE_S
        while self._id and self._ended is None and time.monotonic() < deadline:
            self._asked = 0.0
            self._ask()
            time.sleep(0.1)
        # Once srun has given its code all tasks are over, and a task is so only when nothing is
        # left below it: what takes long then is the cluster's own epilog.
        epilog = self._state == "COMPLETING" and (self._folder / "code").exists()
        over = self._ended is not None or epilog
        stuck = [] if over or not self._id else [f"job {self._id} ({self._state})"]
        stuck += [tree.stuck(proc.pid, proc.state) for proc in tree.living(self._seen)]
        told = ("JobState", "Reason", "ExitCode", "NodeList", "StartTime", "EndTime")
        said = tuple(f"{name}: {self._facts[name]}" for name in told if self._facts.get(name))
        deaths = self._deaths()
        unseen = "" if deaths else _UNSEEN
        return Remains(
            tuple(self._seen), (), tuple(stuck), said, deaths=tuple(deaths), unseen=unseen
        )

    def _deaths(self) -> list[Death]:
        """How processes ended on the nodes, as their reapers wrote it; times by their clocks."""
        found = []
        shift = time.time() - time.monotonic()
        for path in sorted(self._folder.glob("exits-*")):
            node = path.name.removeprefix("exits-")
            with contextlib.suppress(OSError):
                for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                    if (match := _END.fullmatch(line)) is None:
                        continue
                    code = None if match["code"] == "?" else int(match["code"])
                    name = match["name"] + (f" on node {node}" if self._job.nodes > 1 else "")
                    at = float(match["at"]) - shift
                    found.append(Death(int(match["pid"]), code, at, name, match["ours"] == "1"))
        return found

    def _find_logs(self) -> None:
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("node-*.log")):
                number = path.stem.removeprefix("node-")
                if path.name not in self._logs and number.isdigit():
                    self._logs[path.name] = _NodeLog(path, int(number))
            batch = self._folder / "batch.log"  # the scheduler's own words, of no node
            if batch.name not in self._logs and batch.exists():
                self._logs[batch.name] = _NodeLog(batch, 0)
                self._logs[batch.name].mark = b""

    def _ask(self) -> None:
        now = time.monotonic()
        if not self._id or self._ended is not None or now - self._asked < _ASK_S:
            return
        self._asked = now
        done = self._run(["scontrol", "--oneliner", "show", "job", self._id])
        pairs = re.findall(r"(\w+)=(\S*)", done.stdout)
        if not pairs:
            return
        self._facts = dict(pairs)
        self._state = self._facts.get("JobState", self._state)
        if self._state not in _OVER:
            return
        why = _NOT_OURS.get(self._state, "")
        if why:
            self._ended = Ended(None, by=f"the scheduler: {why}")
        elif self._state == "OUT_OF_MEMORY":
            self._ended = Ended(-signal.SIGKILL)
        else:
            self._ended = Ended(self._first_code())

    def _first_told(self) -> Ended | None:
        """The end of the task that ended first, unless it was taken from us."""
        size = -1
        with contextlib.suppress(OSError):
            size = (self._folder / "batch.log").stat().st_size
        if self._first is None and size != self._batch_size:
            self._batch_size = size
            text = self._batch_text()
            if not _TAKEN.search(text) and (found := _FIRST_END.search(text)):
                self._first = Ended(_code(found))
        return self._first

    def _batch_text(self) -> str:
        """The first part of what srun and the scheduler said themselves."""
        with contextlib.suppress(OSError), (self._folder / "batch.log").open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", errors="replace")
        return ""

    def _first_code(self) -> int:
        """The exit code of the task that ended first; srun ends the others after it."""
        if found := _FIRST_END.search(self._batch_text()):
            return _code(found)
        code, _, number = self._facts.get("ExitCode", "0:0").partition(":")
        if code.isdigit() and int(code) > _DIED:
            return _DIED - int(code)
        return int(code or 0) if code.isdigit() and int(code) else -int(number or 0)

    def _run(self, words: list[str]) -> CompletedProcess[str]:
        absent = HostError(
            f"{words[0]} was not found: this machine is in no Slurm cluster.",
            hint="triage bisect RECIPE --target process",
        )
        return ask(words, within_s=_CALL_S, look="sinfo", absent=absent)
