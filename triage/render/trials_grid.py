"""The trials of a search as a table of flags and launches, for people who would rather look.

In:  a Problem, the finished entries, the subsets being launched. Out: lines of plain text.
Not: drawing it again and again (triage.cli.live) or colour.

A column is a launch, a row a wanted item: a filled circle where the launch had it. Where not all
launches fit, the newest are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.core.search.journal import signature
from triage.core.trials import Entry, Problem, Seen
from triage.core.wording import spell

ON, OFF = "●", "·"
RUNNING = "▸"
LEGEND = "S starts  F as searched  O other failure  ? unresolved  p passes  ▸ running"
_LABEL = 36  # columns of a flag's name at most
_LEAST = 4  # below that no flag can be told from another
_CELL = 3  # columns of a launch


def grid(
    problem: Problem,
    entries: Sequence[Entry],
    running: Mapping[int, frozenset[str]] | None = None,
    *,
    width: int = 80,
    height: int = 24,
) -> list[str]:
    """The table, its last row the verdicts, then the legend; [] where nothing fits.

    Args:
        problem: Gives the rows.
        entries: Finished launches, oldest first.
        running: Number -> items of each launch that goes on now.
        width: Columns of the terminal.
        height: Rows of the terminal; of a longer table the last rows are counted only.
    """
    names = {item.key: spell(item.change) for item in problem.choices()}
    label = min(_LABEL, max(map(len, names.values()), default=0), width - 2 * _CELL)
    room = (width - label) // _CELL
    rows = height - 4  # heading, verdicts, legend, and the line of what goes on
    if label < _LEAST or room < 1 or rows < 1:
        return []
    columns = [(str(e.number), e.items, _mark(e)) for e in entries]
    for number, items in sorted((running or {}).items()):
        columns.append((str(number), items, RUNNING))
    columns = columns[-room:]
    lines = [" " * label + "".join(number.rjust(_CELL) for number, _, _ in columns)]
    keys = list(names)
    for key in keys[:rows]:
        cells = "".join((ON if key in items else OFF).rjust(_CELL) for _, items, _ in columns)
        lines.append(f"{_fit(names[key], label)}{cells}")
    if len(keys) > rows:
        lines[-1] = _fit(f"and {len(keys) - rows + 1} more", label)
    lines.append(" " * label + "".join(mark.rjust(_CELL) for _, _, mark in columns))
    lines.append(LEGEND[:width])
    return lines


def _mark(entry: Entry) -> str:
    match entry.seen:
        case Seen.STARTS:
            return "S"
        case Seen.UNRESOLVED:
            return "?"
        case Seen.PASSES:
            return "p"
        case Seen.FAILS:
            searched = entry.searching
            return "F" if searched is None or signature(entry) == searched else "O"


def _fit(text: str, width: int) -> str:
    return f"{text[: width - 2]}.." if len(text) > width else text.ljust(width)
