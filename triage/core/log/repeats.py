"""Lines that say again what another said, told from it by their bytes alone.

In:  the bytes of a line; those that were read before. Out: Line and Reading values.
Not: what a line looks like (lines.py) or says (reading.py): this only remembers both.

Behind the head of an engine's record, `[2026-07-01 12:00:00 TP3] `, ranks write the same, and
behind what a collector puts in front of every line, with its time or without, so do programs.
"""

from __future__ import annotations

from functools import lru_cache

from triage.core.log.lines import Line, numbered
from triage.core.log.reading import Reader, Reading
from triage.core.regex import regex
from triage.core.typed import TypeVar

_LONGEST = 400  # bytes of a line that is remembered
_MOST = 4096  # of each sort
_TIME = regex(rb"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")
_TAG = regex(rb"(?: [A-Z][A-Z_]*\d+)*\] ")
T = TypeVar("T")
_AT = 20  # bytes of a time, behind which the tag stands
_PAYS = 400  # lines that were not known, before it is worth looking behind a wrapper
# One wrapper in front of a line, as lines.py knows it: of those that name no rank, in its order.
_ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_HOST = rb"[^\s\x1c-\x1f]+"
_OUTER = regex(
    rb"(?P<cri>" + _ISO + rb") (?:stdout|stderr) [FP](?: |$)"
    rb"|(?P<iso>" + _ISO + rb")(?: - [\w.]+ - [A-Z]+ -| " + _HOST + rb" [\w.@\-]+\[\d+\]:)?(?: |$)"
    rb"|(?P<journal>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) " + _HOST
    + rb" [^\s:\[\x1c-\x1f]+(?:\[\d+\])?:(?: |$)"
    rb"|\[(?P<pod>pod/[^\]\s\x1c-\x1f]+)\](?: |$)|\[(?P<mpi>\d+,\d+)\]<std(?:out|err)>:"
    rb"|\[?(?P<compose>[A-Za-z0-9][\w.\-/]{0,63})\]?[ ]{1,40}\|(?: |$)"
    rb"|[ ]{0,4}(?P<srun>\d{1,5}):(?: |$)"
)  # fmt: skip
_TIMES = ("cri", "iso", "journal")  # these name a time, the others a source


class Repeats:
    """Lines that were read, of a process that may read many logs."""

    def __init__(self) -> None:
        self._times: dict[bytes, str] = {}  # `[2026-07-01 12:00:00` -> the time
        self._ranks: dict[bytes, str] = {}  # ` TP3] ` -> the rank
        self._bodies: dict[bytes, tuple[str, str, Reading]] = {}  # rank it names, text
        self._others: dict[bytes, tuple[str, str, str, bool, bool, Reading]] = {}
        self._inner: dict[bytes, tuple[str, str, bool, Reading]] = {}  # behind a wrapper
        self._unknown = 0  # lines so far

    def get(self, raw: bytes, offset: int, number: int) -> tuple[Line, Reading] | None:
        """The line at this place and what it says, if its like was read before."""
        if not raw.startswith(b"[20"):
            if (other := self._others.get(raw)) is None:
                return self._wrapped(raw, offset, number)
            rank, text, wrapper, simulated, headed, said = other
            return Line(offset, number, None, rank, text, wrapper, simulated, headed), said
        start = raw.find(b"] ", _AT) + 2
        if (body := self._bodies.get(raw[start:])) is None:
            return None
        if (head := self._head(raw[:_AT], raw[_AT:start])) is None:
            return None
        time, rank = head
        own, text, said = body
        if rank == "main":
            rank = own
        return Line(offset, number, time, rank, text, "", simulated=False, headed=True), said

    def _wrapped(self, raw: bytes, offset: int, number: int) -> tuple[Line, Reading] | None:
        """The same for a line in a wrapper whose rest was read before, in one or in none."""
        self._unknown += 1
        if self._unknown < _PAYS or (wrapper := _wrapper_of(raw)) is None:
            return None
        end, time, source = wrapper
        if raw.startswith(b"[20", end):
            start = raw.find(b"] ", end + _AT) + 2
            if (body := self._bodies.get(raw[start:])) is None:
                return None
            if (head := self._head(raw[end : end + _AT], raw[end + _AT : start])) is None:
                return None
            time, rank = head
            own, text, said = body
            rank, headed = own if rank == "main" else rank, True
        elif (inner := self._inner.get(raw[end:])) is not None:
            rank, text, headed, said = inner
        else:
            return None
        return Line(offset, number, time, rank, text, source, simulated=False, headed=headed), said

    def add(self, raw: bytes, line: Line, said: Reading) -> None:
        """Remember what was made of a line that has nothing foreign in front."""
        if len(raw) > _LONGEST:
            return
        if self._unknown >= _PAYS and (wrapper := _wrapper_of(raw)) is not None:
            end, _, source = wrapper
            inner = raw[end:]
            if line.wrapper != source or line.simulated:
                return
            if inner.startswith(b"[20"):
                self.add(inner, line._replace(wrapper=""), said)
            elif line.text == inner.decode().rstrip("\r\n"):
                _bounded(self._inner)[inner] = line.rank, line.text, line.headed, said
            return
        if raw.startswith(b"[20"):
            start = raw.find(b"] ", _AT) + 2
            body = raw[start:]
            # What looks like another head, or like Ray's, is judged with what stands before it.
            if body.startswith(b"[20") or b" pid=" in body[:120]:
                return
            if line.headed and not line.wrapper and self._head(raw[:_AT], raw[_AT:start]):
                own = numbered(line.text) or "main"
                _bounded(self._bodies)[body] = own, line.text, said
        elif line.time is None:  # one with a time is hardly printed twice
            _bounded(self._others)[raw] = (*line[3:], said)

    def _head(self, stamp: bytes, tag: bytes) -> tuple[str, str] | None:
        """Time and rank of an engine's record, None if that is not what it begins with."""
        time, rank = self._times.get(stamp), self._ranks.get(tag)
        if time is None:
            if _TIME.fullmatch(stamp) is None:
                return None
            time = stamp[1:].decode().replace(" ", "T")
            _bounded(self._times)[stamp] = time
        if rank is None:
            if _TAG.fullmatch(tag) is None:
                return None
            rank = tag[:-2].decode().strip() or "main"
            _bounded(self._ranks)[tag] = rank
        return time, rank


def _wrapper_of(raw: bytes) -> tuple[int, str | None, str] | None:
    """Where the wrapper of a line ends, its time, and the source that it names."""
    if raw.startswith(b"[20") or not raw.isascii() or (found := _OUTER.match(raw)) is None:
        return None
    kind = found.lastgroup or ""
    name = found[kind].decode()
    if kind not in _TIMES:
        return None if name == "simulated" else (found.end(), None, name)
    return found.end(), name.replace(" ", "T", 1) if name[0].isdigit() else name, ""


def _bounded(known: dict[bytes, T]) -> dict[bytes, T]:
    if len(known) >= _MOST:
        known.clear()
    return known


@lru_cache(maxsize=4)
def repeats_of(_reader: Reader) -> Repeats:
    """What was remembered of lines that this reader read."""
    return Repeats()
