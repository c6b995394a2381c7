"""The talk of a search in a terminal: lines that stay, and a table below them that moves.

In:  what happens in a search. Out: text on stderr.
Not: choosing words (triage.render).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from triage.cli import console

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from triage.core.search.pace import Outlook
    from triage.core.trials import Entry, Problem, Trial


class Screen:
    """Shows the trials of one search; use it as a context, so that the terminal is left whole.

    Args:
        problem: Without secrets.
        entries: The journal, which grows meanwhile.
        ahead: Asked for what the search still takes, whenever a launch has ended.
        colour: Whether the verdicts are painted.
    """

    def __init__(
        self,
        problem: Problem,
        entries: list[Entry],
        ahead: Callable[[], Outlook],
        *,
        colour: bool,
    ) -> None:
        self._problem, self._entries, self._ahead = problem, entries, ahead
        self._left = ahead()
        self._running: dict[int, frozenset[str]] = {}
        self._does: dict[int, str] = {}  # of each launch that goes on
        self._event = ""
        self._colour = colour
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        screen = Console(
            file=sys.stderr, color_system="standard" if self._colour else None, highlight=False,
            markup=False, emoji=False,
        )  # fmt: skip
        self._live = Live(
            get_renderable=self._draw, console=screen, refresh_per_second=4, transient=True,
            redirect_stdout=False, redirect_stderr=False, vertical_overflow="crop",
        )  # fmt: skip
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def starting(self, number: int, trial: Trial) -> None:
        """A launch begins: say what and why."""
        from triage.render.session_text import trial_head

        self._running[number], self._does[number], self._event = trial.items, "", ""
        self._print(trial_head(trial, number, self._left.total, self._problem))

    def finished(self, entry: Entry) -> None:
        """A launch has ended: say what it showed."""
        from triage.core.trials import Seen
        from triage.render.session_text import trial_line

        styles = {
            Seen.STARTS: "green",
            Seen.FAILS: "red",
            Seen.UNRESOLVED: "bright_black",
            Seen.PASSES: "blue",
        }
        alone = len(self._running) <= 1
        self._running.pop(entry.number, None)
        self._does.pop(entry.number, None)
        self._event = ""
        self._print(trial_line(entry, numbered=not alone), styles[entry.seen])
        self._left = self._ahead()

    def event(self, text: str) -> None:
        """What goes on beside the launches."""
        self._event = console.harmless(text)

    def doing(self, number: int, text: str) -> None:
        """What a launch is doing now; from any thread."""
        if number in self._does:
            self._does[number] = console.harmless(text)

    def _print(self, text: str, style: str = "") -> None:
        from rich.text import Text

        if self._live is not None:
            shown = Text(console.harmless(text), style=f"bold {style}" if style else "")
            self._live.console.print(shown, soft_wrap=True)

    def _draw(self) -> Text:
        from rich.text import Text

        from triage.render.trials_grid import grid

        size = self._live.console.size if self._live is not None else None
        width, height = (size.width, size.height) if size is not None else (80, 24)
        running, does = dict(self._running), dict(self._does)
        shown = grid(self._problem, self._entries, running, width=width, height=height // 2 + 4)
        lines = [*map(console.harmless, shown)]
        lines += [f"  trial {number}: {text}" for number, text in sorted(does.items())]
        lines += [f"  {self._event}"] if self._event or not does else []
        lines.append(f"  {self._left.say()}")
        return Text("\n".join(line[:width] for line in lines), no_wrap=True, overflow="crop")
