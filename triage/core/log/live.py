"""Watches a log while it is written: phase, ready line, fatal line.

In:  raw bytes as they arrive. Out: Live, a Watcher.
Not: the reason (diagnose.py); this only says that waiting is pointless.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from triage.core.causes import Cause, Role, Severity
from triage.core.log import endings, landmarks, ranks
from triage.core.log.endings import FATAL_HEADS, Ending, ending
from triage.core.log.finder import Compile, Plain
from triage.core.log.framing import SAMPLE, prefix_of
from triage.core.log.landmarks import Timeline
from triage.core.log.lines import Line, clean
from triage.core.log.nested import HEAD
from triage.core.log.scan import Scanner
from triage.core.log.signatures import Matcher
from triage.core.regex import regex

# Words of a program that does without what it tells of.
_GOES_ON = regex(
    r"(?i)\bfall(?:s|ing)?[ -]?back|\bretry(?:ing)?\b|\bautomatically (?:set|switch|disabl|us)"
    r"|\bDisabling \w|\bto silence this warning|\bcontinuing\b|\bskipp(?:ing|ed)\b"
    r"|\bignor(?:e|es|ed|ing)\b|\b(?:is|are|will be) (?:disabled|skipped|ignored)\b"
)
_FIRST = 1 << 10  # bytes after which a prefix is looked for; again at twice as many, and so on


class Live:
    """A Watcher over one launch.

    Fatal are exceptions that end a process, deaths that the launcher reports, a
    refused command line or port, and lines of causes that are fatal, unless the line says that the
    program does without. Nothing after a
    stop signal or the ready line is: a server that served is not one that failed to start.
    """

    hungry = False
    awaited = ()
    frequent = tuple(text.encode() for text in landmarks.FREQUENT[:1])

    def __init__(self, causes: Sequence[Cause] = (), *, finder: Compile = Plain) -> None:
        fatal = [
            c for c in causes if c.severity is Severity.FATAL and c.role is Role.ROOT and not c.hang
        ]
        self._matcher = Matcher(fatal, landmarks.LITERALS | endings.LITERALS | {HEAD})
        self._of_endings = self._matcher.numbers(endings.LITERALS)
        self._finder = finder(self._matcher.literals)
        self._foreign: re.Pattern[str] | None = None
        self._head: bytes | None = b""  # until it is known what stands in front of the lines
        self._learn_at = _FIRST
        self._begin()

    def _begin(self) -> None:
        self.phase = "unknown"
        self.ready_line = 0
        self.fatal_line = 0
        self._timeline = Timeline()
        self._stopped = False
        self._heard: set[str] = set()  # labels of the ranks that failed, or were told to have died
        self._scanner = Scanner(self._finder, self, every_line=self._matcher.every_line)

    def feed(self, raw: bytes) -> None:
        """Take the next bytes; they may end anywhere."""
        # What is learned must not depend on how the bytes came, so it is at fixed lengths.
        while self._head is not None and len(self._head) + len(raw) >= self._learn_at:
            rest = self._learn_at - len(self._head)
            self._scanner.feed(raw[:rest])
            self._head += raw[:rest]
            raw = raw[rest:]
            self._learn(self._head)
        if self._head is not None:
            self._head += raw
        self._scanner.feed(raw)

    def _learn(self, head: bytes) -> None:
        """Look for a prefix in the bytes so far; where there is one, read them again."""
        self._learn_at *= 2
        self._foreign = prefix_of(head[: head.rfind(b"\n") + 1])
        if self._foreign is not None or len(head) >= SAMPLE:
            self._head = None
        if self._foreign is not None:
            # What was read of it before was read with the prefix in front.
            self._begin()
            self._scanner.feed(head)

    def unheard(self) -> frozenset[str]:
        """Tags of the ranks that passed a landmark, and of whose failure nothing is said."""
        labels = set(self._timeline.phases) | self._heard
        heard = {ranks.resolved(label, labels) for label in self._heard}
        return frozenset(ranks.members(self._timeline.phases)) - heard

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        """One interesting line, from the scanner."""
        for line in clean(raw, offset, number, hits, self._foreign):
            self._line(line, seen)

    def _line(self, line: Line, seen: Collection[int]) -> None:
        text = line.text
        phase = landmarks.phase_of(text)
        if phase:
            self._timeline.mark(line, phase)
            self.phase = self._timeline.last.phase if self._timeline.last else phase
        if landmarks.READY[0] in text:
            self.ready_line = self.ready_line or line.number
        if self.ready_line:
            return
        kind = ending(text) if not self._of_endings.isdisjoint(seen) else None
        if kind is Ending.STOP and not self.fatal_line:
            self._stopped = True
        if self._stopped:
            return
        if self._is_fatal(line, kind, seen):
            self.fatal_line = self.fatal_line or line.number
            self._hear(line)
        elif kind is Ending.SURVIVOR and self.fatal_line:
            self._hear(line)

    def _hear(self, line: Line) -> None:
        """A rank says that it failed, or another says so of it."""
        labels = set(self._timeline.phases)
        self._heard.add(ranks.dead(line.text, labels) or line.rank)

    def _is_fatal(self, line: Line, kind: Ending | None, seen: Collection[int]) -> bool:
        text = line.text
        if kind in (Ending.DEATH, Ending.FATAL, Ending.ABORT):
            return True
        if HEAD in text:
            return FATAL_HEADS.search(text[: text.index(HEAD)])
        if text.startswith(landmarks.DUMP) or kind is not None or not line.headed:
            # An exception's own line says nothing here: it may be caught, and if it is
            # not, the process ends by itself.
            return False
        named = next(iter(self._matcher.match(text, seen)), None) is not None
        return named and _GOES_ON.search(text) is None
