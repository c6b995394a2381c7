"""Results as annotations of a GitHub Actions run, and as the summary of its job.

In:  results. Out: workflow commands, one a line; Markdown.
Not: printing (triage.cli) or finding the summary's file (triage.session.reports).

GitHub shows ten annotations of a sort and step, so ten are given: first the root line of each
log, then, where there is room, what misleads and what follows. The summary holds all.
Source: the toolkit's escaping of workflow commands; a summary may have 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.core.results import Result
from triage.render.markdown import inline
from triage.render.reported import Said, said

MOST = 10
_ROWS = 500
_SUMMARY_BYTES = 900_000
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def workflow_commands(results: Sequence[Result]) -> tuple[str, ...]:
    """At most ten workflow commands, errors first."""
    told = [(r, one) for r in results if (one := said(r)).kind in ("failed", "error")]
    lines = [
        _command("error", r.place, r.line, one.title or one.rule, one.message) for r, one in told
    ]
    for result, _ in told:
        if len(lines) >= MOST:
            break
        lines += _beside(result)
    return tuple(lines[:MOST])


def _beside(result: Result) -> Iterator[str]:
    """What stands beside the root: decoys, then consequences."""
    d = result.diagnosis
    if d is None:
        return
    for decoy in d.decoys:
        yield _command("notice", result.place, decoy.line, "misleads", decoy.why)
    root = d.root.line if d.root else 0
    for line in d.cascade if root else ():
        yield _command("notice", result.place, line, "consequence", f"follows from line {root}")


def _command(level: str, place: str, line: int, title: str, message: str) -> str:
    named = {"file": place, "line": str(line) if line else "", "title": title}
    words = ",".join(f"{key}={v.translate(_PROPERTY)}" for key, v in named.items() if v)
    return f"::{level} {words}::{(message or title).translate(_DATA)}"


def summary(results: Sequence[Result], title: str) -> str:
    """The job's summary: the counts, and a row for each log that is not as it should be."""
    told = [(result, said(result)) for result in results]
    shown = [(result, one) for result, one in told if one.kind != "passed"]
    passed = len(told) - len(shown)
    kinds = {k: sum(one.kind == k for _, one in shown) for k in ("failed", "error", "skipped")}
    counts = ", ".join(f"{n} {word}" for word, n in kinds.items() if n)
    lines = [
        f"## {inline(title)}",
        "",
        f"{len(told)} logs: {passed} in order" + (f", {counts}" if counts else "") + ".",
        "",
    ]
    if shown:
        lines += ["| log | line | what | message |", "| --- | --- | --- | --- |"]
    size = 0
    for number, (result, one) in enumerate(shown):
        row = _row(result, one)
        size += len(row.encode("utf-8", "replace"))
        if number >= _ROWS or size > _SUMMARY_BYTES:
            lines += ["", f"{len(shown) - number} more rows are left out."]
            break
        lines.append(row)
    return "\n".join(lines) + "\n\n"


def _row(result: Result, one: Said) -> str:
    cells = (result.place, str(result.line or ""), one.title or one.rule, one.message)
    return "| " + " | ".join(inline(cell) for cell in cells) + " |"
