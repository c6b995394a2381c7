"""Read and edit a Kubernetes manifest: the server that a container's command and args start.

In:  the text of a manifest, of one or more documents.
Out: Located, whose first layer knows where each word and each variable stands; edits of them.
Not: charts and other templates, `envFrom`, or more than one server.

Source: the Container type of the Kubernetes API, v1: `command`, `args`, `env`, `workingDir`;
`$(NAME)` in them stands for a variable of the container, `$$(NAME)` for itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from triage.command.configfile import LOADER, MAX_DEPTH, UNPRINTABLE
from triage.command.program import locate
from triage.command.script import find_in_shell
from triage.command.source import EnvSite, Layer, Located, Syntax, Word
from triage.errors import UsageError

_KEYS = tuple(
    re.compile(rf"(?:^|[{{,])[ \t]*['\"]?{name}['\"]?[ \t]*:", re.MULTILINE)
    for name in ("apiVersion", "kind", "containers")
)
MAX_EVENTS = 50_000
VARIABLE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)", re.ASCII)
PLAIN = re.compile(r"[A-Za-z/.-][\w./:=@+-]*", re.ASCII)
BLOCK_TEXT = re.compile(r"[ -~\n\t\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*\Z")
ITEM_HEAD = re.compile(r"(?P<indent>[ \t]*)-[ \t]+\Z")

Edit = tuple[int, int, str]


@dataclass(slots=True)
class Items:
    """The items of one sequence: their characters, and whether it is written `[a, b]`."""

    flow: bool
    places: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class ManifestLayer(Layer):
    """The manifest itself; `lists` are the sequences of words, `variables` that of env.

    `elsewhere` holds the items of variables whose value comes from elsewhere, by name.
    `new_env` says where an `env` key goes that is not there yet: offset, indentation, and
    whether the container is written `{a: b}`.
    """

    lists: list[Items] = field(default_factory=list)
    variables: Items | None = None
    new_env: tuple[int, str, bool] = (0, "", False)
    elsewhere: dict[str, tuple[int, int]] = field(default_factory=dict)


def is_manifest(text: str) -> bool:
    """Whether the text has the keys of a manifest with containers."""
    return all(key.search(text) for key in _KEYS)


def locate_manifest(text: str) -> Located | None:
    """The server of the first container that starts one; None if none does.

    Raises:
        UsageError: no YAML, or nested too deeply.
    """
    found: Located | None = None
    for container in _containers(text):
        one = _of_container(text, container)
        if one is None:
            continue
        if found is not None:
            found.note("the manifest starts more than one server: the first one is read")
            break
        found = one
    return found


def _containers(text: str) -> Iterator[yaml.MappingNode]:
    """Every mapping below a key `containers`, in order."""
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if number > MAX_EVENTS or depth > MAX_DEPTH:
                raise UsageError("the manifest is too long or nested too deeply")
            if isinstance(event, yaml.AliasEvent):
                raise UsageError("aliases of a manifest are not supported, write the values out")
        documents = list(yaml.compose_all(text, LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"the manifest, line {line}: {error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"the manifest is no YAML: {' '.join(str(error).split())[:100]}") from None
    for document in documents:
        yield from _below(document)


def _below(node: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if _name(key) == "containers" and isinstance(value, yaml.SequenceNode):
                yield from (one for one in value.value if isinstance(one, yaml.MappingNode))
            else:
                yield from _below(value)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _below(one)


def _name(key: yaml.Node) -> str:
    return str(key.value) if isinstance(key, yaml.ScalarNode) else ""


def _of_container(text: str, container: yaml.MappingNode) -> Located | None:
    keys = {_name(key): (key, value) for key, value in container.value}
    notes: list[str] = []
    layer = ManifestLayer(text, Syntax(string, lambda _lead, _name, value: string(value)))
    layer.env_as = "manifest"
    known = _environment(text, keys, layer, notes)
    words: list[Word] = []
    for name in ("command", "args"):
        if name in keys and isinstance(keys[name][1], yaml.SequenceNode):
            words += _words(text, keys[name][1], layer, known, notes)
    if not words:
        return None
    layer.new_env = _place_of_env(text, container)
    layer.env_at = layer.new_env[0] or 1
    found = locate(words, "kubernetes", [layer], find_in_shell)
    if found is None:
        return None
    outer = found.layers[0]
    if outer.link is not None:
        _keep_script(text, outer, outer.link, {*known, *layer.elsewhere})
    if "workingDir" in keys and isinstance(keys["workingDir"][1], yaml.ScalarNode):
        found.cwd = found.cwd or str(keys["workingDir"][1].value)
    if "envFrom" in keys:
        notes.append("envFrom is not read")
    for note in notes:
        found.note(note)
    return found


def _words(
    text: str,
    node: yaml.SequenceNode,
    layer: ManifestLayer,
    known: Mapping[str, str],
    notes: list[str],
) -> Iterator[Word]:
    items = Items(flow=bool(node.flow_style))
    layer.lists.append(items)
    for one in node.value:
        if not isinstance(one, yaml.ScalarNode):
            raise UsageError(
                f"the manifest, line {one.start_mark.line + 1}: no text among the words of the"
                " command",
                hint="kubectl explain pod.spec.containers.args",
            )
        start, end = one.start_mark.index, _end(text, one)
        items.places.append((start, end))
        if one.tag != "tag:yaml.org,2002:str":
            notes.append(f"{one.value}: write it in quotes, Kubernetes takes only text there")
        value, is_open = _expanded(str(one.value), known)
        yield Word(value, start, end, open=is_open)


def _expanded(value: str, known: Mapping[str, str]) -> tuple[str, bool]:
    """The word with the container's variables in, and whether one of them is not known."""
    is_open = False

    def put(match: re.Match[str]) -> str:
        nonlocal is_open
        if match[0] == "$$":
            return "$"
        if match["name"] in known:
            return known[match["name"]]
        is_open = True
        return match[0]

    return VARIABLE.sub(put, value), is_open


def _environment(
    text: str,
    keys: Mapping[str, tuple[yaml.Node, yaml.Node]],
    layer: ManifestLayer,
    notes: list[str],
) -> dict[str, str]:
    """The variables of the container; their places go into the layer."""
    _, node = keys.get("env", (None, None))
    if not isinstance(node, yaml.SequenceNode):
        return {}
    layer.variables = Items(flow=bool(node.flow_style))
    known: dict[str, str] = {}
    for one in node.value:
        place = one.start_mark.index, _end(text, one)
        layer.variables.places.append(place)
        parts = {_name(k): v for k, v in one.value} if isinstance(one, yaml.MappingNode) else {}
        name = str(parts["name"].value) if isinstance(parts.get("name"), yaml.ScalarNode) else ""
        value = parts.get("value")
        if not name:
            continue
        if not isinstance(value, yaml.ScalarNode):
            known.pop(name, None)
            layer.sites = [site for site in layer.sites if site.name != name]
            layer.elsewhere[name] = place
            notes.append(f"{name} is left out of the environment: its value is not known")
            continue
        word, is_open = _expanded(str(value.value), known)
        if is_open:
            layer.elsewhere[name] = place
            notes.append(f"{name} is left out of the environment: its value is not known")
            continue
        known[name] = word
        layer.sites.append(
            EnvSite(name, word, place[0], value.start_mark.index, _end(text, value), holder=place)
        )
    return known


def _place_of_env(text: str, container: yaml.MappingNode) -> tuple[int, str, bool]:
    """Where a new variable goes if the container has none: offset, indentation, flow or not."""
    if container.flow_style:
        return container.value[0][0].start_mark.index, "", True
    indent = " " * int(container.value[0][0].start_mark.column)
    for key, _ in container.value:
        start = key.start_mark.index
        line = text.rfind("\n", 0, start) + 1
        if not text[line:start].strip():
            return line, indent, False
    # All keys stand on the line of the dash: the new one goes behind the last.
    last = container.value[-1][1]
    end = text.find("\n", _end(text, last))
    return len(text) if end < 0 else end + 1, indent, False


def _end(text: str, node: yaml.Node) -> int:
    """Where the node's own text ends; the mark of a block lies behind the blank lines."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    start, end = node.start_mark.index, node.end_mark.index
    return int(start + len(text[start:end].rstrip()))


def string(text: str) -> str:
    """YAML that is exactly this text and no number, date or truth value."""
    if PLAIN.fullmatch(text) and not text.endswith(":") and text not in ("-", "--", "---", "..."):
        try:
            if yaml.safe_load(text) == text:
                return text
        except (yaml.YAMLError, ValueError):
            pass
    quoted = json.dumps(text, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", quoted)


def word(text: str) -> str:
    """The same for a word of a command, in which `$(` stands for a variable."""
    return string(re.sub(r"\$(?=\(|\$)", r"$$", text))


def _keep_script(text: str, layer: Layer, link: Word, known: Collection[str]) -> None:
    """How the string of `sh -c` is written back: as a block (`|`), if it stands as one.

    Its `$(command)` stays, unless Kubernetes would take it for a variable.
    """

    def doubled(match: re.Match[str]) -> str:
        return f"${match[0]}" if match["name"] in known else match[0].replace("$$", "$$$$")

    is_block = text[link.start : link.start + 1] in ("|", ">")
    lines = text[link.start : link.end].split("\n")[1:]
    filled = [line for line in lines if line.strip()]
    indent = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)

    def quote(script: str) -> str:
        inner = VARIABLE.sub(doubled, script)
        plain = BLOCK_TEXT.match(inner) and inner[:1] not in (" ", "\t", "\n", "")
        body = inner.rstrip("\n")
        if (
            not is_block
            or not plain
            or not indent
            or inner.count("\n") - body.count("\n") > 1
            or not body
        ):
            return string(inner)
        chomp = "" if inner.endswith("\n") else "-"
        rows = (f"{' ' * indent}{line}" if line else "" for line in body.split("\n"))
        return f"|{chomp}\n" + "\n".join(rows)

    layer.syntax = Syntax(quote, layer.syntax.assignment)


def word_edits(
    layer: ManifestLayer, located: Located, replaced: Mapping[int, Sequence[str]],
    added: Sequence[Sequence[str]],
) -> list[Edit]:  # fmt: skip
    """Edits of the words of the command.

    `replaced` holds, by the number of the word (-1 is the model of `serve MODEL`), the words
    that come in its place; `added` are new flags.
    """
    texts: dict[tuple[int, int], list[str]] = {}
    for number, new in replaced.items():
        old = located.positional if number < 0 else located.words[number]
        if old is not None:
            texts[old.start, old.end] = list(new)
    extra = [one for words in added for one in words]
    last = next((i for i, w in enumerate(located.words) if w.value == "--"), len(located.words))
    place = _last_place(layer, located, last)
    edits: list[Edit] = []
    if extra and not texts.get(place, ["kept"]):
        texts[place] = extra  # the last word goes: the new ones take its place
    elif extra:
        edits.append(_behind(layer, place, extra))
    for items in layer.lists:
        edits += _item_edits(layer.text, items, texts)
    return edits


def _last_place(layer: ManifestLayer, located: Located, count: int) -> tuple[int, int]:
    """The item behind which new flags go."""
    if count:
        return located.words[count - 1].start, located.words[count - 1].end
    places = (place for items in layer.lists for place in items.places)
    return next(place for place in places if place[1] == located.program_end)


def _behind(layer: ManifestLayer, place: tuple[int, int], extra: Sequence[str]) -> Edit:
    items = next(one for one in layer.lists if place in one.places)
    if items.flow:
        return place[1], place[1], "".join(f", {word(one)}" for one in extra)
    end = layer.text.find("\n", place[1])
    end = len(layer.text) if end < 0 else end
    head = _head(layer.text, place[0])
    return end, end, "".join(f"\n{head}- {word(one)}" for one in extra)


def _head(text: str, start: int) -> str:
    """The indentation of a block item's dash."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    found = ITEM_HEAD.fullmatch(line)
    if found is None:
        raise UsageError(
            "the words of the manifest's command do not stand on lines of their own",
            hint='write them as args: ["--flag", "value"]',
        )
    return found["indent"]


def _item_edits(
    text: str, items: Items, texts: Mapping[tuple[int, int], Sequence[str]]
) -> list[Edit]:
    edits: list[Edit] = []
    for place in items.places:
        new = texts.get(place)
        if new:
            between = ", " if items.flow else f"\n{_head(text, place[0])}- "
            edits.append((*place, between.join(map(word, new))))
    gone = {place for place in items.places if place in texts and not texts[place]}
    return edits + removals(text, items, gone)


def removals(text: str, items: Items, gone: Collection[tuple[int, int]]) -> list[Edit]:
    """Edits that take these items out of their sequence."""
    places = items.places
    if not items.flow:
        return [(*_lines(text, place), "") for place in places if place in gone]
    edits: list[Edit] = []
    at = 0
    while at < len(places):
        end = at
        while end < len(places) and places[end] in gone:
            end += 1
        if end > at:
            if end < len(places):
                edits.append((places[at][0], places[end][0], ""))
            else:
                edits.append((places[at - 1][1] if at else places[0][0], places[-1][1], ""))
        at = max(end, at + 1)
    return edits


def _lines(text: str, place: tuple[int, int]) -> tuple[int, int]:
    start = text.rfind("\n", 0, place[0]) + 1
    end = text.find("\n", place[1])
    return start, len(text) if end < 0 else end + 1


def changed(old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[str]:
    """The variables that are set anew, or gone."""
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def uses(text: str, names: Collection[str]) -> bool:
    """Whether the text stands for the value of one of these variables."""
    return any(match["name"] in names for match in VARIABLE.finditer(text) if match["name"])


def env_edits(layer: ManifestLayer, old: Mapping[str, str], new: Mapping[str, str]) -> list[Edit]:
    """Edits of the container's variables that are changed or gone."""
    moved = changed(old, new)
    edits = [
        (site.at, site.end, string(_escaped(new[site.name])))
        for site in layer.sites
        if site.name in new and (site.name in moved or uses(layer.text[site.at : site.end], moved))
    ]
    gone = {site.holder for site in layer.sites if site.name not in new and site.holder}
    return edits + (removals(layer.text, layer.variables, gone) if layer.variables else [])


def added_env(layer: ManifestLayer, added: Sequence[tuple[str, str]]) -> list[Edit]:
    """Edits that give the container new variables, before the ones that it has."""
    items = layer.variables
    edits: list[Edit] = []
    pairs: list[tuple[str, str]] = []
    for name, value in added:
        pair = string(name), string(_escaped(value))
        if items is None or name not in layer.elsewhere:
            pairs.append(pair)
            continue
        place = layer.elsewhere[name]  # the value that comes from elsewhere gives way
        text = (
            f"{{name: {pair[0]}, value: {pair[1]}}}"
            if items.flow
            else _block(_head(layer.text, place[0]), [pair]).strip()[2:]
        )
        edits.append((*place, text))
    return edits + (_new_variables(layer, pairs) if pairs else [])


def _new_variables(layer: ManifestLayer, pairs: Sequence[tuple[str, str]]) -> list[Edit]:
    items = layer.variables
    if items is not None and items.places:
        start = items.places[0][0]
        if items.flow:
            return [(start, start, "".join(f"{{name: {n}, value: {v}}}, " for n, v in pairs))]
        line = layer.text.rfind("\n", 0, start) + 1
        head = _head(layer.text, start)
        return [(line, line, _block(head, pairs))]
    at, indent, flow = layer.new_env
    if flow:
        inner = ", ".join(f"{{name: {n}, value: {v}}}" for n, v in pairs)
        return [(at, at, f"env: [{inner}], ")]
    lead = "" if not at or layer.text[at - 1] == "\n" else "\n"
    return [(at, at, f"{lead}{indent}env:\n{_block(indent, pairs)}")]


def _block(indent: str, pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{indent}- name: {n}\n{indent}  value: {v}\n" for n, v in pairs)


def _escaped(value: str) -> str:
    return re.sub(r"\$(?=\(|\$)", r"$$", value)
