"""Ask the engine itself what it makes of a configuration, without a launch.

In:  the engine's Python, the environment and folder of a launch; the words of configurations.
Out: a Resolution each; the rows of the engine's own flag table.
Not: what runs on the other side (inside.py), or what an answer is worth (triage.session).

The other side stands below a guard like every launch: nothing of it outlives triage. What it
says is a stranger's: of any size, of any shape, or nothing at all.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from triage.core.diagnosis import Frame
from triage.core.launch import LaunchSpec
from triage.core.resolution import Resolution, unknown
from triage.errors import HostError, UsageError
from triage.launch.process import ProcessTarget

INSIDE = Path(__file__).with_name("inside.py")
MAX_ANSWER = 16 << 20  # a resolved SGLang 0.5.23 has 40 kB, its flag table 100 kB
MAX_TEXT = 100_000
START_S = 300.0  # importing SGLang takes 10 s, on a cold and busy machine minutes
EACH_S = 60.0
_GRACE_S = 10.0  # the other side keeps the time itself; this is for the case that it cannot
_TAIL = 4000
_NAME = "resolve"  # of the socket, in the TMPDIR that the guard makes and removes
_BOOT = (
    "import sys; f = sys.argv[1]; "
    "exec(compile(open(f).read(), f, 'exec'), {'__name__': '__main__', '__file__': f})"
)


class Resolver:
    """One engine, imported once, in one environment; asked as often as one likes.

    Nothing is started before the first question. An engine that cannot be had is an answer,
    too: every configuration is unknown then, and `why` says for what reason.
    """

    def __init__(
        self,
        python: Sequence[str],
        *,
        env: Sequence[tuple[str, str]] = (),
        unset_env: Sequence[str] = (),
        cwd: Path = Path(),
        start_s: float = START_S,
        each_s: float = EACH_S,
    ) -> None:
        self._spec = (tuple(python), tuple(env), tuple(unset_env), str(cwd))
        self._start_s, self._each_s = start_s, each_s
        self._target: ProcessTarget | None = None
        self._socket: socket.socket | None = None
        self._printed = b""
        self._restarts = 0
        self.why = ""
        self.version = ""
        self.missing = False  # there is no SGLang in this Python
        self.import_s = 0.0

    def __enter__(self) -> Self:
        """The resolver; it starts at the first question."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what was started."""
        self.close()

    def ready(self) -> bool:
        """Whether the engine is imported and answers; starts it if need be."""
        if self._socket is None and not self.why:
            self._open()
        return self._socket is not None

    def resolve(self, argv: Sequence[str]) -> Resolution:
        """What the engine makes of these words, which are those of the server's flags."""
        if not self.ready():
            return unknown(self.why)
        began = time.monotonic()
        request = {"do": "resolve", "argv": list(argv), "timeout": self._each_s}
        answer = self._ask(request, self._each_s + _GRACE_S)
        if answer is None:
            said = f"the engine's resolver ended or fell silent: {self._last_words()}"
            self.close()
            self._restarts += 1
            self.why = said if self._restarts > 1 else ""  # once may be this configuration's fault
            return unknown(said, seconds=time.monotonic() - began)
        return resolution_of(answer, self.version)

    def flag_rows(self) -> tuple[list[dict[str, Any]], str]:
        """The engine's flags as rows of `triage.flags/1`; or none, and why."""
        if not self.ready():
            return [], self.why
        answer = self._ask({"do": "flags"}, self._each_s)
        if answer is None:
            return [], f"the engine's resolver ended or fell silent: {self._last_words()}"
        rows = answer.get("rows")
        if not isinstance(rows, list):
            return [], _text(answer.get("why")) or "the engine gave no flags"
        good = [row for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)]
        return good, _text(answer.get("why"))

    def close(self) -> None:
        """End the engine's process, and wait until nothing of it is left."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._target is not None:
            self._target.stop(force=True)
            self._target.close()
            self._target = None

    def _open(self) -> None:
        """Start the engine's Python, connect, and hear its greeting; else say why not."""
        python, env, unset, cwd = self._spec
        spec = LaunchSpec(
            argv=(*python, "-c", _BOOT, str(INSIDE.absolute())),
            env=env,
            unset_env=unset,
            cwd=cwd,
        )
        self._target = ProcessTarget(spec)
        self._printed = b""
        deadline = time.monotonic() + self._start_s
        try:
            self._target.start()
            path = Path(self._target.tmpdir) / _NAME
            while not path.exists() and self._alive(deadline):
                continue
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(str(path))
        except (OSError, HostError, UsageError) as error:
            self.why = self._last_words() or str(error)
            self.close()
            return
        greeting = self._hear(deadline)
        if greeting is None:
            self.why = self._last_words() or f"SGLang was not imported within {self._start_s:g} s"
            self.close()
            return
        self.version = _text(greeting.get("version"), 100)
        self.missing = greeting.get("missing") is True
        self.import_s = _number(greeting.get("seconds"))
        if greeting.get("ready") is not True:
            self.why = _text(greeting.get("why"), 1000) or "the engine cannot be imported"
            self.close()
        elif greeting.get("cuda") is not False:
            self.why = "importing the engine initialised CUDA: forks of it would be useless"
            self.close()

    def _alive(self, deadline: float) -> bool:
        """Read what it prints for a moment; whether there is anything more to wait for."""
        assert self._target is not None  # noqa: S101
        chunk = self._target.logs(0.02)
        if chunk:
            self._printed = (self._printed + chunk)[-_TAIL:]
        return chunk is not None and self._target.poll() is None and time.monotonic() < deadline

    def _ask(self, request: Mapping[str, object], limit_s: float) -> dict[str, Any] | None:
        raw = json.dumps(request).encode()
        assert self._socket is not None  # noqa: S101
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(struct.pack(">I", len(raw)) + raw)
        except OSError:
            return None
        return self._hear(time.monotonic() + limit_s)

    def _hear(self, deadline: float) -> dict[str, Any] | None:
        """The next document; None if it ends, falls silent, or is none."""
        head = self._exactly(4, deadline)
        size = struct.unpack(">I", head)[0] if head else 0
        if not 0 < size <= MAX_ANSWER:
            return None
        body = self._exactly(size, deadline)
        try:
            document = json.loads(body) if body else None
        except (ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def _exactly(self, count: int, deadline: float) -> bytes:
        """So many bytes; b"" if they do not come. What it prints meanwhile is read, too."""
        assert self._socket is not None  # noqa: S101
        self._socket.settimeout(0.05)
        parts: list[bytes] = []
        missing = count
        while missing:
            try:
                part = self._socket.recv(min(missing, 1 << 20))
            except TimeoutError:
                if not self._alive(deadline):
                    return b""
                continue
            except OSError:
                return b""
            if not part:
                return b""
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _last_words(self) -> str:
        """The last line that it printed."""
        if self._target is not None:
            with suppress(OSError):
                while chunk := self._target.logs(0):
                    self._printed = (self._printed + chunk)[-_TAIL:]
        lines = self._printed.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def resolution_of(answer: Mapping[str, Any], version: str = "") -> Resolution:
    """The Resolution that a document holds; what has another shape than it should is left out."""
    verdict = answer.get("verdict")
    seconds, log = _number(answer.get("seconds")), _text(answer.get("log"), 1 << 20)
    if verdict not in ("accepted", "rejected"):
        why = _text(answer.get("reason"), 1000) or "the engine's resolver gave no verdict"
        return unknown(why, seconds=seconds, log=log)
    if answer.get("cuda") is True:
        return unknown("the resolution initialised CUDA", seconds=seconds, log=log)
    resolved, env = answer.get("resolved"), answer.get("env")
    code = answer.get("exit_code")
    exception, message = _text(answer.get("exception"), 1000), _text(answer.get("message"))
    if verdict == "rejected" and not exception:  # argparse: a usage, and the error behind it
        message = next(iter(reversed(log.strip().splitlines())), "")
    return Resolution(
        verdict="accepted" if verdict == "accepted" else "rejected",
        version=version,
        phase=_text(answer.get("phase"), 100) or "unknown",
        exit_code=code if type(code) is int else None,
        exception=exception,
        message=message,
        frames=tuple(_frames(answer.get("frames"))),
        resolved={_text(k, 1000): v for k, v in resolved.items()}
        if isinstance(resolved, dict)
        else {},
        env={_text(k, 1000): None if v is None else _text(v) for k, v in env.items()}
        if isinstance(env, dict)
        else {},
        seconds=seconds,
        log=log,
    )


def _frames(rows: object) -> list[Frame]:
    found = []
    for row in rows if isinstance(rows, list) else []:
        match row:
            case [str(file), int(line), str(function)]:
                found.append(Frame(file=file, line=line, function=function))
            case _:
                continue
    return found


def _text(value: object, most: int = MAX_TEXT) -> str:
    """The text, cut; nothing if it is none."""
    return value[:most] if isinstance(value, str) else ""


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
