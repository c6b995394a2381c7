"""A physical log line, freed of what other programs wrapped around it.

In:  the bytes of one line, its place in the file, and where a scanner saw something.
Out: Line values: one for most lines, several where carriage returns redraw a line.
Not: cutting a file into lines (scan.py) or knowing what a line means.

Source: the line shapes of `docker compose`, `docker logs -t`, Docker's JSON files,
Kubernetes CRI, journald, Ray, srun, mpirun, and of SGLang, vLLM and NCCL themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from triage.core.log.finder import BEHIND, LONG
from triage.core.log.nested import HEAD, LOGGED, NUMBERS, is_folded, may_hold, read_record, within
from triage.core.regex import regex
from triage.core.typed import NamedTuple

_DUMP = "server_args="  # the one line whose whole length matters
_LONGEST = 1 << 17  # characters of it; a real one has 12,000
_OVERLAP = 256  # bytes that two windows of a long line share
_PARTS = 6  # parts of a redrawn line that are kept from its start, and from its end
_MIDDLE = 64  # and between, of those that are no progress bar
_ESCAPE = regex(rb"\\(?:u[0-9a-fA-F]{4}|.)")


class Line(NamedTuple):
    """What one process printed, and where it stands in the raw file.

    `number` counts physical lines from 1, `offset` bytes from 0. `headed` says that
    the line starts a record of its own: it can neither end nor continue a traceback
    of another. `rank` is the tag as printed, "main" without one, and "gpuN" or
    "rankN" where only a device or a global rank is named.
    """

    offset: int
    number: int
    time: str | None
    rank: str
    text: str
    wrapper: str
    simulated: bool
    headed: bool


_HEAD = regex(
    r"\[(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?|\d\d:\d\d:\d\d)"
    r"(?P<tag>(?: [A-Z][A-Z_]*\d+)*)\] ?"
)
# Python's own logging, before SGLang has set up its form of it; in front of any message.
#   example  [2026-03-21 03:31:56] INFO engine:177: server_args=ServerArgs(...
_LEVELS = ("DEBUG ", "INFO ", "WARNING ", "ERROR ", "CRITICAL ")
_LEVEL = regex(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.-]{1,80}:\d{1,6}: ")
_KERNEL_HEAD = regex(r"\[ *\d+\.\d{6}\] ")
_GPU_HEAD = regex(r"\[(gpu(?:_id)?=\d+)\] ?", needs=("[gpu",))
_NCCL_HEAD = regex(r"\S+:\d+:\d+ \[(\d+)\] (?:\S+ )?NCCL ")
_TORCH_RANK = regex(r"\[[EWIF]\S* .*?\[[Rr]ank (\d+)\]", needs=("ank ",))
_VLLM_LEVEL = regex(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d) \[?[^\]\s]+\] ?",
    needs=("DEBUG ", "INFO ", "WARNING ", "ERROR ", "CRITICAL "),
)
_ANSI = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_DATED = regex(rf"{_ISO} ")
_TIMED = regex(_ISO)
# What stands in front of a line: kind -> pattern, with a group for what it names or when it was.
_WRAPPERS = {
    "cri": regex(rf"({_ISO}) (?:stdout|stderr) [FP](?: |$)", needs=(" std",)),
    "iso": regex(rf"({_ISO})(?: - [\w.]+ - [A-Z]+ -| \S+ [\w.@\-]+\[\d+\]:)?(?: |$)"),
    "journal": regex(r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ [^\s:\[]+(?:\[\d+\])?:(?: |$)"),
    "stamp": regex(r"\[(\d{4}-\d\d-\d\dT[\d:]{8}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d))\](?: |$)"),
    "pod": regex(r"\[(pod/[^\]\s]+)\](?: |$)"),
    "mpi": regex(r"\[(\d+,\d+)\]<std(?:out|err)>:"),
    "torch": regex(r"\[(rank\d+)\]:(?: |$|(?=\[))"),
    "vllm": regex(
        r"\(((?:Worker(?:_[A-Z]+\d+)*|(?:EngineCore|APIServer|ApiServer|RayWorkerWrapper"
        r"|VllmWorker)[\w-]*)) pid=\d+[^)]{0,40}\)(?: |$)"
    ),
    "worker": regex(r"\(VllmWorker rank=(\d{1,4}) pid=\d+[^)]{0,40}\)(?: |$)"),
    "again": regex(
        r"\[(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)\] "
        r"(?=\[20\d\d-|\([\w.]+(?:\(rank=\d+\))? pid=)"
    ),
    "ray": regex(r"\(([\w.]+ pid=\d+)[^)]{0,60}\)(?: |$)"),
    "compose": regex(r"\[?([A-Za-z0-9][\w.\-/]{0,63})\]?[ ]{1,40}\|(?: |$)"),
    "srun": regex(r"[ ]{0,4}(\d{1,5}):(?: |$)"),
}
_BAR = 108  # characters in which the bar of `docker compose` stands
_COLON = 10  # and the colon of srun


def bare(raw: bytes) -> str:
    """The text of a line as far as its wrappers are known by their shape."""
    piece, _ = next(_pieces(raw, ()))
    text = _unwrap(next(_segments(piece)))[0]
    inner = within(text) if may_hold(text) else None
    return text if inner is None else _unwrap(inner.lines[0])[0]


def clean(
    raw: bytes,
    offset: int,
    number: int,
    hits: Sequence[int] = (),
    foreign: re.Pattern[str] | None = None,
) -> Iterable[Line]:
    """The visible parts of one physical line, left to right.

    Args:
        raw: The line's bytes, with or without its line end.
        offset: Of the first byte in the file.
        number: Of the line, from 1.
        hits: Places in a long line to look at, beside its start: ends of literals.
        foreign: What an unknown program put in front of the line (framing.py).
    """
    text = as_printed(raw)
    if text is not None:
        return (peel(text, offset, number, foreign),)
    return parts(raw, offset, number, hits, foreign)


def parts(
    raw: bytes, offset: int, number: int, hits: Sequence[int], foreign: re.Pattern[str] | None
) -> Iterator[Line]:
    """As `clean`, for a line that is not as most are."""
    first: Line | None = None
    for piece, whole in _pieces(raw, hits):
        segments = list(_segments(piece))
        for segment in segments:
            line = peel(segment, offset, number, foreign)
            line = line._replace(headed=True) if whole and first is None else line
            line = line if first is None else _as(first, line)
            first = first or line
            if not line.text and len(segments) > 1:
                continue  # only a wrapper stands before the carriage return: no line is empty
            inner = within(line.text) if "\n" in line.text or may_hold(line.text) else None
            if inner is None:
                yield line
                continue
            message = whole or inner.whole
            for count, text in enumerate(inner.lines):
                one = _as(line, peel(text, offset, number, foreign))
                yield one._replace(headed=True) if message and not count else one


def _as(first: Line, line: Line) -> Line:
    """A part of a line, with what the first part says of its source."""
    if line.wrapper:
        return line
    return line._replace(
        time=line.time or first.time,
        rank=first.rank if line.rank == "main" and not line.headed else line.rank,
        wrapper=first.wrapper,
        simulated=first.simulated,
    )


def as_printed(raw: bytes) -> str | None:
    """The text of a line as most are: short, once on its line, and in no record; else None."""
    if len(raw) > LONG:
        return None
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    redrawn = "\r" in text or "\x1b" in text or _has_bar(text)
    return None if redrawn or may_hold(text) else text


def _has_bar(text: str) -> bool:
    """Whether a progress bar is in the text."""
    return "it/s]" in text or "s/it]" in text or "%|" in text or "Completed |" in text


def _pieces(raw: bytes, hits: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """The texts of a line that are looked at, and whether they are one message of a logger's."""
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    record, whole = read_record(text) if text.startswith("{") else None, False
    if record is not None:
        text, whole = record
    known = len(raw) <= LONG or _DUMP in text[:300] or _holds_traceback(text)
    if known or (record is not None and NUMBERS.encode() in raw):
        yield text[:_LONGEST], whole
        return
    if record is not None:
        before = min(
            (
                at + len(name) + 4
                for name in LOGGED
                if (at := raw.find(b'"%s":"' % name.encode())) >= 0
            ),
            default=0,
        )
        shift = max(text.find(" ") + 1, 0) if _DATED.match(text) else 0
        hits = [shift + len(_ESCAPE.sub(b".", raw[before:hit])) for hit in hits]
        raw = text.encode("utf-8", "replace")
    upto, again = _window(raw, LONG)
    yield raw[:upto].decode("utf-8", "replace"), whole
    for hit in hits:
        start = max(hit - BEHIND, upto - again)
        start = raw.find(b"\r", start, hit) + 1 or start
        upto, again = _window(raw, hit + LONG - BEHIND)
        yield raw[start:upto].decode("utf-8", "replace"), whole


def _window(raw: bytes, stop: int) -> tuple[int, int]:
    """Where a window of a long line ends, and how much of it the next shows again.

    What is redrawn is not cut within one of its states: half a word may look like a name.
    """
    redrawn = raw.find(b"\r", stop, stop + LONG // 4)
    return (redrawn, 0) if redrawn > 0 else (stop, _OVERLAP)


def _holds_traceback(text: str) -> bool:
    """Whether a long text has lines of a traceback in it, of which none may be cut."""
    return HEAD in text and ("\n" in text or is_folded(text))


def _segments(text: str) -> Iterator[str]:
    """The parts that carriage returns and unfinished progress bars put on one line."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    parts = [part for part in text.split("\r") if part] if "\r" in text else [text]
    if len(parts) > 2 * _PARTS:
        # Of hundreds of states of a bar the first and the last will do, but nothing else goes.
        middle = [p for p in parts[_PARTS:-_PARTS] if not _is_bar(p)][:_MIDDLE]
        parts = parts[:_PARTS] + middle + parts[-_PARTS:]
    for part in parts or [""]:
        if _has_bar(part):
            start = 0
            for head in _HEAD.finditer(part):
                if head.start() > start:
                    yield part[start : head.start()]
                start = head.start()
            yield part[start:]
        else:
            yield part


def _is_bar(part: str) -> bool:
    """Whether a part is nothing but a progress bar."""
    return _has_bar(part) and _HEAD.search(part) is None


def _kinds(text: str) -> Sequence[str]:
    """The wrappers that the text can begin with, in the order in which they are tried.

    Most lines have none, and say so by their first characters.
    """
    first = text[:1]
    found: list[str] = []
    if first == "[":
        found += _bracketed(text)
    elif first == "(":
        if " pid=" in text:
            found += ("worker", "vllm", "ray")
    elif first.isdecimal():
        if text[4:5] == "-":
            found += ("cri", "iso")
    elif "A" <= first <= "Z" and text[3:4] == " ":
        found.append("journal")
    if (bar := text.find("|", 0, _BAR)) > 0 and " " not in text[:bar].rstrip(" "):
        found.append("compose")
    if (first == " " or first.isdecimal()) and ":" in text[:_COLON]:
        found.append("srun")
    return found


def _bracketed(text: str) -> Sequence[str]:
    """Those that begin with a bracket."""
    if text.startswith("[pod/"):
        return ("pod",)
    if text[11:12] == "T":
        return ("stamp",)
    if text.startswith("[20"):
        return ("again",) if "] [20" in text[:40] or " pid=" in text[:120] else ()
    if text.startswith("[rank"):
        return ("torch",)
    return ("mpi",) if "]<std" in text else ()


def _unwrap(text: str) -> tuple[str, str | None, str, str, bool]:
    """The text without wrappers; their time; the rank and the sources that they name."""
    time: str | None = None
    rank, wrapper, simulated = "main", "", False
    for _ in range(6):
        for kind in _kinds(text):
            found = _WRAPPERS[kind].match(text)
            if found is not None:
                break
        else:
            break
        name = found[1]
        if kind in ("cri", "iso", "journal", "stamp", "again"):
            time = name
        elif kind == "compose" and name == "simulated":
            simulated = True
        elif kind == "worker":
            rank = f"TP{name}"
            wrapper = f"{wrapper} VllmWorker {name}".strip()
        else:
            wrapper = f"{wrapper} {name}".strip()
            if kind in ("torch", "vllm") and name != "Worker":  # an actor of Ray's may be called so
                rank = name
        text = text[found.end() :]
    return text, time, rank, wrapper, simulated


def peel(text: str, offset: int, number: int, foreign: re.Pattern[str] | None) -> Line:
    """One Line of one visible part: wrappers off, rank and time read."""
    text, time, rank, wrapper, simulated = _unwrap(text)
    headed = False
    if foreign is not None and (found := foreign.match(text)) is not None:
        if foreign.groupindex:  # a record of the user's own form (own_format.py)
            named = found.groupdict()
            rank, headed = (named.get("tag") or rank).replace(",", " ").strip(), True
            at = _TIMED.search(found[0])
            time = time or (at and at[0])
        text, inner_time, inner, more, _ = _unwrap(text[found.end() :])
        time, wrapper = time or inner_time, f"{wrapper} {more}".strip()
        rank = inner if inner != "main" else rank
    if text[:1] == "[" and (head := _HEAD.match(text)) is not None:
        headed = True
        time, rank, text = _headed(head, rank)
    elif text.startswith(_LEVELS) and (level := _VLLM_LEVEL.match(text)) is not None:
        time, headed = time or level["time"], level["level"] not in ("ERROR", "CRITICAL")
        text = text[level.end() :]
    elif (gpu := _GPU_HEAD.match(text)) is not None:
        rank, headed, text = gpu[1], True, text[gpu.end() :]
    elif text[:1] == "[" and _KERNEL_HEAD.match(text) is not None:
        headed = True
    # A worker's name without a number tells less than the device that its library names.
    if (rank == "main" or not rank[-1:].isdigit()) and (tag := numbered(text)):
        rank, headed = tag, True
    return Line(offset, number, _iso(time), rank, text, wrapper, simulated, headed)


def _headed(head: re.Match[str], rank: str) -> tuple[str | None, str, str]:
    """Time and rank of an engine's record, or the rank that was known, and its text."""
    text = head.string[head.end() :]
    if text.startswith(_LEVELS) and (said := _LEVEL.match(text)) is not None:
        text = text[said.end() :]
    own = rank if rank[-1:].isdigit() else "main"  # a bare name of a process tells no rank
    return _iso(head["time"]), head["tag"].strip() or own, text


def numbered(text: str) -> str:
    """The device or global rank that a library names in front, "" if none does."""
    if "NCCL " in text and (nccl := _NCCL_HEAD.match(text)) is not None:
        return f"gpu{nccl[1]}"
    if text[:1] == "[" and (torch := _TORCH_RANK.match(text)) is not None:
        return f"rank{torch[1]}"
    return ""


def _iso(time: str | None) -> str | None:
    return time.replace(" ", "T", 1) if time is not None and time[:4].isdigit() else time
