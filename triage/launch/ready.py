"""The proof that a server is ready: our own listener answers a generation.

In:  the launch's Target, its port, and what the Watcher has read.
Out: a Server and the text that it generated; then whatever the caller does with it.
Not: deciding that the launch failed (supervise.py).

An open port, the engine's ready line, or /health 200 alone prove nothing: a
foreign server on the port answers 200 too, and SGLang then prints its ready
line after it failed to bind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from triage.core.launch import LaunchSpec
from triage.core.watch import Watcher
from triage.launch.server import Refused, Server
from triage.launch.target import Target

_PROMPT = "The capital of France is"
_TOKENS = 8
_LOOK_S = 0.2  # between two looks for a listener
_FIRST_HEALTH_S = 2.0  # most engines print their ready line sooner
_SLOWEST_S = 10.0
_RETRY_S = 0.6  # after a generation that failed
_UNAVAILABLE = 503
_REFUSALS = 5


class Prover(threading.Thread):
    """Waits for readiness, proves it, and then lets the caller work with the server.

    Attributes:
        server: Our listener's address, once there is one.
        answer: What was generated, once the server is proved ready.
        error: What ended the work: of `while_ready`, or Refused before any answer.
        over: The work is done, or `error` says why not.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        watcher: Watcher,
        target: Target,
        while_ready: Callable[[Server], None] | None,
    ) -> None:
        super().__init__(name="triage-prover", daemon=True)
        self.server: Server | None = None
        self.answer: str | None = None
        self.error: BaseException | None = None
        self.over = threading.Event()
        self._given_up = threading.Event()
        self.spec, self._watcher, self._target = spec, watcher, target
        self._while_ready = while_ready

    def give_up(self, wait_s: float) -> None:
        """Stop waiting for readiness; the thread is given `wait_s` to notice."""
        self._given_up.set()
        if self.ident is not None:  # it was started
            self.join(wait_s)

    def asked_at(self) -> float:
        """When we last asked the server something, on the monotonic clock."""
        return self.server.asked if self.server else 0.0

    def run(self) -> None:
        """The thread: prove, then hand over."""
        try:
            self.answer = self._prove()
            if self.answer is not None and self.server and self._while_ready:
                self._while_ready(self.server)
        except BaseException as error:  # noqa: BLE001  carried to the thread that launched
            self.error = error
        self.over.set()

    def _prove(self) -> str | None:
        """The answer to a first generation; None once given up.

        Raises:
            Refused: The server says that it is ready, and answers only errors.
        """
        pause, refusals = _LOOK_S, 0
        health_pause, next_health = _FIRST_HEALTH_S, 0.0
        while not self._given_up.wait(pause):
            pause = _LOOK_S
            server = self._own_server()
            if server is None:
                continue
            if self._watcher.ready_line == 0:
                now = time.monotonic()
                next_health = next_health or now + health_pause
                if now < next_health:
                    continue
                if not self._healthy(server):
                    # Ever more seldom: each question is a line in the server's log.
                    health_pause = min(_SLOWEST_S, 1.5 * health_pause)
                    next_health = time.monotonic() + health_pause
                    continue
            try:
                answer = server.generate(_PROMPT, _TOKENS)
            except Refused as error:
                refusals += error.status != _UNAVAILABLE
                if refusals == _REFUSALS:
                    raise
            except OSError:
                pass  # not yet, or no more: the supervisor sees the difference
            else:
                if self._own_server() is server:
                    return answer
            pause = _RETRY_S
        return None

    def _healthy(self, server: Server) -> bool:
        try:
            return server.healthy()
        except OSError:
            return False

    def _own_server(self) -> Server | None:
        """Our listener on the port; the same object as long as it is the same address."""
        address = self._target.reach(self.spec.port)
        if not address:
            return None
        if self.server is None or self.server.host != address:
            self.server = Server(
                address,
                self.spec.port,
                pids=self._target.pids,
                api_key=api_key(self.spec.argv),
                timeout_s=self.spec.patience.silent_s,
            )
        return self.server


def api_key(argv: tuple[str, ...]) -> str:
    """The key that the server was told to ask for, or ""."""
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        if word == "--api-key":
            return following
        if word.startswith("--api-key="):
            return word.partition("=")[2]
    return ""
