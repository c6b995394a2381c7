"""What a launch that came up shows of its configuration, check by check.

In:  Served, the exchanges, the levels of a load, the way it ended. Out: Checks.
Not: launching or asking (triage.session).

A check that nothing speaks to says "cannot tell"; it neither passes nor fails.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triage.core.config import Config, Value
from triage.core.flags import FlagTable
from triage.core.handover.confirmation import Check, Exchange, Result
from triage.core.handover.load import Level
from triage.core.handover.served import Served
from triage.core.units import format_seconds

FEW = 8  # tokens or words; fewer may well be alike
NO_TEXT_SHARE = 0.3  # of the characters
ACCEPT_ONE = 1.005  # below it nothing but the target's own token is accepted
CLIENT_BUSY = 0.8  # of a core: beyond it the client may be what is measured
NAMED = 6


@dataclass(frozen=True, slots=True)
class Reply:
    """What was generated: text, and the token ids where the server tells them."""

    text: str
    ids: tuple[int, ...] = ()


def ready_check(ready_s: float) -> Check:
    """That it came up: what the launcher has proved before anything else is asked."""
    say = (
        f"ready after {format_seconds(ready_s)}: the listener on its port is its own, and it "
        "answered a generation"
    )
    return Check(name="ready", result=Result.PASSED, say=say)


def answers_check(exchanges: Sequence[Exchange]) -> Check:
    """Whether both answers to each prompt are equal."""
    differ = [e.prompt for e in exchanges if e.answers[0] != e.answers[1]]
    if not exchanges:
        return Check(name="answers", result=Result.FAILED, say="no prompt was answered")
    if differ:
        say = f"the two answers at temperature 0 do not agree (to {differ[0]!r})"
        return Check(name="answers", result=Result.FAILED, say=say)
    say = f"the same answer twice to each of {len(exchanges)} prompts at temperature 0"
    return Check(name="answers", result=Result.PASSED, say=say)


def text_check(replies: Mapping[str, Reply], *, any_text: bool = False) -> Check:
    """Whether the answers are text: not empty, not one token over and over, not noise.

    Args:
        replies: By prompt.
        any_text: The weights are random, so that nothing but emptiness is judged.
    """
    for prompt, reply in replies.items():
        if not reply.text.strip() and not (any_text and reply.ids):
            return _text(Result.FAILED, f"the answer to {prompt!r} is empty")
    if any_text:
        return _text(Result.CANNOT_TELL, "the weights are random, so the text is not judged")
    for prompt, reply in replies.items():
        if repeated := _repeated(reply):
            return _text(
                Result.FAILED, f"the answer to {prompt!r} is {repeated}: garbage, not text"
            )
    letters = "".join(reply.text for reply in replies.values())
    odd = sum(map(_is_no_text, letters))
    if odd > NO_TEXT_SHARE * len(letters):
        share = round(100 * odd / len(letters))
        return _text(
            Result.FAILED,
            f"{share} % of the characters of the answers are replacement or control characters:"
            " garbage, or the weights are random",
        )
    return _text(Result.PASSED, "the answers are text")


def _text(result: Result, say: str) -> Check:
    return Check(name="text", result=result, say=say)


def _repeated(reply: Reply) -> str:
    """Says what is repeated; "" if the answer has more than one token."""
    text = reply.text.strip()
    if len(reply.ids) >= FEW:
        same = len(set(reply.ids)) == 1
        return f"token {reply.ids[0]} ({text[:1]!r}) {len(reply.ids)} times" if same else ""
    words = text.split()
    if len(words) >= FEW and len(set(words)) == 1:
        return f"{words[0]!r} {len(words)} times"
    if len(text) >= FEW and len(set(text)) == 1:
        return f"{text[0]!r} {len(text)} times"
    return ""


def _is_no_text(char: str) -> bool:
    return char == "\ufffd" or (
        unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\n\r\t"
    )


def accept_check(served: Served) -> Check | None:
    """Whether speculation accepts draft tokens; None if it is off."""
    if served.speculation == "":
        return None
    name = "accept-length"
    if served.accept_length is None:
        if served.speculation is None:
            return None  # whether it speculates at all nobody says
        say = f"{served.speculation} is on, and neither /server_info, /metrics nor the log says"
        return Check(name=name, result=Result.CANNOT_TELL, say=f"{say} how long it accepts")
    said = f"accept length {served.accept_length:.2f}, as {served.accept_source} says"
    if served.accept_length <= ACCEPT_ONE:
        say = f"speculation ({served.speculation or 'on'}) accepts no draft token: {said}"
        return Check(name=name, result=Result.FAILED, say=say)
    return Check(name=name, result=Result.PASSED, say=said)


def pool_check(served: Served) -> Check:
    """Whether a request of the whole context fits into the KV pool."""
    pool, context, name = served.pool_tokens, served.context, "kv-pool"
    if pool is None or context is None:
        missing = " and ".join(
            what
            for what, value in (("the KV pool's size", pool), ("the context length", context))
            if value is None
        )
        return Check(name=name, result=Result.CANNOT_TELL, say=f"nothing says {missing}")
    if pool < context:
        say = f"the KV pool of {pool} tokens is smaller than the context of {context}"
        return Check(name=name, result=Result.FAILED, say=say)
    say = f"the KV pool of {pool} tokens holds the context of {context}"
    return Check(name=name, result=Result.PASSED, say=say)


def config_check(asked: Config, served: Served, table: FlagTable) -> Check:
    """Whether the engine runs with what it was asked for; what differs is named."""
    name = "config"
    if not served.resolved:
        say = "neither the log nor /server_info tells the resolved configuration"
        return Check(name=name, result=Result.CANNOT_TELL, say=say)
    known, flags = comparable(asked, served.resolved, table), len(asked.flags)
    if flags and not known:
        say = "nothing that the engine tells is a value of the flags that were asked for"
        return Check(name=name, result=Result.CANNOT_TELL, say=say)
    differ = tuple(differences(asked, served.resolved, table))
    if differ:
        more = f" and {len(differ) - NAMED} more" if len(differ) > NAMED else ""
        say = f"the engine runs with other values: {'; '.join(differ[:NAMED])}{more}"
        return Check(name=name, result=Result.NOTED, say=say)
    say = f"the engine runs with what was asked for ({len(known)} of {flags} flags are told)"
    return Check(name=name, result=Result.PASSED, say=say)


def comparable(asked: Config, resolved: Mapping[str, object], table: FlagTable) -> dict[str, str]:
    """Flag -> the engine's own field, of each flag whose resolved value is told."""
    fields = {spec.name: spec.field for spec in map(table.by_field, resolved) if spec}
    return {
        name: fields[name]
        for name in asked.flag_values()
        if name in fields and name not in ("host", "port")
    }


def differences(asked: Config, resolved: Mapping[str, object], table: FlagTable) -> Iterator[str]:
    """`page-size 16 -> 1` for each flag whose resolved value is another one.

    A flag whose field the engine does not print is left out: nothing is known of it.
    """
    fields = comparable(asked, resolved, table)
    values = asked.flag_values()
    for name, field in fields.items():
        value, found = values[name], resolved[field]
        if not _same(value, found):
            yield f"{name} {_shown(value)} -> {found}"


def _same(asked: Value, found: object) -> bool:
    if isinstance(asked, bool):
        return bool(found) is asked
    if isinstance(asked, tuple):
        listed = list(found) if isinstance(found, list | tuple) else [found]
        return [str(part) for part in listed] == list(asked)
    if isinstance(found, bool):
        return asked.lower() in (("true", "1") if found else ("false", "0"))
    if isinstance(found, int | float):
        try:
            return float(asked) == float(found)
        except ValueError:
            return False
    if isinstance(found, list | tuple | dict):
        try:
            return bool(json.loads(asked) == (list(found) if isinstance(found, tuple) else found))
        except ValueError:
            return [str(part) for part in found] == asked.split()
    return asked == str(found)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else " ".join(value)


def load_check(levels: Sequence[Level], asked: Sequence[int]) -> Check | None:
    """Whether every level was answered without an error; None if no load was asked for."""
    if not asked:
        return None
    done = {level.concurrency for level in levels}
    missing = [str(number) for number in asked if number not in done]
    for level in levels:
        if level.errors:
            text, _ = level.errors[0]
            say = (
                f"at {level.concurrency} requests at once {level.failed} of {level.requests} "
                f"failed: {text}"
            )
            return Check(name="load", result=Result.FAILED, say=say)
        if not level.answered:
            say = (
                f"at {level.concurrency} requests at once none was answered within "
                f"{format_seconds(level.seconds)}"
            )
            return Check(name="load", result=Result.FAILED, say=say)
    if missing:
        say = f"the load at {', '.join(missing)} requests at once was not made"
        return Check(name="load", result=Result.FAILED, say=say)
    at = ", ".join(str(level.concurrency) for level in levels)
    answered = sum(level.answered for level in levels)
    say = f"no error among {answered} answers at {at} requests at once"
    busy = [lv for lv in levels if (lv.client_share or 0) > CLIENT_BUSY]
    if busy:
        say += (
            f"; at {busy[0].concurrency} the client used {busy[0].client_share:.0%} of a core, so "
            "the figures may be the client's"
        )
    return Check(name="load", result=Result.NOTED if busy else Result.PASSED, say=say)


def stop_check(
    *, exit_code: int | None, seconds: float | None, stuck: Sequence[str], removed: int
) -> Check:
    """Whether it ended when it was asked to, and everything of it is gone.

    Args:
        exit_code: Of the main process; negative: the signal.
        seconds: From SIGTERM to its end, None if unknown.
        stuck: Processes that survived SIGKILL.
        removed: Files that it left and that were removed.
    """
    name = "stop"
    if stuck:
        say = f"something of it is left: {'; '.join(stuck)}"
        return Check(name=name, result=Result.FAILED, say=say)
    took = f" after {format_seconds(seconds)}" if seconds is not None else ""
    files = f"; {removed} files that it left were removed" if removed else ""
    if exit_code == -9:  # noqa: PLR2004  SIGKILL, which only we send
        say = f"it did not end after SIGTERM and was killed{took}; nothing of it is left{files}"
        return Check(name=name, result=Result.NOTED, say=say)
    say = f"it ended with exit code {exit_code}{took} of SIGTERM; nothing of it is left{files}"
    return Check(name=name, result=Result.PASSED, say=say)
