"""Read the commands of a shell script without running a shell.

In:  the text of a script or of one command line.
Out: its simple commands: words with their places, the variables in force.
Not: which of them starts the server (program.py).

What only a shell could know (command substitution, variables set elsewhere or
under a condition, arithmetic) stays in the word as it is written, and is noted.

Source: POSIX.1-2017, Shell Command Language, 2.2, 2.3, 2.6, 2.7; bash(1) for
arrays, `$'...'`, `&>` and `<<<`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from triage.command.fields import Fields
from triage.command.source import ASSIGNMENT, EnvSite, Word, line_of
from triage.command.variables import Kind, Variables, assigned_in
from triage.errors import UsageError

BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
COMMENT = re.compile(r"#[^\n]*")
REDIRECT = re.compile(r"\d*(?:<<<|<<-?|>>|>\||>&|<&|<>|[<>])|&>>?")
OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
PLAIN = re.compile(r"[^ \t\r\n'\"\\$`;&|<>()]+")
IN_DOUBLE = re.compile(r'[^"\\$`]+')
PARAMETER = re.compile(
    r"\$(?:(?P<name>[A-Za-z_]\w*|[0-9@*#?$!-])|\{(?P<braced>[^{}]*)\})", re.ASCII
)
BRACED = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?P<all>\[[@*]\])?(?:(?P<op>:?[-=])(?P<default>.*))?\Z",
    re.ASCII | re.DOTALL,
)
ARRAY = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=\(", re.ASCII)
APPEND = re.compile(r"(?P<name>[A-Za-z_]\w*)\+=", re.ASCII)
# `(( ))` whose brackets match; what else begins so is a subshell in a subshell.
ARITHMETIC = re.compile(
    r"\(\((?P<inner>(?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+)\)\)",
)
FUNCTION = re.compile(r"\([ \t]*\)")
HEREDOC_END = re.compile(r"['\"\\]")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b"}
# Reserved words that leave the next word a command, and what they do to the blocks.
BEGINS: dict[str, Kind] = {"if": "if", "while": "loop", "until": "loop"}
ENDS: dict[str, Kind] = {"fi": "if", "done": "loop", "esac": "case"}
RESERVED = frozenset(["then", "do", "else", "elif", "{", "}", "!", "time", *BEGINS, *ENDS])
MAX_WORDS = 200_000
MAX_EXPANDED = 4 << 20  # characters that variables put in; they can double line by line


@dataclass(slots=True)
class Simple:
    """One simple command: its words, and the assignments that stand before them."""

    words: list[Word] = field(default_factory=list)
    sites: list[EnvSite] = field(default_factory=list)
    start: int = 0
    end: int = 0


class ShellReader:
    """One pass over a script; variables are known from the lines above."""

    def __init__(self, text: str, variables: dict[str, str] | None = None) -> None:
        self.text = text
        self.variables = Variables(variables)
        self.notes: list[str] = []
        self.unread = ""  # the last command that runs a text which is not read here
        self._pattern = False  # between `case` or `;;` and the `)` behind the pattern
        self._function = False  # `name()` was read, its body follows
        self._goes_on = False  # the last operator lets the list go on in the next line
        self._at = 0
        self._heredocs: list[tuple[str, bool]] = []
        self._words = 0
        self._expanded = 0

    def commands(self) -> Iterator[Simple]:
        """The simple commands in order; the caller updates `variables` between them."""
        simple = Simple()
        while self._at < len(self.text):
            if self._skipped():
                continue
            if match := REDIRECT.match(self.text, self._at):
                self._redirect(match)
            elif not simple.sites and (match := self._arithmetic(simple)):
                self.variables.begin()
                self._calculate(match["inner"])
                self._at = match.end()
            elif match := OPERATOR.match(self.text, self._at):
                if match[0] == "(" and self._defines_function(simple):
                    simple = Simple()
                    continue
                self._at = match.end()
                if self._finished(simple) and not self._pattern:
                    yield simple
                simple = Simple()
                self._operator(match[0])
                if match[0] == "\n":
                    self._skip_heredocs()
            else:
                self._goes_on = False
                self._add_word(simple)
        if self._finished(simple):
            yield simple

    def _finished(self, simple: Simple) -> bool:
        """A command ends here: assignments without one stay. False if there is nothing."""
        stay = self.variables.end_prefix(stays=not simple.words)
        if simple.sites and not simple.words and not stay:  # `A=1 $COMMAND`, which was empty
            for site in simple.sites:
                self.variables.forget(site.name, unsure=True)
        return bool(simple.words or simple.sites)

    def _arithmetic(self, simple: Simple) -> re.Match[str] | None:
        """`((...))` as a command, or behind `for`."""
        if self._pattern or (simple.words and [w.value for w in simple.words] != ["for"]):
            return None
        return ARITHMETIC.match(self.text, self._at)

    def _calculate(self, expression: str) -> None:
        for name in assigned_in(expression):
            self.variables.forget(name, unsure=True, why="is set by arithmetic")

    def _defines_function(self, simple: Simple) -> bool:
        """Reads `name ( )`, of which the name was read already."""
        match = FUNCTION.match(self.text, self._at)
        count = 2 if self._function else 1
        if not match or len(simple.words) != count or simple.sites:
            return False
        self._at, self._function = match.end(), True
        return True

    def _operator(self, operator: str) -> None:
        """What an operator does to the blocks."""
        match operator:
            case "&&" | "||":
                self.variables.link(either=operator == "||")
            case "(" if self._pattern:
                pass
            case "(":
                self.variables.begin()
                self.variables.enter("function" if self._function else "subshell")
                self._function = False
            case ")" if self._pattern:
                self._pattern = False
            case ")":
                self.variables.leave("subshell", "function")
            case ";;":
                self.variables.branch()
                self._pattern = self.variables.kind == "case"
            case "|" | "|&" if not self._pattern:
                self.variables.pipe()
            case ";" | "&":
                self.variables.end_list(behind=operator == "&")
            case "\n" if not self._goes_on:
                self.variables.end_list()
            case _:
                pass
        self._goes_on = operator in ("&&", "||", "|", "|&") or (operator == "\n" and self._goes_on)

    def _reserved(self, word: str) -> bool:
        """Whether the word of a command's place is reserved; what it does to the blocks."""
        if word in BEGINS:
            self.variables.enter(BEGINS[word])
        elif word in ENDS:
            self.variables.leave(ENDS[word])
            self._pattern = self._pattern and word != "esac"
        elif word in ("then", "do"):
            self.variables.end_list()
        elif word in ("else", "elif"):
            self.variables.branch()
        elif word == "{":
            self.variables.enter("function" if self._function else "group")
            self._function = False
        elif word == "}":
            self.variables.leave("group", "function")
        elif word == "case":
            self.variables.enter("case")
            self._pattern = True
        elif word in ("for", "select"):
            self.variables.enter("loop")
        elif word == "function":
            self._function = True
        return word in RESERVED

    def _skipped(self) -> bool:
        match = BLANK.match(self.text, self._at) or COMMENT.match(self.text, self._at)
        if match:
            self._at = match.end()
        return match is not None

    def _redirect(self, match: re.Match[str]) -> None:
        self._at = match.end()
        while self._skipped():
            pass
        start = self._at
        self._word()
        operator = match[0].lstrip("0123456789")
        if operator in ("<<", "<<-"):
            mark = HEREDOC_END.sub("", self.text[start : self._at])
            self._heredocs.append((mark, operator == "<<-"))

    def _skip_heredocs(self) -> None:
        for mark, tabs in self._heredocs:
            while self._at < len(self.text):
                end = self.text.find("\n", self._at)
                end = len(self.text) if end < 0 else end
                line = self.text[self._at : end].rstrip("\r")
                self._at = end + 1
                if (line.lstrip("\t") if tabs else line) == mark:
                    break
        self._heredocs.clear()

    def _add_word(self, simple: Simple) -> None:
        start = self._at
        if not simple.words and not simple.sites:
            simple.start = start
            self.variables.begin()
        self._words += 1
        if self._words > MAX_WORDS:
            raise UsageError(f"the command has more than {MAX_WORDS} words")
        if not simple.words and (array := ARRAY.match(self.text, start)):
            self._read_array(array)
            return
        if not simple.words and (append := APPEND.match(self.text, start)):
            self._append(append, simple)
            return
        assignment = ASSIGNMENT.match(self.text, start)
        declares = bool(simple.words) and simple.words[0].value in ("export", "declare", "env")
        if assignment and (not simple.words or declares):
            [word] = self._word(split=False)
            if not simple.words:
                name, value = assignment["name"], word.value[assignment.end() - start :]
                simple.sites.append(EnvSite(name, value, start, start, self._at, open=word.open))
                self.variables.prefix()
                self.variables.assign(name, value, unresolved=word.open)
            else:
                simple.words.append(word)
        else:
            # The words are expanded before the assignments that stand before them.
            self.variables.end_prefix(stays=False)
            words = self._word()
            first = not simple.words and not simple.sites
            if first and self._reserved(self.text[start : self._at]):
                return
            simple.words += words
            self._after_two(simple)
        simple.end = self._at

    def _after_two(self, simple: Simple) -> None:
        """`for NAME` and `function NAME {`: what they do once the name is read."""
        match [word.value for word in simple.words]:
            case ["for" | "select", name]:
                self.variables.forget(name, unsure=True)
            case ["function", _, "{"] if self._function:
                simple.words.clear()
                self._reserved("{")
            case _:
                pass

    def _append(self, append: re.Match[str], simple: Simple) -> None:
        """`NAME+=value`: two places make the value, so it is no place to edit."""
        start, name = append.start(), append["name"]
        self._at = append.end()
        [word] = self._word(split=False)
        before = self.variables.values.get(name, "")
        self._spend(len(before) + len(word.value))
        self.variables.prefix()
        known = name not in self.variables.unsure
        if known:
            unresolved = word.open or name in self.variables.open
            self.variables.assign(name, before + word.value, unresolved=unresolved)
        simple.sites.append(EnvSite(name, word.value, start, start, self._at, open=True))
        simple.end = self._at

    def _read_array(self, array: re.Match[str]) -> None:
        self._at = array.end()
        name, more = array["name"], bool(array["more"])
        items = list(self.variables.arrays.get(name, ())) if more else []
        while True:
            if self._at >= len(self.text):
                raise self._unfinished(array.start(), "(")
            if self.text[self._at] == "\n":
                self._at += 1
            elif self.text[self._at] == ")":
                self._at += 1
                break
            elif not self._skipped():
                before = self._at
                items += self._word()
                if self._at == before:
                    raise self._unfinished(array.start(), "(")
        self.variables.prefix()
        if not more or name not in self.variables.unsure:
            self._spend(len(items))
            self.variables.assign(name, items)

    def _word(self, *, split: bool = True) -> list[Word]:
        """The word at this place; several or none if it holds an unquoted variable."""
        start = self._at
        fields = Fields()
        while self._piece(fields, split=split):
            pass
        fields.finish()
        if not fields.done and not split:
            fields.add("")
            fields.finish()
        # Words without a place of their own stand where the whole word stands.
        words = [
            word if isinstance(word, Word) else Word(word[0], start, self._at, word[1])
            for word in fields.done
        ]
        if words and self.text.startswith("~", start):
            self._note(f"{words[0].value}: ~ is left as it is written")
            words[0] = replace(words[0], open=True)
        return words

    def _piece(self, fields: Fields, *, split: bool) -> bool:
        """Reads one quoted or plain piece; False at the end of the word."""
        at = self._at
        char = self.text[at : at + 1]
        if match := PLAIN.match(self.text, at):
            self._at = match.end()
            fields.add(match[0])
        elif char == "'":
            fields.add(self._single(at))
        elif char == '"':
            self._double(at, fields)
        elif self.text.startswith("$'", at):
            fields.add(self._ansi(at))
        elif char == "\\":
            escaped = self.text[at + 1 : at + 2]
            self._at = at + 2
            if escaped != "\n":
                fields.add(escaped)
        elif char in ("$", "`"):
            value, is_open = self._expand()
            if isinstance(value, list):
                fields.spread(value)
            elif split and not is_open:
                fields.split(value)
            else:
                fields.add(value, is_open=is_open)
        else:
            return False
        return True

    def _single(self, at: int) -> str:
        end = self.text.find("'", at + 1)
        if end < 0:
            raise self._unfinished(at, "'")
        self._at = end + 1
        return self.text[at + 1 : end]

    def _ansi(self, at: int) -> str:
        parts: list[str] = []
        self._at = at + 2
        while self._at < len(self.text):
            char = self.text[self._at]
            self._at += 1
            if char == "'":
                return "".join(parts)
            if char == "\\":
                follow = self.text[self._at : self._at + 1]
                self._at += 1
                char = ESCAPES.get(follow, "\\" + follow)
            parts.append(char)
        raise self._unfinished(at, "$'")

    def _double(self, at: int, fields: Fields) -> None:
        parts: list[str] = []
        unresolved = spread = False
        self._at = at + 1
        while self._at < len(self.text):
            char = self.text[self._at]
            if match := IN_DOUBLE.match(self.text, self._at):
                parts.append(match[0])
                self._at = match.end()
            elif char == '"':
                self._at += 1
                if parts or not spread:
                    fields.add("".join(parts), is_open=unresolved)
                return
            elif char == "\\":
                follow = self.text[self._at + 1 : self._at + 2]
                self._at += 2
                kept = "\\" + follow
                parts.append("" if follow == "\n" else follow if follow in '"\\$`' else kept)
            else:
                value, is_open = self._expand()
                unresolved |= is_open
                if isinstance(value, list):  # "${items[@]}": every item is a word
                    fields.spread(value)
                    spread = True
                else:
                    parts.append(value)
        raise self._unfinished(at, '"')

    def _expand(self) -> tuple[str | list[Word], bool]:
        """The value of what begins with `$` or a backtick here; True if it stays unresolved."""
        at = self._at
        if self.text[at] == "`" or self.text.startswith("$(", at):
            self._at = self._substitution_end(at)
            literal = self.text[at : self._at]
            if literal.startswith("$(("):
                self._calculate(literal)
            self._note(f"{_short(literal)} is not run: it stands as it is written")
            return literal, True
        parameter = PARAMETER.match(self.text, at)
        if not parameter:
            self._at = at + 1
            return "$", False
        self._at = parameter.end()
        if parameter[0] in ("$@", "$*", "${@}", "${*}"):
            self._note("the script's own arguments ($@) are not known: read without them")
            return [], False
        braced = BRACED.match(parameter["braced"] or parameter["name"])
        known = self._value(braced, parameter[0]) if braced else None
        if known is not None:
            return known
        why = "is not set here"
        if braced and braced["name"] in self.variables.unsure:
            why = self.variables.why.get(braced["name"], "is set under a condition")
        self._note(f"{_short(parameter[0])} {why}: it stands as it is written")
        return parameter[0], True

    def _value(self, braced: re.Match[str], literal: str) -> tuple[str | list[Word], bool] | None:
        """What `${NAME}` stands for, and whether something in it is unresolved; None: unknown."""
        known, name = self.variables, braced["name"]
        if name in known.unsure:
            return None
        if braced["all"]:
            if name not in known.arrays:
                return None
            self._spend(sum(1 + len(word.value) for word in known.arrays[name]))
            return list(known.arrays[name]), False
        if name in known.values and (known.values[name] or ":" not in (braced["op"] or "")):
            self._spend(len(known.values[name]))
            return known.values[name], name in known.open
        if not braced["op"] or re.search(r"[$`'\"\\]", braced["default"]):
            return None
        if name in os.environ and name not in known.values:
            self._note(
                f"{_short(literal)}: its default is read, although {name} is set where triage runs"
            )
        if self.unread:
            self._note(f"{_short(literal)}: its default is read, although {self.unread} may set it")
        if "=" in braced["op"]:
            known.assign(name, braced["default"])
        return braced["default"], False

    def _substitution_end(self, at: int) -> int:
        if self.text[at] == "`":
            end = self.text.find("`", at + 1)
            if end < 0:
                raise self._unfinished(at, "`")
            return end + 1
        depth = 0
        for token in re.compile(r"'[^']*'|\\.|[()]", re.DOTALL).finditer(self.text, at):
            depth += (token[0] == "(") - (token[0] == ")")
            if depth == 0 and token[0] == ")":
                return token.end()
        raise self._unfinished(at, "$(")

    def _spend(self, chars: int) -> None:
        self._expanded += chars
        if self._expanded > MAX_EXPANDED:
            raise UsageError("the variables of the command grow beyond any command line")

    def _note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < 40:  # noqa: PLR2004  enough to read
            self.notes.append(text)

    def _unfinished(self, at: int, what: str) -> UsageError:
        return UsageError(
            f"line {line_of(self.text, at)} of the command: {what} is opened and never closed",
            hint="sh -n FILE",
        )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  one line of a message
