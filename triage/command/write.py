"""Write a server command back in its own form, with another config.

In:  the command as it was read, and the config that it should have.
Out: the same text; only what the new config changes is different.
Not: choosing the config.

An unchanged flag keeps its spelling, its place and its variables; a removed
flag goes with the blank before it; a new one stands behind the last, on a line
of its own where the others do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from triage.command import manifest
from triage.command.configfile import write_config_file
from triage.command.manifest import ManifestLayer, locate_manifest
from triage.command.script import locate_script
from triage.command.source import SHELL, UNIT, EnvSite, Layer, Located, Word, unit_environment
from triage.command.unit import locate_unit
from triage.core.config import Config, Flag, Given, ServerCommand, argv, words
from triage.core.flags import FlagTable, Known
from triage.errors import UsageError

Edit = tuple[int, int, str]  # from, to, the new text
PROGRAM = ("python", "-m", "sglang.launch_server")

# The blank before a word: spaces and continuation lines, or line ends in an array.
GAP = re.compile(r"(?:[ \t\r\n]|\\\r?\n)+\Z")
WHOLE_GAP = re.compile(r"(?:[ \t\r\n]|\\\r?\n)+")


LOCATE = {"systemd": locate_unit, "kubernetes": locate_manifest}
LANGUAGES = {"systemd": "ini", "sglang-config": "yaml", "kubernetes": "yaml"}


def command_language(form: str) -> str:
    """The syntax of a form, as code blocks name it."""
    return LANGUAGES.get(form, "sh")


def write_command(command: ServerCommand, config: Config, table: FlagTable | None = None) -> str:
    """The command in the form it came in, with this config; it can be pasted.

    With a table, a config file is checked against what the engine accepts there.

    Raises:
        UsageError: the form cannot hold the config, or `command.text` is not what was read.
    """
    if command.form == "server-args" or not command.text:
        return _fresh(command, config)
    if command.form == "sglang-config":
        if table is not None:
            _check_config_file(config, table)
        return write_config_file(command.text, command.given, command.config, config)
    located = LOCATE.get(command.form, locate_script)(command.text)
    if located is None:
        raise UsageError("the command's text starts no server any more", hint="read it again")
    edits = [_env_edits(layer, command.config, config) for layer in located.layers]
    at, added = _added_env(located, config)
    edits[at] += added
    edits[-1] += _flag_edits(located, command, config)
    return _rebuilt(located, edits)


def _fresh(command: ServerCommand, config: Config) -> str:
    """One line, for a command that has no text of its own."""
    assigned = [SHELL.assignment("", name, value) for name, value in config.env]
    program = command.program or PROGRAM
    if command.wrapper:
        options = [word for text in assigned for word in ("-e", text)]
        before = [shlex.join(command.wrapper[:-1]), *options, shlex.quote(command.wrapper[-1])]
    else:
        before = assigned
    return " ".join([*before, shlex.join([*program, *argv(config)])]) + "\n"


def _check_config_file(config: Config, table: FlagTable) -> None:
    for flag in config.flags:
        found = table.lookup(flag.name)
        if not isinstance(found, Known):
            continue
        bare = found.spec.style == "optional-value" and flag.value is True
        # The engine writes `--flag value` from the file, in two words.
        dashed = isinstance(flag.value, str) and not table.is_value(flag.value)
        if not found.spec.config_file or bare or dashed or flag.value == ():
            raise UsageError(
                f"{table.engine} {table.version} does not take --{flag.name} from a config file",
                hint="keep the file and add to the command: " + shlex.join(words(flag)),
            )


def _rebuilt(located: Located, edits: list[list[Edit]]) -> str:
    """The outermost text; an inner text goes back into the word that holds it."""
    inner: str | None = None
    for layer, own in zip(reversed(located.layers), reversed(edits), strict=True):
        if inner is not None and layer.link:
            own.append((layer.link.start, layer.link.end, layer.syntax.quote(inner)))
        text = layer.text
        for start, end, new in sorted(own, key=lambda e: (e[0], e[1]), reverse=True):
            text = text[:start] + new + text[end:]
        inner = text if text != layer.text else None
    return located.layers[0].text if inner is None else inner


def _flag_edits(located: Located, command: ServerCommand, config: Config) -> list[Edit]:
    layer = located.layers[-1]
    old, new = command.config.flag_values(), config.flag_values()
    # Flags that a file named by --config brought in: the file stays as long as
    # nothing has to be taken away, since the command line overrides it.
    merged = "config" not in old and any(one.name == "config" for one in command.given)
    keep_file = merged and not old.keys() - new.keys()
    written = {one.name for one in command.given}
    replaced: dict[int, list[str]] = {}
    last = {one.name: one for one in command.given}
    for one in command.given:
        if one.name == "config" and merged:
            if not keep_file:
                replaced |= _gone(one)
        elif one.name not in new:
            replaced |= _gone(one)
        elif old.get(one.name) != new[one.name]:
            texts = words(Flag(one.name, new[one.name])) if one is last[one.name] else ()
            replaced |= _replacement(located.words, one, texts)
    added = [
        words(flag)
        for flag in config.flags
        if flag.name not in written and not (keep_file and old.get(flag.name) == flag.value)
    ]
    if isinstance(layer, ManifestLayer):
        moved = manifest.changed(command.config.env_values(), config.env_values())
        for number, place in enumerate(located.words):
            if number not in replaced and manifest.uses(layer.text[place.start : place.end], moved):
                replaced[number] = [place.value]
        return manifest.word_edits(layer, located, replaced, added)
    edits = _word_edits(layer, located, replaced)
    positional = replaced.get(-1)
    if located.positional and positional is not None:
        place = located.positional
        edits.append(
            (place.start, place.end, _joined(layer, positional))
            if positional
            else (_gap_start(layer.text, place.start), place.end, "")
        )
    return edits + _added_flags(layer, located, command.given, added)


def _gone(one: Given) -> dict[int, list[str]]:
    return {at: [] for at in range(one.first, one.end)}


def _replacement(sources: Sequence[Word], one: Given, texts: Sequence[str]) -> dict[int, list[str]]:
    """The new words for the places of one flag."""
    places = range(one.first, one.end)
    if one.first < 0:  # the model of `sglang serve MODEL`
        value = list(texts[1:]) if len(texts) == 2 else [*texts]  # noqa: PLR2004  name, value
        return {-1: value}
    if len(texts) == len(places) > 1 and not sources[one.first].value.startswith("--config"):
        # The same shape: the user's own spelling of the flag stays.
        return {at: [text] for at, text in zip(places[1:], texts[1:], strict=True)}
    return _gone(one) | {one.first: list(texts)}


def _word_edits(layer: Layer, located: Located, replaced: Mapping[int, list[str]]) -> list[Edit]:
    """Edits of the places of the flag words; words of one place are written out together."""
    edits: list[Edit] = []
    gone: list[tuple[int, int]] = []
    sources = located.words
    at = 0
    while at < len(sources):
        end = _place_end(sources, at)
        start, stop = sources[at].start, sources[at].end
        if any(number in replaced for number in range(at, end)):
            texts = [
                text
                for number in range(at, end)
                for text in replaced.get(number, [sources[number].value])
            ]
            if texts:
                edits.append((start, stop, _joined(layer, texts)))
            elif gone and WHOLE_GAP.fullmatch(layer.text[gone[-1][1] : start]):
                gone[-1] = (gone[-1][0], stop)
            else:
                gone.append((start, stop))
        at = end
    return edits + [_removed(layer.text, start, stop) for start, stop in gone]


def _place_end(sources: Sequence[Word], at: int) -> int:
    """The position behind the words that share the place of this one."""
    end = at + 1
    while end < len(sources) and sources[end].start == sources[at].start:
        end += 1
    return end


def _removed(text: str, start: int, stop: int) -> Edit:
    """The place goes, with the blank before it; after a comment, with the blank behind it."""
    gap = _gap_start(text, start)
    line = text[text.rfind("\n", 0, gap) + 1 : gap]
    following = WHOLE_GAP.match(text, stop)
    if re.search(r"(?:^|\s)[#;]", line) and "\n" in text[gap:start] and following:
        return start, following.end(), ""
    return gap, stop, ""


def _joined(layer: Layer, texts: Sequence[str]) -> str:
    return " ".join(map(layer.syntax.quote, texts))


def _gap_start(text: str, at: int) -> int:
    found = GAP.search(text[max(0, at - 2_000) : at])
    return at - len(found[0]) if found else at


def _added_flags(
    layer: Layer, located: Located, given: Sequence[Given], added: Sequence[tuple[str, ...]]
) -> list[Edit]:
    if not added:
        return []
    sources = located.words
    # Behind a bare `--` argparse knows no flags.
    count = next((i for i, word in enumerate(sources) if word.value == "--"), len(sources))
    at = sources[count - 1].end if count else located.program_end
    gap = " "
    starts = [one.first for one in given if 0 <= one.first < count]
    if starts:
        first = starts[-1]
        while first and sources[first - 1].start == sources[first].start:
            first -= 1
        before = sources[first - 1].end if first else located.program_end
        between = layer.text[before : sources[first].start]
        gap = between if WHOLE_GAP.fullmatch(between) and "\n" in between else " "
    return [(at, at, "".join(gap + _joined(layer, texts) for texts in added))]


def _env_edits(layer: Layer, old: Config, new: Config) -> list[Edit]:
    """Changes of the variables that this layer sets."""
    before, after = old.env_values(), new.env_values()
    if isinstance(layer, ManifestLayer):
        return manifest.env_edits(layer, before, after)
    gone = [site for site in layer.sites if site.name not in after]
    edits: list[Edit] = []
    for site in layer.sites:
        if site in gone:
            edits.append(_removal(layer, site, gone))
        elif before.get(site.name) != after[site.name]:
            edits.append((site.at, site.end, _assignment(layer, site, after[site.name])))
    return list(dict.fromkeys(edits))


def _assignment(layer: Layer, site: EnvSite, value: str) -> str:
    if layer.syntax is UNIT and site.holder:
        return unit_environment(site.name, value)
    return layer.syntax.assignment(site.lead, site.name, value)


def _removal(layer: Layer, site: EnvSite, gone: Sequence[EnvSite]) -> Edit:
    text = layer.text
    if site.holder:
        start, end = site.holder
        together = [s for s in layer.sites if s.holder == site.holder]
        rest = text[start:end]
        for one in sorted(together, key=lambda s: s.start, reverse=True):
            rest = rest[: one.start - start] + rest[one.end - start :]
        only = all(one in gone for one in together) and len(rest.split()) <= 1
        if only and layer.syntax is UNIT:
            return start, end, ""
        if only:
            line_start = text.rfind("\n", 0, start) + 1
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            if not (text[line_start:start] + text[end:line_end]).strip():
                return line_start, line_end + 1, ""
            names = " ".join(one.name for one in together)
            return start, end, f"unset {names}"
        if not text[start : site.start].rstrip().endswith("="):
            return _gap_start(text, site.start), site.end, ""
    following = WHOLE_GAP.match(text, site.end)
    return site.start, following.end() if following else site.end, ""


def _added_env(located: Located, new: Config) -> tuple[int, list[Edit]]:
    """Variables that no layer sets yet: the number of the layer that gets them, and its edit."""
    layers = located.layers
    known = {site.name for one in layers for site in one.sites}
    added = [(name, value) for name, value in new.env if name not in known]
    # A container or a unit has a place of its own for them, and hands them on.
    own = [at for at, one in enumerate(layers) if one.env_as != "prefix"]
    number = own[-1] if own else len(layers) - 1
    if not added:
        return number, []
    layer = layers[number]
    at = layer.env_at
    if isinstance(layer, ManifestLayer):
        return number, manifest.added_env(layer, added)
    match layer.env_as:
        case "unit":
            text = "".join(f"Environment={unit_environment(n, v)}\n" for n, v in added)
        case "docker":
            gap = GAP.search(layer.text[:at])
            between = gap[0] if gap and "\n" in gap[0] else " "
            assign = layer.syntax.assignment
            text = "".join(f"-e {assign('', n, v)}{between}" for n, v in added)
        case _:
            text = "".join(f"{layer.syntax.assignment('', n, v)} " for n, v in added)
    return number, [(at, at, text)]
