"""The parent of the server: it outlives triage and leaves nothing of the launch alive.

In:  on stdin an order (`encode_order`), then commands of one letter. The end of the input, or
     the death of triage, means the same as END.
Out: on stdout records that end with NUL (`pid N SESSION START`, `exit CODE`,
     `died N CODE MICROSECONDS OURS NAME`, `failed STAGE ERRNO`, `group PATH`, `nogroup WHY`,
     `shm DEVICE INODE`, `stuck N STATE`, `oom COUNT FILE`, `left PATH`, `gone`); stderr is
     handed to the server as its output.
Not: judging the server. It must start in a few milliseconds, so it imports next to nothing.

Everything that the server starts stays below this process, because it is a
child subreaper: a daemon that leaves session, group and parent becomes its
child. So "no children left" is a proof, and no list of names is needed. Where a
control group of version 2 can be made, the server runs in it, and one write ends
everything in it at once, also what forks meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time

from triage.launch import cgroups, frame, leftovers, tree
from triage.launch.deaths import Death, Deaths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TERMINATE, END = b"T", b"K"  # SIGTERM to the main process; end everything

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICK_S = 0.2
_LOOK_S = 1.0  # between two looks at the tree
_SHARE = 20  # ... and at least this many times what a look costs, on hosts with many processes
_STUCK_S = 3.0  # a process that survives SIGKILL this long is told


def encode_order(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    tmpdir: str,
    parent: int,
    group: str = "",
) -> bytes:
    """What to start: the length in bytes, then that many bytes of fields, all ended by NUL.

    `group` names the control group to make for it; "": none is wanted.
    """
    variables = [f"{name}={value}" for name, value in env.items()]
    return frame.encode([cwd, tmpdir, str(parent), group, str(len(argv)), *argv, *variables])


class Order:
    """The decoded order."""

    def __init__(self, fields: list[bytes]) -> None:
        self.cwd, tmpdir, parent, group, argc = fields[:5]
        self.tmpdir = os.fsdecode(tmpdir)
        self.parent = int(parent)
        self.group = os.fsdecode(group)
        self.argv = fields[5 : 5 + int(argc)]
        pairs = (field.partition(b"=") for field in fields[5 + int(argc) :])
        self.env = {name: value for name, _, value in pairs}


def read_order(descriptor: int) -> Order | None:
    """Read the order and not a byte more; None if triage died before it was complete."""
    fields = frame.read(descriptor)
    return None if fields is None else Order(fields)


class Guard:
    """One launch: start it, watch it, end it."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.main = 0
        self.ended = False
        self.childless = False
        self.told: set[int] = set()
        self.before = set(leftovers.present())
        self.fresh: set[leftovers.FileId] = set()  # new files, not known to be ours
        self.shared: set[leftovers.FileId] = set()  # new files that our processes use
        self.next_look = 0.0
        self.deaths = Deaths()
        self.everybody: set[str] = set()  # what /proc listed last
        self.group: cgroups.Group | None = None
        self.kills = cgroups.Kills()  # of ours, for want of memory
        self.kills.look()
        self.libc = ctypes.CDLL(None)

    def report(self, *words: object) -> None:
        """Tell triage, if it is there to hear."""
        try:
            os.write(1, " ".join(str(word) for word in words).encode(errors="replace") + b"\0")
        except OSError:
            return  # triage is gone; the pipe on stdin says so too

    def start(self) -> bool:
        """Start the server; False if it cannot be started."""
        self.libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            os.mkdir(self.order.tmpdir, 0o700)  # noqa: PTH102
        except OSError as error:
            self.report("failed", "tmpdir", error.errno)
            return False
        failure_in, failure_out = os.pipe()  # closed by a successful exec
        wait_in, wait_out = os.pipe()  # closed once the server is in its group
        guard = os.getpid()
        self.main = os.fork()
        if self.main == 0:
            os.close(failure_in)
            os.close(wait_out)
            os.read(wait_in, 1)
            self._become_server(guard, failure_out)
        os.close(failure_out)
        os.close(wait_in)
        if self.order.group:
            self._enter_group(self.order.group)
        os.close(wait_out)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)  # the output belongs to the server alone: its end is the log's end
        failure = os.read(failure_in, 100).decode()
        os.close(failure_in)
        if failure:
            self.report("failed", failure)
            return False
        self.tell(tree.look(self.main))  # also if it has ended already
        self.look()
        return True

    def _enter_group(self, name: str) -> None:
        """Put the server into a group of its own before its first step; tell which, or why not."""
        made = cgroups.make(name)
        if not isinstance(made, cgroups.Group):
            self.report("nogroup", made)
            return
        try:
            made.add(self.main)
        except OSError as error:
            made.remove()
            self.report("nogroup", f"{made.path}: {error.strerror}")
            return
        self.group = made
        self.report("group", made.path)

    def _become_server(self, guard: int, failure_out: int) -> None:
        """In the child: own session, our signals undone, output to the log, then exec."""
        stage = "setup"
        try:
            os.setsid()
            self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != guard:
                os._exit(127)
            for number in _IGNORED | {signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ}:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            stage = "cwd"
            os.chdir(self.order.cwd)
            stage = "exec"
            os.execvpe(self.order.argv[0], self.order.argv, self.order.env)  # noqa: S606
        except OSError as error:
            os.write(failure_out, f"{stage} {error.errno}".encode())
        finally:
            os._exit(127)

    def watch(self) -> None:
        """Return when the server's main process has ended, or when all is to be ended."""
        wake_in, wake_out = os.pipe()
        os.set_blocking(wake_out, False)
        signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(wake_in, select.POLLIN)
        if self.deaths.fileno() >= 0:
            poll.register(self.deaths.fileno(), select.POLLIN)
        parent = _open_process(self.order.parent)
        if parent >= 0:
            # A fork of triage that lives on would keep our input open.
            poll.register(parent, select.POLLIN)
        while True:
            self.report_deaths(self.deaths.collect())  # first: who ended before the main process
            self.reap()
            if self.ended:
                return
            events = [descriptor for descriptor, _ in poll.poll(_TICK_S * 1000)]
            if parent in events:
                return
            if wake_in in events:
                os.read(wake_in, 4096)
            if 0 in events:
                command = os.read(0, 1)
                if command in (END, b""):
                    return
                self.deaths.ending = True
                os.kill(self.main, signal.SIGTERM)
            self.sample()

    def reap(self) -> None:
        """Collect the children that ended; tell of the main process."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            self.report_deaths(self.deaths.reaped(pid, code))
            if pid == self.main and not self.ended:
                self.ended = True
                self.report("exit", code)

    def report_deaths(self, deaths: list[Death]) -> None:
        """Tell how processes ended, also those that their own parent collected."""
        for death in deaths:
            code = "?" if death.code is None else death.code
            self.report("died", death.pid, code, int(death.at * 1e6), int(death.ours), death.name)

    def sample(self) -> None:
        """Look at the tree now and then, and at once when a new shared-memory file shows up."""
        unknown = set(leftovers.present()) - self.before - self.shared
        appeared = unknown - self.fresh
        self.fresh = unknown
        if appeared or time.monotonic() >= self.next_look:
            self.look()
        else:
            self.glance()

    def glance(self) -> None:
        """Notice new children of what is known: one that ends soon is told of, too."""
        listed = {name for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
        for name in sorted(listed - self.everybody, key=int):
            proc = tree.look(int(name))
            if proc is not None and (proc.parent in self.told or proc.parent == os.getpid()):
                self.tell(proc)
        self.everybody = listed

    def look(self) -> list[tree.Proc]:
        """The live tree; new processes, and new files that it uses, are told."""
        began = time.monotonic()
        alive = [proc for proc in tree.descendants([os.getpid()], tree.table()) if proc.alive]
        for proc in alive:
            self.tell(proc)
            self.deaths.watch(proc.pid)  # its title may be another by now
            self.kills.look(proc.pid)  # it may have gone into a group of its own
        self.fresh = set(leftovers.present()) - self.before - self.shared
        if self.fresh:
            for key in self.fresh & leftovers.used_by(proc.pid for proc in alive):
                self.shared.add(key)
                self.report("shm", *key)
        cost = time.monotonic() - began
        self.next_look = began + max(_LOOK_S, _SHARE * cost)
        return alive

    def tell(self, proc: tree.Proc | None) -> None:
        """Tell of a process once."""
        if proc is not None and proc.pid not in self.told:
            self.told.add(proc.pid)
            self.deaths.watch(proc.pid)
            self.report("pid", proc.pid, proc.session, proc.start)

    def sweep(self) -> None:
        """Kill until no child is left; then remove what the launch left in files."""
        began = time.monotonic()
        stuck: set[int] = set()
        self.look()
        self.deaths.ending = True
        while True:
            if self.group is not None:
                self.group.kill()
            alive = [proc for proc in tree.descendants([os.getpid()], tree.table()) if proc.alive]
            tree.kill(alive)
            self.reap()
            if self.childless and not (self.group and self.group.populated()):
                break
            waited = time.monotonic() - began
            if waited > _STUCK_S:
                for proc in alive:
                    if proc.pid not in stuck:
                        stuck.add(proc.pid)
                        self.report("stuck", proc.pid, proc.state)
            time.sleep(0.002 if waited < 1 else 0.2)
        self.report_deaths(self.deaths.collect(last=True))
        for file, count in self.kills.since().items():
            self.report("oom", count, file)
        if self.group is not None:
            self.group.remove()
        ours = self.shared | leftovers.semaphores(self.before)
        for path in leftovers.remove_shared(ours):
            self.report("left", path)
        for path in leftovers.remove_folder(self.order.tmpdir):
            self.report("left", path)
        self.report("gone")


_IGNORED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}


def _open_process(pid: int) -> int:
    """A descriptor that turns readable when the process ends; -1 where there is no such thing."""
    try:
        return os.pidfd_open(pid) if os.getppid() == pid else -1
    except (AttributeError, OSError):
        return -1


def main() -> None:
    """Run one launch; returns when nothing of it is left."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    order = read_order(0)
    if order is None:
        return
    guard = Guard(order)
    try:
        if guard.start():
            guard.watch()
    finally:
        guard.sweep()
