"""What a knowledge base lacks: causes that nothing shows, that lose, that are taken for another.

In:  causes, what was found in recorded cases, how often literals hit healthy logs for nothing.
Out: an Audit: entries, each with a sentence and a suggestion.
Not: reading cases or logs (triage.session.audit), or faults within one file (triage causes check).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from triage.core.causes import Cause, Role
from triage.core.diagnosis import Frame
from triage.core.log.diagnose import diagnose
from triage.core.log.frames import place
from triage.core.log.landmarks import DUMP
from triage.core.log.lines import clean
from triage.core.log.literals import cover
from triage.core.records import dataclass

TOO_OFTEN = 5  # idle hits a MB of healthy logs: a literal that frequent makes the scan slow
MB = 1_000_000
_ENDS = (
    "[2026-01-01 00:00:02] Received sigquit from a child process. "
    "It usually means the child failed."
)
_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One recorded case: its name, the causes expected and found, and the outcomes.

    A cause is "" where none is named.
    """

    name: str
    expected: str
    found: str
    expected_outcome: str
    found_outcome: str
    known_miss: bool = False

    @property
    def cell(self) -> tuple[str, str]:
        """What was expected and found, by cause, else by outcome."""
        return (
            self.expected or self.expected_outcome,
            self.found
            or (f"unknown ({self.found_outcome})" if self.expected else self.found_outcome),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finding. `kind` is confusion, no-case, shadowed, no-confuser-case or common-literal."""

    kind: str
    about: str  # a cause, or the outcome that was expected
    say: str
    suggest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was looked at, and what was found; `cells` are the cases off the diagonal."""

    cases: int
    causes: int
    benign_bytes: int
    cells: tuple[tuple[str, str, int], ...]
    entries: tuple[Entry, ...]


def audit(
    causes: Sequence[Cause], cases: Sequence[Seen], idle: Mapping[str, int], benign_bytes: int
) -> Audit:
    """Judge the causes by the cases.

    Args:
        causes: The knowledge base.
        cases: What was expected and found in each.
        idle: Literal -> lines of the benign corpus that have it for nothing (`Literals.idle`).
        benign_bytes: The size of that corpus.
    """
    roots = [cause for cause in causes if cause.role is Role.ROOT]
    wrong: dict[tuple[str, str], list[Seen]] = {}
    for case in cases:
        if case.cell[0] != case.cell[1]:
            wrong.setdefault(case.cell, []).append(case)
    entries = [
        *_confused(wrong),
        *_without_case(roots, cases),
        *_shadowed(roots, causes),
        *_confusers(roots, cases),
        *_common(causes, idle, benign_bytes),
    ]
    return Audit(
        cases=len(cases),
        causes=len(roots),
        benign_bytes=benign_bytes,
        cells=tuple((*cell, len(some)) for cell, some in sorted(wrong.items())),
        entries=tuple(entries),
    )


class Literals:
    """The plain texts that a scan looks for, and which patterns of which causes need each."""

    def __init__(self, causes: Sequence[Cause]) -> None:
        self._owners: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
        for cause in causes:
            for pattern in (*cause.patterns, *cause.context, *cause.absent):
                for literal in cover(pattern) or ():
                    self._owners.setdefault(literal, []).append((cause.id, re.compile(pattern)))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._owners))

    def owners(self, literal: str) -> tuple[str, ...]:
        """Ids of the causes that need it."""
        return tuple(dict.fromkeys(id_ for id_, _ in self._owners[literal]))

    def idle(self, literal: str, raw: bytes, at: int) -> bool:
        """Whether the literal at this byte of a raw line calls for a look that finds nothing.

        A line that a pattern matches is looked at with reason, in healthy logs too: a benign
        cause is there for that, and a hang is told by what came before it.
        """
        if DUMP.encode() in raw:
            return False  # one line a start, which is read in any case
        texts = [line.text for line in clean(raw, 0, 1, (at,))]
        patterns = [pattern for _, pattern in self._owners[literal]]
        return not any(pattern.search(text) for pattern in patterns for text in texts)


def _confused(wrong: Mapping[tuple[str, str], list[Seen]]) -> Iterator[Entry]:
    for (expected, found), cases in sorted(wrong.items()):
        known = sum(case.known_miss for case in cases)
        mark = f" ({known} known)" if known else ""
        names = ", ".join(case.name for case in cases[:3]) + (", ..." if len(cases) > 3 else "")  # noqa: PLR2004
        yield Entry(
            kind="confusion",
            about=expected,
            say=f"{expected} is taken for {found} in {_count(len(cases), 'case')}{mark}: {names}.",
            suggest=f"See why with `triage classify --explain`; let one of them yield to the other "
            f"(yields_to), or narrow the pattern of {found}.",
        )


def _without_case(roots: Sequence[Cause], cases: Sequence[Seen]) -> Iterator[Entry]:
    expected = Counter(case.expected for case in cases)
    won = {case.expected for case in cases if case.expected == case.found}
    for cause in roots:
        if cause.id in won:
            continue
        lost = expected[cause.id]
        why = f"its {_count(lost, 'case')} show something else" if lost else "it has no case"
        yield Entry(
            kind="no-case",
            about=cause.id,
            say=f"{cause.id} wins no case: {why}.",
            suggest=f"Record a log as {cause.id}--<words>: nothing else shows that it works.",
        )


def _shadowed(roots: Sequence[Cause], causes: Sequence[Cause]) -> Iterator[Entry]:
    """Patterns all of whose examples another cause wins, each example in a small log of its own."""
    compiled = [(c, [re.compile(pattern) for pattern in c.patterns]) for c in causes]
    for cause in roots:
        if cause.hang or cause.context or cause.absent:
            continue  # these need more of a log than a line
        # Where a rival cannot be in one of the cause's phases, the cause wins there.
        allowed = set(cause.phases)
        won_by: dict[str, str | None] = {}
        for example in cause.examples:
            rivals = [
                c
                for c, patterns in compiled
                if (c is cause or not c.phases or (allowed and allowed <= {*c.phases}))
                and any(pattern.search(example) for pattern in patterns)
            ]
            won_by[example] = _winner(cause, example, rivals)
        for pattern in cause.patterns:
            own = [by for example, by in won_by.items() if re.search(pattern, example)]
            others = sorted({by for by in own if by and by != cause.id})
            if own and others and all(by and by != cause.id for by in own):
                names = " and ".join(others[:2])
                yield Entry(
                    kind="shadowed",
                    about=cause.id,
                    say=f"A pattern of {cause.id} never wins, {names} does: {_cut(pattern)}",
                    suggest=f"Remove the pattern, or let {names} yield to {cause.id}.",
                )


def _winner(cause: Cause, example: str, rivals: Sequence[Cause]) -> str | None:
    """The cause of a launch that dies with this line."""
    file, function = "engine/part.py", "run"
    if cause.frames:
        named = _like(cause.frames[0])
        if named is None:
            return None  # no frame that we can make up says whether the pattern wins
        file, function = named
    if _EXCEPTION.match(example):
        lines = [
            "[2026-01-01 00:00:01] Scheduler hit an exception: Traceback (most recent call last):",
            f'  File "/opt/venv/lib/python3.11/site-packages/{file}", line 1, in {function}',
            "    call()",
            example,
            "",
        ]
    else:
        lines = [f"[2026-01-01 00:00:01] {example}"]
    text = "\n".join((*lines, _ENDS, ""))
    return diagnose([text.encode("utf-8", "replace")], rivals).cause


def _like(pattern: str) -> tuple[str, str] | None:
    """A file and a function that a simple frame pattern finds; None if it is not that simple."""
    text = re.sub(r"\\[wd][*?]|\.[*?]", "", pattern).replace("\\b", "").replace("\\.", ".")
    text = re.sub(r"\\[wd]\+", "x", text)
    text = re.sub(r"\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)\??", r"\1", text).strip("^$")
    file, _, function = text.partition(":")
    if ".py" not in file:
        file, function = "engine/part.py", file
    found = place(Frame(file=file, line=1, function=function or "run"))
    return (file, function or "run") if re.search(pattern, found) else None


def _confusers(roots: Sequence[Cause], cases: Sequence[Seen]) -> Iterator[Entry]:
    shown = {case.expected for case in cases}
    lacking: dict[str, list[str]] = {}
    for cause in roots:
        for other in cause.confused_with:
            if other not in shown and any(root.id == other for root in roots):
                lacking.setdefault(other, []).append(cause.id)
    for other, named_by in sorted(lacking.items()):
        names = ", ".join(named_by[:3])
        yield Entry(
            kind="no-confuser-case",
            about=other,
            say=f"{names} can be confused with {other}, which has no case.",
            suggest=f"Record a log as {other}--<words>, so that the two are told apart in a test.",
        )


def _common(causes: Sequence[Cause], idle: Mapping[str, int], size: int) -> Iterator[Entry]:
    megabytes = max(size / MB, 1.0)  # of less than a MB one cannot say how frequent
    literals = Literals(causes)
    for literal, count in sorted(idle.items(), key=lambda item: (-item[1], item[0])):
        if count > TOO_OFTEN * megabytes:
            owners = literals.owners(literal)
            yield Entry(
                kind="common-literal",
                about=owners[0],
                say=f"{literal!r} of {', '.join(owners[:3])} is in {count / megabytes:.0f} lines a "
                "MB of healthy logs that its pattern does not match.",
                suggest="Write a longer plain text into the pattern: each hit costs a look.",
            )


def _cut(pattern: str) -> str:
    return pattern if len(pattern) <= 80 else pattern[:76] + " ..."  # noqa: PLR2004


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
