"""From what was named on a command line to diagnoses of logs.

In:  paths, globs, folders, "-". Out: Diagnosis, and the exit code that says it.
Not: matching (triage.core.log.diagnose) or wording (triage.render).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from os.path import isfile  # pathlib takes 3 ms to import

from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis
from triage.core.flags import FlagTable
from triage.core.log.diagnose import diagnose
from triage.core.records import replace
from triage.core.regex import regex
from triage.core.typed import IO, TYPE_CHECKING
from triage.errors import HostError, NothingError, UsageError, hint
from triage.finder import finder
from triage.knowledge import load_flag_table
from triage.session.knowledge import causes

if TYPE_CHECKING:
    from pathlib import Path

    from triage.core.diff.rules import Rules
    from triage.core.launch import Outcome

__all__ = ["causes", "classify", "classify_text", "exit_code", "flag_table", "log_sources"]

_CHUNK = 1 << 18
# gzip, zstd, xz, bzip2: unpack.py knows them, and is imported only for them
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh")
_EVIDENCE = ("stacks.txt", "kernel.log")  # of a launch, beside its log
_LOG_NAME = regex(r"\.(log|txt|out|err|json)(\.\d+|[-.]\d{8})?(\.(gz|zst|xz|bz2))?$")


@cache
def flag_table() -> FlagTable:
    """The flag table of the engine version that this triage knows, read once a process."""
    return load_flag_table()


@cache
def diff_rules() -> Rules:
    """What a comparison leaves out and what follows from what, read once a process."""
    from triage.knowledge.diff_rules import load_diff_rules

    return load_diff_rules()


def log_sources(named: Sequence[str]) -> tuple[str, ...]:
    """Paths of the logs that these words name, in order; "-" stands for standard input.

    Raises:
        NothingError: a folder or glob holds no log.
        UsageError: a file does not exist.
    """
    found: list[str] = []
    for word in named:
        if word == "-" or isfile(word):  # noqa: PTH113
            found.append(word)
        else:
            found.extend(_several(word))
    return tuple(dict.fromkeys(found))


def _several(word: str) -> list[str]:
    """The logs of a folder, or those that a glob matches."""
    from glob import glob
    from pathlib import Path

    path = Path(word)
    if path.is_dir():
        inside = sorted(
            str(p)
            for p in path.rglob("*")
            if _LOG_NAME.search(p.name) and p.is_file() and not _is_ours(p)
        )
        if not inside:
            raise NothingError(f"{word} holds no log", hint=hint("ls", "-R", word))
        return inside
    if path.exists():
        return [word]  # a pipe
    matches = sorted(glob(word, recursive=True))  # noqa: PTH207  a user's pattern
    if not matches:
        raise UsageError(f"{word} does not exist", hint=hint("ls", path.parent))
    return matches


def _is_ours(path: Path) -> bool:
    """Whether the file is a document or evidence that triage wrote; it quotes logs and is none."""
    if path.name in _EVIDENCE and path.with_name("exit.json").is_file():
        return True
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError:
        return False  # reading it as a log will say why it cannot be read
    return b"".join(start.split()).startswith(b'{"schema":"triage.')


def classify(
    source: str, *, outcome: Outcome | None = None, known: Sequence[Cause] | None = None
) -> Diagnosis:
    """The diagnosis of one log, read as a stream; a packed one is unpacked on the way.

    `known` are the causes, if not triage's own.

    Raises:
        HostError: it cannot be read, or what unpacks it is not installed.
        UsageError: it is compressed and damaged.
    """
    name = "<stdin>" if source == "-" else source
    try:
        if source == "-":
            return _diagnose(sys.stdin.buffer, name, outcome, known)
        # Unbuffered: a chunk is read in one go, without a copy.
        with open(source, "rb", buffering=0) as file:  # noqa: PTH123
            return _diagnose(file, name, outcome, known)
    except OSError as error:
        raise HostError(
            f"cannot read {name}: {error.strerror}", hint=hint("ls", "-l", source)
        ) from error


def with_stacks(diagnosis: Diagnosis, stacks: str) -> Diagnosis:
    """The diagnosis of a silent launch with what its stacks say; `stacks` is their file, or ""."""
    if not stacks:
        return diagnosis
    from pathlib import Path

    from triage.core.log.standstill import sentences

    if diagnosis.outcome != "hung":
        return diagnosis  # they are evidence of a crash, but who stands where is no reason for it
    try:
        text = Path(stacks).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return diagnosis
    return replace(diagnosis, standstill=sentences(text))


def classify_text(text: str, *, source: str, outcome: Outcome | None = None) -> Diagnosis:
    """The diagnosis of a log that is no file; `source` is the name it is given."""
    raw = text.encode(errors="replace")
    return diagnose(
        (raw,),
        causes(),
        source=source,
        outcome=outcome,
        table=flag_table(),
        finder=finder(len(raw)),
    )


def _diagnose(
    file: IO[bytes], name: str, outcome: Outcome | None, known: Sequence[Cause] | None
) -> Diagnosis:
    read = getattr(file, "read1", file.read)  # what has come is enough: a pipe need not fill up
    first = _start(read)
    chunks: Iterator[bytes] = chain((first,), iter(lambda: read(_CHUNK), b""))
    if first.startswith(_COMPRESSED):
        from triage.session.unpack import unpacked

        chunks = unpacked(chunks, name)
        first = b"".join(islice(chunks, 1))
        chunks = chain((first,), chunks)
    causes_ = causes() if known is None else known
    how, table = finder(len(first)), flag_table()
    # A short log leaves nothing that only the collector could free: it is asked afterwards.
    collects = len(first) < _CHUNK and gc.isenabled()
    if collects:
        gc.disable()
    try:
        return diagnose(chunks, causes_, source=name, outcome=outcome, table=table, finder=how)
    finally:
        if collects:
            gc.enable()


def _start(read: Callable[[int], bytes]) -> bytes:
    """The log's first chunk, full unless the log is shorter."""
    first = read(_CHUNK)
    while first and len(first) < _CHUNK and (more := read(_CHUNK - len(first))):
        first += more
    return first


def exit_code(diagnosis: Diagnosis) -> int:
    """What a diagnosis says to a shell: the documented exit codes."""
    named = diagnosis.cause is not None
    match diagnosis.outcome:
        case "healthy":
            return 0
        case "empty":
            return 3
        case "failed":
            return 10 if named else 11
        case "hung":
            return 10 if named else 13
        case _:
            return 13
