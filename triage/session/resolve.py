"""Ask the engine what it makes of a configuration, before anything is launched.

In:  how launches are made (Setup), configurations. Out: a Resolution each, its Diagnosis.
Not: the engine's side (triage.launch.inside), or what a search does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from triage.core.config import Config, SetEnv, SetFlag, UnsetEnv, apply, argv
from triage.core.diagnosis import Diagnosis
from triage.core.launch import Crashed
from triage.core.resolution import Resolution, unknown
from triage.launch import free_port
from triage.launch.engine_python import engine_python, engine_version
from triage.launch.resolver import EACH_S, START_S, Resolver
from triage.session.logs import classify_text

_OURS = ("host", "port")
MOST_RESOLVERS = 2  # engines kept imported at once, one an environment; each takes 1 GB


class Engine:
    """The engine of one investigation, asked without launching it.

    Each environment has an interpreter of its own, as the engine reads variables while it is
    imported. `why` says why nothing can be asked, where that is so.
    """

    def __init__(
        self,
        program: Sequence[str],
        env: Sequence[tuple[str, str]] = (),
        cwd: Path = Path(),
        *,
        python: str | None = None,
        start_s: float = START_S,
        each_s: float = EACH_S,
    ) -> None:
        self._env, self._cwd = tuple(env), cwd
        self._limits = start_s, each_s
        self._resolvers: dict[object, Resolver] = {}
        self._stack = ExitStack()
        self._port = 0
        self.python = python or engine_python(program, cwd, dict(env).get("PATH", ""))
        self.missing = False
        self.version = engine_version(self.python) if self.python else ""
        self.import_s = 0.0
        self.why = "" if self.python else "the command does not tell which Python runs the engine"

    def __enter__(self) -> Self:
        """The engine; it is started at the first question."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what was started."""
        self.close()

    def resolve(self, config: Config, unset: Sequence[str] = ()) -> Resolution:
        """What the engine makes of the configuration; unknown where it cannot be asked.

        Args:
            config: As it would be launched; `host` and `port` are replaced.
            unset: Variables that the launch must not have.

        Raises:
            HostError: this machine has no free block of ports.
        """
        if self.why or self.python is None:
            return unknown(self.why)
        env = apply(Config.of({}, dict(self._env)), map(UnsetEnv, unset))
        env = apply(env, (SetEnv(name, value) for name, value in config.env))
        resolver = self._resolver(env.env, tuple(unset))
        if not self._port:
            self._port = self._stack.enter_context(free_port())
        placed = apply(
            config.without(_OURS),
            (SetFlag("host", "127.0.0.1"), SetFlag("port", str(self._port))),
        )
        found = resolver.resolve(argv(placed))
        self.version = resolver.version or self.version
        self.import_s = self.import_s or resolver.import_s
        self.missing = resolver.missing
        if resolver.why and not resolver.version:
            self.why = resolver.why
        return found

    def flag_rows(self) -> tuple[list[dict[str, Any]], str]:
        """The rows of the engine's own flag table; or none, and why."""
        if self.why or self.python is None:
            return [], self.why
        resolver = self._resolver(self._env, ())
        rows, why = resolver.flag_rows()
        self.version, self.missing = resolver.version or self.version, resolver.missing
        return rows, why

    def close(self) -> None:
        """End every interpreter; nothing of them is left."""
        for resolver in self._resolvers.values():
            resolver.close()
        self._resolvers.clear()
        self._stack.close()
        self._port = 0

    def _resolver(self, env: tuple[tuple[str, str], ...], unset: tuple[str, ...]) -> Resolver:
        key = (env, unset)
        found = self._resolvers.pop(key, None)
        if found is None:
            while len(self._resolvers) >= MOST_RESOLVERS:
                self._resolvers.pop(next(iter(self._resolvers))).close()
            start_s, each_s = self._limits
            found = Resolver(
                (self.python or "",),
                env=env,
                unset_env=unset,
                cwd=self._cwd,
                start_s=start_s,
                each_s=each_s,
            )
        self._resolvers[key] = found  # the last one asked is the last one closed
        return found


def diagnosis_of(resolution: Resolution, source: str = "resolution") -> Diagnosis | None:
    """What the classifier says of a rejection, as it would of the launch; None if it is none.

    The phase is the one that the resolution was in: a short log has no landmark of it.
    """
    if resolution.verdict != "rejected":
        return None
    found = classify_text(
        resolution.log, source=source, outcome=Crashed(exit_code=resolution.exit_code)
    )
    return found if found.phase != "unknown" else replace(found, phase=resolution.phase)
