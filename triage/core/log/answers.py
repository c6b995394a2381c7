"""Whether a server that was ready goes on to answer after a line that looks like a failure.

In:  lines, in file order. Out: Answers: up to where the log shows that it does.
Not: what else speaks against a line (cascade.py).

A server logs what is asked of it and what it answers, which may be any text, and programs
beside it write into the same log. So once it is ready, what a line says is no failure while
batches go on. Other ranks write a last line, too, when one of them dies: where a process died
later, batches must have gone on for longer than any rank waits for another's end.
"""

from __future__ import annotations

from triage.core.log.clock import seconds
from triage.core.log.lines import Line
from triage.core.records import dataclass, field
from triage.core.regex import regex

TEXTS = (b"Decode batch", b"Prefill batch", b"generation throughput: ", b"200 OK")
_BATCH = regex(
    r"(?:Decode|Prefill) batch\b"
    r"|(?:Engine \d+: )?Avg prompt throughput: .{0,40}generation throughput: (?:[1-9]|0\.[1-9])",
    needs=(" batch", " throughput: "),
)
_ANSWER = regex(r'"(?:POST \S+|GET /health_generate) HTTP/[\d.]+" 200 OK', needs=('" 200 OK',))
_LONG = 60  # seconds of batches by which all ranks live
_OPEN, _SOURCES = 16, 64  # lines that are waited for at a time, of so many sources
_MOST = 4096  # lines that are looked at in all


@dataclass(slots=True)
class Answers:
    """The answers behind suspicious lines.

    By source: `last` is the line of the last one, of a batch or of a request; `long` one before
    which nothing ended that server, as its batches went on for long behind it.
    """

    last: dict[str, int] = field(default_factory=dict)
    long: dict[str, int] = field(default_factory=dict)
    # Of which servers no batch came behind the last suspicious line; None is any.
    _waits: set[str | None] = field(default_factory=set)
    # Such batches, by source: line and time.
    _open: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    _seen: int = 0

    @property
    def wanted(self) -> bool:
        """Whether the next answer tells anything."""
        return (bool(self._waits) or any(self._open.values())) and self._seen < _MOST

    def ask(self, source: str | None) -> None:
        """A line came that may be a failure of this server, or of any."""
        if len(self._waits) < _SOURCES:
            self._waits.add(source)

    def tell(self, line: Line, source: str) -> bool:
        """Take a line that may be an answer; whether that changed what is wanted."""
        batch = _BATCH.match(line.text) is not None
        if not batch and _ANSWER.search(line.text) is None:
            return False
        self._seen += 1
        now = _when(line.time) if batch else None
        if source in self.last or len(self.last) < _SOURCES:
            self.last[source] = line.number
            if now is not None:
                self._went_on(line.number, now, source)
        if batch:
            self._waits -= {source, None}
        return not self.wanted

    def answered(self, number: int, source: str | None) -> bool:
        """Whether the server of this source answered behind a line; any server, if it is None."""
        return number < _latest(self.last, source)

    def survived(self, number: int, source: str | None) -> bool:
        """Whether its batches went on for long behind the line."""
        return number < _latest(self.long, source)

    def _went_on(self, number: int, now: float, source: str) -> None:
        for begun, then in self._open.get(source, ()):
            if now - then >= _LONG:
                self.long[source] = begun
        upto = self.long.get(source, 0)
        self._open[source] = [one for one in self._open.get(source, ()) if one[0] > upto]
        if not self._waits.isdisjoint((source, None)) and len(self._open[source]) < _OPEN:
            self._open[source].append((number, now))


def _latest(lines: dict[str, int], source: str | None) -> int:
    return max(lines.values(), default=0) if source is None else lines.get(source, 0)


def _when(time: str | None) -> float | None:
    """Seconds of a printed time; vLLM's has no year, which is any leap year."""
    dated = time is not None and time[2:3] == "-"
    return seconds(f"2024-{time}" if dated else time)
