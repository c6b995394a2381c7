"""Read a server command in whatever form people have it.

In:  a text, a file or words; the flag table of the engine's version.
Out: ServerCommand.
Not: running anything: no shell, no container tool, no service manager.
"""

from __future__ import annotations

import re
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from triage.command.configfile import (
    LOOKS_LIKE,
    given_keys,
    load_for_command,
    read_config_file,
)
from triage.command.inspected import run_line
from triage.command.manifest import is_manifest, locate_manifest
from triage.command.program import no_server
from triage.command.script import locate_script
from triage.command.source import Located, values
from triage.command.unit import IS_UNIT, locate_unit
from triage.command.write import PROGRAM
from triage.core.config import Config, Given, ServerCommand, Value, argv
from triage.core.flags import FlagTable
from triage.core.server_args import (
    BARE,
    START,
    ServerArgsDump,
    changed_flags,
    find_dump,
    unknown_fields,
)
from triage.errors import HostError, NothingError, UsageError

MAX_CHARS = 2 << 20  # no kernel takes a longer command line
MAX_LOG_BYTES = 256 << 20  # the line stands near the start
MAX_NAMED = 6
STDIN = ("-", "/dev/stdin")
OPENED = Path("/dev/fd")
EXPANSION = re.compile(r"\$\([^)]*\)+|\$\{[^}]*\}|\$\w+|`[^`]*`|^~[^/]*|%\w")
HINT = "triage config --help"
# A date and a time at the start of a line; a script has no such lines.
LOG_LINE = re.compile(r"(?m)^\W{0,2}\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
LOG_LINES = 2
IS_BATCH = re.compile(r"^#SBATCH[ \t]", re.MULTILINE)


def read_command(text: str, table: FlagTable, *, base: Path = Path()) -> ServerCommand:
    """The server command that the text holds; the form is told by the content.

    Args:
        text: A command line, script, `docker run` line, the JSON of `docker inspect`, systemd
            unit, Kubernetes manifest, SGLang config file, or a log with a `server_args=` line.
        table: The flags of the engine's version.
        base: The folder in which a `--config FILE` of the command is looked up.

    Raises:
        UsageError: the text is none of these, or no text.
        NothingError: the text is empty.
    """
    if "\0" in text:
        raise UsageError("the command is no text: it holds a NUL byte", hint="file FILE")
    if not text.strip():
        raise NothingError("the command is empty", hint=HINT)
    if START.search(text) or BARE.match(text):
        dump = find_dump(text)
        if dump is not None:
            return _of_dump(text, dump, table)
    if len(text) > MAX_CHARS:
        raise UsageError(
            f"no command is {len(text)} characters long, and no line says server_args=", hint=HINT
        )
    if len(LOG_LINE.findall(text)) >= LOG_LINES:
        raise UsageError(
            "this is a log, and no line of it says server_args=: it does not tell what was typed",
            hint="triage classify LOG",
        )
    if (line := run_line(text)) is not None:
        command = read_command(line, table, base=base)
        note = "a container like the inspected one, with all that its image set"
        return replace(command, notes=(*command.notes, note))
    if IS_UNIT.search(text):
        return _of_located(locate_unit(text), "the unit", text, table, base)
    if is_manifest(text):
        return _of_located(locate_manifest(text), "the manifest", text, table, base)
    if LOOKS_LIKE.match(text):
        return _of_config_file(text, table)
    command = _of_located(locate_script(text), "the command", text, table, base)
    if command.form == "shell" and IS_BATCH.search(text):
        return replace(command, form="sbatch")
    return command


def read_command_file(path: Path, table: FlagTable) -> ServerCommand:
    """The command in a file; a unit is read with the drop-ins beside it (`x.service.d/*.conf`).

    `-` is standard input. Of what is no regular file only a pipe that is open
    already is read, as `<(command)` of a shell makes one.

    Raises:
        UsageError: there is no such file, or it holds no server command.
        HostError: the file may not be read.
        NothingError: the file is empty.
    """
    raw = _bytes(path)
    if raw.find(b"server_args=") >= 0:
        text = _dump_line(raw)
    else:
        text = _decoded(path, raw)
        drop_ins = sorted(path.parent.glob(f"{path.name}.d/*.conf"))
        if drop_ins and IS_UNIT.search(text):
            parts = [(path, text), *((d, _decoded(d, _bytes(d))) for d in drop_ins)]
            text = "\n".join(f"# {where}\n{part.rstrip()}\n" for where, part in parts)
    try:
        return read_command(text, table, base=path.parent)
    except (UsageError, NothingError) as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from None


def read_argv(words: Sequence[str], table: FlagTable, *, base: Path = Path()) -> ServerCommand:
    """The command that an argument vector is; wrappers such as `env A=1` are read too.

    Raises:
        UsageError: the words start no server.
    """
    if any("\0" in word for word in words):
        raise UsageError("the command is no text: it holds a NUL byte")
    text = shlex.join(words)
    command = _of_located(locate_script(text), "the command", text, table, base)
    return replace(command, form="argv") if command.form == "shell" else command


def _bytes(path: Path) -> bytes:
    """What the file holds; a pipe that nobody writes to would be waited for without end."""
    try:
        if str(path) in STDIN:
            return sys.stdin.buffer.read(MAX_LOG_BYTES)
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"{path}: is a directory, not a command", hint=f"ls {path}")
        if not stat.S_ISREG(mode) and path.parent != OPENED:
            raise UsageError(f"{path}: no regular file", hint=f"ls -l {path}")
        with path.open("rb") as file:
            return file.read(MAX_LOG_BYTES)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file", hint=f"ls {path.parent}") from None
    except PermissionError:
        raise HostError(f"{path}: no permission to read it", hint=f"ls -l {path}") from None
    except OSError as error:
        raise HostError(f"{path}: cannot be read: {error.strerror}", hint=f"ls -l {path}") from None


def _decoded(path: Path, raw: bytes) -> str:
    if len(raw) > MAX_CHARS * 4:
        raise UsageError(f"{path}: too long for a command", hint=f"ls -l {path}")
    try:
        return raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text (byte {error.start})", hint=f"file {path}"
        ) from None


def _dump_line(raw: bytes) -> str:
    """The line of a log with the dump, without the rest of the log."""
    at = max(raw.find(b"server_args=ServerArgs("), raw.find(b"server_args={"))
    at = at if at >= 0 else raw.find(b"server_args=")
    end = raw.find(b"\n", at)
    start = raw.rfind(b"\n", 0, at) + 1
    line = raw[max(start, at - 500) : end if end >= 0 else len(raw)][: MAX_CHARS * 4]
    return line.replace(b"\0", b"").decode(errors="replace")


def _of_dump(text: str, dump: ServerArgsDump, table: FlagTable) -> ServerCommand:
    notes = ["server_args= holds what the engine resolved, not only what was typed"]
    if not dump.complete:
        notes.append("the line is cut: what followed is not known")
    if dump.unreadable:
        notes.append("no plain values, left out: " + ", ".join(dump.unreadable[:MAX_NAMED]))
    if unknown := unknown_fields(dump, table):
        notes.append(
            f"no flags of {table.engine} {table.version}, left out: "
            + ", ".join(unknown[:MAX_NAMED])
            + (", ..." if len(unknown) > MAX_NAMED else "")
        )
    config = Config.of(changed_flags(dump, table))
    return ServerCommand("server-args", PROGRAM, config, text=text, notes=tuple(notes))


def _of_config_file(text: str, table: FlagTable) -> ServerCommand:
    file = read_config_file(text, table)
    known = [own for own, *_ in file.keys if own in table.specs]
    if not known:
        raise no_server("the YAML file")
    notes = (*file.notes, *table.parse(argv(Config.of(file.flags))).notes)
    return ServerCommand(
        "sglang-config",
        PROGRAM,
        Config.of(file.flags),
        text=text,
        notes=tuple(dict.fromkeys(notes)),
        given=given_keys(file),
        problems=file.problems,
    )


def _of_located(
    located: Located | None, what: str, text: str, table: FlagTable, base: Path
) -> ServerCommand:
    if located is None:
        raise no_server(what)
    parsed = table.parse(values(located.words))
    flags, given = parsed.config.flag_values(), parsed.given
    if located.positional:
        given = (Given("model-path", -1, 0), *given)
        flags.setdefault("model-path", located.positional.value)
    notes = [*located.notes, *parsed.notes]
    if "config" in flags:
        flags = _with_config_file(flags, located, table, base, notes)
    return ServerCommand(
        form=located.form,
        program=located.program,
        config=Config.of(flags, located.env),
        wrapper=located.wrapper,
        cwd=located.cwd,
        text=text,
        notes=tuple(dict.fromkeys(notes)),
        given=given,
        problems=tuple(problem.text for problem in parsed.problems),
        unresolved=(*located.unresolved, *_unresolved(located, given)),
    )


def _unresolved(located: Located, given: Sequence[Given]) -> Iterator[tuple[str, str]]:
    """What in the flag words only a shell could know, each with its flag."""
    if located.positional and located.positional.open:
        yield "--model-path", _expansion(located.positional.value)
    owner = {at: f"--{one.name}" for one in given for at in range(one.first, one.end)}
    for at, word in enumerate(located.words):
        if word.open:
            yield owner.get(at, "the command"), _expansion(word.value)


def _expansion(value: str) -> str:
    """The first of what is left to expand in the value, without the text around it."""
    found = EXPANSION.search(value)
    return found[0] if found else value


def _with_config_file(
    flags: dict[str, Value], located: Located, table: FlagTable, base: Path, notes: list[str]
) -> dict[str, Value]:
    """The flags with those of the file that `--config FILE` names; the command line wins.

    Source: `prepare_server_args` of SGLang 0.5.23, which merges only for the exact
    word `--config`, with the file's flags first.
    """
    name = flags["config"]
    count = values(located.words).count("--config")
    if count == 0 or not isinstance(name, str):
        notes.append("the engine reads a file only after the exact word --config: no effect")
        return flags
    if count > 1:
        notes.append("--config is given more than once: the engine refuses that")
        return flags
    if located.wrapper:
        notes.append(f"--config {name} is a file inside the container: not read")
        return flags
    loaded = load_for_command(base / located.cwd / name, table)
    if isinstance(loaded, str):
        notes.append(loaded)
        return flags
    notes.append(f"--config {name} is merged in; the command line wins")
    return loaded | {flag: value for flag, value in flags.items() if flag != "config"}
