"""Collect what one launch leaves beside its log, and read it again.

In:  a LaunchSpec, the folder of the launch, the phase that it is in. Out: Evidence; on disk
     gpus.jsonl, kernel.log, server_info.json, evidence.json, and environment.json once a session.
Not: the log, the ends of processes and the stacks (triage.launch), or what it proves
     (triage.core.log.outside).

Everything is redacted before it is stored. What a target does not let this machine see is told
as not available, with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from triage.core.diagnosis import Diagnosis
from triage.core.evidence import Difference, Evidence, Piece, gpu_lines
from triage.core.launch import Capture, Container, Exit, Job, LaunchSpec, Process
from triage.core.log.outside import end_line, first_end, with_outside
from triage.core.machine.facts import Unavailable
from triage.core.redact import MARKER, redact_document, redact_text
from triage.launch import Server
from triage.launch.engine_python import engine_python
from triage.launch.ready import api_key
from triage.machine.kernel import KernelLog
from triage.machine.patience import Reading
from triage.machine.recorder import Recorder
from triage.machine.versions import Ran, ran_with
from triage.render.evidence_document import evidence_document, evidence_of
from triage.session.logs import causes, flag_table
from triage.store import session_of, unwritable, write_document

EVIDENCE, ENVIRONMENT = "evidence.json", "environment.json"
GPUS, KERNEL, SERVER_INFO = "gpus.jsonl", "kernel.log", "server_info.json"
SIMULATED = "simulated"
_ASK_S = 5.0
_ENVIRONMENT_S = 5.0
_MOST_INFO = 4 << 20
_INFO_PATHS = ("/server_info", "/get_server_info")  # the second is older
_MOST_DIFFERENCES = 200


class Gathering:
    """What is collected while a launch runs; use it as a context around the launch.

    Args:
        spec: The launch.
        folder: Where its log is written.
        phase: The phase that it is in.
        program: The words of its command before the server's flags.
        devices: The GPUs that it is given, if it is not all of them.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        folder: Path,
        phase: Callable[[], str],
        program: Sequence[str],
        *,
        devices: Collection[int] = (),
    ) -> None:
        self._spec, self._folder = spec, folder
        self._simulated = spec.engine == "replay"
        self._recorder = Recorder(folder / GPUS, phase, only=devices)
        self._kernel: KernelLog | None = None
        self._program = program
        self._info = Piece(kind="server-info", missing="the server did not come up")
        self._ran: Reading[Ran] | None = None
        self._gpus = self._kernel_why = SIMULATED if self._simulated else ""
        if isinstance(spec.place, Job) and not self._simulated:
            self._gpus = "they are those of the job's nodes"
            self._kernel_why = "it is that of the job's nodes"

    def __enter__(self) -> Gathering:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        if not self._simulated:
            self._ran = Reading("the engine's Python", self._read_environment, _ENVIRONMENT_S)
        if not self._kernel_why:
            self._kernel = KernelLog()
        if not self._gpus:
            self._recorder.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.end()
        if self._kernel is not None:
            self._kernel.close()

    def asking(self, work: Callable[[Server], None] | None) -> Callable[[Server], None]:
        """The same work with a running server, which tells of itself first."""

        def both(server: Server) -> None:
            self._info = self._ask(server)
            if work is not None:
                work(server)

        return both

    def finish(self, capture: Capture) -> Evidence:
        """All of it, once the launch has ended; stored in its folder.

        Raises:
            HostError: it cannot be written, or the disk is full.
        """
        try:
            return self._finished(capture)
        except OSError as error:
            raise unwritable(self._folder, error) from error

    def _finished(self, capture: Capture) -> Evidence:
        self._recorder.end()
        kernel = self._kernel_lines()
        uses = self._recorder.uses({one.pid for one in capture.exits} | set(capture.pids))
        environment, differences = self._environment()
        evidence = Evidence(
            pieces=(
                _log_piece(capture),
                _exits_piece(capture.exits, capture.unseen),
                _stacks_piece(capture, simulated=self._simulated),
                self._gpu_piece(uses),
                self._kernel_piece(kernel),
                environment,
                self._info,
            ),
            gpus=uses,
            share=self._recorder.share,
            kernel=() if isinstance(kernel, Unavailable) else kernel,
            differences=differences,
            simulated=self._simulated,
        )
        write_document(self._folder / EVIDENCE, evidence_document(evidence))
        return evidence

    def _gpu_piece(self, uses: tuple[Any, ...]) -> Piece:
        missing = self._gpus or self._recorder.missing
        if missing:
            return Piece(kind="gpus", missing=missing)
        recorder = self._recorder
        said = "; ".join(gpu_lines(uses)) or "nothing of note"
        full = ", its file full before the end" if recorder.capped else ""
        count = f"{recorder.readings} readings of {len(uses)} GPUs{full}"
        return Piece(kind="gpus", file=GPUS, say=f"{count}: {said}")

    def _kernel_lines(self) -> tuple[str, ...] | Unavailable:
        if self._kernel is None:
            return Unavailable(self._kernel_why)
        lines = self._kernel.lines()
        return lines if isinstance(lines, Unavailable) else tuple(map(redact_text, lines))

    def _kernel_piece(self, lines: tuple[str, ...] | Unavailable) -> Piece:
        if isinstance(lines, Unavailable):
            return Piece(kind="kernel", missing=lines.reason)
        if not lines:
            return Piece(kind="kernel", say="no line of it is about memory, GPUs, faults or disks")
        write_document(self._folder / KERNEL, "\n".join(lines) + "\n")
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        return Piece(kind="kernel", file=KERNEL, say=f"{lines[0]}{more}")

    def _read_environment(self) -> Ran | Unavailable:
        spec = self._spec
        python: str | Unavailable
        env = dict(spec.env)
        match spec.place:
            case Container():
                python = Unavailable("the engine's packages are inside the container")
            case Job():
                python = Unavailable("the engine's packages are those of the job's nodes")
            case place:
                if isinstance(place, Process):
                    inherited = os.environ.keys() - set(spec.unset_env)
                    env = {name: os.environ[name] for name in inherited} | env
                found = engine_python(self._program, Path(spec.cwd), env.get("PATH", ""))
                python = found or Unavailable("the command does not tell which Python runs it")
        return ran_with(python, env, gpus=not self._gpus)

    def _environment(self) -> tuple[Piece, tuple[Difference, ...]]:
        """The session's account if there is none yet, else what differs from it."""
        if self._ran is None:
            return Piece(kind="environment", missing=SIMULATED), ()
        ran = self._ran.fact()
        if isinstance(ran, Unavailable):
            return Piece(kind="environment", missing=ran.reason), ()
        session = session_of(self._folder)
        path = (session or self._folder) / ENVIRONMENT
        name = f"../../{ENVIRONMENT}" if session else ENVIRONMENT
        said = f"{len(ran.packages)} packages of {ran.python}" if not ran.missing else ran.missing
        if not isinstance(self._spec.place, Process):
            said += "; of its variables those that triage sets"
        stored = _stored_environment(path)
        document = environment_document(ran)
        if stored is None:
            write_document(path, document)
            return Piece(kind="environment", file=name, say=said), ()
        found = differences(stored, document)
        shown = ", ".join(one.name for one in found[:4]) + (" and more" if len(found) > 4 else "")  # noqa: PLR2004
        say = f"as at the first launch, but for {shown}" if found else "as at the first launch"
        return Piece(kind="environment", file=name, say=say), found[:_MOST_DIFFERENCES]

    def _ask(self, server: Server) -> Piece:
        """What the server says of itself, kept without secrets."""
        told: object = None
        for path in _INFO_PATHS:
            try:
                told = server.get(path, timeout_s=_ASK_S)
            except OSError as error:
                return Piece(kind="server-info", missing=f"it did not answer: {error}")
            if isinstance(told, dict):
                break
        if not isinstance(told, dict):
            return Piece(kind="server-info", missing="this server tells nothing of itself")
        shown = _without(redact_document(told), api_key(self._spec.argv))
        if len(json.dumps(shown)) > _MOST_INFO:
            return Piece(kind="server-info", missing="it says more than 4 MB of itself")
        try:
            document = {"schema": "triage.served/1", "path": path, "told": shown}
            write_document(self._folder / SERVER_INFO, document)
        except OSError as error:
            return Piece(kind="server-info", missing=f"it cannot be written: {error.strerror}")
        version = told.get("version")
        say = f"{len(told)} values" + (f" of version {version}" if version else "")
        return Piece(kind="server-info", file=SERVER_INFO, say=say)


def environment_document(ran: Ran) -> dict[str, Any]:
    """`triage.environment/1`."""
    return {
        "schema": "triage.environment/1",
        "python": ran.python,
        "python_version": ran.python_version,
        "missing": ran.missing,
        "packages": dict(ran.packages),
        "system": dict(ran.system),
        "variables": dict(ran.variables),
        "names": list(ran.names),
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> tuple[Difference, ...]:
    """What is not as it was between two accounts, by name."""
    old, new = _flat(redact_document(before)), _flat(redact_document(after))
    return tuple(
        Difference(name=name, before=old.get(name), after=new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def read_evidence(folder: Path) -> Evidence | None:
    """The stored evidence of a launch; None where there is none, as of an older triage."""
    try:
        stored = json.loads((folder / EVIDENCE).read_bytes())
        return evidence_of(stored)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def evidence_lines(evidence: Evidence, folder: Path) -> tuple[str, ...]:
    """A line for each kind of evidence beside the log: its file and what it shows, or why none."""
    return tuple(
        f"{piece.kind}: not available: {piece.missing}"
        if piece.missing
        else ": ".join(filter(None, (piece.kind, _shown(folder, piece.file), piece.say)))
        for piece in evidence.pieces
        if piece.kind != "log"
    )


def _shown(folder: Path, file: str) -> str:
    return os.path.normpath(folder / file) if file else ""


def in_its_light(
    diagnosis: Diagnosis, exits: Sequence[Exit], evidence: Evidence | None, said: Sequence[str]
) -> Diagnosis:
    """The diagnosis of a launch's log with what else is known of the launch.

    `said` is what the hand that ran it told of its end.
    """
    kernel = evidence.kernel if evidence else ()
    return with_outside(diagnosis, exits, kernel, causes(), said=said, table=flag_table())


def read_exits(folder: Path) -> tuple[Exit, ...]:
    """How the processes of a stored launch ended; empty where that was not kept."""
    try:
        stored = json.loads((folder / "exit.json").read_bytes())
        return tuple(Exit(**one) for one in stored.get("processes", ()))
    except (OSError, ValueError, TypeError, AttributeError):
        return ()


def read_said(folder: Path) -> tuple[str, ...]:
    """What was told of the end of a stored launch by who ran it."""
    try:
        return tuple(map(str, json.loads((folder / "exit.json").read_bytes())["said"]))
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _flat(document: object) -> dict[str, str]:
    if not isinstance(document, dict):
        return {}
    packages, system, variables, names = (
        document.get(key) or {} for key in ("packages", "system", "variables", "names")
    )
    python = f"{document.get('python', '')} {document.get('python_version', '')}".strip()
    return {
        **{f"package {name}": str(version) for name, version in dict(packages).items()},
        **{str(name): str(value) for name, value in dict(system).items()},
        **({"Python": python} if python else {}),
        **{f"variable {name}": "(set)" for name in list(names)},
        **{f"variable {name}": str(value) for name, value in dict(variables).items()},
    }


def _stored_environment(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) else None


def _without(value: object, secret: str) -> object:
    """The value with a secret of the command taken out wherever it stands."""
    if not secret:
        return value
    match value:
        case str():
            return value.replace(secret, MARKER)
        case dict():
            return {name: _without(inner, secret) for name, inner in value.items()}
        case list():
            return [_without(inner, secret) for inner in value]
        case _:
            return value


def _log_piece(capture: Capture) -> Piece:
    path = Path(capture.log)
    try:
        size = path.stat().st_size
    except OSError as error:
        return Piece(kind="log", missing=str(error.strerror))
    return Piece(kind="log", file=path.name, say=f"{size} bytes, as they were written")


def _exits_piece(exits: tuple[Exit, ...], unseen: str) -> Piece:
    if unseen or not exits:
        return Piece(kind="exits", file="exit.json", missing=unseen or "no process was seen")
    first = first_end(exits)
    unknown = sum(one.exit_code is None for one in exits)
    say = f"{len(exits)} processes"
    say += f" ({unknown} of them ended unseen)" if unknown else ""
    say += f"; {end_line(first, exits)}" if first else ""
    return Piece(kind="exits", file="exit.json", say=say)


def _stacks_piece(capture: Capture, *, simulated: bool) -> Piece:
    if not capture.stacks:
        why = SIMULATED if simulated else "no process was alive when it failed, or it did not fail"
        return Piece(kind="stacks", missing=why)
    path = Path(capture.stacks)
    text = path.read_text(encoding="utf-8", errors="replace")
    heads, bare = text.count("== process "), text.count("\nno stack: ")
    say = f"{heads} processes" + (f", {bare} of them without a stack" if bare else "")
    return Piece(kind="stacks", file=path.name, say=say)
