"""Lines that stand inside of one: in a logger's JSON record, or with their line ends escaped.

In:  the text of a line. Out: the lines in it, or None.
Not: what a container engine puts around a line (lines.py); what a line says.

A logger of JSON writes a whole traceback as one record, as do Loki, CloudWatch and others that
export one; a program that quotes what another printed writes two characters for each line end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from triage.core.regex import regex
from triage.core.typed import Any, NamedTuple

HEAD = "Traceback (most recent call last):"
LONGEST = 1 << 17  # characters of a text that are looked through
_DEEP = 3  # records within records, and quotes within quotes
_FIRST, _LAST = 400, 200  # lines kept of one text, from its start and its end
_MOST = 800  # lines of one line
_NODES = 400  # values of a record that are looked at
# How journald writes a message with a colour or a carriage return in it: as numbers of its bytes.
NUMBERS = '"MESSAGE":['
_ISO = regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
# A line of a traceback: indented, or the exception itself.
_PART = regex(
    r"\s|[\w.]{0,200}[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Warning|Failed|Timeout)\b(?::|$)"
)

# Where collectors and loggers keep the line, and by what their record is told from other JSON.
LOGGED = ("log", "MESSAGE", "message", "msg", "textPayload", "line", "@message", "event", "body",
          "Body", "stringValue")  # fmt: skip
_STAMPED = ("time", "__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "ts", "insertId",
            "asctime", "timeUnixNano", "Timestamp", "@t", "eventTime")  # fmt: skip
# A field that a logger has: the record is one message. Collectors have it, too, beside a line.
_LEVELS = ("level", "levelname", "severity", "log.level", "lvl", "SeverityText", "@l")
_LINES = ("log", "MESSAGE", "textPayload", "line")  # these are one line of a program each
_NAMES = "|".join(LOGGED)
# Of an export that is laid out for people: `"message": "...",` on a line of its own.
_FIELD = regex(rf'\s{{0,60}}"(?:{_NAMES})"\s{{0,4}}:\s{{0,4}}(?P<said>".*")\s{{0,4}},?\s{{0,4}}$')
_FOLD = regex(
    r"call last\):\\{1,8}[nr]|\\n(?: |\\t){0,16}File \\{0,8}\"",
    needs=("call last):\\", "\\n"),
)
# In front of what a client asked, which may be anything: a log that somebody wants explained.
_REQUEST = regex(
    r"(?:Receive|Finish): obj=|ReqInput\(|Received request \S"
    r"|\b(?:prompt|messages|content|input_text)\\{0,8}['\"]?[:=] ?\\{0,8}['\"]",
    needs=("obj=", "ReqInput(", "Received request ", "prompt", "messages", "content", "input_text"),
)
REQUESTS = ("Receive: obj=", "Finish: obj=", "Received request ")  # how such a record begins
_ASKED = ("prompt", "messages", "content", "input_text", "text", "input", "obj", "request")
_FRAME = regex(r'File (?P<slashes>\\{0,8})"', needs=("File ",))
_QUOTES = {'"': regex(r'\\.|"'), "'": regex(r"\\.|'")}
_OPENS = regex(r"(?:^|[^\w)\]])[bu]?$")  # what stands in front of a quote that opens
_UNICODE = regex(r"\\u([0-9a-fA-F]{4})", needs=("\\u",))
_KEEP = "\x00"  # stands for a backslash meanwhile


class Within(NamedTuple):
    """The lines in a line; `whole` says that they are one message, which the next cannot end."""

    lines: list[str]
    whole: bool


def may_hold(text: str) -> bool:
    """Whether there may be lines inside of the text, as a quick look tells."""
    if "\\n" in text and is_folded(text):
        return True
    if text[:1] == "{" or (text[-1:] == "}" and '{"' in text):
        return True
    begins = text[:60].lstrip(" \t")
    return begins[:1] == '"' and _FIELD.match(text) is not None


def is_folded(text: str) -> bool:
    """Whether a traceback's line ends are written out in the text, and not in a request's words."""
    fold = _FOLD.search(text)
    return fold is not None and _REQUEST.search(text[: min(fold.start(), LONGEST)]) is None


def within(text: str) -> Within | None:
    """The lines inside of a cleaned text; None for one that is just a line."""
    text, whole = text[:LONGEST], False
    if "\n" not in text:
        opened = _open(text)
        if opened is None:
            return None
        text, whole = opened
    return Within(list(islice(_lines(text, _DEEP), _MOST)), whole)


def _lines(text: str, deep: int) -> Iterator[str]:
    lines = text.split("\n")
    if len(lines) > _FIRST + _LAST:
        lines = lines[:_FIRST] + lines[-_LAST:]
    for line in lines:
        opened = _open(line) if deep else None
        if opened is None:
            yield line.rstrip("\r")
        else:
            yield from _lines(opened[0], deep - 1)


def _open(line: str) -> tuple[str, bool] | None:
    """What a line holds, one layer taken off, and whether it is a message of its own."""
    if not may_hold(line):
        return None
    if line[:1] == "{" and (record := read_record(line)) is not None:
        return record
    if line[:1] in (" ", "\t", '"') and (field := _FIELD.match(line)) is not None:
        said = _parsed(field["said"])
        return (said.rstrip("\r\n"), False) if isinstance(said, str) else None
    return (unquoted(line), False) if is_folded(line) else None


def read_record(text: str) -> tuple[str, bool] | None:
    """The text of a JSON record with its time in front, and whether that is one message.

    The time has the shape that `docker logs -t` prints. None for other JSON.
    """
    if "Traceback (" not in text and not any(f'"{name}":' in text for name in LOGGED):
        return None
    record = _parsed(text)
    if not isinstance(record, dict):
        return None
    stacks = [value for value in _strings(record) if HEAD in value] if HEAD in text else []
    name, said = _said(record)
    stamp = next((record[n] for n in _STAMPED if isinstance(record.get(n), str)), None)
    known = name == "log" or any(n in record for n in _STAMPED) or bool(stacks)
    if not known or (not name and not stacks):
        return None
    if stacks and HEAD not in said:
        said = f"{said.rstrip()}\n{stacks[0]}".lstrip("\n")
    said = said.rstrip("\r\n")
    # A collector sends each line of a traceback as a record, with a level as any other.
    part = "\n" not in said and not stacks and _PART.match(said) is not None
    whole = not part and name not in _LINES and any(n in record for n in _LEVELS)
    timed = isinstance(stamp, str) and _ISO.fullmatch(stamp) is not None
    return (f"{stamp} {said}" if timed else said), whole


def _said(record: dict[str, Any]) -> tuple[str, str]:
    """The name of a record's message, and it; both empty if it has none."""
    for inner in (record, *[v for v in record.values() if isinstance(v, dict)][:8]):
        for name in LOGGED:
            if isinstance(inner.get(name), str):
                return name, inner[name]
    if isinstance(numbers := record.get("MESSAGE"), list):
        return "MESSAGE", _of_numbers(numbers)
    return "", ""


def _of_numbers(numbers: list[Any]) -> str:
    """The text of which these are the bytes; empty if they are none."""
    try:
        return bytes(numbers).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return ""


def _strings(record: dict[str, Any]) -> Iterator[str]:
    """The texts in a record, outermost first."""
    values: list[Any] = [record]
    for value in islice(iter(values), _NODES):
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            inner = _told(value) if isinstance(value, dict) else value
            values += islice(inner, 64)


def _told(record: dict[str, Any]) -> Iterator[Any]:
    """The values of a record but for those that hold what a client asked."""
    return (value for name, value in record.items() if name not in _ASKED)


def _parsed(text: str) -> Any:
    import json  # noqa: PLC0415  most logs have none

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def unquoted(text: str) -> str:
    r"""A text with a quoted traceback, that one with line ends of its own and without quotes.

    Quotes around it are told by how its frames are quoted: `File \"` stands between double
    ones, `File "` between single ones, or none.
    """
    fold = _FOLD.search(text)
    if fold is None:
        return text
    frame = _FRAME.search(text, max(0, fold.start() - 40))
    quote = '"' if frame is not None and frame["slashes"] else "'"
    marks = _QUOTES[quote]
    opens = 0
    for mark in marks.finditer(text, 0, fold.start()):
        if mark[0] == quote:
            opens = mark.end()
    inside = opens > 0 and _OPENS.search(text, max(0, opens - 3), opens - 1) is not None
    start, stop = opens if inside else 0, len(text)
    if inside or quote == '"':
        stop = next((m.start() for m in marks.finditer(text, fold.end()) if m[0] == quote), stop)
    ahead = "" if text.lstrip()[:1] in ("{", '"') else text[: max(0, start - 1)]
    return ahead + _unescaped(text[start:stop]).rstrip("\n")


def _unescaped(text: str) -> str:
    """One layer of escapes taken off, in time that grows with the length alone."""
    text = text.replace("\\\\", _KEEP)
    for escape, char in (("\\r", ""), ("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\'", "'"),
                         ("\\/", "/")):  # fmt: skip
        text = text.replace(escape, char)
    if "\\u" in text:
        text = _UNICODE.sub(lambda found: chr(int(found[1], 16)), text)
    return text.replace(_KEEP, "\\")
