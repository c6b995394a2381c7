"""The target `process`: a server on this machine, below a guard.

In:  a LaunchSpec. Out: the server's output, exit code, processes and leftovers.
Not: what the output means, or when to stop (supervise.py).
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from triage.core.launch import LaunchSpec
from triage.errors import HostError, TriageError, UsageError
from triage.launch import cgroups, guard, leftovers, tree
from triage.launch.deaths import Death
from triage.launch.sockets import own_address
from triage.launch.stacks import dump
from triage.launch.target import Ended, Remains

_LONGEST_TMPDIR = 50  # a unix socket's path may have 107 letters, and engines add their own
_START_S = 60.0
_CLOSE_S = 10.0
_RAW = 1 << 16
_GUARD = "import sys; sys.path.append(sys.argv[1]); from triage.launch.guard import main; main()"


class ProcessTarget:
    """Starts the server under a guard process, and talks with that guard."""

    def __init__(self, spec: LaunchSpec, *, grouped: bool = True) -> None:
        self._spec = spec
        token = secrets.token_hex(4)
        self._variable = f"TRIAGE_LAUNCH={token}"
        self._group = f"triage-{token}" if grouped else ""
        self._tmpdir = f"{_temporary(dict(spec.env))}/tri-{token}"
        self._guard: subprocess.Popen[bytes] | None = None
        self._output = self._reports = -1
        self._partial = b""
        self._main = 0
        self._known: dict[int, tuple[int, int]] = {}  # pid -> session, start
        self._ended: Ended | None = None
        self._failed: tuple[str, int] | None = None
        self._shared: set[leftovers.FileId] = set()
        self._removed: list[str] = []
        self._stuck: list[str] = []
        self._deaths: list[Death] = []
        self._gone = False
        self._place: cgroups.Group | None = None  # the launch's own control group
        self._said: list[str] = []

    @property
    def tmpdir(self) -> str:
        """The server's TMPDIR; the guard makes it, and removes it in the end."""
        return self._tmpdir

    def start(self) -> None:
        """Start guard and server; see Target."""
        self._check()
        read, write = os.pipe()
        try:
            # -S -I: no site packages, and none of the user's PYTHON* variables.
            self._guard = subprocess.Popen(
                [sys.executable, "-S", "-I", "-c", _GUARD, str(Path(__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=write,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        assert self._guard.stdin is not None  # noqa: S101  asked for above
        assert self._guard.stdout is not None  # noqa: S101
        self._output, self._reports = read, self._guard.stdout.fileno()
        self._send(
            guard.encode_order(
                self._spec.argv,
                self._environment(),
                cwd=str(Path(self._spec.cwd).absolute()),
                tmpdir=self._tmpdir,
                parent=os.getpid(),
                group=self._group,
            )
        )
        deadline = time.monotonic() + _START_S
        while not self._main and not self._failed and time.monotonic() < deadline:
            if not self._take_reports(wait_s=1.0):
                break
        if self._failed:
            raise self._cannot_start(*self._failed)
        if not self._main:
            raise HostError(
                f"The guard process for {self._spec.argv[0]!r} did not start.",
                hint=f"{sys.executable} -S -I -c pass",
            )

    def begun(self) -> bool:
        """Whether the server runs by now."""
        return self._main != 0

    def poll(self) -> Ended | None:
        """How the main process ended; None while it runs."""
        return self._ended

    def stop(self, *, force: bool) -> None:
        """SIGTERM to the main process only, or SIGKILL to all.

        Source: SGLang takes SIGTERM to its whole group for a crash of its children.
        """
        self._send(guard.END if force else guard.TERMINATE)

    def logs(self, wait_s: float) -> bytes | None:
        """The next bytes of stdout and stderr as they were written, merged."""
        waited = [fd for fd in (self._output, self._reports) if fd >= 0]
        if not waited:
            return None
        poll = select.poll()
        for descriptor in waited:
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(wait_s * 1000)]
        if self._reports in ready:
            self._take_reports(wait_s=0)
        if self._output in ready:
            chunk = os.read(self._output, _RAW)
            if chunk:
                return chunk
            os.close(self._output)
            self._output = -1
        return b""

    def pids(self) -> tuple[int, ...]:
        """The processes that are alive, the main one first."""
        starts = {pid: start for pid, (_, start) in list(self._known.items())}
        return tuple(proc.pid for proc in tree.living(starts))

    def stacks(self, within_s: float) -> str:
        """Where its processes stand."""
        return dump(self.pids(), within_s=within_s)

    def reach(self, port: int) -> str:
        """The address of our own listener on the port; "" while there is none."""
        return own_address(port, self.pids())

    def close(self) -> Remains:
        """End everything, wait until the guard says that nothing is left, remove the files."""
        if self._guard is not None:
            if self._guard.stdin is not None:
                self._guard.stdin.close()  # the guard takes the end of its input as END
            deadline = time.monotonic() + _CLOSE_S
            more = True
            while more and time.monotonic() < deadline:
                more = self._take_reports(wait_s=0.2)
            if self._guard.stdout is not None:
                self._guard.stdout.close()
            self._reports = -1
            if self._output >= 0:
                os.close(self._output)
                self._output = -1
            if not more:  # else it goes on without us, as long as a process is stuck
                self._guard.wait()
        return Remains(
            tuple(self._known),
            tuple(self._removed),
            tuple(self._stuck),
            tuple(self._said),
            deaths=tuple(self._deaths),
        )

    def _check(self) -> None:
        """Say what is wrong with the request before anything is started."""
        argv, cwd = self._spec.argv, self._spec.cwd
        if not argv:
            raise UsageError("There is no command to launch.", hint="triage run -- COMMAND")
        if any("\0" in word for word in argv):
            raise UsageError("The command holds a NUL character.", hint="triage run -- COMMAND")
        if not Path(cwd).is_dir():
            raise UsageError(f"The folder {cwd} to start in does not exist.", hint=f"mkdir {cwd}")

    def _environment(self) -> dict[str, str]:
        inherited = os.environ.keys() - set(self._spec.unset_env)
        env = {name: os.environ[name] for name in inherited} | dict(self._spec.env)
        # A buffered line comes late or, of a killed process, never; silence would mean nothing.
        env.setdefault("PYTHONUNBUFFERED", "1")
        name, _, value = self._variable.partition("=")
        return env | {"TMPDIR": self._tmpdir, name: value}

    def _send(self, message: bytes) -> None:
        if self._guard is None or self._guard.stdin is None or self._guard.stdin.closed:
            return
        try:
            while message:
                message = message[os.write(self._guard.stdin.fileno(), message) :]
        except BrokenPipeError:
            return  # the guard has ended; its reports say how

    def _take_reports(self, wait_s: float) -> bool:
        """Take what the guard says; False once it says no more."""
        if self._reports < 0:
            return False
        poll = select.poll()
        poll.register(self._reports, select.POLLIN)
        if not poll.poll(wait_s * 1000):
            return True
        raw = os.read(self._reports, _RAW)
        if not raw:
            self._reports = -1
            if not self._gone:
                self._end_without_guard()
            return False
        *records, self._partial = (self._partial + raw).split(b"\0")
        for record in records:
            self._take(os.fsdecode(record))
        return True

    def _take(self, record: str) -> None:
        kind, _, rest = record.partition(" ")
        words = rest.split(" ")
        match kind:
            case "pid":
                pid, session, start = map(int, words)
                self._known[pid] = (session, start)
                self._main = self._main or pid
            case "exit":
                self._ended = self._ended or Ended(int(rest))
            case "died":
                number, code, at, ours, name = rest.split(" ", 4)
                known = None if code == "?" else int(code)
                self._deaths.append(Death(int(number), known, int(at) / 1e6, name, ours == "1"))
            case "failed":
                self._failed = (words[0], int(words[1]))
            case "group":
                self._place = cgroups.Group(rest)
                self._said.append(f"control group {rest}: ended by cgroup.kill")
            case "nogroup":
                self._said.append(f"no control group of its own ({rest}): ended process by process")
            case "oom":
                self._said.append(f"{rest.partition(' ')[2]}: oom_kill {words[0]}")
            case "shm":
                self._shared.add((int(words[0]), int(words[1])))
            case "stuck":
                self._stuck.append(tree.stuck(int(words[0]), words[1]))
            case "left":
                self._removed.append(rest)
            case "gone":
                self._gone = True
                self._stuck.clear()
            case _:
                raise AssertionError(f"the guard said {record!r}")

    def _end_without_guard(self) -> None:
        """Do the guard's work: somebody killed it."""
        self._ended = self._ended or Ended(None, by="the guard process was killed")

        def find() -> list[tree.Proc]:
            if self._place is not None:
                self._place.kill()
            return tree.marked(self._known, self._variable, tree.table())

        left = tree.end_all(find, within_s=5.0)
        self._stuck += [tree.stuck(proc.pid, proc.state) for proc in left]
        if self._place is not None:
            self._place.remove()
        self._removed += leftovers.remove_shared(self._shared)
        self._removed += leftovers.remove_folder(self._tmpdir)
        self._gone = not left

    def _cannot_start(self, stage: str, number: int) -> TriageError:
        program, why = self._spec.argv[0], os.strerror(number)
        if stage == "tmpdir":
            return HostError(
                f"The temporary folder {self._tmpdir} cannot be made: {why}.",
                hint=f"df -h {Path(self._tmpdir).parent}",
            )
        if stage == "cwd":
            return UsageError(
                f"The server cannot be started in {self._spec.cwd}: {why}.",
                hint=f"ls -ld {self._spec.cwd}",
            )
        if number == errno.ENOENT:
            return UsageError(
                f"The program {program!r} was not found.", hint=f"command -v {program}"
            )
        if number == errno.EACCES:
            return UsageError(
                f"The program {program!r} is not executable.", hint=f"ls -l {program}"
            )
        if number == errno.ENOEXEC:
            return UsageError(
                f"The file {program!r} is no program: it has no first line `#!INTERPRETER`.",
                hint=f"triage run -- bash {program}",
            )
        return HostError(f"The program {program!r} cannot be started: {why}.", hint="ulimit -a")


def _temporary(env: dict[str, str]) -> str:
    """The folder to make our TMPDIR in: the user's, if its path is short and it can be written."""
    asked = env.get("TMPDIR") or tempfile.gettempdir()
    if len(asked) <= _LONGEST_TMPDIR and os.access(asked, os.W_OK):
        return str(Path(asked).absolute())
    return "/tmp"  # noqa: S108  the guard makes a folder of its own there
