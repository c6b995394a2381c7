"""Flags that the evidence points at, and what to change.

In:  a cause with its captures, the message, the configuration of the log.
Out: Suspect and Advice values, each with its reason.
Not: whether a change helps: only a launch shows that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from triage.core.causes import Cause
from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetFlag, Value
from triage.core.diagnosis import Advice, Suspect
from triage.core.flags import FlagTable, Known
from triage.core.log.allowed import allowed
from triage.core.log.arithmetic import related
from triage.core.log.endings import is_refused
from triage.core.regex import regex

_SMALL = 2  # a number below this fits too many flags to say anything
_NUMBER = regex(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_DASHED = regex(r"(?<![\w-])--([a-z][\w-]*)")
_FIELD = regex(r"\b[a-z]+(?:_[a-z\d]+)+\b")
_PLACEHOLDER = regex(r"\{(\w+)\}")
_MOST = 12
# Words by which messages mean a flag that they do not spell.
_WORDS = (
    (regex(r"[Tt]ensor[ _-](?:model[ _-])?parallel|\battn_tp_size|\btp[ _](?:size|world|rank)"),
     "tp-size"),
    (regex(r"[Ee]xpert[ _-]parallel|\bep[ _](?:size|world)|moe_ep_size"), "ep-size"),
    (regex(r"[Pp]ipeline[ _-](?:model[ _-])?parallel|\bpp[ _](?:size|world)"), "pp-size"),
    (regex(r"[Dd]ata[ _-]parallel|\bdp[ _](?:size|world)"), "dp-size"),
    (regex(r"\bpage[ _]size"), "page-size"),
    (regex(r"[Cc]hunked[ _]prefill"), "chunked-prefill-size"),
    (regex(r"[Cc]ontext[ _]len(?:gth)?\b|max_position_embeddings|max_model_len"), "context-length"),
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
        found = re.search(rf"(?<![\w-])(?:--)?{re.escape(name)}(?![\w-])", normal)
        if found is not None:
            places[name] = found.start()
    return sorted(places, key=places.__getitem__)


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
    known = _of_cause(cause, captures)
    done = {change for one in known for change in one.changes}
    values = config.flag_values() if config else {}
    said = allowed(message, values, table)
    return (*known, *(one for one in said if not done & set(one.changes)))


def _of_cause(cause: Cause | None, captures: Mapping[str, str]) -> tuple[Advice, ...]:
    return tuple(
        Advice(
            say=_filled(remedy.say, captures) or remedy.say,
            changes=_changes(remedy.set_flags, remedy.unset, remedy.set_env, captures),
            disposition=remedy.disposition.value,
            cost=_filled(remedy.cost, captures) or remedy.cost,
            evidence=remedy.evidence,
        )
        for remedy in (cause.remedies if cause else ())
    )


def _changes(
    set_flags: Sequence[tuple[str, str | bool]],
    unset: Sequence[str],
    set_env: Sequence[tuple[str, str]],
    captures: Mapping[str, str],
) -> tuple[Change, ...]:
    changes: list[Change] = []
    for name, value in set_flags:
        filled = _filled(value, captures) if isinstance(value, str) else value
        if filled is not None:
            changes.append(SetFlag(name, filled))
    changes += [UnsetFlag(name) for name in unset]
    for name, text in set_env:
        if (env := _filled(text, captures)) is not None:
            changes.append(SetEnv(name, env))
    return tuple(changes)


def _filled(text: str, captures: Mapping[str, str]) -> str | None:
    """The text with its `{name}`s replaced, or None if one was not captured."""
    if any(name not in captures for name in _PLACEHOLDER.findall(text)):
        return None
    return _PLACEHOLDER.sub(lambda found: captures[found[1]], text)
