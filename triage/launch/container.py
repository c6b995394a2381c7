"""The target `container`: the server in a container, by the user's own docker or podman.

In:  a LaunchSpec whose place is a Container. Out: the server's output, exit code, processes.
Not: reading a `docker run` line (triage.command), or when to stop (supervise.py).

The client runs below the guard like any process, so its output and its exit code are the
container's; what it leaves with the engine (a daemon, or a monitor of its own) a keeper removes.

Source: docker-run(1), podman-run(1): without -d and -t the client passes the output on as two
streams, SIGTERM to the main process, and its exit code.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

from triage.core.launch import Container, LaunchSpec
from triage.errors import HostError, hint
from triage.launch import tree
from triage.launch.asking import ask
from triage.launch.deaths import Death, Deaths
from triage.launch.keeper import Keeper
from triage.launch.process import ProcessTarget
from triage.launch.sockets import own_address
from triage.launch.stacks import dump
from triage.launch.target import Ended, Remains

_CALL_S = 20.0
_ASK_S = 0.5
_GONE_S = 10.0
_LOOK_S = 0.5  # between two looks at its processes
_UNSEEN = "the container's processes were not seen on this machine"
# The engine's own failures. Source: docker-run(1), "Exit status".
_ENGINE = 125
# Options that make a container something else than one watched launch, with a value and without.
_DROPPED = frozenset(
    ["--name", "--restart", "--detach-keys", "-p", "--publish", "--network", "--net", "--cidfile"]
)
_SWITCHES = frozenset(
    ["--detach", "--rm", "--rmi", "--interactive", "--tty", "--publish-all", "--replace", "--quiet"]
)
_CLUSTER = frozenset("ditPq")


def run_words(run: Sequence[str], name: str, env: Sequence[str]) -> tuple[str, ...]:
    """The words of `docker run` up to the image, for one watched launch.

    It gets a name of ours and the host's network, where its listener is seen; it is not
    detached, restarted or removed by itself. Values of `env` come from the client's environment,
    so that no secret stands on a command line.
    """
    at = next(at for at, word in enumerate(run) if word in {"run", "create"})
    kept: list[str] = []
    rest = list(run[at + 1 : -1])
    while rest:
        word = rest.pop(0)
        option, equals, _ = word.partition("=")
        if option in _DROPPED:
            if not equals and rest:
                rest.pop(0)
        elif not _is_dropped(option):
            kept.append(word)
    ours = ["--name", name, "--network", "host"]
    for variable in env:
        ours += ["--env", variable]
    return (*run[:at], "run", *kept, *ours, run[-1])


def _is_dropped(option: str) -> bool:
    """Whether it is a switch that goes, a cluster of such (`-itd`), or `-p8000:8000`."""
    if option.startswith("--"):
        return option in _SWITCHES
    letters = option[1:] if option.startswith("-") else ""
    return letters[:1] == "p" or (letters != "" and set(letters) <= _CLUSTER)


class ContainerTarget:
    """Runs a container attached; see Target."""

    def __init__(self, spec: LaunchSpec, place: Container) -> None:
        self._name = f"triage-{secrets.token_hex(4)}"
        at = next((at for at, w in enumerate(place.run) if w in {"run", "create"}), 1)
        self._engine = place.run[:at]  # docker, with its global options
        names = sorted({*dict(spec.env), "PYTHONUNBUFFERED"})
        words = run_words(place.run, self._name, names)
        env = {"PYTHONUNBUFFERED": "1"} | dict(spec.env)
        self._client = ProcessTarget(
            replace(spec, argv=(*words, *spec.argv), env=tuple(sorted(env.items())), cwd="."),
            grouped=False,  # the engine makes the container's
        )
        self._keeper = Keeper([[*self._engine, "rm", "--force", self._name]])
        self._seen: dict[int, int] = {}
        self._deaths = Deaths()
        self._ends: list[Death] = []
        self._main = 0
        self._asked = self._looked = 0.0

    def start(self) -> None:
        """Start the client; see Target."""
        self._keeper.start()
        self._client.start()

    def begun(self) -> bool:
        """Whether the server runs by now; before, its image may be fetched."""
        return bool(self.pids()) or bool(self._seen) or self._client.poll() is not None

    def poll(self) -> Ended | None:
        """How the main process ended; None while it runs."""
        if self._main and time.monotonic() - self._looked >= _LOOK_S:
            self.pids()
        ended = self._client.poll()
        if ended is not None and ended.exit_code == _ENGINE and not self._seen:
            raise HostError(
                f"{self._engine[0]} cannot run the container.",
                hint=hint(*self._engine, "info"),
            )
        if ended is not None and ended.exit_code is not None and ended.exit_code > 128:  # noqa: PLR2004
            return Ended(128 - ended.exit_code)  # the engine's way to tell a signal
        return ended

    def stop(self, *, force: bool) -> None:
        """SIGTERM to the container's main process, or SIGKILL to all of it."""
        self._deaths.ending = True
        signal = "KILL" if force else "TERM"
        self._run("kill", "--signal", signal, self._name)
        if force:
            self._client.stop(force=True)

    def logs(self, wait_s: float) -> bytes | None:
        """The next bytes of stdout and stderr, merged by the client."""
        return self._client.logs(wait_s)

    def pids(self) -> tuple[int, ...]:
        """The container's processes as this machine numbers them, the main one first."""
        now = time.monotonic()
        if not self._main and now - self._asked >= _ASK_S:
            self._asked = now
            self._main = self._main_pid()
            if self._main and (ident := self._run("inspect", "--format", "{{.Id}}", self._name)):
                self._keeper.watch(ident.strip())
        if not self._main:
            return ()
        self._looked = now
        self._ends += self._deaths.collect()
        table = tree.table()
        main = table.get(self._main)
        below = tree.descendants([self._main], table)
        alive = [proc for proc in ([main] if main else []) + below if proc.alive]
        for proc in alive:
            self._seen.setdefault(proc.pid, proc.start)
            self._deaths.watch(proc.pid)
        return tuple(proc.pid for proc in alive)

    def stacks(self, within_s: float) -> str:
        """Where its processes stand."""
        return dump(self.pids(), within_s=within_s)

    def reach(self, port: int) -> str:
        """The address of our own listener on the port; "" while there is none."""
        return own_address(port, self.pids())

    def close(self) -> Remains:
        """End the container, remove it, and say what the engine knows of it."""
        said = self._said()
        self._ends += self._deaths.collect()
        self._deaths.ending = True
        self._keeper.finish()
        left = self._client.close()
        deadline = time.monotonic() + _GONE_S
        while (alive := tree.living(self._seen)) and time.monotonic() < deadline:
            time.sleep(0.02)
        stuck = tuple(tree.stuck(proc.pid, proc.state) for proc in alive)
        removed = (*left.removed, *self._keeper.removed)
        self._ends += self._deaths.collect(last=True)
        self._deaths.close()
        return Remains(
            tuple(self._seen),
            removed,
            left.stuck + stuck,
            said,
            deaths=tuple(self._ends),
            unseen="" if self._seen else _UNSEEN,
        )

    def _main_pid(self) -> int:
        state = self._state()
        pid = state.get("Pid", 0)
        return pid if isinstance(pid, int) else 0

    def _said(self) -> tuple[str, ...]:
        """The engine's own account of how it ended; the environment is left out."""
        state = self._state()
        told = ("Status", "ExitCode", "OOMKilled", "Error", "StartedAt", "FinishedAt")
        return tuple(
            f"{name}: {state[name]}" for name in told if state.get(name) not in (None, "", False)
        )

    def _state(self) -> dict[str, object]:
        text = self._run("inspect", "--format", "{{json .State}}", self._name)
        try:
            found = json.loads(text or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _run(self, *words: str) -> str:
        try:
            return ask([*self._engine, *words], within_s=_CALL_S, look=self._engine[0]).stdout
        except HostError:
            return ""  # the client, which runs anyway, tells what is wrong with the engine
