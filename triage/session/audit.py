"""Audit the knowledge base against recorded cases and healthy logs.

In:  the causes, a folder of cases, folders of healthy logs. Out: an Audit.
Not: what counts as a finding (core.log.audit).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import triage
from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis
from triage.core.log.audit import Audit, Literals, Seen, audit
from triage.errors import UsageError
from triage.session.check import LOG, case_files, watched
from triage.session.contents import blocks
from triage.session.logs import classify, log_sources


def own_cases() -> Path:
    """The cases of the checkout that triage runs from.

    Raises:
        UsageError: it was installed without them.
    """
    folder = Path(triage.__file__).parents[1] / "fixtures/cases"
    if not folder.is_dir():
        raise UsageError(
            "this triage was installed without its cases; name a folder",
            hint="triage causes audit DIR",
        )
    return folder


def audited(
    known: Sequence[Cause],
    folder: Path,
    benign: Sequence[Path] = (),
    show: Callable[[str], None] | None = None,
) -> Audit:
    """The audit of these causes.

    Args:
        known: The causes.
        folder: Recorded cases; the healthy ones among them are the benign corpus.
        benign: More healthy logs: files or folders.
        show: Called with how far it is.

    Raises:
        UsageError: a case or a folder cannot be read.
        NothingError: there is no case.
    """
    files = case_files(folder)
    seen: list[Seen] = []
    healthy: list[str] = []
    for file, case in watched(_seen(files, known), len(files), "cases", show):
        seen.append(case)
        if case.expected_outcome == "healthy":
            healthy.append(str(file.with_name(LOG)))
    corpus = [*healthy, *(log_sources([str(path) for path in benign]) if benign else ())]
    literals = Literals(known)
    idle: Counter[str] = Counter()
    size = 0
    for path in dict.fromkeys(corpus):
        for block in blocks(Path(path)):
            size += len(block)
            for literal in literals:
                idle[literal] += _idle(block, literal, literals)
    return audit(known, seen, idle, size)


def _idle(block: bytes, literal: str, literals: Literals) -> int:
    """How many lines of the block have the literal for nothing."""
    found, text, at = 0, literal.encode(), 0
    while (at := block.find(text, at)) >= 0:
        start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
        end = len(block) if end < 0 else end
        found += literals.idle(literal, block[start:end], at - start)
        at = end
    return found


def _seen(files: Sequence[Path], known: Sequence[Cause]) -> Iterator[tuple[Path, Seen]]:
    from triage.knowledge.cases import load_case

    for file in files:
        case = load_case(file)
        d: Diagnosis = classify(str(case.log), known=known)
        yield (
            file,
            Seen(
                name=case.name,
                expected=case.expect["cause"] or "",
                found=d.cause or "",
                expected_outcome=case.expect["outcome"],
                found_outcome=d.outcome,
                known_miss=case.known_miss,
            ),
        )
