"""The part of triage that runs in the engine's own Python: it resolves configurations.

In:  TMPDIR, where it listens on the Unix socket `resolve`; then requests, one at a time:
     {"do": "resolve", "argv": [...], "timeout": S} or {"do": "flags"}.
Out: a greeting, then an answer each, as JSON behind its length (4 bytes, big-endian).
Not: judging anything; what it says is taken for the words of a stranger (resolver.py).

It imports SGLang once and forks for each configuration. The fork goes the way of
`sglang.launch_server` up to the first process that the engine would start, and ends there.
CUDA is never initialised: what the engine asks of a device, NVML answers, and what NVML
cannot answer makes the configuration unknown.

Only the standard library is used, as the engine's environment has nothing of ours. It is run by
`python -c`, so that `sys.path` begins as in `python -m sglang.launch_server`.

Source: `sglang.launch_server.run_server`, `Engine._launch_subprocesses` of SGLang 0.5.23.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import time
import traceback
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

LOG_BYTES = 1 << 18  # of what one resolution printed, its start and its end
FRAMES = 40
LENGTH = 20  # letters of a fork's answer that tell how long the rest is
# Loaded before the first fork, or each fork would load them anew.
EARLY = (
    "sglang.srt.entrypoints.http_server",
    "sglang.srt.arg_groups.pipeline",
    "sglang.srt.configs.model_config",
    "sglang.srt.speculative.spec_info",
    "sglang.srt.layers.cp.base",
)
# Old flags whose only mark is their help text, and where it names the successor.
#   example  (Deprecated, use --smg-grpc-mode) Legacy SMG gRPC server selector.
#   example  Deprecated. Use --image-processor-backend=pil instead.
DEPRECATED = re.compile(r"\(?Deprecated\b[^-]*(?P<new>--[^\s)]*)?")


class Passed(BaseException):
    """The engine would start its first process now: all checks before that have passed."""


class NeedsCuda(BaseException):
    """The engine asked what only an initialised CUDA could answer."""


def main() -> None:
    """Listen, load the engine, answer one connection until it is closed."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = os.path.join(os.environ["TMPDIR"], "resolve")  # noqa: PTH118
    server.bind(f"{path}.new")
    server.listen(1)
    os.rename(f"{path}.new", path)  # noqa: PTH104  who sees the name can connect
    greeting, engine = load()
    connection, _ = server.accept()
    send(connection, greeting)
    while engine is not None:
        request = receive(connection)
        if request is None:
            return
        if request["do"] == "flags":
            send(connection, flags(engine))
        else:
            send(connection, resolve(engine, connection, request))


def load() -> tuple[dict[str, Any], Any]:
    """The greeting, and the engine's two entry points; None where they cannot be had."""
    began = time.monotonic()
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # or asking for a device initialises CUDA
    version = ""
    if importlib.util.find_spec("sglang") is None:  # before torch, which takes seconds
        why = "ModuleNotFoundError: No module named 'sglang'"
        return {"ready": False, "version": version, "why": why, "missing": True}, None
    try:
        guard_cuda()
        import sglang  # type: ignore[import-not-found]

        version = str(getattr(sglang, "__version__", ""))
        load_plugins()
        engine = Engine()
        for name in EARLY:
            optional(name)
    except NeedsCuda as error:
        return {"ready": False, "version": version, "why": f"import needs CUDA: {error}"}, None
    except BaseException as error:  # noqa: BLE001  whatever an import of theirs raises, it is told
        why = f"{type(error).__name__}: {error}"
        missing = isinstance(error, ModuleNotFoundError) and error.name == "sglang"
        return {"ready": False, "version": version, "why": why, "missing": missing}, None
    return {
        "ready": True,
        "version": version,
        "python": sys.version.split()[0],
        "seconds": time.monotonic() - began,
        "cuda": cuda_initialised(),
    }, engine


class Engine:
    """The functions of SGLang that a launch goes through."""

    def __init__(self) -> None:
        self.server_args = importlib.import_module("sglang.srt.server_args")
        self.prepare: Callable[[list[str]], Any] = self.server_args.prepare_server_args
        module = importlib.import_module("sglang.launch_server")
        # Before 0.5 there was no function around `launch_server`.
        self.run: Callable[[Any], None] = getattr(module, "run_server", None) or (
            module.launch_server
        )

    @staticmethod
    def resolved(record: Any) -> Any:
        """Field -> value of a resolved record, as a launch prints it: keys are hidden there."""
        module = sys.modules.get("sglang.srt.entrypoints.engine")
        if printed_by := getattr(module, "_server_args_for_logging", None):
            return printed_by(record)
        if hasattr(record, "resolved_dict"):
            return record.resolved_dict()
        return dataclasses.asdict(record)


def load_plugins() -> None:
    """What `python -m sglang.launch_server` does first; older engines have no plugins."""
    if module := optional("sglang.srt.plugins"):
        module.load_plugins()


def optional(name: str) -> Any:
    """The module, or None if this release of the engine lacks it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# One configuration ------------------------------------------------------------------------


def resolve(engine: Engine, connection: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one configuration, found out in a fork that is always ended."""
    began = time.monotonic()
    if cuda_initialised():
        return {"verdict": "unknown", "reason": "CUDA was initialised by an import of the engine"}
    log = os.path.join(os.environ.get("TMPDIR", "."), "resolve.log")  # noqa: PTH118
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        connection.close()
        in_fork(engine, request, write, log)
    os.close(write)
    raw, why = collect(read, began + float(request["timeout"]), request["timeout"])
    with suppress(OSError):  # it made no group of its own yet, or is gone
        os.killpg(pid, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    answer: dict[str, Any]
    try:
        answer = json.loads(raw)
    except ValueError:
        if not why:
            code = os.waitstatus_to_exitcode(status)
            why = f"the resolution ended with {'signal' if code < 0 else 'code'} {abs(code)}"
        answer = {"verdict": "unknown", "reason": why}
    return {**answer, "log": printed(log), "seconds": time.monotonic() - began}


def collect(read: int, deadline: float, limit: float) -> tuple[bytes, str]:
    """What the fork says; or nothing, and why if it is no early end.

    The length stands first: a process that the engine left behind keeps the pipe open.
    """
    raw = b""
    while len(raw) < LENGTH or len(raw) < LENGTH + int(raw[:LENGTH]):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            return b"", f"no answer within {limit:g} s"
        chunk = os.read(read, 1 << 20)
        if not chunk:
            return b"", ""
        raw += chunk
    return raw[LENGTH:], ""


def in_fork(engine: Engine, request: dict[str, Any], write: int, log: str) -> NoReturn:
    """Go the engine's way with these words, write the answer, and end."""
    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        before = dict(os.environ)
        answer = attempt(engine, list(request["argv"]))
        sys.stdout.flush()
        sys.stderr.flush()
        after = dict(os.environ)
        answer["env"] = {
            name: after.get(name)
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        }
        answer["cuda"] = cuda_initialised()
        raw = json.dumps(answer, default=str, skipkeys=True).encode(errors="replace")
        raw = str(len(raw)).encode().rjust(LENGTH) + raw
        while raw:
            raw = raw[os.write(write, raw) :]
    finally:
        os._exit(0)


def attempt(engine: Engine, argv: list[str]) -> dict[str, Any]:
    """Launch up to the first process; what came of it."""
    stop_before_processes()
    sys.argv = ["launch_server.py", *argv]
    phase, record = "arg-parse", None
    try:
        record = engine.prepare(argv)
        phase = "arg-validation"
        engine.run(record)
    except Passed:
        return {"verdict": "accepted", "phase": phase, "resolved": engine.resolved(record)}
    except NeedsCuda as error:
        return {"verdict": "unknown", "phase": phase, "reason": f"it needs CUDA: {error}"}
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code == 0:
            return {"verdict": "unknown", "phase": phase, "reason": "the engine only prints help"}
        return {"verdict": "rejected", "phase": phase, "exit_code": code}
    except BaseException as error:  # noqa: BLE001  the engine's failure is our answer
        # Older engines resolve while they parse; a check that fails is a check all the same.
        return {**told(error), "verdict": "rejected", "phase": "arg-validation", "exit_code": 1}
    return {
        "verdict": "unknown",
        "phase": phase,
        "reason": "the engine returned without starting a process",
    }


def stop_before_processes() -> None:
    """Every way of the engine to start a worker ends in Passed.

    Threads and programs such as nvidia-smi are left alone: some checks use them.
    """
    from multiprocessing import process

    def start(self: object) -> None:
        raise Passed

    process.BaseProcess.start = start  # type: ignore[method-assign]


def told(error: BaseException) -> dict[str, Any]:
    """The exception in parts; it is also printed, as Python prints what nobody caught.

    The frames of this file are left out: in a launch they are `runpy`'s.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    shown = error.with_traceback(trace)
    traceback.print_exception(type(shown), shown, trace)
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return {
        "exception": f"{module}{kind.__qualname__}",
        "message": str(error),
        "frames": [[f.filename, f.lineno, f.name] for f in frames],
    }


def printed(log: str) -> str:
    """What the fork printed; of much, the start and the end."""
    try:
        with open(log, "rb") as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            raw = file.read(LOG_BYTES if size <= LOG_BYTES else LOG_BYTES // 2)
            if size > LOG_BYTES:
                file.seek(size - LOG_BYTES // 2)
                raw += b"\n" + file.read(LOG_BYTES // 2)
        os.unlink(log)  # noqa: PTH108
    except OSError:
        return ""
    return raw.decode(errors="replace")


# Devices ----------------------------------------------------------------------------------


def cuda_initialised() -> bool:
    """Whether this process has a CUDA context already: then a fork of it is useless."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.cuda.is_initialized())


def guard_cuda() -> None:
    """Make sure that nothing initialises CUDA; questions about devices go to NVML."""
    torch = optional("torch")
    if torch is None or not torch.cuda.is_available():
        return
    nvml = optional("pynvml")
    if nvml is not None:
        nvml.nvmlInit()
    answer_from_nvml(torch.cuda, nvml)


def answer_from_nvml(cuda: Any, nvml: Any) -> None:
    """Replace what would initialise CUDA in the module `torch.cuda`."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise NeedsCuda("the engine uses the device before it starts a process")

    cuda._lazy_init = refuse
    if nvml is None:
        return

    def handle(device: Any = None) -> Any:
        if isinstance(device, str):
            index = int(device.rpartition(":")[2]) if ":" in device else 0
        else:
            index = (device if isinstance(device, int) else getattr(device, "index", 0)) or 0
        visible = getattr(cuda, "_get_nvml_device_index", None)
        return nvml.nvmlDeviceGetHandleByIndex(visible(index) if visible else index)

    def capability(device: Any = None) -> tuple[int, int]:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle(device))
        return int(major), int(minor)

    def name(device: Any = None) -> str:
        said = nvml.nvmlDeviceGetName(handle(device))
        return said.decode() if isinstance(said, bytes) else str(said)

    def memory(device: Any = None) -> tuple[int, int]:
        info = nvml.nvmlDeviceGetMemoryInfo(handle(device))
        return int(info.free), int(info.total)

    class Properties:
        """What NVML knows of `torch.cuda.get_device_properties`."""

        def __init__(self, device: Any = None) -> None:
            self.name = name(device)
            self.major, self.minor = capability(device)
            self.total_memory = memory(device)[1]

        def __getattr__(self, asked: str) -> NoReturn:
            raise NeedsCuda(f"get_device_properties().{asked}")

    cuda.get_device_capability = capability
    cuda.get_device_name = name
    cuda.mem_get_info = memory
    cuda.get_device_properties = Properties
    cuda.current_device = lambda: 0


# Flags ------------------------------------------------------------------------------------


def flags(engine: Engine) -> dict[str, Any]:
    """Every flag of the server as a row of `triage.flags/1`; usual values are left out."""
    try:
        kind = engine.server_args.ServerArgs
        parser = argparse.ArgumentParser(prog="sglang serve")
        kind.add_cli_args(parser)
        merger = optional("sglang.srt.utils.server_args_config_parser")
        refused = set(merger.ConfigArgumentMerger(parser).unsupported_actions) if merger else set()
        groups = getattr(kind, "_NS_BY_FIELD", {})
        actions = [action for action in parser._actions if action.dest != "help"]
        return {"rows": [row(action, refused, groups) for action in actions]}
    except Exception as error:  # noqa: BLE001  another release may be another
        return {"rows": [], "why": f"{type(error).__name__}: {error}"}


def row(action: argparse.Action, refused: set[str], groups: dict[str, str]) -> dict[str, Any]:
    """One flag."""
    names = [option[2:] for option in action.option_strings if option.startswith("--")]
    negative: list[str] = []
    if isinstance(action, argparse.BooleanOptionalAction):
        negative = [name for name in names if name.startswith("no-")]
        names = [name for name in names if name not in negative]
    found: dict[str, Any] = {"name": names[0]}
    if names[1:]:
        found["aliases"] = names[1:]
    if negative:
        found["negative"] = negative
    if action.dest != names[0].replace("-", "_"):
        found["field"] = action.dest
    style = style_of(action)
    if style != "value":
        found["style"] = style
    if style == "list":
        found["nargs"] = action.nargs if action.nargs in ("+", "*") else "+"
    kind = getattr(action.type, "__name__", "str")
    if style in ("value", "list", "optional-value") and kind != "str":
        found["type"] = kind
    if action.default is not None and action.default is not False:
        found["default"] = plain(action.default)
    if action.choices:
        # Some are sets: sorted, or two runs would differ. Numbers stay in their order.
        choices = map(plain, action.choices)
        found["choices"] = sorted(choices, key=lambda c: (isinstance(c, str), c))
    if action.required:
        found["required"] = True
    found.update(deprecation(action))
    if names[0].replace("-", "_") in refused:
        found["config_file"] = False
    found["group"] = groups.get(action.dest, "cli")
    return found


def style_of(action: argparse.Action) -> str:
    """How many words it takes."""
    if isinstance(action, argparse.BooleanOptionalAction):
        return "bool-optional"
    if action.nargs == 0:
        return "switch"
    if action.nargs == "?":
        return "optional-value"
    return "value" if action.nargs is None else "list"


def deprecation(action: argparse.Action) -> dict[str, Any]:
    """`deprecated` and, where SGLang says it, `replaced_by`."""
    said = DEPRECATED.match(action.help or "")
    if not said and not type(action).__name__.startswith("Deprecated"):
        return {}
    new = getattr(action, "new_flag", None) or (said and said["new"])
    return {"deprecated": True, **({"replaced_by": str(new).rstrip(".,")} if new else {})}


def plain(value: Any) -> Any:
    """A default or a choice as JSON can hold it."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else str(value)


# The connection ---------------------------------------------------------------------------


def send(connection: socket.socket, answer: dict[str, Any]) -> None:
    """One document behind its length."""
    raw = json.dumps(answer, default=str).encode(errors="replace")
    connection.sendall(struct.pack(">I", len(raw)) + raw)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next document; None once the other side has gone."""
    head = exactly(connection, 4)
    body = exactly(connection, struct.unpack(">I", head)[0]) if head else b""
    return json.loads(body) if body else None


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or none if the connection ends before."""
    raw = b""
    while len(raw) < count:
        chunk = connection.recv(count - len(raw))
        if not chunk:
            return b""
        raw += chunk
    return raw


if __name__ == "__main__":
    main()
