"""Compare two launches by what is left of them: logs, trials of a session, or commands.

In:  two words of a command line. Out: Diff.
Not: comparing (triage.core.diff) or printing it (triage.render).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from triage.core.config import Config
from triage.core.diagnosis import Diagnosis
from triage.core.diff.compare import compare
from triage.core.diff.difference import Diff
from triage.core.diff.side import Side, flat
from triage.core.diff.startup import Startup
from triage.core.launch import Outcome
from triage.core.log.diagnose import diagnose
from triage.core.log.lines import clean
from triage.core.trials import Entry, Seen
from triage.errors import NothingError, TriageError, UsageError, hint
from triage.finder import finder
from triage.session.contents import chunks
from triage.session.logs import causes, diff_rules, flag_table

LOG, SERVER_INFO = "server.log", "server_info.json"
# What /server_info of SGLang 0.5.23 says beside the arguments.
_NO_ARGUMENT = frozenset(
    ("internal_states", "version", "launch_command", "startup_time", "status", "simulated")
)
_NUMBERED = re.compile(r"(.+):(\d+)\Z")
# What the lines that matter hold; the rest is not looked at.
_WORTH = re.compile(
    rb"\]|server_args=|NCCL|SGLANG_|SGL_|CUDA|version|/lib/python|==|fired up and ready"
)
_LONGEST = 1 << 17
_STARTUP = 64 << 20  # bytes; no startup says more
_DATED = re.compile(r"(?m)^\W{0,2}\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_PROBED = 1 << 16  # bytes that tell a log from a command
NO_DUMP = "its log has no server_args= line: it ended before the arguments were resolved"


def diff(
    good: str, bad: str, *, ask: bool = True, say: Callable[[str], None] | None = None
) -> Diff:
    """The difference of two launches, each a log, SESSION, SESSION:TRIAL or a command file.

    A session alone stands for its proof on the good side, for the failure under search on
    the bad one.

    Args:
        good: What is compared with.
        bad: What is in question.
        ask: Whether the engine is asked what it makes of a command; it is imported for that.
        say: Called before that, as it takes seconds.

    Raises:
        UsageError: a word names nothing of these.
        NothingError: a session has no such trial, a file is empty.
        HostError: a file cannot be read.
    """
    from triage.session.commands import Commands

    with Commands(ask=ask, say=say) as commands:
        before = side_of(good, commands.side, good=True)
        after = side_of(bad, commands.side, good=False)
    return compare(before, after, diff_rules(), flag_table())


def side_of(word: str, of_command: Callable[[Path], Side], *, good: bool) -> Side:
    """One side; see diff. `of_command` makes that of a file with a command."""
    path, number = Path(word), 0
    if not path.exists() and (found := _NUMBERED.match(word)) is not None:
        path, number = Path(found[1]), int(found[2])
    if not path.exists():
        raise UsageError(f"{word} does not exist", hint=hint("ls", "-d", path.parent))
    if path.is_dir():
        if (path / "session.json").is_file():
            return _of_session(path, number, good=good)
        if (path / LOG).is_file() and not number:
            return _of_folder(path)
        raise UsageError(f"{path} holds no session and no {LOG}", hint=hint("ls", "-la", path))
    if number:
        raise UsageError(
            f"{path} is no session, so it has no trial {number}", hint=hint("ls", path)
        )
    # A pipe can be read once, and what is worth a pipe is a log.
    return of_log(path) if not path.is_file() or _is_log(path) else of_command(path)


def _of_folder(path: Path) -> Side:
    """A trial's folder: as a trial if it lies in a session, else its log."""
    session, number = path.resolve().parents[1], path.name
    if path.resolve().parent.name == "trials" and (session / "session.json").is_file():
        return _of_session(session, int(number) if number.isdigit() else 0, good=True)
    return of_log(path / LOG)


def _of_session(path: Path, number: int, *, good: bool) -> Side:
    from triage.session.trial import stored_outcome
    from triage.store import SessionFolder

    session = SessionFolder.open(path)
    if session.single:
        folder = path / "trials/001"
        side = of_log(folder / LOG, outcome=stored_outcome(folder))
        return replace(side, source=str(path), kind="trial", trial=1, typed=_argv(session.facts))
    from triage.session.stored import reopen

    _, journal, search = reopen(path)
    stored = session.read("recommendation.json") if good and not number else None
    proof = stored.get("proof") if isinstance(stored, dict) else None
    entry = _entry(path, journal.entries, number or (proof or 0), good=good)
    folder = path / f"trials/{entry.number:03d}"
    side = of_log(folder / LOG, outcome=stored_outcome(folder), empty=True)
    env = dict(search.recipe.env) | entry.config.env_values()
    resolved, unresolved = _asked(folder) if side.resolved is None else (None, "")
    return replace(
        side,
        resolved=side.resolved if resolved is None else resolved,
        unresolved=unresolved or side.unresolved,
        source=f"{path}:{entry.number}",
        kind="trial",
        trial=entry.number,
        typed=entry.config,
        env=dict(side.env) | env,
    )


def _entry(path: Path, journal: Sequence[Entry], number: int, *, good: bool) -> Entry:
    """The trial that a session stands for."""
    if number:
        chosen = [entry for entry in journal if entry.number == number]
    elif good:
        chosen = sorted(
            (e for e in journal if e.seen is Seen.STARTS), key=lambda e: (len(e.items), e.number)
        )[-1:]
    else:
        failing = [e for e in journal if e.seen is Seen.FAILS]
        chosen = [e for e in failing if e.items][:1] or failing[-1:]
    if not chosen:
        what = f"no trial {number}" if number else f"no trial that {'starts' if good else 'fails'}"
        raise NothingError(
            f"{path} holds {what}; it has {len(journal)}", hint=hint("triage", "runbook", path)
        )
    return chosen[0]


def _argv(facts: dict[str, object]) -> Config | None:
    """What a single launch was started with, if its words can be read."""
    from triage.command import read_argv

    words = facts.get("argv")
    try:
        return (
            read_argv([str(w) for w in words], flag_table()).config
            if isinstance(words, list)
            else None
        )
    except TriageError:
        return None


def _is_log(path: Path) -> bool:
    """Whether the file is a log rather than a command; a packed one is."""
    with path.open("rb") as file:
        raw = file.read(_PROBED)
    text = raw.decode("utf-8", "replace")
    packed = raw[:2] == b"\x1f\x8b" or "\0" in text
    dated = len(_DATED.findall(text)) > 1
    return packed or dated or "server_args=" in text or "Traceback (most recent" in text


def of_log(path: Path, *, outcome: Outcome | None = None, empty: bool = False) -> Side:
    """A launch of which only the log is known; it is read once. It may be `empty`.

    Raises:
        HostError: it cannot be read.
        NothingError: it is empty.
    """
    startup = Reader()
    found = _diagnosed(startup.watching(chunks(path)), str(path), outcome)
    if not startup.bytes and not empty:
        raise NothingError(f"{path} is empty", hint=hint("ls", "-l", path))
    return side_of_startup(str(path), found, startup.facts)


def _diagnosed(parts: Iterable[bytes], name: str, outcome: Outcome | None) -> Diagnosis:
    return diagnose(
        parts,
        causes(),
        source=name,
        outcome=outcome,
        table=flag_table(),
        finder=finder(_PROBED << 4),
    )


def side_of_startup(source: str, found: Diagnosis, startup: Startup) -> Side:
    """The side of a log, from its diagnosis and what its startup says."""
    seconds: dict[str, float | None] = {}
    for step in found.timeline:
        seconds.setdefault(step.phase, step.seconds)
    return Side(
        source=source,
        kind="log",
        outcome=found.outcome,
        phase=found.phase,
        cause=found.cause,
        fingerprint=found.fingerprint,
        engine=found.engine,
        engine_version=found.engine_version,
        simulated=found.simulated,
        resolved=flat(startup.dump.values) if startup.dump else None,
        unresolved="" if startup.dump else NO_DUMP,
        env=startup.env,
        versions=startup.versions,
        seconds=seconds,
        memory=startup.memory,
        decisions=startup.decisions,
    )


def _asked(folder: Path) -> tuple[dict[str, object] | None, str]:
    """What the engine made of a trial whose log does not tell; or None, and why it is not known."""
    try:
        stored = json.loads((folder / "resolution.json").read_bytes())
        if stored["verdict"] == "accepted":
            return flat(stored["resolved"]), ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return _said_by_the_server(folder), ""


def _said_by_the_server(folder: Path) -> dict[str, object] | None:
    """The resolved values that a server told when it was up, for a log that does not print them."""
    try:
        told = json.loads((folder / SERVER_INFO).read_bytes())["told"]
        return flat({name: value for name, value in told.items() if name not in _NO_ARGUMENT})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


class Reader:
    """Reads the startup out of a log's bytes while somebody else reads them too."""

    def __init__(self) -> None:
        self.facts = Startup()
        self.bytes = 0
        self._rest = b""
        self._number = 0

    def watching(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The same parts, looked at as they pass."""
        for part in parts:
            self.bytes += len(part)
            if not self.facts.over:
                self._feed(part)
                self.facts.over |= self.bytes > _STARTUP
            yield part
        if self._rest and not self.facts.over:
            self._line(self._rest)

    def _feed(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._line(line)
            if self.facts.over:
                self._rest = b""
                return
        if len(self._rest) > 2 * _LONGEST:  # a line without an end: its start is enough
            self._rest = self._rest[:_LONGEST]

    def _line(self, raw: bytes) -> None:
        self._number += 1
        if _WORTH.search(raw, 0, 4096) is None:
            return
        for line in clean(raw[:_LONGEST], 0, self._number):
            self.facts.take(line)
