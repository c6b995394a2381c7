"""Read a systemd unit: the server that ExecStart= starts, and its environment.

In:  the text of a unit, or of `systemctl cat`: the unit and its drop-ins in their order.
Out: Located.
Not: EnvironmentFile= and what the service manager passes on; both are noted.

Source: systemd.service(5), "Command lines"; systemd.exec(5), Environment=;
systemd.syntax(7): continuation lines, comments, quoting, C escapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.command.program import locate
from triage.command.script import find_in_shell
from triage.command.source import ASSIGNMENT, UNIT, EnvSite, Layer, Located, Word, line_of
from triage.errors import UsageError

IS_UNIT = re.compile(r"^[ \t]*\[Service\][ \t\r]*$", re.MULTILINE)
SECTION = re.compile(r"[ \t]*\[(?P<name>[^\]\n]*)\]")
ENTRY = re.compile(r"[ \t]*(?P<key>[A-Za-z][\w-]*)[ \t]*=[ \t]*")
COMMENT = re.compile(r"[ \t]*(?:[#;]|\r?$|\r?\n)", re.MULTILINE)
BLANK = re.compile(r"(?:[ \t\r\n]|\\\r?\n(?:[ \t]*[#;][^\n]*\n)*)+")
PLAIN = re.compile(r"[^ \t\r\n'\"\\]+")
ESCAPE = re.compile(
    r"\\(?:(?P<char>[abfnrtvs\\\"'])|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<big>[0-9a-fA-F]{8}))"
)
CHARS = dict(zip("abfnrtvs\\\"'", "\a\b\f\n\r\t\v \\\"'", strict=True))
SPECIFIER = re.compile(r"%(.)")
VARIABLE = re.compile(r"\$\$|\$\{(?P<braced>\w+)\}|\$(?P<name>[A-Za-z_]\w*)", re.ASCII)
PREFIXES = "@-:+!|"


@dataclass(frozen=True, slots=True)
class Entry:
    """One `Key=value` of [Service]; `end` is behind the value, `next` behind its last line."""

    key: str
    line: int
    start: int
    end: int
    next: int


def locate_unit(text: str) -> Located | None:
    """The server of the unit's ExecStart, None if it starts none.

    Raises:
        UsageError: there is no ExecStart, or a quote is not closed.
    """
    entries = unit_entries(text)
    layer = Layer(text, UNIT)
    notes: list[str] = []
    variables = _environment(text, entries, layer, notes)
    start: Entry | None = None
    cwd = ""
    for entry in entries:
        value = text[entry.start : entry.end].strip()
        if entry.key == "ExecStart":
            start = entry if value else None
        elif entry.key == "WorkingDirectory":
            cwd = value.removeprefix("-")
        elif entry.key == "EnvironmentFile" and value:
            notes.append(f"EnvironmentFile={value} is not read")
    if start is None:
        raise UsageError("the unit has no ExecStart=", hint="systemctl cat UNIT")
    words = _Words(text, start, notes).expanded(variables)
    words = _without_prefixes(words)
    resets = [e.next for e in entries if e.key == "Environment" and e.start == e.end]
    layer.env_at, layer.env_as = max([start.line, *resets]), "unit"
    found = locate(words, "systemd", [layer], find_in_shell)
    if found:
        found.cwd = found.cwd or ("" if found.wrapper else cwd)
        found.notes += notes
    return found


def unit_entries(text: str) -> list[Entry]:
    """The assignments of every [Service] section, in order."""
    entries: list[Entry] = []
    section, at = "", 0
    while at < len(text):
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if head := SECTION.match(text, at):
            section = head["name"]
        elif not COMMENT.match(text, at) and (entry := ENTRY.match(text, at, line_end)):
            end = line_end
            while (
                end < len(text) and text[max(entry.end(), end - 2) : end].rstrip("\r")[-1:] == "\\"
            ):
                following = text.find("\n", end + 1)
                following = len(text) if following < 0 else following
                while re.match(r"[ \t]*[#;]", text[end + 1 : following]) and following < len(text):
                    end, following = following, text.find("\n", following + 1)
                    following = len(text) if following < 0 else following
                end = following
            if section == "Service":
                value = text[entry.end() : end].rstrip("\r\\ \t\n")
                value_end = entry.end() + len(value)
                entries.append(Entry(entry["key"], at, entry.end(), value_end, end + 1))
            line_end = end
        at = line_end + 1
    return entries


def _environment(text: str, entries: list[Entry], layer: Layer, notes: list[str]) -> dict[str, str]:
    """The variables of Environment=; their places go into the layer."""
    for entry in entries:
        if entry.key != "Environment":
            continue
        if entry.start == entry.end:
            layer.sites.clear()
        for word in _Words(text, entry, notes).read():
            value = _specified(word.value, notes)
            if assignment := ASSIGNMENT.match(value):
                name, rest = assignment["name"], value[assignment.end() :]
                site = EnvSite(
                    name, rest, word.start, word.start, word.end, holder=(entry.line, entry.next)
                )
                layer.sites.append(site)
    return {site.name: site.value for site in layer.sites}


class _Words:
    """The words of one value, by systemd's quoting rules."""

    def __init__(self, text: str, entry: Entry, notes: list[str]) -> None:
        self.text, self.entry, self.notes = text, entry, notes

    def read(self) -> list[Word]:
        words: list[Word] = []
        at = self.entry.start
        while at < self.entry.end:
            if blank := BLANK.match(self.text, at, self.entry.end):
                at = blank.end()
                continue
            start, parts = at, []
            while at < self.entry.end and not BLANK.match(self.text, at, self.entry.end):
                part, at = self._piece(at)
                parts.append(part)
            words.append(Word("".join(parts), start, at))
        return words

    def _piece(self, at: int) -> tuple[str, int]:
        if plain := PLAIN.match(self.text, at, self.entry.end):
            return plain[0], plain.end()
        quote = self.text[at]
        if quote == "\\":
            return self._escape(at)
        parts: list[str] = []
        begin, at = at, at + 1
        while at < self.entry.end:
            if self.text[at] == quote:
                return "".join(parts), at + 1
            if blank := re.compile(r"\\\r?\n(?:[ \t]*[#;][^\n]*\n)*").match(self.text, at):
                parts.append(" ")
                at = blank.end()
            elif self.text[at] == "\\":
                part, at = self._escape(at)
                parts.append(part)
            else:
                end = re.compile(r"[^\\'\"]+|['\"]").match(self.text, at, self.entry.end)
                parts.append(end[0] if end else "")
                at = end.end() if end else at + 1
        raise UsageError(
            f"line {line_of(self.text, begin)} of the unit: {quote} is opened and never closed",
            hint="systemd-analyze verify UNIT",
        )

    def _escape(self, at: int) -> tuple[str, int]:
        match = ESCAPE.match(self.text, at, self.entry.end)
        if not match:
            return "\\", at + 1
        if match["char"]:
            return CHARS[match["char"]], match.end()
        if match["octal"]:
            return chr(int(match["octal"], 8)), match.end()
        code = int(match["hex"] or match["u"] or match["big"], 16)
        return chr(code) if code <= 0x10FFFF else "?", match.end()  # noqa: PLR2004  Unicode

    def expanded(self, variables: dict[str, str]) -> list[Word]:
        """The words of a command line: specifiers and variables put in."""
        words: list[Word] = []
        for word in self.read():
            value = _specified(word.value, self.notes)
            is_open = any(match[1] != "%" for match in SPECIFIER.finditer(word.value))
            alone = VARIABLE.fullmatch(value)
            if alone and alone["name"] and alone["name"] in variables:
                pieces = variables[alone["name"]].split()
                words += [Word(piece, word.start, word.end) for piece in pieces]
            else:
                text = VARIABLE.sub(lambda m: self._variable(m, variables), value)
                is_open |= any(not _is_known(m, variables) for m in VARIABLE.finditer(value))
                words.append(Word(text, word.start, word.end, open=is_open))
        return words

    def _variable(self, match: re.Match[str], variables: dict[str, str]) -> str:
        if match[0] == "$$":
            return "$"
        if _is_known(match, variables):
            return variables[match["braced"]]
        note = f"{match[0]} is not set by Environment=: it stands as it is written"
        if note not in self.notes:
            self.notes.append(note)
        return match[0]


def _is_known(match: re.Match[str], variables: dict[str, str]) -> bool:
    """Whether systemd has the value; it expands `$NAME` only where that is a whole word."""
    return match[0] == "$$" or match["braced"] in variables


def _specified(value: str, notes: list[str]) -> str:
    for match in SPECIFIER.finditer(value):
        note = f"{match[0]}: the specifier is left as it is written"
        if match[1] != "%" and note not in notes:
            notes.append(note)
    return value.replace("%%", "%")


def _without_prefixes(words: list[Word]) -> list[Word]:
    if not words:
        return words
    first = words[0]
    prefix = first.value[: len(first.value) - len(first.value.lstrip(PREFIXES))]
    program = Word(first.value[len(prefix) :], first.start, first.end)
    return [program, *words[2 if "@" in prefix else 1 :]]
