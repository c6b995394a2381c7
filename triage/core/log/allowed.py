"""Values that a message allows, or asks for, as changes.

In:  a message, the flags of the launch, the flag table. Out: Advice values.
Not: whether they help: the engine says that it would take them, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triage.core.config import SetFlag, UnsetFlag, Value
from triage.core.diagnosis import Advice
from triage.core.flags import FlagSpec, FlagTable, Known
from triage.core.regex import regex

_EVIDENCE = "program-output"
_CHANCE = 2  # letters that two words may share at their start without being meant
_MOST = 3  # values of one list that are proposed
_LIST = regex(
    r"(?:[Oo]nly|choose from|one of:?|[Ss]upported (?:\w+ )?(?:are|is|values|options|backends?)?:?"
    r"|[Aa]vailable \w+:?|[Aa]llowed (?:\w+ )?(?:are)?:?|[Vv]alid \w+(?: are)?:?"
    r"|[Ee]xpected one of) *(?:are )?[({\[]+ *"
    r"(?P<items>['\"]?[\w.\-]+['\"]?(?: *, *['\"]?[\w.\-]+['\"]?){0,40}) *[)}\]]",
    needs=("nly", "choose from", "one of", "upported ", "vailable ", "llowed ", "alid "),
)
_CHOICES = regex(
    r"\(choose from (?P<items>'?[\w.\-]+'?(?:, '?[\w.\-]+'?){0,60})\)", needs=("(choose from ",)
)
_ITEM = regex(r"[\w.\-]+")
_REFUSED = regex(
    r"argument (?:-\w, *)?--(?P<flag>[a-z][\w-]*)(?:/--?[\w-]+)*: invalid choice",
    needs=(": invalid choice",),
)
# How programs ask for a value of something that they name.
_NAME = r"[`'\"]?(?P<dashes>--)?(?P<name>[a-z][a-z\d]*(?:[_-][a-z\d]+)*)[`'\"]?"
_TO = r"(?:to|=|as|with)[ `'\"]*(?P<value>[\w.\-]*\w)"
_NUMBER = r"(?P<value>\d[\d.]*\d|\d)"
_VERB = r"(?:[Ss]et|[Uu]se|[Pp]ass|[Ss]pecify|[Aa]dd|[Tt]ry)(?: the)?(?: option| flag| argument)?"
_NO_VALUE = (
    r"(?!option|flag|argument|(?:to|in|for|and|or|if|when|with|instead|explicitly|is|as|on)\b)"
)
_MUST = (" must ", " should ", " has to ", " needs to ")
_ASKED = (
    regex(
        r"(?:change|[Ss]et|adjust|[Rr]aise|[Ll]ower|[Ii]ncrease|[Rr]educe) (?:the )?"
        rf"{_NAME} {_TO}",
        needs=("change ", "et ", "adjust ", "aise ", "ower ", "ncrease ", "educe "),
    ),
    regex(
        rf"{_VERB} {_NAME}[= ]+[`'\"]?(?P<value>{_NO_VALUE}[\w.\-]*\w)",
        needs=("et ", "se ", "ass ", "pecify ", "dd ", "ry "),
    ),
    regex(
        rf"{_NAME} (?:must|should|has to|needs to) (?:be|equal)(?: set to| equal to)?"
        r" [`'\"]?(?P<value>\d[\w.]*|true|false|True|False|None)\b",
        needs=_MUST,
    ),
    regex(
        rf"{_NAME} (?:must|should|has to|needs to) be (?:one of |either )?"
        r"['\"](?P<value>[a-zA-Z][\w.\-]*)['\"]",
        needs=_MUST,
    ),
    regex(
        rf"(?:[Rr]aise|[Ii]ncrease) {_NAME} (?:above|to at least|to) {_NUMBER}",
        needs=("aise ", "ncrease "),
    ),
    regex(
        rf"(?:[Ll]ower|[Rr]educe|[Dd]ecrease) {_NAME} (?:below|to at most|to) {_NUMBER}",
        needs=("ower ", "educe ", "ecrease "),
    ),
    regex(
        rf"(?:[Oo]nly )?{_NAME}=(?P<value>[\w.\-]*\w) (?:is|are) supported",
        needs=(" is supported", " are supported"),
    ),
    regex(
        rf"[Oo]nly supports? (?:a |an )?{_NAME}(?: of|=| =)? (?P<value>\d+)",
        needs=("nly support",),
    ),
)
_SWITCH = regex(
    r"(?:[Ss]et|[Uu]se|[Pp]ass|[Ss]pecify|[Aa]dd|[Ee]nable|[Tt]ry)(?: the)?"
    r"(?: option| flag| argument)? [`'\"]?(?P<dashes>--)?(?P<name>[a-z][a-z\d]*(?:[_-][a-z\d]+)+)"
    r"(?:=True)?[`'\"]?",
    needs=("et ", "se ", "ass ", "pecify ", "dd ", "nable ", "ry "),
)
_DROP = regex(
    r"(?:[Rr]emove|[Dd]isable|[Dd]rop|[Uu]nset|without|do not (?:use|set)|[Dd]on't (?:use|set)"
    r"|not compatible with|incompatible with|conflicts? with) (?:the )?[`'\"]?"
    r"(?P<dashes>--)?(?P<name>[a-z][a-z\d]*(?:[_-][a-z\d]+)+)[`'\"]?",
    needs=("emove ", "isable ", "rop ", "nset ", "without ", "n't ", "not ", " with "),
)
_AGAINST = regex(
    rf"{_NAME} (?:is|are) (?:not|un)[ -]?(?:yet )?(?:supported|compatible|allowed)"
    r"(?: yet)? (?:with|when|if|for|in|under|together)",
    needs=("upported", "ompatible", "llowed"),
)
_WORD = regex(r"\b([a-z][a-z\d]*(?:[_-][a-z\d]+)+)\b")
# Advice that is printed whatever the reason was.
_WRONG = regex(r"invalid choice: ['\"]?([\w.\-]+)", needs=("invalid choice: ",))
_STANDING = regex(
    r"Possible (?:solutions|suggestions):|CUDA_LAUNCH_BLOCKING|Compile with `?TORCH_USE",
    needs=("Possible s", "CUDA_LAUNCH_BLOCKING", "TORCH_USE"),
)


def allowed(
    message: str, values: Mapping[str, Value], table: FlagTable | None
) -> tuple[Advice, ...]:
    """What the message itself proposes, each value once; at most a handful.

    Args:
        message: The root's text with the rest of its message.
        values: Flags of the launch that differ from the defaults; empty if unknown.
        table: Flags of the engine's version; without it, only dashed names count.
    """
    standing = _STANDING.search(message)
    text = message[: standing.start()] if standing else message
    found: dict[tuple[str, object], Advice] = {}
    for name, value, say in (*_asked(text, values, table), *_listed(text, values, table)):
        if value is not False and values.get(name) == value:
            continue  # that is what it had
        change = UnsetFlag(name) if value is False else SetFlag(name, value)
        advice = Advice(say=say, changes=(change,), disposition="lossy",
                        cost="what the other value was chosen for", evidence=_EVIDENCE)  # fmt: skip
        found.setdefault((name, value), advice)
    return tuple(found.values())[: _MOST + 1]


def _asked(
    text: str, values: Mapping[str, Value], table: FlagTable | None
) -> Iterator[tuple[str, str | bool, str]]:
    for pattern in _ASKED:
        for match in pattern.finditer(text):
            name = _flag(match["name"], values, table, dashed=bool(match["dashes"]))
            value = match["value"].rstrip(".")
            if name is None or not _takes(name, value, table):
                continue
            if value.lower() in ("true", "false"):
                yield name, value.lower() == "true", f"The message asks for it: {match[0].strip()}"
            else:
                yield name, value, f"The message asks for --{name} {value}"
    for match in (*_DROP.finditer(text), *_AGAINST.finditer(text)):
        name = _flag(match["name"], values, table, dashed=bool(match["dashes"]))
        if name is not None and name in values:
            yield name, False, f"The message speaks against --{name}"
    for match in _SWITCH.finditer(text):
        name = _flag(match["name"], values, table, dashed=bool(match["dashes"]))
        if name is not None and name not in values and _is_switch(name, table):
            yield name, True, f"The message asks for --{name}"


def _listed(
    text: str, values: Mapping[str, Value], table: FlagTable | None
) -> Iterator[tuple[str, str | bool, str]]:
    for match in (*_CHOICES.finditer(text), *_LIST.finditer(text)):
        items = [item for item in _ITEM.findall(match["items"]) if not item.isspace()]
        name = _owner(text, items, values, table)
        if name is None:
            continue
        wrong = _WRONG.search(text)
        if wrong is not None:  # what it resembles was meant
            items.sort(key=lambda item: -max(_alike(item, wrong[1]), _CHANCE))
        for item in items[:_MOST]:
            yield name, item, f"Set --{name} to {item}; the message allows {', '.join(items[:6])}"


def _alike(one: str, other: str) -> int:
    """How many letters two words share at their start."""
    return next(
        (n for n, (a, b) in enumerate(zip(one.lower(), other.lower(), strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _owner(
    text: str, items: list[str], values: Mapping[str, Value], table: FlagTable | None
) -> str | None:
    """The flag that a list of values is about: named by argparse, or whose value is refused."""
    refused = _REFUSED.search(text)
    if refused is not None:
        return _flag(refused["flag"], values, table, dashed=True)
    for match in _WORD.finditer(text):
        name = _flag(match[1], values, table, dashed=False)
        if name is not None and match[1] not in items and _choice(name, items, table):
            return name
    words = set(_ITEM.findall(text)) - set(items)
    quoted = (
        n for n, v in values.items() if isinstance(v, str) and not v.isdecimal() and v in words
    )
    return next((name for name in quoted if _choice(name, items, table)), None)


def _choice(name: str, items: list[str], table: FlagTable | None) -> bool:
    """Whether the values could be values of the flag, as far as the table tells."""
    spec = _spec(name, table)
    if spec is None:
        return True
    choices = {str(choice) for choice in spec.choices}
    return spec.style != "switch" and (not choices or bool(choices & set(items)))


def _flag(
    name: str, values: Mapping[str, Value], table: FlagTable | None, *, dashed: bool
) -> str | None:
    """The canonical flag with this name or field; None if there is none."""
    plain = name.replace("_", "-")
    if plain in values:
        return plain
    spec = table.by_field(name.replace("-", "_")) if table else None
    spec = spec or _spec(plain, table)
    if spec is not None:
        return spec.name if "-" in plain or dashed else None
    return plain if dashed and table is None else None


def _spec(name: str, table: FlagTable | None) -> FlagSpec | None:
    """The flag of exactly this name; an abbreviation in a sentence is a word."""
    found = table.lookup(name, suggest=False) if table else None
    if isinstance(found, Known) and name in (found.spec.name, *found.spec.aliases):
        return found.spec
    return None


def _takes(name: str, value: str, table: FlagTable | None) -> bool:
    """Whether the flag can have the value, as far as the table tells."""
    spec = _spec(name, table)
    if spec is None:
        return True
    if spec.style == "switch":
        return value.lower() in ("true", "false")
    if spec.type in ("int", "float"):
        return value.replace(".", "", 1).isdecimal()
    return not spec.choices or value in {str(choice) for choice in spec.choices}


def _is_switch(name: str, table: FlagTable | None) -> bool:
    spec = _spec(name, table)
    return spec is not None and spec.style == "switch"
