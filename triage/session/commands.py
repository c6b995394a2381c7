"""Server commands as sides of a comparison: what they set, and what the engine makes of that.

In:  files with commands. Out: Side values.
Not: comparing (triage.core.diff), or the engine's side (triage.launch.inside).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from triage.core.config import ServerCommand
from triage.core.diff.side import Side, flat
from triage.core.resolution import Resolution
from triage.errors import HostError
from triage.session.diff import Reader
from triage.session.logs import flag_table
from triage.session.resolve import Engine, diagnosis_of

NO_RESOLUTION = "only the flags that were typed are known: nothing resolved them"


class Commands:
    """Reads commands; the engine of several that start alike is imported once.

    Args:
        ask: Whether it is asked at all.
        say: Called before it is asked first.
    """

    def __init__(self, *, ask: bool, say: Callable[[str], None] | None) -> None:
        self._ask, self._say = ask, say
        self._stack = ExitStack()
        self._engines: dict[object, Engine] = {}

    def __enter__(self) -> Self:
        """Nothing is started yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every engine that was imported."""
        self._stack.close()

    def side(self, path: Path) -> Side:
        """The command in this file.

        Raises:
            UsageError: it holds none.
            HostError: it cannot be read.
        """
        from triage.command import read_command_file

        command: ServerCommand = read_command_file(path, flag_table())
        side = Side(
            source=str(path),
            kind="command",
            typed=command.config,
            unresolved=NO_RESOLUTION,
            env=command.config.env_values(),
            complete_env=True,
        )
        if not self._ask or command.wrapper or command.unresolved:
            return side
        engine = self._engine(command)
        if engine.why:
            return replace(side, unresolved=f"{NO_RESOLUTION} ({engine.why})")
        try:
            found = engine.resolve(command.config)
        except HostError as error:
            return replace(side, unresolved=f"{NO_RESOLUTION} ({error.message})")
        return _resolved(side, found)

    def _engine(self, command: ServerCommand) -> Engine:
        key = command.program, command.cwd
        if key not in self._engines:
            cwd = Path(command.cwd or ".")
            engine = self._stack.enter_context(Engine(command.program, cwd=cwd))
            if not engine.why and not self._engines and self._say:
                self._say("asking the engine what it makes of the flags, which takes seconds")
            self._engines[key] = engine
        return self._engines[key]


def _resolved(side: Side, found: Resolution) -> Side:
    """The side with what the engine answered: its values, its variables, its words."""
    reader = Reader()
    for _ in reader.watching([found.log.encode("utf-8", "replace")]):
        pass
    told = replace(
        side,
        engine="sglang",
        engine_version=found.version or None,
        decisions=reader.facts.decisions,
        versions=reader.facts.versions,
    )
    match found.verdict:
        case "accepted":
            made = {name: value for name, value in found.env.items() if value is not None}
            return replace(told, resolved=flat(found.resolved), unresolved="", made=made)
        case "rejected":
            diagnosis = diagnosis_of(found)
            message = found.message.strip().split("\n", 1)[0][:200]
            return replace(
                told,
                outcome="failed",
                phase=found.phase,
                cause=diagnosis.cause if diagnosis else None,
                fingerprint=diagnosis.fingerprint if diagnosis else None,
                unresolved=f"the engine rejects it: {message or found.exception}",
            )
        case _:
            return replace(side, unresolved=f"{NO_RESOLUTION} ({found.reason})")
