"""The target `systemd`: a transient service of this machine's manager.

In:  a LaunchSpec whose place is a Unit. Out: the server's output, exit code, processes.
Not: the texts of the unit (unitfile.py), or when to stop (supervise.py).

The output comes through a pipe of ours with a name, byte for byte: the journal would limit its
rate, cut long lines and drop what is no text. The manager's own words are read from the journal.

Source: systemd.service(5), org.freedesktop.systemd1(5): ExecMainCode is CLD_EXITED, CLD_KILLED
or CLD_DUMPED. After the main process has died, children that ignore SIGTERM keep a unit in
`deactivating (stop-sigterm)` for TimeoutStopSec; so the end of the main process counts, not
that of the unit.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import time
from pathlib import Path
from subprocess import CompletedProcess

from triage.core.launch import LaunchSpec, Unit
from triage.errors import HostError, UsageError, hint
from triage.launch import tree, unitfile
from triage.launch.asking import ask
from triage.launch.deaths import Death, Deaths
from triage.launch.keeper import Keeper
from triage.launch.sockets import own_address
from triage.launch.stacks import dump
from triage.launch.target import Ended, Remains

_RAW = 1 << 16
_ASK_S = 0.25
_CALL_S = 30.0
_GONE_S = 10.0
_EXITED = 1
# Source: systemd.exec(5), "Process Exit Codes": 200 to 245 are the manager's own.
_EXEC, _CHDIR, _USER = 203, 200, 217
_WHY = {_EXEC: "its program cannot be started", _CHDIR: "its folder cannot be entered"}
_WHY |= {_USER: "its user is not known"}


class SystemdTarget:
    """Installs a unit below /run, starts it, and takes it away."""

    def __init__(self, spec: LaunchSpec, unit: Unit) -> None:
        self._spec, self._unit = spec, unit
        token = secrets.token_hex(4)
        self._name = f"triage-{token}.service"
        user = os.geteuid() != 0
        self._scope = ["--user"] if user else []
        run = Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user/x") if user else "/run")
        self._file = run / "systemd" / ("user" if user else "system") / self._name
        self._folder = run / f"triage-{token}"
        self._fifo = self._folder / "output"
        self._output = -1
        self._pids: tuple[int, ...] = ()
        self._seen: dict[int, int] = {}  # pid -> start
        self._deaths = Deaths()
        self._ends: list[Death] = []
        self._group = ""
        self._ended: Ended | None = None
        self._over = False  # the unit is not active any more
        self._asked = 0.0
        self._keeper: Keeper | None = None

    def start(self) -> None:
        """Install the unit and start it; see Target."""
        self._require_manager()
        call = ["systemctl", *self._scope]
        self._keeper = Keeper(
            [
                [*call, "kill", "-s", "KILL", self._name],
                [*call, "stop", self._name],
                [],
                [*call, "daemon-reload"],
                [*call, "reset-failed", self._name],
            ],
            [f"{self._file}.d", str(self._file), str(self._folder)],
            group=self._name,
        )
        self._keeper.start()
        variables = self._folder / "environment"
        texts = {
            self._file: unitfile.unit_text(self._unit),
            self._file.with_name(self._file.name + ".d") / "triage.conf": unitfile.drop_in(
                self._spec, self._unit, output=str(self._fifo), variables=str(variables)
            ),
            variables: unitfile.environment_text(self._spec, self._unit),
        }
        try:
            self._folder.mkdir(mode=0o700)
            os.mkfifo(self._fifo, 0o600)
            for path, text in texts.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise HostError(
                f"A unit cannot be written to {self._file.parent}: {why}.",
                hint=hint("ls", "-ld", self._file.parent),
            ) from error
        self._output = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._call("daemon-reload")
        self._call("start", "--no-block", self._name)

    def begun(self) -> bool:
        """Whether the server runs by now."""
        self._ask()
        return bool(self._seen) or self._ended is not None

    def poll(self) -> Ended | None:
        """How the main process ended; None while it runs."""
        self._ask()
        return self._ended

    def stop(self, *, force: bool) -> None:
        """SIGTERM to the main process only, or SIGKILL to the whole control group."""
        self._deaths.ending = True
        whom = [] if force else ["--kill-who=main"]
        self._try("kill", *whom, "-s", "KILL" if force else "TERM", self._name)
        if force:
            self._try("stop", "--no-block", self._name)

    def logs(self, wait_s: float) -> bytes | None:
        """The next bytes of stdout and stderr as they were written, merged."""
        if self._output < 0:
            return None
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        events = poll.poll(wait_s * 1000)
        if not events:
            self._ask()
            return b""
        chunk = b""
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self._output, _RAW)
        if chunk:
            return chunk
        # Nobody has it open: the server has not begun, or all of it is gone.
        self._ask()
        if self._over:
            os.close(self._output)
            self._output = -1
            return None
        time.sleep(min(wait_s, 0.02))
        return b""

    def pids(self) -> tuple[int, ...]:
        """The processes of the control group that are alive, the main one first."""
        self._ask()
        return self._pids

    def stacks(self, within_s: float) -> str:
        """Where its processes stand."""
        return dump(self.pids(), within_s=within_s)

    def reach(self, port: int) -> str:
        """The address of our own listener on the port; "" while there is none."""
        return own_address(port, self.pids())

    def close(self) -> Remains:
        """End everything, take the unit away, and say what the manager said of it."""
        if self._keeper is None:
            return Remains((), ())
        said = self._journal()
        self._pids_now()
        self._deaths.ending = True
        self._keeper.finish()
        deadline = time.monotonic() + _GONE_S
        while (left := tree.living(self._seen)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
        stuck = tuple(tree.stuck(proc.pid, proc.state) for proc in left)
        self._ends += self._deaths.collect(last=True)
        self._deaths.close()
        return Remains(
            tuple(self._seen), self._keeper.removed, stuck, said, deaths=tuple(self._ends)
        )

    def _require_manager(self) -> None:
        runs = Path("/run/systemd/system").is_dir()
        if not runs:
            raise HostError(
                "systemd is not the service manager of this machine.",
                hint="triage bisect RECIPE --target process",
            )

    def _ask(self) -> None:
        """Ask the manager how it stands, a few times a second."""
        now = time.monotonic()
        if now - self._asked < _ASK_S or self._over:
            return
        self._asked = now
        facts = self._show()
        self._group = facts.get("ControlGroup", "") or self._group
        main = int(facts.get("ExecMainPID", "0") or 0)
        self._pids_now(main)
        code, status = int(facts.get("ExecMainCode", "0")), int(facts.get("ExecMainStatus", "0"))
        if code and self._ended is None:
            self._ended = Ended(status if code == _EXITED else -status)
            if code == _EXITED and status in _WHY and not self._seen.keys() - {main}:
                raise UsageError(
                    f"The unit was not started: {_WHY[status]}.",
                    hint=hint("systemd-analyze", "verify", "UNIT"),
                )
        state = facts.get("ActiveState", "")
        if state in {"failed", "inactive"} and facts.get("Job", "0") in {"", "0"}:
            self._over = True
            if self._ended is None:
                result = facts.get("Result", "") or state
                self._ended = Ended(None, by=f"the service manager ({result})")

    def _pids_now(self, main: int = 0) -> None:
        found: list[int] = []
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
            folder = Path(root + self._group)
            if self._group and folder.is_dir():
                for file in folder.rglob("cgroup.procs"):
                    with contextlib.suppress(OSError):
                        found += map(int, file.read_text().split())
                break
        self._pids = tuple(sorted(set(found), key=lambda pid: (pid != main, pid)))
        self._ends += self._deaths.collect()
        for pid in self._pids:
            self._deaths.watch(pid)
            if pid not in self._seen and (proc := tree.look(pid)) is not None:
                self._seen[pid] = proc.start

    def _show(self) -> dict[str, str]:
        asked = (
            "ActiveState,SubState,Result,ExecMainPID,ExecMainCode,ExecMainStatus,ControlGroup,Job"
        )
        done = self._run(["systemctl", *self._scope, "show", self._name, "-p", asked])
        pairs = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in pairs}

    def _journal(self) -> tuple[str, ...]:
        """What the manager itself wrote of this unit: starts, ends, kills for memory."""
        unit = "USER_UNIT" if self._scope else "UNIT"
        words = ["journalctl", *self._scope, "--no-pager", "-o", "cat", "-n", "50"]
        done = self._run([*words, f"{unit}={self._name}"])
        lines = [line.replace(self._name, "UNIT") for line in done.stdout.splitlines()]
        return tuple(line for line in lines if not line.startswith("-- "))

    def _call(self, *words: str) -> None:
        done = self._run(["systemctl", *self._scope, *words])
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"exit {done.returncode}"
            raise HostError(f"systemctl {words[0]}: {said}", hint="systemctl status")

    def _try(self, *words: str) -> None:
        self._run(["systemctl", *self._scope, *words])

    def _run(self, words: list[str]) -> CompletedProcess[str]:
        return ask(words, within_s=_CALL_S, look="systemctl")
