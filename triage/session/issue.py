"""The report to the engine's authors, from a session or a log, without names of this site.

In:  the path of a session or a log. Out: UpstreamReport; redacted copies of the logs.
Not: what stands in it (triage.core.handover.upstream).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from triage.core.config import Config
from triage.core.diagnosis import Diagnosis
from triage.core.handover.document import Runbook, with_text
from triage.core.handover.upstream import (
    CUTS,
    MOST_CHARACTERS,
    Attachment,
    Failure,
    UpstreamReport,
    form_of,
    issue_document,
    nearest_pair,
    shown_command,
)
from triage.core.log.finder import LONG
from triage.core.log.lines import clean
from triage.core.redact import redact_text
from triage.core.redactor import Redactor
from triage.errors import HostError, NothingError, hint
from triage.render.markdown import markdown
from triage.session.contents import numbered, whole
from triage.session.diff import of_log
from triage.session.logs import causes, classify
from triage.session.reports import redactor
from triage.session.runbook import investigation, trial_log
from triage.session.trial import stored_diagnosis

MOST_LINES = 400  # before the root, in which its traceback is looked for
MOST_BYTES = 256 << 20  # of a log that is copied
MOST_RELATED = 6
LAST_LINES = 20  # where there is no traceback
_START = "Traceback (most recent call last)"
_LAUNCHERS = {
    "sglang": ("python3", "-m", "sglang.launch_server"),
    "vllm": ("python3", "-m", "vllm.entrypoints.openai.api_server"),
}


def report(path: Path) -> UpstreamReport:
    """The report of a session, or of a single log.

    Raises:
        NothingError: there is no failure to report.
        HostError: a log cannot be read.
    """
    found = _of_session(path) if (path / "session.json").is_file() else _of_log(path)
    clean_names = redactor()
    cut = 0
    book = _redacted(issue_document(found, cut), clean_names)
    text = markdown(book)
    while _length(text) > MOST_CHARACTERS and cut + 1 < len(CUTS):
        cut += 1
        book = _redacted(issue_document(found, cut), clean_names)
        text = markdown(book)
    if _length(text) > MOST_CHARACTERS:
        text = _hard_cut(text)
    return UpstreamReport(
        form=form_of(found.diagnosis),
        document=book,
        text=text,
        cut=cut > 0,
        attachments=tuple(_named(a, clean_names) for a in found.attachments),
        simulated=found.simulated,
    )


def attach(found: UpstreamReport, path: Path, folder: Path) -> tuple[Path, ...]:
    """Copies of the logs without secrets and names, to be attached; the files written."""
    logs = _logs_of(path)
    written: list[Path] = []
    clean_names = redactor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, log in enumerate(logs, 1):
            name = f"{log.parent.name}-{log.name}" if len(logs) > 1 else log.name
            file = folder / (name if name not in {f.name for f in written} else f"{number}-{name}")
            file.write_bytes(clean_names.raw(whole(log, MOST_BYTES)))
            written.append(file)
    except OSError as error:
        raise HostError(
            f"cannot write {folder}: {error.strerror}", hint=hint("ls", "-ld", folder)
        ) from error
    return tuple(written)


def _logs_of(path: Path) -> tuple[Path, ...]:
    if not (path / "session.json").is_file():
        return (path,)
    return tuple(sorted(path.glob("trials/*/server.log")))


def _of_log(log: Path) -> Failure:
    told = classify(str(log))
    if told.outcome in ("healthy", "empty"):
        say = "shows no failure" if told.outcome == "healthy" else "holds no line of an engine"
        raise NothingError(f"{log} {say}", hint=hint("triage", "classify", log))
    program = _LAUNCHERS.get(told.engine, _LAUNCHERS["sglang"])
    return Failure(
        diagnosis=told,
        failing=shown_command(program, _without_place(told.config)),
        traceback=_traceback(log, told),
        environment=_environment(log, told),
        attachments=(_attachment(log, "the log of the launch, all ranks"),),
        related=_related(told),
        simulated=told.simulated,
    )


def _of_session(path: Path) -> Failure:
    session, found = investigation(path)
    told = found.diagnosis
    if told is None:
        raise NothingError(
            f"{path} holds no failure to report", hint=hint("triage", "runbook", path)
        )
    pair = nearest_pair(found.journal, told.signature)
    fails = pair.fails if pair else next(e for e in found.journal if e.items == found.diagnosed)
    log = trial_log(session, fails)
    shown = stored_diagnosis(log.parent) if log.is_file() else told
    program = found.program
    logs = [(e, trial_log(session, e)) for e in found.journal]
    return Failure(
        diagnosis=shown,
        failing=shown_command(program, fails.config),
        starting=shown_command(program, pair.starts.config) if pair else "",
        pair=pair,
        problem=found.problem,
        journal=found.journal,
        traceback=_traceback(log, shown) if log.is_file() else (),
        environment=_environment(log, shown) if log.is_file() else (),
        attachments=tuple(
            _attachment(file, f"trial {e.number}, all ranks: {e.seen.value}")
            for e, file in logs
            if file.is_file()
        ),
        related=_related(shown),
        simulated=found.simulated,
    )


def _without_place(config: Config) -> Config:
    return config.without(("host", "port"))


def _related(told: Diagnosis) -> tuple[str, ...]:
    """Public reports that the knowledge names for this cause, and for what brings it about."""
    cause = next((c for c in causes() if c.id == told.cause), None)
    if cause is None:
        return ()
    named = [*cause.sources, *(s for origin in cause.origins for s in origin.sources)]
    named = [address for address in named if "/issues/" in address or "/pull/" in address]
    ours = f"/{told.engine}/"
    return tuple(sorted(dict.fromkeys(named), key=lambda a: ours not in a))[:MOST_RELATED]


def _environment(log: Path, told: Diagnosis) -> tuple[tuple[str, str], ...]:
    side = of_log(log)
    rows = [(told.engine, told.engine_version or "not printed")]
    rows += sorted((name, value) for name, value in side.versions.items() if name != told.engine)
    rows += [(f"variable {name}", value or "set") for name, value in sorted(side.env.items())]
    rows.append(("ranks", str(told.ranks_total or "not printed")))
    for name, size in side.memory.items():
        ends = [f"{x:,.2f}" if size.unit else f"{x:,.0f}" for x in (size.low, size.high)]
        span = ends[0] if size.low == size.high else f"{ends[0]} to {ends[1]}"
        rows.append((name, f"{span} {size.unit}".strip()))
    return tuple(rows)


def _traceback(log: Path, told: Diagnosis) -> tuple[str, ...]:
    """The lines of the root's traceback, without heads and wrappers; else the last ones."""
    if told.root is None:
        return ()
    end = told.root.line
    lines: list[tuple[str, str]] = []
    for number, raw in numbered(log):
        if number > end:
            break
        if number > end - MOST_LINES:
            parts = list(clean(raw, 0, number))  # a long line in pieces, a redrawn one in states
            if len(parts) > 1 and any(_START in part.text for part in parts[:-1]):
                lines += [(part.rank, part.text) for part in parts]  # a traceback in one line
                continue
            line = parts[0] if len(raw) > LONG else parts[-1]
            lines.append((line.rank, line.text))
    starts = [n for n, (_, text) in enumerate(lines) if _START in text]
    if told.traceback is not None and starts:
        return tuple(text for _, text in lines[starts[-1] :])
    own = [text for rank, text in lines if rank in (told.root.rank, "main")]
    return tuple(own[-LAST_LINES:])


def _attachment(file: Path, what: str) -> Attachment:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return Attachment(file=str(file), what=what, size=file.stat().st_size, sha256=digest)


def _named(attachment: Attachment, clean_names: Redactor) -> Attachment:
    return replace(attachment, file=clean_names.text(attachment.file))


def _redacted(book: Runbook, clean_names: Redactor) -> Runbook:
    book = with_text(book, redact_text)

    def learn(text: str) -> str:
        clean_names.text(text)
        return text

    with_text(book, learn)  # a name is known from one place, and goes at all of them
    return with_text(book, clean_names.text)


def _length(text: str) -> int:
    """Characters as a site counts them that is written in JavaScript: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _hard_cut(text: str) -> str:
    note = "\n\n(cut to the site's limit)\n"
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * (MOST_CHARACTERS - len(note))]
    return units.decode("utf-16-le", "ignore").rstrip("`\n") + "\n```" + note
