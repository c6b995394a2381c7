"""A pattern from one line: what differs between two launches that fail alike is left open.

In:  a cleaned line. Out: a regular expression that matches it, in linear time; a name for it.
Not: whether the pattern is a good one (triage.knowledge.check, the benign cases, a person).

Quoted names stay: `no attribute 'shape'` says what is wrong. Quoted paths, values and
sentences go, and so do numbers, addresses and what a redactor put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.core.log.literals import cover

LONGEST = 160  # characters of the line that the pattern is made of
_NAME = re.compile(r"[A-Za-z_][A-Za-z_.]*")
# The first alternative wins; what each becomes is in _OPEN.
_PARTS = re.compile(
    r"(?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)"
    r"|(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)"
    r"|(?P<redacted>[\w.-]*REDACTED[\w.-]*|\bhost-\d+\b)"
    r"|(?P<single>'[^'\n]{0,200}')|(?P<double>\"[^\"\n]{0,200}\")|(?P<back>`[^`\n]{0,200}`)"
    r"|(?P<path>(?<![\w.])(?:~|\.{0,2})(?:/[\w.+@\-]+){2,}/?)"
    r"|(?P<hex>\b0x[0-9a-fA-F]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b)"
    r"|(?P<rank>\b(?:TP|PP|DP|EP|[Rr]ank ?)\d+\b)"
    r"|(?P<number>(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?P<unit> ?(?:[KMGT]i?)?B)?(?!\w))"
    r"|(?P<unprintable>[^\x20-\x7e])"
)
_OPEN = {
    "uuid": "[0-9a-fA-F-]{36}",
    "address": r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?",
    "redacted": r"\S{1,200}",
    "single": "'[^']{0,200}'",
    "double": '"[^"]{0,200}"',
    "back": "`[^`]{0,200}`",
    "path": r"[\w./+@~-]{1,200}",
    "hex": "[0-9a-fx]{1,64}",
    "rank": r"(?:TP|PP|DP|EP|[Rr]ank ?)\d{1,4}",
    "number": r"[-+]?\d[\d.,e+-]{0,30}",
    "unprintable": ".",
}
_BOUND = 200  # characters that an open part may have
_TELLING = 6  # characters that stand in every line that matches
_UNIT = "(?: ?(?:[KMGT]i?)?B)?"
_DULL = frozenset(
    word
    for line in (
        "the a an of to in on for is are was were be been and or not no with by at as it its",
        "this that from but which has have had does do did you your can could should must",
        "please try error exception failed runtime value type traceback got expected",
    )
    for word in line.split()
)
_WORDS = 4
_PLAIN = frozenset(("RuntimeError", "Exception", "ValueError", "AssertionError", "TypeError"))


def pattern_of(text: str) -> str:
    """A pattern for lines like this one, which matches the line too; "" if it says too little."""
    line = text.split("\n", 1)[0].strip()
    made, at, stop = [], 0, len(line)
    for part in _PARTS.finditer(line):
        if part.end() - part.start() > _BOUND or (at and part.end() > LONGEST):
            stop = part.start()
            break
        made.append(_literal(line[at : part.start()]))
        made.append(_open(part))
        at = part.end()
    rest = line[at:stop]
    if at + len(rest) > LONGEST:
        rest = rest[: max(LONGEST - at, 0)].rpartition(" ")[0]  # half a word says little
    pattern = "".join((*made, _literal(rest)))
    literals = cover(pattern)
    return pattern if literals and min(map(len, literals)) >= _TELLING else ""


def _open(part: re.Match[str]) -> str:
    kind, text = str(part.lastgroup), part[0]
    if kind == "unit":
        kind = "number"
    if kind in ("single", "double", "back") and _NAME.fullmatch(text[1:-1]):
        return _literal(text)
    return _OPEN[kind] + (_UNIT if part["unit"] else "")


def _literal(text: str) -> str:
    return re.sub(r"([\\.^$*+?{}\[\]()|])", r"\\\1", text)


def name_of(exception: str, text: str, taken: Iterable[str] = ()) -> str:
    """An id in kebab-case from the first words that say something, different from those taken."""
    short = exception.rpartition(".")[2]
    first = [] if short in _PLAIN or not short else [re.sub(r"(Error|Exception)$", "", short)]
    message = text.split("\n", 1)[0].removeprefix(f"{exception}:")
    open_parts = _PARTS.sub(lambda m: m[0] if _NAME.fullmatch(m[0].strip("'\"`")) else " ", message)
    words = [word.lower() for word in re.findall(r"[A-Za-z]{2,}", " ".join((*first, open_parts)))]
    said = [word for word in words if word not in _DULL][:_WORDS]
    name = "-".join(said) or "unnamed-failure"
    used, number, made = set(taken), 2, name
    while made in used:
        made, number = f"{name}-{number}", number + 1
    return made
