"""One launch from start to nothing left: read, watch, prove, judge, end.

In:  a Target, a LaunchSpec, a folder, a Watcher. Out: a Capture.
Not: how a target starts and ends processes (process.py), or why a server failed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from triage.core.launch import (
    Capture,
    Crashed,
    Hung,
    Interrupted,
    Job,
    LaunchSpec,
    Outcome,
    Ready,
)
from triage.core.printable import visible
from triage.core.redact import MARKER, redact_text
from triage.core.watch import Watcher
from triage.errors import HostError
from triage.launch import titles, tree
from triage.launch.capture import Record, cannot_write, create
from triage.launch.exits import exits_document, exits_of
from triage.launch.ready import Prover, api_key
from triage.launch.secret_values import secret_values
from triage.launch.server import Server
from triage.launch.sockets import holder, listeners
from triage.launch.stacks import HANG_S, Dumps
from triage.launch.target import Ended, Remains, Target

_POLL_S = 0.1
_OWN_LINES_S = 0.5  # how soon the access log tells of a request of ours
_STACKS = "stacks.txt"
_STACKS_S = 2.0  # for the stacks of a launch that fails while it answers
_KILLED_S = 0.2  # for a reader that ran out of time to be gone
_FROM_OUTSIDE = {-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Graces:
    """Seconds that are waited before an end is taken for one.

    `quiet_s`: the settle window after the fatal line, whose length is the spec's patience,
    ends early when nothing came for so long and every live rank has said how it failed: a
    traceback is many writes. `stop_s`: from SIGTERM to SIGKILL.
    `broken_s`: after a broken connection, for the reason to show. `drain_s`:
    for the end of the log once the server is killed.
    """

    quiet_s: float = 0.5
    stop_s: float = 10.0
    broken_s: float = 10.0
    drain_s: float = 10.0


def supervise(
    target: Target,
    spec: LaunchSpec,
    folder: Path,
    watcher: Watcher,
    *,
    while_ready: Callable[[Server], None] | None,
    say: Callable[[str], None],
    graces: Graces,
    ended: Callable[[], bool] = lambda: False,
) -> Capture:
    """Run one launch; see triage.launch.launch."""
    _require_free(spec.port)
    with Record(folder, secret_values(spec, os.environ)) as record, signals_interrupt():
        watch = _Watch(
            target, spec, watcher, record, while_ready=while_ready, say=say, graces=graces,
            ended=ended,
        )  # fmt: skip
        try:
            target.start()
            outcome = watch.until_judged()
            watch.end(outcome)
        except BaseException as error:
            remains = watch.close(wait_s=2.0)
            how = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            with suppress(HostError):  # the first error is the one to tell
                record.finish(_facts(how, None, target.poll(), remains, watch))
            raise
        remains = watch.close(wait_s=30.0)
        how = type(outcome).__name__.lower()
        record.finish(_facts(how, outcome, target.poll(), remains, watch))
        say(f"{'; '.join(remains.stuck) or 'nothing of it'} is left after {watch.seconds():.1f} s")
        return Capture(
            outcome=outcome,
            seconds=watch.seconds(),
            log=str(record.log),
            phase=watch.phase,
            pids=remains.pids,
            leftovers=(*remains.removed, *remains.stuck),
            stuck=remains.stuck,
            said=remains.said,
            stacks=watch.stacks,
            exits=exits_of(remains, watch.began),
            unseen=remains.unseen,
        )


def _facts(
    how: str,
    outcome: Outcome | None,
    ended: Ended | None,
    remains: Remains,
    watch: _Watch,
) -> dict[str, object]:
    """The content of exit.json; `exit_code` may be of our own SIGTERM or SIGKILL."""
    return {
        "how": how,
        "outcome": asdict(outcome) if outcome else None,
        "exit_code": ended.exit_code if ended else None,
        "seconds": round(watch.seconds(), 3),
        "pids": remains.pids,
        "removed": remains.removed,
        "stuck": remains.stuck,
        "said": remains.said,
        "processes": exits_document(exits_of(remains, watch.began)),
        "unseen": remains.unseen,
    }


class _Watch:
    """What is known of the running launch, and the judgement on it."""

    def __init__(
        self,
        target: Target,
        spec: LaunchSpec,
        watcher: Watcher,
        record: Record,
        *,
        while_ready: Callable[[Server], None] | None,
        say: Callable[[str], None],
        graces: Graces,
        ended: Callable[[], bool],
    ) -> None:
        self.target, self.watcher, self.record = target, watcher, record
        self.patience, self.graces, self.say = spec.patience, graces, say
        # Of ranks on other machines no title is seen, so none of them counts as dead.
        self.elsewhere = isinstance(spec.place, Job) and spec.place.nodes > 1
        self.ended = ended
        self.prover = Prover(spec, watcher, target, while_ready)
        self.began = self.last_byte = self.last_sign = time.monotonic()
        self.fatal_at = 0.0
        self.broken_at = 0.0
        self.phase = "unknown"
        self.stacks = ""
        # The processes of the simulated engine are no engine's.
        self.dumps = Dumps(target.stacks) if spec.engine != "replay" else None
        self._told: set[str] = set()

    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.began

    def until_judged(self) -> Outcome:
        """Read and watch until it is clear how the launch ends; it may still run then."""
        self.say("started")
        self.prover.start()
        while not self.target.begun():  # no patience is spent on waiting for nodes or an image
            self._read(_POLL_S)
            self.began = self.last_byte = self.last_sign = time.monotonic()
        while (outcome := self._judge()) is None:
            self._read(_POLL_S)
            if self.watcher.phase != "unknown":
                self._tell(self.watcher.phase, f"{self.watcher.phase} after {self.seconds():.0f} s")
        self.phase = self.watcher.phase
        return outcome

    def end(self, outcome: Outcome) -> None:
        """Bring the launch to its end, and read its last words."""
        self._store_stacks(outcome)
        if isinstance(outcome, Ready):
            self.target.stop(force=False)
            deadline = time.monotonic() + self.graces.stop_s
            while self.target.poll() is None and time.monotonic() < deadline:
                self._read(_POLL_S)
        self.target.stop(force=True)
        self._drain(self.graces.drain_s)

    def close(self, wait_s: float) -> Remains:
        """End everything, and give the caller's work with the server `wait_s` to notice."""
        remains = self.target.close()
        self.prover.give_up(wait_s)
        return remains

    def _drain(self, within_s: float) -> None:
        """Read what is left of the log; a process that lives on may keep it open."""
        deadline = time.monotonic() + within_s
        while self._read(_POLL_S) and time.monotonic() < deadline:
            continue

    def _read(self, wait_s: float) -> bool:
        """Take the next output; False when there can be none."""
        if self.ended():
            raise KeyboardInterrupt
        chunk = self.target.logs(wait_s)
        now = time.monotonic()
        if written := self.record.take(chunk or b"", now - self.began):
            self.watcher.feed(written)
        if chunk:
            self.last_byte = now
            # A line about a question of ours is no sign of life.
            if now - self.prover.asked_at() > _OWN_LINES_S:
                self.last_sign = now
        return chunk is not None

    def _judge(self) -> Outcome | None:
        now = time.monotonic()
        fatal = self.watcher.fatal_line
        if (ended := self.target.poll()) is not None:
            return self._judge_end(ended)
        if fatal:
            self._tell("fatal", f"line {fatal} is fatal")
            if not self.fatal_at:
                self.fatal_at = now
                self._begin_stacks(self.patience.settle_s)
            return Crashed(exit_code=None, fatal_line=fatal) if self._settled(now) else None
        return self._judge_proof(now) or self._judge_patience(now)

    def _settled(self, now: float) -> bool:
        """Whether the settle window after the fatal line is over."""
        if now - self.fatal_at >= self.patience.settle_s:
            self._tell("settled", f"ending it {self.patience.settle_s:g} s after that line")
            return True
        if now - self.last_byte < self.graces.quiet_s or self._reading_stacks():
            return False
        unheard = self.watcher.unheard()
        if unheard and not self.elsewhere:
            unheard = titles.living(unheard, self.target.pids())
        if unheard:
            return False
        self._tell("settled", "ending it: every live rank has spoken")
        return True

    def _judge_end(self, ended: Ended) -> Outcome:
        """The main process has ended by itself, or was ended by others.

        What it leaves alive may still say why, as long as after a fatal line.
        """
        self._drain(self.patience.settle_s)
        ended = self.target.poll() or ended  # who took it from us may be told later
        if ended.exit_code is None:
            return Interrupted(by=ended.by)
        if ended.exit_code in _FROM_OUTSIDE and not self.watcher.fatal_line:
            return Interrupted(by=f"{signal.Signals(-ended.exit_code).name} from outside")
        return Crashed(exit_code=ended.exit_code)

    def _judge_proof(self, now: float) -> Outcome | None:
        """What the prover says: ready and done, refused, or broken off."""
        prover, error = self.prover, self.prover.error
        if prover.answer is not None:
            self._tell("ready", f"ready after {self.seconds():.1f} s: it answered a generation")
        if not prover.over.is_set():
            return None
        if error is None and prover.answer is not None:
            return Ready(answer=prover.answer)
        if not isinstance(error, OSError):
            raise error or AssertionError("the prover gave up unasked")
        if prover.answer is None:
            reason = f"it answers no generation: {self._harmless(str(error))}"
            self.say(reason)
            return Crashed(exit_code=None, reason=reason)
        if isinstance(error, TimeoutError):
            return Hung(silent_s=now - self.last_byte, limit="answer")
        self.broken_at = self.broken_at or now
        if now - self.broken_at > self.graces.broken_s:
            raise error
        return None

    def _harmless(self, answer: str) -> str:
        """What a server answered, on one line, without secrets and characters that act."""
        if key := api_key(self.prover.spec.argv):
            answer = answer.replace(key, MARKER)
        return " ".join(visible(redact_text(answer)).split())

    def _judge_patience(self, now: float) -> Outcome | None:
        """Silence and total time; neither counts once the server is ready."""
        if self.prover.answer is not None:
            return None
        silent = now - self.last_sign
        phase = self.watcher.phase
        if silent > self.patience.silent_in(phase):
            limit = phase if phase in self.patience.phases else "silent"
            return Hung(silent_s=silent, limit=limit)
        if now - self.began > self.patience.total_s:
            return Hung(silent_s=silent, limit="total")
        return None

    def _begin_stacks(self, within_s: float) -> None:
        """Start reading where its processes stand, while they live; nothing waits for it."""
        if self.dumps is not None:
            self.dumps.begin(within_s)

    def _reading_stacks(self) -> bool:
        return self.dumps is not None and self.dumps.running

    def _store_stacks(self, outcome: Outcome) -> None:
        """Keep the stacks of a launch that failed, which are read now if it still lives."""
        dumps, within_s = self.dumps, 0.0
        if isinstance(outcome, Hung):
            self.say("patience is over; reading the stacks of its processes")
            dumps, within_s = dumps or Dumps(self.target.stacks), HANG_S
        elif isinstance(outcome, Crashed) and self.target.poll() is None and not self.fatal_at:
            within_s = _STACKS_S  # it was stopped for what it answered
        if dumps is None:
            return
        if within_s:
            dumps.begin(within_s)
        text = dumps.text(within_s + _KILLED_S)
        if not text:
            return
        path = self.record.folder / _STACKS
        try:
            with create(path) as file:
                file.write(self.record.mask.text(redact_text(text)).encode())
        except OSError as error:
            raise cannot_write(self.record.folder, error) from error
        self.stacks = str(path)

    def _tell(self, key: str, text: str) -> None:
        """Say it once."""
        if key not in self._told:
            self._told.add(key)
            self.say(text)


def _require_free(port: int) -> None:
    """Refuse a port that somebody listens on: nobody could tell who answers.

    Raises:
        HostError: The port is taken.
    """
    if port <= 0:
        raise ValueError("a launch needs the port on which the server will listen")
    taken = listeners(port)
    if not taken:
        return
    processes = tree.table()
    pid = holder(taken[0], processes)
    by = f"process {pid} ({processes[pid].comm})" if pid else "a process of another user"
    raise HostError(f"Port {port} is already taken by {by}.", hint=f"ss -ltnp 'sport = :{port}'")


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP act like Ctrl-C meanwhile, unless the program has its own handler."""

    def interrupt(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    changed = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
