"""A comparison of two launches for a terminal of 80 columns.

In:  a Diff. Out: lines of at most 80 columns where the words allow it, no colour.
Not: JSON (diff_document.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from textwrap import wrap

from triage.core.diff.difference import PARTS, Diff, FieldChange, Part
from triage.core.diff.side import Side
from triage.core.phases import order
from triage.core.printable import visible
from triage.core.units import format_seconds
from triage.core.wording import ENV, listed

WIDTH = 80
_GOOD = 44  # where the value of the good side ends
_NOTE = 58  # where a note begins, if there is room
_VALUE = 20  # columns of a value
_LONGEST = 400  # characters of a value
_WORDS = {"user": "flags", "resolved": "resolved arguments", "env": "environment"}
_MOST = 40  # rows of a part


def diff_text(diff: Diff, *, everything: bool = False) -> str:
    """Both launches, then what was set, what moved with it, and what else differs.

    Args:
        diff: What differs.
        everything: Also what says nothing, each with the reason.
    """
    blocks = [_heads(diff)]
    rows = list(_set(diff))
    if rows:
        blocks.append(rows)
    blocks += _moved(diff)
    for part in (_env(diff), _versions(diff), _memory(diff), _timeline(diff), _decisions(diff)):
        if lines := list(part):
            blocks.append(lines)
    blocks.append([*_same(diff), *_left_out(diff, everything=everything)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _heads(diff: Diff) -> list[str]:
    lines = []
    for name, side in (("good", diff.good), ("bad", diff.bad)):
        lines += _labelled(name, f"{visible(side.source)}  {_what(side)}")
    if diff.equal:
        lines += ["", "nothing differs"]
    return lines


def _what(side: Side) -> str:
    if side.kind == "command":
        cause = f": {side.cause}" if side.cause else ""
        return f"(a command, not launched{', rejected' if side.outcome else ''}{cause})"
    version = f" {side.engine_version}" if side.engine_version else ""
    mark = "simulated, " if side.simulated else ""
    where = "" if side.phase in ("unknown", "serving") else f" in {side.phase}"
    cause = side.cause or (f"no known cause, {side.fingerprint}" if side.fingerprint else "")
    cause = f": {cause}" if cause else ""
    return f"({mark}{side.engine}{version}, {side.outcome}{where}{cause})"


def _set(diff: Diff) -> Iterator[str]:
    """What the user set, or what stands for it."""
    if diff.user:
        yield "set differently"
        fields = {change.flag: change for change in diff.resolved if change.kind == "typed"}
        for change in diff.user[:_MOST]:
            name = change.key.removeprefix(ENV)
            good, bad = _shown(change.good), _shown(change.bad)
            yield from _row(name, good, bad, _became(fields.get(change.key), good, bad))
        return
    stand = [change for change in diff.resolved if change.kind == "open"]
    if stand:
        known = diff.good.typed is not None and diff.bad.typed is not None
        yield "different, though nothing was set so" if known else "different"
        for one in stand[:_MOST]:
            yield from _row(one.flag or one.field, _shown(one.good), _shown(one.bad))
        yield from _more(stand)


def _became(change: FieldChange | None, good: str, bad: str) -> str:
    """What the engine made of a typed value, if it is not that value."""
    if change is None or "(no" in str(change.good) + str(change.bad):
        return ""
    a, b = _shown(change.good), _shown(change.bad)
    told = [x for x, given in ((a, good), (b, bad)) if given not in ("unset", x)]
    return f"resolved: {a} -> {b}" if told else ""


def _moved(diff: Diff) -> Iterator[list[str]]:
    """What the engine moved, grouped by what it moved with."""
    moved = [change for change in diff.resolved if change.kind == "moved"]
    for by in dict.fromkeys(change.by for change in moved):
        mine = [change for change in moved if change.by == by]
        likely = "" if all(change.sure for change in mine) else "likely "
        head = f"{likely}moved with {listed(by)}" if by else "moved, not known with which of these"
        lines = [head]
        for one in mine[:_MOST]:
            note = one.why if one.also else _place(one.where)
            lines += _row(one.flag or one.field, _shown(one.good), _shown(one.bad), note)
        yield [*lines, *_more(mine)]
    if diff.user:
        open_ = [change for change in diff.resolved if change.kind == "open"]
        if open_:
            lines = ["different, though nothing was set so"]
            for one in open_[:_MOST]:
                lines += _row(one.flag or one.field, _shown(one.good), _shown(one.bad))
            yield [*lines, *_more(open_)]


def _env(diff: Diff) -> Iterator[str]:
    if diff.env:
        yield "environment"
    for one in diff.env[:_MOST]:
        note = _place(one.where) if one.told == "rule" else ""
        note = "set by the engine" if one.told == "engine" else note
        yield from _row(one.name, _shown(one.good), _shown(one.bad), note)


def _versions(diff: Diff) -> Iterator[str]:
    if diff.versions:
        yield "versions"
    for one in diff.versions[:_MOST]:
        yield from _row(one.name, _shown(one.good), _shown(one.bad))


def _memory(diff: Diff) -> Iterator[str]:
    if diff.memory:
        yield "memory and sizes"
    for one in diff.memory[:_MOST]:
        yield from _row(one.name, _size(one.good, one.unit), _size(one.bad, one.unit))


def _timeline(diff: Diff) -> Iterator[str]:
    if not diff.timeline:
        return
    yield "timeline"
    for kind, went, ended, side in (
        ("good-only", "good", "bad", diff.bad),
        ("bad-only", "bad", "good", diff.good),
    ):
        phases = [one.phase for one in diff.timeline if one.kind == kind]
        if not phases:
            continue
        last = max((side.phase, *side.seconds), key=_place_in_time)
        if side.outcome == "healthy" or _place_in_time(phases[0]) < _place_in_time(last):
            yield from _wrapped(f"  only {went} came through {', '.join(phases)}", " " * 4)
        else:
            then = f"from {phases[0]} to {phases[-1]}" if len(phases) > 1 else f"to {phases[0]}"
            yield from _wrapped(f"  {ended} ended in {last}; {went} went on {then}", " " * 4)
    for one in diff.timeline:
        if one.kind == "slower" and one.good is not None and one.bad is not None:
            yield from _row(one.phase, format_seconds(one.good), format_seconds(one.bad))


def _decisions(diff: Diff) -> Iterator[str]:
    if diff.decisions:
        yield "decisions  (line of the log)"
    for one in diff.decisions[:_MOST]:
        head = f"  {one.side:4} {one.line:>5}  "
        yield from wrap(
            visible(" ".join(one.text.split())), WIDTH, initial_indent=head, max_lines=3,
            subsequent_indent=" " * len(head), break_on_hyphens=False, placeholder=" ..",
        )  # fmt: skip
    yield from _more(diff.decisions)


def _same(diff: Diff) -> Iterator[str]:
    """The parts without a difference, and those that could not be compared."""
    notes = dict(diff.notes)
    same = [_word(part) for part in PARTS if part not in notes and not getattr(diff, part)]
    if same:
        yield from _labelled("same", ", ".join(same))
    for say in dict.fromkeys(say for _, say in diff.notes):
        parts = ", ".join(_word(part) for part, said in diff.notes if said == say)
        yield from _labelled("open", f"{parts}: {say}")


def _left_out(diff: Diff, *, everything: bool) -> Iterator[str]:
    count = len(diff.suppressed)
    if not count:
        return
    if not everything:
        what = "difference that says" if count == 1 else "differences that say"
        yield from _labelled("hidden", f"{count} {what} nothing; --all shows them and why")
        return
    yield "hidden"
    for one in diff.suppressed:
        if one.part == "decisions":
            text = _cut(visible(str(one.good or one.bad)), WIDTH - 4)
            yield from (f"  {text}", *_wrapped(f"    {one.reason}", " " * 4))
        else:
            unit = "" if one.part != "memory" else "GB" if "free" in one.name else ""
            shown = (
                _size(x, unit) if one.part == "memory" else _shown(x) for x in (one.good, one.bad)
            )
            yield from _row(one.name, *shown)
            yield from _wrapped(f"    {one.reason}", " " * 4)


def _row(name: str, good: str, bad: str, note: str = "") -> Iterator[str]:
    """A name with both values; long values stand below it, a note where it finds room."""
    good, bad, name = visible(good), visible(bad), visible(name)
    if len(good) > _VALUE or len(bad) > 2 * _VALUE:
        yield f"  {name}{f'  ({note})' if note else ''}"[:WIDTH]
        for side, value in (("good", good), ("bad", bad)):
            yield from wrap(
                _cut(value, _LONGEST), WIDTH, initial_indent=f"    {side:4}  ",
                subsequent_indent=" " * 10, break_on_hyphens=False,
            )  # fmt: skip
        return
    line = f"  {name}{good:>{max(_GOOD - len(name) - 2, len(good) + 1)}} -> {bad}"
    if len(line) > WIDTH:
        line = f"  {name}  {good} -> {bad}"
    if note and len(beside := f"{line:{_NOTE}}  {note}") <= WIDTH:
        yield beside
        return
    yield line
    if note:
        yield from _wrapped(f"{' ' * 6}{note}", " " * 6)


def _shown(value: object) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return "true" if value else "false"
        case tuple() | list() | dict():
            return json.dumps(value, default=str)
        case str():
            return value or '""'
        case _:
            return str(value)


def _size(value: object, unit: str) -> str:
    if not isinstance(value, tuple):
        return _shown(value)
    low, high = (f"{x:.2f}" if unit == "GB" else f"{x:g}" if x >= 1e15 else f"{int(x)}"  # noqa: PLR2004
                 for x in value)  # fmt: skip
    text = low if low == high else f"{low}..{high}"
    return f"{text} {unit}" if unit else text


def _place(where: str) -> str:
    """The place in the engine's source, as short as it can be found again."""
    return PurePath(where).name if where else ""


def _word(part: Part) -> str:
    return _WORDS.get(part, part)


def _more(rows: Sequence[object]) -> Iterable[str]:
    return (f"  and {len(rows) - _MOST} more",) if len(rows) > _MOST else ()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _place_in_time(phase: str) -> int:
    return -1 if phase == "unknown" else order(phase)


def _labelled(label: str, text: str) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent=f"{label:8}", subsequent_indent=" " * 8,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _wrapped(text: str, later: str) -> list[str]:
    return wrap(
        text, WIDTH, subsequent_indent=later, break_on_hyphens=False, break_long_words=False
    )
