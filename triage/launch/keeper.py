"""A process that tidies up once triage is gone, however it went.

In:  on stdin an order (`encode_order`); then the end of the input, which a killed triage gives too.
Out: the commands run, the paths removed; on stdout records that end with NUL: `failed WHY` of a
     command, `left PATH` of a shared-memory file that the launch left.
Not: the server. What a launch by another's hand (a service manager, a container engine, a
     scheduler) leaves can be ended only by asking that hand. Light imports only.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from triage.launch import frame, hiding, leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMAND_S = 20.0
_LOOK_S = 0.1  # between two looks for new shared memory: a server may die right after it made it
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_START = "import sys; sys.path.append(sys.argv[1]); from triage.launch.keeper import main; main()"


def encode_order(
    commands: Sequence[Sequence[str]],
    paths: Sequence[str],
    group: str = "",
    hide: tuple[str, Sequence[str]] = ("", ()),
) -> bytes:
    """What to do at the end: the length in bytes, then fields that end with NUL."""
    folder, values = hide
    fields = [group, folder, str(len(values)), *values, str(len(commands))]
    for command in commands:
        fields += [str(len(command)), *command]
    return frame.encode([*fields, *paths])


class Keeper:
    """The process, from triage's side.

    Args:
        commands: Run in this order; each has 20 s. A failure of one stops none of the others.
        paths: Files and folders that are removed after the first command that is empty, or at
            the end if none is.
        hide: A folder, and the secrets that are hidden in its files after the commands.
        group: What stands in the name of the control group of the launch's processes: the
            shared-memory files that they make are watched, and removed at the end. "": none are.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        paths: Sequence[str] = (),
        *,
        group: str = "",
        hide: tuple[str, Sequence[str]] = ("", ()),
    ) -> None:
        self._order = encode_order(commands, paths, group, hide)
        self._process: subprocess.Popen[bytes] | None = None
        self.removed: tuple[str, ...] = ()  # shared-memory files, once it has finished

    def start(self) -> None:
        """Start it; from here on the order is carried out whatever happens to triage."""
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-I", "-c", _START, str(Path(__file__).parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101  asked for above
        rest = memoryview(self._order)
        while rest:
            rest = rest[os.write(self._process.stdin.fileno(), rest) :]
        assert self._process.stdout is not None  # noqa: S101
        os.read(self._process.stdout.fileno(), 1)  # it has the order

    def watch(self, group: str) -> None:
        """Tell the name of the control group, where it is known only once the launch runs."""
        if self._process is not None and self._process.stdin is not None:
            try:
                os.write(self._process.stdin.fileno(), os.fsencode(group) + b"\0")
            except OSError:
                return  # it was killed; nobody can be told

    def finish(self, wait_s: float = 60.0) -> tuple[str, ...]:
        """Have the order carried out now; what failed, a sentence each."""
        process, self._process = self._process, None
        if process is None:
            return ()
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        process.stdin.close()
        said = b""
        while select.select([process.stdout], [], [], wait_s)[0]:
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                break
            said += more
        process.stdout.close()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            said += b"failed the keeper of the launch does not end\0"
        records = [os.fsdecode(record).partition(" ") for record in said.split(b"\0") if record]
        self.removed = tuple(rest for kind, _, rest in records if kind == "left")
        return tuple(rest for kind, _, rest in records if kind == "failed")


def _run(command: list[str]) -> str:
    """Run one command; "" or what went wrong."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: no end within {_COMMAND_S:.0f} s"
    except OSError as error:
        return f"{command[0]}: {os.strerror(error.errno or 0)}"
    if done.returncode == 0:
        return ""
    why = " ".join(done.stderr.decode(errors="replace").split()) or f"exit {done.returncode}"
    return f"{' '.join(command)}: {why}"


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except IsADirectoryError:
        leftovers.remove_folder(path)
    except OSError:
        return


def main() -> None:
    """Wait for the end of the input, then do what was ordered."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    raw = frame.read(0)
    if raw is None:
        return
    fields = [os.fsdecode(field) for field in raw]
    group, folder, commands = fields[0], fields[1], []
    at = 3 + int(fields[2])
    values = fields[3:at]
    count, at = int(fields[at]), at + 1
    for _ in range(count):
        count = int(fields[at])
        commands.append(fields[at + 1 : at + 1 + count])
        at += 1 + count
    paths = fields[at:]
    before = set(leftovers.present())
    _tell("+")
    ours, group = _watch(group, before)
    for command in commands:
        if not command:
            while paths:
                _remove(paths.pop(0))
        elif failure := _run(command):
            _tell(f"failed {failure}\0")
    for path in paths:
        _remove(path)
    if folder:
        hiding.in_files(folder, values)
    made = leftovers.semaphores(before) if group else set()  # maybe between two looks
    for path in leftovers.remove_shared(ours | made):
        _tell(f"left {path}\0")


def _watch(group: str, before: set[leftovers.FileId]) -> tuple[set[leftovers.FileId], str]:
    """Wait for the end of the input; the shared-memory files that the group used, and its name."""
    ours: set[leftovers.FileId] = set()
    while True:
        if select.select([0], [], [], _LOOK_S if group else None)[0]:
            if not (said := _more()):
                return ours, group
            group = os.fsdecode(said).strip("\0")
        if group and (fresh := set(leftovers.present()) - before - ours):
            ours |= fresh & leftovers.used_by(_members(group))


def _more() -> bytes:
    try:
        return os.read(0, 1 << 12)
    except OSError:
        return b""


def _members(group: str) -> list[int]:
    """The processes whose control group has this in its name."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{name}/cgroup", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                if group in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def _tell(text: str) -> None:
    """Tell triage, if it is there to hear."""
    try:
        os.write(1, os.fsencode(text))
    except OSError:
        return
