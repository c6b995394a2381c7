"""The flags of one engine version: which spellings it accepts, and what a command line says.

In:  the rows of triage/knowledge/flags/<engine>-<version>.yaml; words; YAML mappings.
Out: FlagTable, and Parsed: canonical flags with what was unknown, bad or assumed.
Not: what a flag does, and whether two flags go together (the engine decides).

Source: `ArgumentParser._parse_known_args`, `_parse_optional`, `_get_option_tuples`
and `_match_argument` of CPython 3.11's argparse, which SGLang parses with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from triage.core.config import Config, Given, Value
from triage.core.flag_rows import Default, FlagSpec, Rows, Style, field_of, spec_of, told_of
from triage.core.records import dataclass, field
from triage.core.regex import regex
from triage.core.typed import Any, Literal
from triage.errors import UsageError

__all__ = [
    "Ambiguous", "Default", "FlagSpec", "FlagTable", "Known", "Lookup", "Parsed", "Problem",
    "Style", "Unknown", "lazy_table_of", "table_of",
]  # fmt: skip

# What argparse takes for a value although it begins with a dash.
#   example  -1, -.5
NEGATIVE_NUMBER = regex(r"-\d+\Z|-\d*\.\d+\Z")
MAX_NOTES = 40  # a hostile command can hold thousands of unknown flags
MAX_SHOWN = 6  # options named in one message


@dataclass(frozen=True, slots=True)
class Known:
    """The spelling means this flag; `option` is the full spelling, `negated` its negative form."""

    spec: FlagSpec
    option: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The spelling abbreviates several options; the engine exits with status 2."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """No flag of this version: a fork's own, a slip for one of `close`, or another release's.

    `successor` says what to write in place of an old flag, "" where nothing took its place;
    None if the name is no old flag that is known.
    """

    close: tuple[str, ...] = ()
    successor: str | None = None

    def hint(self) -> str:
        """What was probably meant, as the end of a sentence; "" if nobody knows."""
        if self.successor:
            return f"; an older release had it: now {self.successor}"
        if self.successor is not None:
            return "; an older release had it, and nothing took its place: leave it out"
        return f"; is it {self.close[0]}?" if self.close else ""


Lookup = Known | Ambiguous | Unknown


@dataclass(frozen=True, slots=True)
class Problem:
    """Words that the engine refuses: it exits with status 2 before it does anything."""

    word: str
    kind: Literal["ambiguous", "missing-value", "unwanted-value", "stray"]
    text: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the words say.

    `unknown` are names in `config` that the table lacks, under their own
    spelling and with a guessed value. `given` has every occurrence of a flag, in
    order, as positions of words. `extras` are the words that argparse would give
    back as unrecognized.
    """

    config: Config
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    given: tuple[Given, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(slots=True)
class _Option:
    """A word that argparse takes for an option: its meaning, and what stands behind its `=`."""

    word: str
    spelling: str
    found: Lookup
    explicit: str | None


@dataclass(slots=True)
class _Reading:
    """The state of one parse."""

    flags: dict[str, Value] = field(default_factory=dict)
    given: list[Given] = field(default_factory=list)
    unknown: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes[text] = None


class FlagTable:
    """The flags of one engine version, and argparse's rules to read them."""

    def __init__(
        self,
        version: str,
        specs: Iterable[FlagSpec] | Mapping[str, FlagSpec],
        engine: str = "sglang",
        successors: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = engine
        self.version = version
        self.successors = successors or {}
        self._sorted: list[str] = []
        self.specs: Mapping[str, FlagSpec] = (
            specs if isinstance(specs, Mapping) else {spec.name: spec for spec in specs}
        )

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """Field -> name of the flag."""
        specs = self.specs
        told = specs.rows if isinstance(specs, Rows) else [told_of(s) for s in specs.values()]
        # An old spelling can share the field of its successor, which then counts.
        old_first = sorted(told, key=lambda row: not row.get("deprecated"))
        return {field_of(row): row["name"] for row in old_first}

    @cached_property
    def _options(self) -> dict[str, tuple[str, bool]]:
        """Option -> name of the flag, and whether it is negated."""
        specs = self.specs
        told = specs.rows if isinstance(specs, Rows) else [told_of(s) for s in specs.values()]
        found: dict[str, tuple[str, bool]] = {}
        for row in told:
            name = str(row["name"])
            found[f"--{name}"] = name, False
            for alias in row.get("aliases", ()):
                found[f"--{alias}"] = name, False
            for negative in row.get("negative", ()):
                found[f"--{negative}"] = name, True
        return found

    def by_field(self, name: str) -> FlagSpec | None:
        """The flag behind a name of the `server_args=` line, such as `tp_size`."""
        found = self.fields.get(name)
        return None if found is None else self.specs[found]

    @cached_property
    def styles(self) -> Mapping[str, Style]:
        """Field -> style of its flag."""
        specs, fields = self.specs, self.fields
        if isinstance(specs, Rows):
            return specs.styles(fields)
        return {field: specs[name].style for field, name in fields.items()}

    @cached_property
    def defaults(self) -> Mapping[str, Default]:
        """Field -> default of its flag, that of a switch False."""
        specs, fields, styles = self.specs, self.fields, self.styles
        if isinstance(specs, Rows):
            found = specs.defaults(fields)
        else:
            found = {field: specs[name].default for field, name in fields.items()}
        return {field: styles[field] != "switch" and default for field, default in found.items()}

    def lookup(self, spelling: str, *, suggest: bool = True) -> Lookup:
        """What a spelling means, with or without dashes, `_` for `-` allowed.

        Exact spellings first, then abbreviations that only one option begins
        with. A command line may not use `_` for `-`: see parse. Without
        `suggest` a slip is not compared with all flags, which takes milliseconds.
        """
        name = spelling.strip().lstrip("-").replace("_", "-")
        return self._option(f"--{name}", suggest=suggest) if name else Unknown()

    def _option(self, option: str, *, suggest: bool = False) -> Lookup:
        if option in self._options:
            return self._meaning(option)
        if not self._sorted:
            self._sorted = sorted(self._options)
        match [longer for longer in self._sorted if longer.startswith(option)]:
            case [one]:
                return self._meaning(one)
            case []:
                if (successor := self.successors.get(option[2:])) is not None:
                    return Unknown(successor=successor)
                close = _closest(option, self._sorted) if suggest else []
                return Unknown(tuple(close))
            case several:
                return Ambiguous(tuple(several))

    def _meaning(self, option: str) -> Known:
        name, negated = self._options[option]
        return Known(self.specs[name], option, negated)

    def parse(self, words: Sequence[str]) -> Parsed:
        """The words as argparse of this engine reads them; bad ones are problems, not errors.

        A flag that the table lacks takes the words up to the next option for its
        value. Of a repeated flag the last one counts.
        """
        reading = _Reading()
        options, last = self._classified(words)
        at = 0
        while at < len(words):
            option = options[at] if at < last else None
            if option is None:
                reading.extras.append(words[at])
                if len(reading.problems) < MAX_NOTES:
                    text = f"{words[at]!r} belongs to no flag: the engine will not recognize it"
                    reading.problems.append(Problem(words[at], "stray", text))
                at += 1
                continue
            end = at + 1
            while end < last and options[end] is None:
                end += 1
            taken = self._take(reading, option, words[at + 1 : end])
            name = next(reversed(reading.flags))
            reading.given.append(Given(name, at, at + 1 + taken))
            at += 1 + taken
        return self._parsed(reading)

    def is_value(self, word: str) -> bool:
        """Whether the engine takes the word for a value where it stands behind a flag."""
        return word != "--" and self._classify(word) is None

    def _classified(self, words: Sequence[str]) -> tuple[list[_Option | None], int]:
        """Per word what option it is, if any; and the position of `--` or the end."""
        last = next((i for i, word in enumerate(words) if word == "--"), len(words))
        return [self._classify(word) for word in words[:last]], last

    def _classify(self, word: str) -> _Option | None:
        if len(word) < 2 or word[0] != "-":  # noqa: PLR2004  a lone dash is a value
            return None
        if word in self._options:
            return _Option(word, word, self._meaning(word), None)
        spelling, equals, value = word.partition("=")
        explicit = value if equals else None
        found: Lookup = self._option(spelling) if word.startswith("--") else Unknown()
        if isinstance(found, Unknown) and (NEGATIVE_NUMBER.match(word) or " " in word):
            return None
        return _Option(word, spelling, found, explicit)

    def _take(self, reading: _Reading, option: _Option, values: Sequence[str]) -> int:
        """Reads one option; the number of words behind it that are its value.

        The flag is moved to the end of `reading.flags`.
        """
        match option.found:
            case Known(spec, spelling, negated):
                if option.spelling != spelling:
                    reading.note(f"{option.spelling} is short for {spelling}")
                name, value, taken = self._known(reading, option, spec, negated, values)
            case found:
                name = _own_name(option.spelling)
                value, taken = _guess(option.explicit, values)
                if isinstance(found, Ambiguous):
                    shown = ", ".join(found.options[:MAX_SHOWN])
                    more = " and more" if len(found.options) > MAX_SHOWN else ""
                    text = f"{option.spelling} could mean {shown}{more}: the engine refuses it"
                    if now := self.successors.get(option.spelling.lstrip("-")):
                        text += f"; an older release had it: now {now}"
                    reading.problems.append(Problem(option.word, "ambiguous", text))
                else:
                    reading.unknown[name] = None
                    reading.extras += [option.word, *values[:taken]]
                    self._note_unknown(reading, option.spelling)
        if name in reading.flags:
            reading.note(f"--{name.lstrip('-')} is given more than once: the last one counts")
            del reading.flags[name]
        reading.flags[name] = value
        return taken

    def _known(
        self,
        reading: _Reading,
        option: _Option,
        spec: FlagSpec,
        negated: bool,  # noqa: FBT001  which of the two spellings was matched
        values: Sequence[str],
    ) -> tuple[str, Value, int]:
        name, explicit = spec.name, option.explicit
        if spec.deprecated:
            successor = f", its successor is {spec.replaced_by}" if spec.replaced_by else ""
            reading.note(f"--{name} is deprecated{successor}")
        if spec.style in ("switch", "bool-optional"):
            if explicit is None:
                return name, not negated, 0
            text = f"{option.spelling} takes no value, not even {explicit!r}"
            reading.problems.append(Problem(option.word, "unwanted-value", text))
            # Kept as written, so that the command still fails in the same way.
            return _own_name(option.word), True, 0
        if explicit is not None:
            values, taken = (explicit,), 0
        else:
            values = values if spec.style == "list" else values[:1]
            taken = len(values)
        if not values and spec.style != "optional-value" and spec.nargs != "*":
            text = f"{option.spelling} has no value"
            reading.problems.append(Problem(option.word, "missing-value", text))
        self._note_values(reading, spec, values)
        if spec.style == "list":
            return name, tuple(values), taken
        return name, values[0] if values else True, taken

    def _note_values(self, reading: _Reading, spec: FlagSpec, values: Sequence[str]) -> None:
        for value in values:
            if spec.choices and value not in map(str, spec.choices):
                reading.note(
                    f"--{spec.name} {value}: not a choice of {self.engine} {self.version}"
                    f" ({', '.join(map(str, spec.choices[:MAX_SHOWN]))}"
                    f"{', ...' if len(spec.choices) > MAX_SHOWN else ''})"
                )
            elif spec.type in ("int", "float") and not _is_number(value, spec.type):
                reading.note(f"--{spec.name} {value}: the engine expects {spec.type}")

    def _note_unknown(self, reading: _Reading, spelling: str) -> None:
        if len(reading.notes) >= MAX_NOTES:
            return
        match self.lookup(spelling):
            case Known(_, option):
                known = f", which spells it {option}"
            case Unknown() as unknown if unknown.hint():
                known = unknown.hint()
            case _:
                known = "; kept as a fork's own"
        reading.note(f"{spelling} is no flag of {self.engine} {self.version}{known}")

    @staticmethod
    def _parsed(reading: _Reading) -> Parsed:
        return Parsed(
            config=Config.of(reading.flags),
            unknown=tuple(reading.unknown),
            notes=tuple(reading.notes),
            problems=tuple(reading.problems),
            given=tuple(reading.given),
            extras=tuple(reading.extras),
        )

    def normal(self, mapping: Mapping[str, object]) -> dict[str, Value]:
        """A mapping of YAML or JSON as flags: canonical names, numbers as text.

        True sets a switch, False leaves it out or sets its negative form; None
        leaves the flag out; a mapping becomes JSON.

        Raises:
            UsageError: a switch has a value, or a value is of no such kind.
        """
        flags: dict[str, Value] = {}
        for key, given in mapping.items():
            match self.lookup(key, suggest=False):
                case Known(spec, _, negated):
                    name = spec.name
                    value = _value(key, given, spec.style, negated=negated)
                case _:
                    name = _own_name(f"--{key.strip().lstrip('-').replace('_', '-')}")
                    value = _value(key, given, None)
            if value is not None:
                flags[name] = value
        return flags


def table_of(
    document: Mapping[str, object], successors: Mapping[str, str] | None = None
) -> FlagTable:
    """The table of a parsed `triage.flags/1` document.

    Raises:
        UsageError: a row is not what `triage flags generate` writes.
    """
    rows = document.get("flags")
    if not isinstance(rows, list):
        raise UsageError("the flag table has no list `flags`", hint="triage flags generate --help")
    try:
        specs = [spec_of(row) for row in rows]
    except (TypeError, KeyError) as error:
        raise UsageError(
            f"the flag table has a row that is none: {error}", hint="triage flags generate --help"
        ) from None
    return FlagTable(
        str(document.get("version", "")),
        specs,
        str(document.get("engine", "sglang")),
        successors,
    )


def lazy_table_of(document: Mapping[str, Any], successors: Mapping[str, str]) -> FlagTable:
    """The same of a document that is known to be right: each flag is made when it is asked for."""
    rows = Rows(document["flags"])
    return FlagTable(str(document["version"]), rows, str(document["engine"]), successors)


def _closest(option: str, known: Sequence[str]) -> list[str]:
    """The name that was probably meant, if any."""
    from difflib import get_close_matches  # noqa: PLC0415  only a misspelt option needs it

    return get_close_matches(option, known, n=1, cutoff=0.8)


def _own_name(word: str) -> str:
    """The name under which an option that is in no table is kept: see config.words."""
    bare = word.removeprefix("--")
    return word if bare == word or not bare or bare.startswith("-") else bare


def _guess(explicit: str | None, values: Sequence[str]) -> tuple[Value, int]:
    if explicit is not None:
        return explicit, 0
    if not values:
        return True, 0
    return values[0] if len(values) == 1 else tuple(values), len(values)


def _is_number(text: str, kind: str) -> bool:
    try:
        int(text) if kind == "int" else float(text)
    except ValueError:
        return "$" in text  # a variable that the reader could not resolve; noted there
    return True


def _value(key: str, given: object, style: Style | None, *, negated: bool = False) -> Value | None:
    """A YAML value for a flag of this style (None: unknown flag); None leaves the flag out."""
    if given is None or given in ([], ()):
        return None
    if style in ("switch", "bool-optional"):
        words = {"true": True, "false": False}
        on = given if isinstance(given, bool) else words.get(str(given).lower())
        if on is None:
            raise UsageError(
                f"{key}: a switch takes true or false, not {_shown(given)}", hint=f"{key}: true"
            )
        if negated:
            return False if on else None
        return on if on or style == "bool-optional" else None
    match given:
        case bool():
            if style in (None, "optional-value"):
                return given or None
            text = "true" if given else "false"
        case dict():
            text = _json(given)
        case list() | tuple() if style in ("list", None):
            items = tuple(_json(i) if isinstance(i, dict | list) else str(i) for i in given)
            return items[0] if style is None and len(items) == 1 else items
        case list() | tuple():
            text = _json(given)
        case _:
            text = str(given)
    return (text,) if style == "list" else text


def _json(value: object) -> str:
    import json  # noqa: PLC0415  few flags need it

    return json.dumps(value, default=str)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004  one line of a message
