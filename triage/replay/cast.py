"""The processes of a simulated launch: the launcher, its ranks and a detokenizer.

In:  the script. Out: a real process tree that prints it, serves or dies, and an exit code.
Not: what the lines say (wording.py) or who answers HTTP (serve.py).

The launcher's reactions are SGLang's: SIGQUIT from a failed child makes it
kill its tree and itself (exit -9), a child's death without a word is a
RuntimeError (exit 1), SIGTERM ends it at once before it serves (-15) and
gracefully after (0).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from triage.replay.manner import Manner
from triage.replay.script import MAIN, Act, Do, Rank
from triage.replay.stage import Clock, Turns, die, fork, leave_orphan, say
from triage.replay.wording import CHILD_FAILED, CHILD_FAILED_LATE, READY

if TYPE_CHECKING:
    from triage.replay.serve import Front

PORT_BUSY = 3  # uvicorn's exit code when it cannot bind


@dataclass
class Cast:
    """One launch in progress, seen from whichever process holds it."""

    acts: tuple[Act, ...]
    ranks: tuple[Rank, ...]
    clock: Clock
    args: dict[str, object]
    host: str
    port: int
    root: str
    pids: list[int] = field(default_factory=list)  # of the ranks, by number
    detokenizer: int = 0
    front: Front | None = None
    manner: Manner = field(default_factory=Manner)
    at: float = 0.0  # the script's second of the last act here

    def play(self, *, orphan: bool) -> NoReturn:
        """Act the script to its end; never returns."""
        self._turns = Turns([MAIN, *(rank.number for rank in self.ranks)])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGQUIT, self._on_child_failed)
        self._fds: list[int] = []
        self._turns.give(self.acts[0].who)
        if orphan:
            leave_orphan()
        spawned = False
        for index, act in enumerate(self.acts):
            if not spawned and not self._launcher_only(index):
                self._spawn()
                spawned = True
            if act.who == MAIN:
                self._main_turn()
                self._act(act, index)
        while True:  # the play ended in a hang; only a death or a signal goes on
            self._main_turn()

    def _launcher_only(self, index: int) -> bool:
        # A failure before the ranks exist must not show ranks.
        return all(act.who == MAIN for act in self.acts) or index == 0

    def _spawn(self) -> None:
        for rank in self.ranks:
            title = f"sglang::scheduler_{rank.tag.replace(' ', '_')}".rstrip("_")
            self.pids.append(fork(title, partial(self._be_rank, rank)))
        self.detokenizer = fork("sglang::detokenizer", _wait_for_ever)
        self._fds = [os.pidfd_open(pid) for pid in (*self.pids, self.detokenizer)]

    def _be_rank(self, rank: Rank) -> None:
        for index, act in enumerate(self.acts):
            if act.who == rank.number:
                self._turns.take(rank.number)
                self._act(act, index)
        _wait_for_ever()

    def _main_turn(self) -> None:
        died = self._turns.take(MAIN, self._fds)
        if died is not None:
            self._on_death(self._fds.index(died))

    def _act(self, act: Act, index: int) -> None:
        self.clock.wait_until(act.at)
        self.at = act.at
        match act.do:
            case Do.SAY:
                self._log(act.text, act.who)
            case Do.RAISE:
                self._raise(act, index)
            case Do.DIE:
                die(act.text)
            case Do.LEAVE:
                if act.who == MAIN:
                    self._kill_tree()
                os._exit(int(act.text))
            case Do.STAND:
                return
            case Do.OPEN:
                self._open()
            case Do.SERVE:
                self._serve()
        if index + 1 < len(self.acts):
            self._turns.give(self.acts[index + 1].who)

    def _log(self, text: str, who: int = MAIN) -> None:
        tag = f" {self.ranks[who].tag}" if who != MAIN and self.ranks[who].tag else ""
        if text == "server_args={server_args}":
            text = f"server_args={self.args!r}"
        say(f"[{self.clock.stamp(self.at)}{tag}] {text}")

    def _log_now(self, text: str) -> None:
        self._catch_up()
        self._log(text)

    def _raise(self, act: Act, index: int) -> None:
        if act.who == MAIN:
            say(act.text.rstrip("\n"))
            self._kill_tree()
            os._exit(1)
        self._log(act.text, act.who)
        if index + 1 == len(self.acts):
            # SGLang's ranks each send it; the first one to arrive ends the launcher,
            # so sending it after the last traceback keeps the log's order.
            os.kill(os.getppid(), signal.SIGQUIT)

    def _catch_up(self) -> None:
        # What main says of its own accord is dated after all that was played.
        if self.front:
            self.at = self.acts[-1].at + self.clock.since(self.acts[-1].at)
        else:
            self.at = max(self.at, min(self.clock.now(), self.acts[-1].at))

    def _on_child_failed(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._catch_up()
        self._log(CHILD_FAILED_LATE if self.front else CHILD_FAILED)
        self._end_by_kill()

    def _on_death(self, index: int) -> NoReturn:
        pid = (*self.pids, self.detokenizer)[index]
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._catch_up()
        name = f"scheduler_{index}" if index < len(self.pids) else "detokenizer"
        if self.front:
            self._log(
                f"Subprocess {name} (pid={pid}) crashed with exit code {code}."
                " Triggering SIGQUIT for cleanup..."
            )
            self._log(CHILD_FAILED_LATE)
            self._end_by_kill()
        pid = os.getpid()
        self._log(f"kill_process_tree called: parent_pid={pid}, include_parent=False, pid={pid}")
        say(
            "Traceback (most recent call last):\n"
            f'  File "{self.root}/entrypoints/engine.py", line 2040, in'
            " _wait_for_scheduler_ready\n"
            "    raise _scheduler_died_error(j, scheduler_procs[j])\n"
            f"RuntimeError: Rank {index} scheduler died during initialization"
            f" (exit code: {code}). If exit code is -9 (SIGKILL), a common cause is the OS OOM"
            " killer. Run `dmesg -T | grep -i oom` to check."
        )
        self._kill_tree()
        os._exit(1)

    def _end_by_kill(self) -> NoReturn:
        pid = os.getpid()
        self._log(f"kill_process_tree called: parent_pid={pid}, include_parent=True, pid={pid}")
        self._kill_tree()
        os.kill(pid, signal.SIGKILL)
        os._exit(1)

    def _kill_tree(self) -> None:
        for pid in (*self.pids, *([self.detokenizer] if self.detokenizer else [])):
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue

    def _open(self) -> None:
        from triage.replay.serve import Front  # noqa: PLC0415  a launch that fails needs no HTTP

        self._log(f"INFO:     Started server process [{os.getpid()}]")
        self._log("INFO:     Waiting for application startup.")
        self._log("INFO:     Application startup complete.")
        try:
            self.front = Front(self.host, self.port, self.args, self._log_now, self.manner)
        except OSError as error:
            self._log(
                f"ERROR:    [Errno {error.errno}] error while attempting to bind on address"
                f" ('{self.host}', {self.port}): {(error.strerror or '').lower()}"
            )
            self._log("INFO:     Waiting for application shutdown.")
            self._kill_tree()
            os._exit(PORT_BUSY)
        self._log(
            f"INFO:     Uvicorn running on http://{self.host}:{self.port} (Press CTRL+C to quit)"
        )
        signal.signal(signal.SIGTERM, self._on_term)
        threading.Thread(target=self.front.serve_forever, daemon=True).start()
        self.front.call("GET", "/model_info")

    def _serve(self) -> NoReturn:
        front = self.front
        if front is None:
            sys.exit("the script serves before it opens")
        front.call("POST", "/generate", {"text": "The capital city of France is"})
        front.warm = True
        self._log(READY)
        while True:
            self._main_turn()

    def _on_term(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        pid = os.getpid()
        self._catch_up()
        self._log(
            "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
        )
        time.sleep(min(2.0, 2.0 / self.clock.speed))
        self._log(
            "Gracefully exiting... Remaining number of requests 0."
            " Remaining requests remaining_rids=[]."
        )
        self._log(f"kill_process_tree called: parent_pid={pid}, include_parent=False, pid={pid}")
        self._kill_tree()
        for line in ("Shutting down", "Waiting for application shutdown."):
            self._log(f"INFO:     {line}")
        self._log("INFO:     Application shutdown complete.")
        self._log(f"INFO:     Finished server process [{pid}]")
        os._exit(0)


def _wait_for_ever() -> None:
    while True:
        signal.pause()
