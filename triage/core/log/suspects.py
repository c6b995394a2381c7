"""Flags that the evidence points at, and what to change.

In:  a cause with its captures, the message, the configuration of the log.
Out: Suspect and Advice values, each with its reason.
Not: whether a change helps: only a launch shows that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.core.causes import Cause, Remedy
from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.diagnosis import Advice, Suspect
from triage.core.flags import FlagTable, Known
from triage.core.log.allowed import allowed
from triage.core.log.arithmetic import related
from triage.core.log.compute import filled, in_words
from triage.core.log.no_start import is_refused
from triage.core.regex import regex

_SMALL = 2  # a number below this fits too many flags to say anything
_NUMBER = regex(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_DASHED = regex(r"(?<![\w-])--([a-z][\w-]*)", needs=("--",))
_FIELD = regex(r"\b[a-z]+(?:_[a-z\d]+)+\b")
_MOST = 12
# Words by which messages mean a flag that they do not spell.
_WORDS = (
    (regex(r"[Tt]ensor[ _-](?:model[ _-])?parallel|\battn_tp_size|\btp[ _](?:size|world|rank)",
           needs=("parallel", "tp_", "tp ")), "tp-size"),
    (regex(r"[Ee]xpert[ _-]parallel|\bep[ _](?:size|world)|moe_ep_size",
           needs=("parallel", "ep_", "ep ")), "ep-size"),
    (regex(r"[Pp]ipeline[ _-](?:model[ _-])?parallel|\bpp[ _](?:size|world)",
           needs=("parallel", "pp_", "pp ")), "pp-size"),
    (regex(r"[Dd]ata[ _-]parallel|\bdp[ _](?:size|world)",
           needs=("parallel", "dp_", "dp ")), "dp-size"),
    (regex(r"\bpage[ _]size", needs=("page",)), "page-size"),
    (regex(r"[Cc]hunked[ _]prefill", needs=("hunked",)), "chunked-prefill-size"),
    (regex(r"[Cc]ontext[ _]len(?:gth)?\b|max_position_embeddings|max_model_len",
           needs=("ontext", "max_")), "context-length"),
)  # fmt: skip
# Values that every launch has and no message is about.
_IDENTITY = frozenset(("port", "host", "model-path", "nccl-port", "random-seed"))


def suspects(
    cause: Cause | None, message: str, config: Config, given: Mapping[str, str]
) -> tuple[Suspect, ...]:
    """Flags to try first, the strongest reason first; each flag once.

    Args:
        cause: The named cause, if there is one.
        message: The root's text with the rest of its message.
        config: Flags that differ from the engine's defaults.
        given: The cause's captures.
    """
    values = config.flag_values()
    found: dict[str, Suspect] = {}
    for name in _named(message, values):
        found.setdefault(name, Suspect(flag=name, value=_value(values[name]),
                                       why="the message names it"))  # fmt: skip
    for name in cause.culprit_flags if cause else ():
        flag = name.lstrip("-")
        if cause is not None and flag in values:
            found.setdefault(flag, Suspect(flag=flag, value=_value(values[flag]),
                                           why=f"usual reason of {cause.id}"))  # fmt: skip
    for name in _meant(message):
        if name in values:
            found.setdefault(name, Suspect(flag=name, value=_value(values[name]),
                                           why="the message is about it"))  # fmt: skip
    for name, why in related(message, values):
        found.setdefault(name, Suspect(flag=name, value=_value(values[name]), why=why))
    numbers = set(_NUMBER.findall(message)) | {v for v in given.values() if _NUMBER.fullmatch(v)}
    for name, value in values.items():
        if isinstance(value, str) and value in numbers and name not in _IDENTITY:
            if value.isdigit() and int(value) < _SMALL:
                continue
            found.setdefault(name, Suspect(flag=name, value=value,
                                           why=f"the message says {value}, its value"))  # fmt: skip
    return tuple(found.values())[:_MOST]


def suspects_without_config(message: str, table: FlagTable | None) -> tuple[Suspect, ...]:
    """Flags that a message names, of a launch that ended before it printed its arguments.

    Of a refused command line only the first option is the user's: the rest is advice.
    """
    if is_refused(message):
        first = _DASHED.search(message)
        names = [first[1]] if first else []
    else:
        names = [
            *(name for name in _DASHED.findall(message) if _known(name, table)),
            *(spec.name for field in _FIELD.findall(message)
              if table and (spec := table.by_field(field))),
        ]  # fmt: skip
    named = [(name, "the message names it") for name in dict.fromkeys(names)]
    if not is_refused(message):
        named += [(name, "the message is about it") for name in _meant(message)
                  if name not in names and _known(name, table)]  # fmt: skip
    return tuple(Suspect(flag=name, value=None, why=why) for name, why in named[:_MOST])


def _meant(message: str) -> list[str]:
    """Flags that the message means without their name."""
    return [name for words, name in _WORDS if words.search(message)]


def _known(name: str, table: FlagTable | None) -> bool:
    return table is not None and isinstance(table.lookup(name), Known)


def _named(message: str, values: Mapping[str, Value]) -> list[str]:
    """Flags that the message names, in the order of the message."""
    places: dict[str, int] = {}
    normal = message.replace("_", "-")
    for name in values:
        if name in _IDENTITY or ("-" not in name and f"--{name}" not in message):
            continue
        place = _place(name, normal)
        if place >= 0:
            places[name] = place
    return sorted(places, key=places.__getitem__)


def _place(name: str, text: str) -> int:
    """Where the name stands as a word of its own, with its dashes if it has them; -1: nowhere."""
    at = text.find(name)
    while at >= 0:
        start = at - 2 if text[max(at - 2, 0) : at] == "--" else at
        if not (_in_a_name(text[start - 1 : start]) or _in_a_name(text[at + len(name) :][:1])):
            return start
        at = text.find(name, at + 1)
    return -1


def _in_a_name(char: str) -> bool:
    return char.isalnum() or char in ("_", "-")


def _value(value: Value) -> str | bool:
    return " ".join(value) if isinstance(value, tuple) else value


def advice(
    cause: Cause | None,
    captures: Mapping[str, str],
    message: str = "",
    config: Config | None = None,
    table: FlagTable | None = None,
) -> tuple[Advice, ...]:
    """The cause's remedies, filled in, and what the message itself proposes.

    A change whose number the log lacks is left out.
    """
    values = config.flag_values() if config else {}
    known = _of_cause(cause, captures, values)
    # A rule whose value this log lacks is of use only where there is nothing else.
    known = tuple(one for one in known if not one.open) or known
    done = {change for one in known for change in one.changes}
    said = allowed(message, values, table)
    misleading = " ".join(cause.decoys) if cause else ""
    named = {name.replace("_", "-") for name in _DASHED.findall(misleading)}
    return (
        *known,
        *(
            one
            for one in said
            if not (done | _numbers_of(done, one)) & set(one.changes)
            and not named & {change.name for change in one.changes}
        ),
    )


def _numbers_of(done: set[Change], said: Advice) -> set[Change]:
    """The edits of the message that give a number to a flag that has one from the cause."""
    numbered = {c.name for c in done if isinstance(c, SetFlag) and _is_number(c.value)}
    return {
        c
        for c in said.changes
        if isinstance(c, SetFlag) and c.name in numbered and _is_number(c.value)
    }


def _is_number(value: Value) -> bool:
    return isinstance(value, str) and _NUMBER.fullmatch(value) is not None


def _of_cause(
    cause: Cause | None, captures: Mapping[str, str], values: Mapping[str, Value]
) -> tuple[Advice, ...]:
    found = []
    for remedy in cause.remedies if cause else ():
        changes, is_open = _changes(remedy, captures, values)
        found.append(
            Advice(
                say=_said(remedy.say, captures, values),
                changes=changes,
                disposition=remedy.disposition.value,
                cost=_said(remedy.cost, captures, values),
                evidence=remedy.evidence,
                needs=remedy.needs,
                span=_span(remedy.span, captures, values),
                probe=remedy.probe,
                weight=remedy.weight,
                open=is_open,
            )
        )
    return tuple(found)


def _flag_name(name: str, captures: Mapping[str, str], values: Mapping[str, Value]) -> str | None:
    """The flag; one that the message names is written as the message writes it."""
    known = filled(name, captures, values)
    return known.strip("-").replace("_", "-") if known else None


def _said(text: str, captures: Mapping[str, str], values: Mapping[str, Value]) -> str:
    """The text with its values, or with words in their place where one is not known."""
    return filled(text, captures, values) or in_words(text)


def _span(
    span: Sequence[str], captures: Mapping[str, str], values: Mapping[str, Value]
) -> tuple[str, ...]:
    """The span with its values; none where one is not known."""
    parts = tuple(filled(part, captures, values) for part in span)
    return tuple(part for part in parts if part is not None) if None not in parts else ()


def _changes(
    remedy: Remedy, captures: Mapping[str, str], values: Mapping[str, Value]
) -> tuple[tuple[Change, ...], bool]:
    """The remedy's edits, and whether one is left out because its value is not known.

    An edit of several flags is made whole or not at all.
    """
    changes: list[Change] = []
    is_open = False
    for name, value in remedy.set_flags:
        flag = _flag_name(name, captures, values)
        done = filled(value, captures, values) if isinstance(value, str) else value
        if done is None or flag is None:
            is_open = True
        else:
            changes.append(SetFlag(flag, done))
    for name, text in remedy.set_env:
        if (env := filled(text, captures, values)) is None:
            is_open = True
        else:
            changes.append(SetEnv(name, env))
    gone = [_flag_name(name, captures, values) for name in remedy.unset]
    if is_open or None in gone:
        return (), True
    changes += [UnsetFlag(name) for name in gone if name is not None]
    changes += [UnsetEnv(name) for name in remedy.unset_env]
    return tuple(changes), False
