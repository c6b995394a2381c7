"""Find the server in a shell script, a one-line command or a `docker run` line.

In:  the text.
Out: Located, with the variables and directories that were set before the command.
Not: words and quoting (shell.py), wrappers and programs (program.py).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from triage.command.program import locate
from triage.command.shell import ShellReader, Simple
from triage.command.source import ASSIGNMENT, SHELL, EnvSite, Layer, Located

# Commands that change nothing for the server.
_HARMLESS = """
set echo printf cd export unset mkdir sleep wait trap true : fi done esac } exit [ [[ test tee cat
date declare rm tail grep shift then else do curl nvidia-smi readonly local
"""
HARMLESS = frozenset(_HARMLESS.split())
MAX_NAMED = 5


class _Script:
    """What the commands before the server set."""

    def __init__(self, text: str, layers: list[Layer]) -> None:
        self.reader = ShellReader(text)
        self.text = text
        self.outer = layers
        self.assigned: dict[str, EnvSite] = {}
        self.exported: dict[str, EnvSite | None] = {}
        self.sites: list[EnvSite] = []
        self.cwd = PurePosixPath()
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
        if found:
            if str(self.cwd) != "." and not found.wrapper:
                found.cwd = str(self.cwd / found.cwd)
            found.notes += [note for note in self.reader.notes if note not in found.notes]
            if self.left_out:
                named = "; ".join(self.left_out[:MAX_NAMED])
                found.note(f"not part of the launch, run it yourself if it matters: {named}")
        return found

    def _locate(self, simple: Simple, form: str) -> Located | None:
        if not simple.words:
            return None
        sites = [site for site in (*self.sites, *simple.sites) if not site.open]
        layer = Layer(self.text, SHELL, sites, env_at=simple.words[0].start)
        # Copies: a command that turns out to be another one must leave no trace.
        outer = [replace(one, sites=list(one.sites)) for one in self.outer]
        found = locate(simple.words, form, [*outer, layer], find_in_shell)
        if found:
            for site in (*self.sites, *simple.sites):
                if site.open:
                    found.note(
                        f"{site.name} is left out of the environment: its value is not known"
                    )
        return found

    def _step(self, simple: Simple) -> None:
        """The effect of a command that is not the server."""
        words = [word.value for word in simple.words]
        if not words:
            for site in simple.sites:
                self.assigned[site.name] = site
                if site.name in self.exported:
                    self.sites.append(site)
            return
        match words[0]:
            case "export":
                self._export(simple)
            case "declare" if "-x" in words:
                self._export(simple)
            case "unset":
                self.sites = [s for s in self.sites if s.name not in words[1:]]
                for name in words[1:]:
                    self.exported.pop(name, None)
                    self.reader.variables.pop(name, None)
            case "cd" if len(words) > 1:
                self.cwd /= words[-1]
            case name if name.rsplit("/", 1)[-1] not in HARMLESS:
                self.left_out.append(" ".join(words)[:60])
            case _:
                pass

    def _export(self, simple: Simple) -> None:
        holder = (simple.start, simple.end)
        for word in simple.words[1:]:
            assignment = ASSIGNMENT.match(word.value)
            if assignment:
                name, value = assignment["name"], word.value[assignment.end() :]
                site = EnvSite(
                    name, value, word.start, word.start, word.end, holder=holder, open=word.open
                )
                self.reader.variables[name] = value
                self.reader.open.discard(name)
                if word.open:
                    self.reader.open.add(name)
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
