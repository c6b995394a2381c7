"""Python tracebacks, put together from lines of several processes.

In:  Line values in file order.
Out: Traceback values: frames, exception, message, and links of a chain.
Not: choosing the one that matters (cascade.py) or matching signatures.

Only the first line of a record carries a rank tag, so what follows belongs to the
traceback opened last in the same stream. A record head neither ends nor joins one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from triage.core.diagnosis import Frame
from triage.core.log.lines import Line
from triage.core.log.nested import HEAD
from triage.core.records import dataclass, field
from triage.core.regex import regex

DUMPED = "(most recent call first):"
CAUSE = "The above exception was the direct cause"
CONTEXT = "During handling of the above exception"
_FIRST_FRAMES, _LAST_FRAMES = 16, 48
_MESSAGE_LINES = 40
_OPEN = 256  # tracebacks that may be unfinished at a time
_OUTERMOST = ("<module>", "_run_module_as_main", "spawn_main", "_bootstrap")
_CUT = 3  # frames of a traceback whose head is cut off, among which the outermost may be
_IDLE = 2000  # lines after which an unfinished one is given up
_REMEMBERED = 600  # characters of a frame that is read once, however often it comes

_FRAME = regex(r'\s*File "([^"]*)", line (\d+)(?:, in (.*))?', needs=(", line ",))
_EDGES, _BARS = (" ", "|", "+"), ("|", "+")
_GROUP = regex(r"\s*[|+](?:-\+?-*)?(?: |$)")
_EXCEPTION = regex(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: ?(.*))?$")
_BARE = regex(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)",
    needs=("Error", "Exception", "Interrupt", "Exit"),
)
_WORDS = frozenset(
    ("INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "FATAL", "Killed", "Aborted", "Terminated",
     "Usage", "Example", "Note")
)  # fmt: skip
# How tqdm draws a bar, whatever stands in front of it.
_BAR = regex(r"[^%]{0,200}\d%\|.{0,400}\[\d+:\d\d(?:<|,|\])", needs=("%|",))
_WARNING = regex(r"\S+:\d+: \w*Warning: ", needs=("Warning: ",))
# Two processes that die at once write character by character: "0xCurrent thread 0x00007f3d".
_DUMP = regex(r"(?P<current>Current thread|Thread) 0x.*\(most recent call first\):")
_GROUPS = ("ExceptionGroup", "BaseExceptionGroup")
_NAMED_AS_ERROR = regex(r"(?:Error|Exception|Timeout|Interrupt|Exit|Failure|_error|_exception)$")
_LOWERCASE = frozenset(("error", "timeout", "herror", "gaierror"))  # types of Python's own
_MUTE = frozenset(("StopIteration", "StopAsyncIteration", "Empty", "Full", "Again"))
_WRAPPED = regex(r"Capture .{0,40}?graph failed: (.*)", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Traceback:
    """One traceback; `line` is that of its exception, 0 while it is unfinished.

    `header` is what stands before the word "Traceback" on its line, or on the line
    above. `code` is the source line of the innermost frame. `matched` holds what a
    matcher found in its lines: (cause index, line, captures).
    """

    rank: str
    wrapper: str
    head: int
    header: str
    frames: list[Frame] = field(default_factory=list)
    code: str = ""
    exception: str = ""
    message: str = ""
    more: list[str] = field(default_factory=list)
    line: int = 0
    offset: int = 0
    time: str | None = None
    text: str = ""
    relation: str = ""  # to `previous`: "", "cause" or "context"
    previous: Traceback | None = None
    matched: list[tuple[int, int, dict[str, str]]] = field(default_factory=list)
    headless: bool = False
    native: bool = False  # a stack that the interpreter dumped as it died: no exception
    dropped: int = 0
    last: int = 0  # line that was added last
    proven: str | None = None  # the phase that its frames prove, once somebody asked

    def chain(self) -> Iterator[Traceback]:
        """This traceback and those that it followed from, newest first; at most 32."""
        link: Traceback | None = self
        for _ in range(32):
            if link is None:
                return
            yield link
            link = link.previous

    def add(self, frame: Frame) -> None:
        """One more frame, innermost last; the middle of a long traceback is dropped."""
        if len(self.frames) >= _FIRST_FRAMES + _LAST_FRAMES:
            del self.frames[_FIRST_FRAMES]
            self.dropped += 1
        self.frames.append(frame)


def is_uncaught(tb: Traceback) -> bool:
    """Whether the exception left the program's outermost frame: the process ended with it."""
    outermost = tb.frames[: _CUT if tb.headless else 1]
    return any(frame.function in _OUTERMOST for frame in outermost)


def unwrapped(text: str) -> str:
    """The message inside `Capture cuda graph failed: <message>`, else ""."""
    found = _WRAPPED.search(text) if "graph failed: " in text else None
    return found[1] if found else ""


def wraps_capture(text: str) -> bool:
    """Whether it is the wrapper around what failed in a capture; its message may be empty."""
    return "graph failed:" in text


def _frame_of(text: str) -> Frame | None:
    """The frame that the line is, if it is one."""
    return _known(text) if len(text) <= _REMEMBERED else _known.__wrapped__(text)


@lru_cache(maxsize=2048)  # ranks fail alike, and so do launches
def _known(text: str) -> Frame | None:
    found = _FRAME.match(text)
    if found is None:
        return None
    function = (found[3] or "")[:200]
    return Frame(file=found[1][:400], line=int(found[2][:9]), function=function)


def _may_be_raised(found: re.Match[str], name: str) -> bool:
    """Whether a line could be an exception though its name does not say so.

    A single word with nothing behind it is somebody else's line, or a name that the end of the
    log cuts off; of those that Python prints in this way few are known.
    """
    if not name[0].isupper():
        return name in _LOWERCASE
    return found[2] is not None or "." in found[1] or name in _MUTE


class Tracebacks:
    """Collects tracebacks line by line; `finished` holds them in order of their end.

    Feed every line while `hungry`; in between, lines with HEAD, DUMPED, CAUSE, CONTEXT, a
    frame or a header are enough.
    """

    def __init__(self) -> None:
        self.finished: list[Traceback] = []
        self.woven: set[str] = set()  # ranks whose tracebacks took turns line by line
        self.hungry = False  # whether the next line may belong to a traceback
        self._streams: dict[str, _Stream] = {}
        self._busy: set[str] = set()  # those that are hungry

    def feed(self, line: Line) -> Traceback | None:
        """The traceback that the line belongs to, or None."""
        wrapper = line.wrapper
        stream = self._streams.get(wrapper)
        if stream is None:
            if len(self._streams) >= _OPEN:
                self._streams.clear()
                self._busy.clear()
            stream = self._streams[wrapper] = _Stream(self.finished, self.woven)
        if line.headed and stream.dump is None and HEAD not in line.text:  # as most are
            stream.record(line)
            found = None
        else:
            found = stream.feed(line)
        if stream.open or stream.tail or stream.dump:
            self._busy.add(wrapper)
            self.hungry = True
        elif self.hungry:
            self._busy.discard(wrapper)
            self.hungry = bool(self._busy)
        return found

    def close(self) -> tuple[Traceback, ...]:
        """The tracebacks that never reached their exception line."""
        left = [tb for stream in self._streams.values() for tb in stream.open if tb.frames]
        for stream in self._streams.values():
            stream.end_dump()
        self._streams.clear()
        self._busy.clear()
        self.hungry = False
        return tuple(left)


class _Stream:
    """The lines of one wrapper source: a stack of unfinished tracebacks."""

    def __init__(self, finished: list[Traceback], woven: set[str]) -> None:
        self.open: list[Traceback] = []
        self.tail: Traceback | None = None  # finished, its message may go on
        self.dump: Traceback | None = None  # an interpreter's stack, innermost frame first
        self._group: Traceback | None = None  # an exception group whose members may follow
        self._finished = finished
        self._woven = woven
        self._closed: Traceback | None = None  # finished last
        self._link = ""
        self._above: Line | None = None  # last record head or header line

    def feed(self, line: Line) -> Traceback | None:
        text, grouped = line.text, False
        if text[:1] in _EDGES and text.lstrip()[:1] in _BARS and (group := _GROUP.match(text)):
            text, grouped = text[group.end() :], True
        if self.dump is not None and self._in_dump(text):
            return self.dump
        if self.open and line.number - self.open[-1].last > _IDLE:
            self.open.clear()
        if HEAD in text:
            return self._begin(line, text[: text.index(HEAD)].strip(), grouped=grouped)
        if line.headed:
            self.record(line)
            return None
        if DUMPED in text and (dump := _DUMP.match(text)) is not None:
            return self._begin_dump(line, mine=dump["current"] != "Thread")
        if text.startswith((CAUSE, CONTEXT)):
            self.tail = None
            self._link = "cause" if text.startswith(CAUSE) else "context"
            return None
        if ", line " in text and (frame := _frame_of(text)) is not None:
            return self._frame(line, frame)
        if self.open or self.tail is not None:
            return self._on(line, text)
        if _BARE.match(text) and text.partition(":")[0] not in _WORDS:
            return self._bare(line, text)
        if text:
            self._above = line
        return None

    def _on(self, line: Line, text: str) -> Traceback | None:
        """A line with which a traceback or a message may go on."""
        if "%|" in text and _BAR.match(text) is not None:
            return None  # another process draws a bar meanwhile
        return self._inside(line, text) if self.open else self._message(line, text)

    def record(self, line: Line) -> None:
        """A line that starts a record, and no traceback."""
        if self.open and line.number - self.open[-1].last > _IDLE:
            self.open.clear()
        self.tail, self._above = None, line

    def _begin_dump(self, line: Line, *, mine: bool) -> Traceback | None:
        """The interpreter dies, or a watchdog asks it, and prints the stack of a thread."""
        self.tail = None
        self.end_dump()
        self.dump = Traceback(line.rank, line.wrapper, line.number, "", native=True, time=line.time)
        self.dump.line, self.dump.offset, self.dump.text = line.number, line.offset, line.text
        self.dump.headless = not mine
        self.dump.last = line.number
        return self.dump

    def _in_dump(self, text: str) -> bool:
        frame = _FRAME.match(text)
        if frame is None and DUMPED in text:
            return True  # two processes die at once, and write character by character
        if frame is None or self.dump is None:
            self.end_dump()
            return False
        self.dump.last = self.dump.line + len(self.dump.frames) + 1
        function = frame[3] or text[frame.end() :].strip().removeprefix("in ")
        if len(self.dump.frames) < _LAST_FRAMES:
            self.dump.frames.insert(0, Frame(file=frame[1][:400], line=int(frame[2][:9]),
                                             function=function[:200]))  # fmt: skip
        return True

    def end_dump(self) -> None:
        """No more frames: keep the stack of the thread that died."""
        if self.dump is not None and self.dump.frames and not self.dump.headless:
            self._finished.append(self.dump)
        self.dump = None

    def _begin(self, line: Line, header: str, *, grouped: bool = False) -> Traceback:
        above, rank = self._above, line.rank
        previous = self._closed if self._link else None
        if previous is not None and not line.headed:
            rank, header = previous.rank, header or previous.header
        elif not header and above is not None and 0 <= line.number - above.number <= 1:
            # A logger prints the record first: "[... TP0] It failed:", then the traceback.
            said = above.text.strip()
            if said.endswith((":", "failed to start.")):
                header, rank = said, above.rank if rank == "main" else rank
        tb = Traceback(rank, line.wrapper, line.number, header[:200], time=line.time)
        tb.last = line.number
        if previous is not None:
            tb.relation, tb.previous = self._link, previous
            tb.time = tb.time or previous.time
        elif grouped and self._group is not None and self._group.previous is None:
            # The members of a group stand below it: the first is its reason.
            self._group.relation, self._group.previous = "cause", tb
            self._group = None
        self._link, self.tail = "", None
        if len(self.open) >= _OPEN:
            del self.open[0]
        if self.open and line.headed and self.open[-1].rank != rank:
            self._woven.update((rank, self.open[-1].rank))
        self.open.append(tb)
        return tb

    def _frame(self, line: Line, frame: Frame) -> Traceback:
        self.tail = None
        if not self.open:  # the file begins inside a traceback
            tb = Traceback(line.rank, line.wrapper, line.number, "", time=line.time)
            tb.headless = True
            self.open.append(tb)
        tb = self.open[-1]
        tb.add(frame)
        tb.code, tb.last = "", line.number
        return tb

    def _inside(self, line: Line, text: str) -> Traceback | None:
        tb = self.open[-1]
        if not text or text[0] in " \t":
            stripped = text.strip()
            if stripped and stripped.strip("^~"):
                tb.code = f"{tb.code} {stripped}".strip()[:400]
            tb.last = line.number
            return tb
        found = _EXCEPTION.match(text)
        if found is None or found[1] in _WORDS:
            return None
        name = found[1].rpartition(".")[2]
        if not _NAMED_AS_ERROR.search(name) and not _may_be_raised(found, name):
            return None
        return self._end(self.open.pop(), line, text, found)

    def _bare(self, line: Line, text: str) -> Traceback | None:
        """An exception without its traceback: the head of the file was cut off."""
        found = _EXCEPTION.match(text)
        if found is None:
            return None
        tb = Traceback(line.rank, line.wrapper, line.number, "", time=line.time, headless=True)
        return self._end(tb, line, text, found)

    def _end(self, tb: Traceback, line: Line, text: str, found: re.Match[str]) -> Traceback:
        tb.exception, tb.message = found[1], (found[2] or "").strip()
        tb.line, tb.offset, tb.text, tb.last = line.number, line.offset, text, line.number
        tb.time = tb.time or line.time
        if self._link and tb.headless and self._closed is not None:
            tb.relation, tb.previous = self._link, self._closed
        self._link = ""
        self.tail = self._closed = tb
        if tb.exception.rpartition(".")[2] in _GROUPS:
            self._group = tb
        self._finished.append(tb)
        return tb

    def _message(self, line: Line, text: str) -> Traceback | None:
        tb = self.tail
        if tb is None or not text.strip() or len(tb.more) >= _MESSAGE_LINES or _WARNING.match(text):
            self.tail = None
            return None
        tb.more.append(text[:400])
        tb.last = line.number
        return tb
