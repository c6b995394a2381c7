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
_OPEN = 16  # lines that are waited for at a time
_MOST = 4096  # lines that are looked at in all


@dataclass(slots=True)
class Answers:
    """The answers behind suspicious lines.

    `last` is the line of the last one, of a batch or of a request; `long` one before which
    nothing ended the server: batches went on for long behind it. 0 if there is none.
    """

    last: int = 0
    long: int = 0
    _asked: bool = False  # the next batch is the first behind a suspicious line
    _open: list[tuple[int, float]] = field(default_factory=list)  # such batches: line, time
    _seen: int = 0

    @property
    def wanted(self) -> bool:
        """Whether the next answer tells anything."""
        return (self._asked or bool(self._open)) and self._seen < _MOST

    def ask(self) -> None:
        """A line came that may be a failure."""
        self._asked = True

    def tell(self, line: Line) -> bool:
        """Take a line that may be an answer; whether that changed what is wanted."""
        batch = _BATCH.match(line.text) is not None
        if not batch and _ANSWER.search(line.text) is None:
            return False
        self._seen += 1
        self.last = line.number
        if not batch:
            return not self.wanted
        now = _when(line.time)
        if now is None:
            return not self.wanted
        for number, then in self._open:
            if now - then >= _LONG:
                self.long = number
        self._open = [one for one in self._open if one[0] > self.long]
        if self._asked and len(self._open) < _OPEN:
            self._open.append((line.number, now))
        self._asked = False
        return not self.wanted


def _when(time: str | None) -> float | None:
    """Seconds of a printed time; vLLM's has no year, which is any leap year."""
    dated = time is not None and time[2:3] == "-"
    return seconds(f"2024-{time}" if dated else time)
