"""Draft a cause and its case from the log of a failure that no cause explains.

In:  a log, the causes that are known. Out: a Draft; files in the user's own folder.
Not: understanding the failure: what it means and what helps is marked TODO.

The log is redacted as a whole before anything of it is kept. The draft is tried on that log
together with all known causes, so that it is known whether it wins there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.core.log.fingerprint import own_frames
from triage.core.log.pattern import name_of, pattern_of
from triage.core.printable import visible
from triage.errors import HostError, NothingError, UsageError, hint
from triage.render.cause_draft import case_yaml, cause_yaml
from triage.session.contents import whole
from triage.session.logs import classify, flag_table
from triage.session.reports import redactor

MOST = 64 << 20  # bytes of a log; a case holds the whole log
_FRAMES = 2
_COMMON = frozenset(("forward", "wrapper", "main", "run_scheduler_process", "launch_server"))
ID = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A cause and its case, not written yet; `winner` is what the log shows with the draft."""

    id: str
    cause: str
    case: str
    log: bytes
    words: str  # what follows the id in the name of the case's folder
    winner: str | None


def draft(source: str, known: Sequence[Cause], *, id_: str = "") -> Draft:
    """The draft of a cause for this log.

    Raises:
        UsageError: the log has a cause already, is too large, or the id will not do.
        NothingError: the log shows no failure, or no line that says why.
    """
    taken = [cause.id for cause in known]
    if id_ and (not ID.fullmatch(id_) or id_ in taken):
        why = "taken already" if id_ in taken else "not kebab-case, as in out-of-file-handles"
        raise UsageError(f"the id {id_} is {why}", hint="triage causes list")
    _explained(classify(source, known=known), source)
    log = redactor().raw(whole(Path(source), MOST))
    d = diagnose([log], known, source=Path(source).name, table=flag_table())
    _explained(d, source)
    assert d.root is not None  # noqa: S101  _explained has looked
    text = visible(d.root.text.split("\n", 1)[0]).strip()
    exception = d.traceback.exception if d.traceback else ""
    pattern = pattern_of(text)
    if not pattern:
        raise NothingError(
            f"line {d.root.line} of {source} says too little to make a pattern of",
            hint=hint("triage", "classify", "--explain", source),
        )
    name = id_ or name_of(exception, text, taken)
    phases = () if d.phase == "unknown" else (d.phase,)
    frames = _functions(d)
    best, winner = "", None
    for wanted_frames, wanted_phases in ((frames, phases), ((), phases), ((), ())):
        made = cause_yaml(
            d,
            id_=name,
            pattern=pattern,
            example=text,
            frames=wanted_frames,
            phases=wanted_phases,
            flags=[s.flag for s in d.suspects if s.flag in flag_table().specs],
        )
        tried = diagnose([log], (*known, _cause(made)), table=flag_table())
        best, winner = made, tried.cause
        if winner == name:
            d = tried
            break
    note = "TODO: what was launched, on what, and what is special about it."
    return Draft(
        id=name,
        cause=best,
        case=case_yaml(d, note=note),
        log=log,
        words=re.sub(r"[^a-z0-9]+", "-", Path(source).stem.lower()).strip("-") or "log",
        winner=winner,
    )


def write(made: Draft, folder: Path) -> tuple[Path, Path]:
    """Write the draft; the cause file and the case's folder. Nothing is overwritten.

    Raises:
        UsageError: one of them is there already.
        HostError: it cannot be written.
    """
    cause, case = folder / f"{made.id}.yaml", folder / "cases" / f"{made.id}--{made.words}"
    for path in (cause, case):
        if path.exists():
            raise UsageError(
                f"{path} is there already; nothing was written",
                hint=hint("triage", "causes", "new", "--id", f"{made.id}-2", "--from", "LOG"),
            )
    try:
        case.mkdir(parents=True)
        (case / "server.log").write_bytes(made.log)
        (case / "case.yaml").write_text(made.case, encoding="utf-8")
        cause.write_text(made.cause, encoding="utf-8")
    except OSError as error:
        raise HostError(
            f"cannot write {error.filename or folder}: {error.strerror or error}",
            hint=hint("ls", "-ld", folder),
        ) from error
    return cause, case


def _explained(d: Diagnosis, source: str) -> None:
    """Raise if there is nothing to draft a cause for."""
    if d.cause:
        raise UsageError(
            f"{source} has a cause already: {d.cause}", hint=hint("triage", "explain", d.cause)
        )
    if d.outcome == "failed" and not d.says_why:
        why = "no line of it says why it failed"
    elif d.outcome == "failed":
        return
    elif d.outcome == "hung":
        why = "it hangs or was cut, and where it stands is in healthy logs too"
    else:
        why = {"empty": "it has no line of an engine"}.get(d.outcome, f"it is {d.outcome}")
    raise NothingError(
        f"there is nothing in {source} to make a pattern of: {why}",
        hint=hint("triage", "classify", "--explain", source),
    )


def _functions(d: Diagnosis) -> tuple[str, ...]:
    """Names of the innermost functions of the engine's own that say something."""
    own = own_frames(d.traceback.frames) if d.traceback else ()
    names = (frame.function for frame in reversed(own))
    telling = (n for n in names if re.fullmatch(r"(?!__)\w{4,}", n) and n not in _COMMON)
    return tuple(islice(dict.fromkeys(telling), _FRAMES))


def _cause(text: str) -> Cause:
    from triage.knowledge.schema import CauseFile
    from triage.yamlfile import parse_yaml

    return parse_yaml(text, "the draft", CauseFile).cause()
