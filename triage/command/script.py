"""Find the server in a shell script, a one-line command or a `docker run` line.

In:  the text.
Out: Located, with the variables and directories that were set before the command.
Not: words and quoting (shell.py), wrappers and programs (program.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from triage.command.program import locate
from triage.command.shell import ShellReader, Simple
from triage.command.source import ASSIGNMENT, SHELL, EnvSite, Layer, Located
from triage.command.variables import assigned_in

# Commands that change nothing for the server.
_HARMLESS = """
set echo printf cd export unset mkdir sleep wait trap true : exit [ [[ test tee cat
date declare rm tail grep shift curl nvidia-smi readonly local read for select function
"""
HARMLESS = frozenset(_HARMLESS.split())
MAX_NAMED = 5
LEADING_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # of `NAME`, `NAME=value`, `NAME[0]`
CWD = "cd "  # no variable's name: where the working directory stands among them


class _Script:
    """What the commands before the server set."""

    def __init__(self, text: str, layers: list[Layer]) -> None:
        self.reader = ShellReader(text)
        self.text = text
        self.outer = layers
        self.assigned: dict[str, EnvSite] = {}
        self.exported: dict[str, EnvSite | None] = {}
        self.sites: list[EnvSite] = []
        self.left_out: list[str] = []

    def find(self, form: str) -> Located | None:
        found: Located | None = None
        for simple in self.reader.commands():
            if found:
                if self._locate(simple, form):
                    found.note("the text starts more than one server: the first one is read")
                    break
                continue
            found = self._locate(simple, form)
            if not found:
                self._step(simple)
            elif not found.wrapper:
                self._place(found)
        if found:
            found.notes += [note for note in self.reader.notes if note not in found.notes]
            if self.left_out:
                named = "; ".join(self.left_out[:MAX_NAMED])
                found.note(f"not part of the launch, run it yourself if it matters: {named}")
        return found

    def _place(self, found: Located) -> None:
        """The directory in which the server runs."""
        known = self.reader.variables
        cwd = PurePosixPath(known.values.get(CWD, ""))
        if CWD in known.unsure:
            found.unresolved.append(("the working directory", "a cd under a condition"))
            found.note("cd stands under a condition: it is left out")
        elif CWD in known.open:
            found.unresolved.append(("the working directory", str(cwd)))
        if str(cwd) != ".":
            found.cwd = str(cwd / found.cwd)

    def _locate(self, simple: Simple, form: str) -> Located | None:
        if not simple.words:
            return None
        known = self.reader.variables
        # What stands before the command holds for it, whatever the script knows of the name.
        own = {site.name: site for site in simple.sites}
        last = {site.name: site for site in self.sites} | own
        unsure = known.unsure - own.keys()
        unknown = {name for name, site in last.items() if site.open or name in unsure}
        # An export that was unset, or made in a subshell, is no more.
        held = {name for name, site in last.items() if known.values.get(name) == site.value}
        held |= own.keys()
        sites = [s for s in (*self.sites, *simple.sites) if s.name in held - unknown]
        layer = Layer(self.text, SHELL, sites, env_at=simple.words[0].start)
        # Copies: a command that turns out to be another one must leave no trace.
        outer = [replace(one, sites=list(one.sites)) for one in self.outer]
        found = locate(simple.words, form, [*outer, layer], find_in_shell)
        if found:
            for name in sorted(unknown):
                found.note(f"{name} is left out of the environment: its value is not known")
        return found

    def _step(self, simple: Simple) -> None:
        """The effect of a command that is not the server."""
        words = [word.value for word in simple.words]
        if not words:
            self.assigned |= {site.name: site for site in simple.sites}
            self.sites += [site for site in simple.sites if site.name in self.exported]
            return
        match words[0]:
            case "export":
                self._export(simple)
            case "declare" if "-x" in words:
                self._export(simple)
            case "unset":
                self._unset(words[1:])
            case "read" | "mapfile" | "readarray" | "getopts":
                self._set_unseen(words[1:], "")
            case "declare" | "typeset" | "readonly" | "local":
                self._set_unseen([w for w in words[1:] if "=" in w], f"is set by {words[0]}")
            case "printf" if words[1:2] and words[1].startswith("-v"):
                self._set_unseen([words[1][2:], *words[2:3]], "is set by printf")
            case "let":
                self._set_unseen(assigned_in("; ".join(words[1:])), "is set by arithmetic")
            case "source" | "." | "eval":
                self._run_unseen(words)
            case "cd" if len(words) > 1:
                known, to = self.reader.variables, simple.words[-1]
                cwd = PurePosixPath(known.values.get(CWD, "")) / to.value
                known.assign(CWD, str(cwd), unresolved=to.open or CWD in known.open)
            case name if name.rsplit("/", 1)[-1] not in HARMLESS:
                self.left_out.append(" ".join(words)[:60])
            case _:
                pass

    def _set_unseen(self, names: Iterable[str], why: str) -> None:
        """The command sets these, to what cannot be told here."""
        for word in names:
            if name := LEADING_NAME.match(word):
                self.reader.variables.forget(name[0], unsure=True, why=why)

    def _run_unseen(self, words: list[str]) -> None:
        """A text is run that is not read here: it may set any name again."""
        known = self.reader.variables
        shown = " ".join(words)[:60]
        before = (known.values.keys() | known.arrays.keys()) - {CWD}
        self._set_unseen(sorted(before), f"may be set by `{shown}`")
        if words[0] == "eval":
            self._set_unseen(assigned_in(" ".join(words[1:])), f"may be set by `{shown}`")
        if before:
            named = ", ".join(sorted(before)[:MAX_NAMED]) + (", ..." * (len(before) > MAX_NAMED))
            self.reader.notes.append(
                f"`{shown}` is not read: {named} may have another value after it"
            )
        self.reader.unread = f"`{shown}`"
        self.left_out.append(shown)

    def _unset(self, names: list[str]) -> None:
        for name in names:
            self.reader.variables.forget(name)
            if self.reader.variables.certain:
                self.exported.pop(name, None)

    def _export(self, simple: Simple) -> None:
        holder = (simple.start, simple.end)
        for word in simple.words[1:]:
            assignment = ASSIGNMENT.match(word.value)
            if assignment:
                name, value = assignment["name"], word.value[assignment.end() :]
                site = EnvSite(
                    name, value, word.start, word.start, word.end, holder=holder, open=word.open
                )
                self.reader.variables.assign(name, value, unresolved=word.open)
            elif word.value in self.assigned:
                name, site = word.value, self.assigned[word.value]
            else:
                self.exported.setdefault(word.value, None)
                continue
            self.exported[name] = site
            self.sites.append(site)


def find_in_shell(text: str, layers: list[Layer]) -> Located | None:
    """The server in a shell text that stands inside the given layers."""
    return _Script(text, layers).find("shell")


def locate_script(text: str) -> Located | None:
    """The first server that the text starts, None if there is none.

    Raises:
        UsageError: a quote or a bracket is not closed, or a docker option is not known.
    """
    return find_in_shell(text, [])
