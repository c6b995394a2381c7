"""The two consoles: stdout carries the answer or nothing, stderr the talk.

In:  finished text or documents. Out: bytes on the two streams.
Not: wording (triage.render).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import click

from triage.core.typed import Any, TextIO

SIGPIPE_CODE = 141  # as a shell shows a program that a closed pipe ended
# What --exit-zero silences: what was found about the server, not our own failures.
FINDINGS = frozenset({10, 11, 12, 13, 14})

_STYLES = {"error": "red", "good": "green", "dim": "bright_black", "strong": None}


def answer(text: str, style: str = "", *, on: bool = False) -> None:
    """Print the answer on stdout, harmless and without secrets: it is pasted into reports.

    The first line is painted in the style where colour is on.
    """
    first, _, rest = harmless(text).partition("\n")
    shown = paint(first, style, on=on) if style else first
    _print(f"{shown}\n{rest}" if rest else shown)


def page(text: str) -> None:
    """Print a finished document on stdout as it is."""
    _print(text)


def talk(text: str, style: str = "", *, on: bool = False) -> None:
    """Print lines of talk on stderr, at once; what a server said in them is made harmless."""
    shown = paint(harmless(text), style, on=on) if style else harmless(text)
    _say(shown)
    sys.stderr.flush()


def _print(text: str) -> None:
    """The text on stdout; once the reader has gone (`| head`) there is nobody to answer."""
    try:
        click.echo(text, color=True)
    except BrokenPipeError:
        _deafen(sys.stdout)
        raise SystemExit(SIGPIPE_CODE) from None


def _say(text: str) -> None:
    """The text on stderr; work goes on without a listener."""
    try:
        click.echo(text, err=True, color=True)
    except BrokenPipeError:
        _deafen(sys.stderr)


def _deafen(stream: TextIO) -> None:
    """Let what is still written to the stream vanish, or Python complains at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def harmless(text: str) -> str:
    """The text without secrets, and without characters that a terminal would obey."""
    from triage.core.printable import visible
    from triage.core.redact import redact_text

    return "\n".join(visible(line) for line in redact_text(text).split("\n"))


def replace(text: str) -> None:
    """Write over the current line of the terminal on stderr; nothing scrolls."""
    import shutil

    width = max(shutil.get_terminal_size().columns - 1, 1)
    sys.stderr.write(f"\r\x1b[2K{harmless(text)[:width]}")
    sys.stderr.flush()


def progress() -> Callable[[str], None] | None:
    """What shows how far a long command is: `replace` on a terminal, else nothing."""
    return replace if sys.stderr.isatty() else None


def document(value: Mapping[str, Any]) -> None:
    """Print one JSON document on one line on stdout."""
    import json

    from triage.core.redact import redact_document

    value = dict(value)
    _print(json.dumps(redact_document(value), separators=(", ", ": ")))


def warn_of_the_machine() -> None:
    """Say, before a single launch, what is wrong with the hardware under it."""
    from triage.render.doctor_text import finding_line
    from triage.session.doctor import machine_faults

    for fault in machine_faults():
        talk(finding_line(fault))


def coloured(mode: str, *, stream: str = "stdout") -> bool:
    """Whether to colour: `always`, `never`, or by terminal, NO_COLOR and TERM."""
    if mode != "auto":
        return mode == "always"
    out = sys.stdout if stream == "stdout" else sys.stderr
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, *, on: bool) -> str:
    """The text in a style's colour, or unchanged; colour never carries meaning alone."""
    return click.style(text, fg=_STYLES[style], bold=style != "dim") if on else text


class Above0(click.FloatRange):
    """A number above 0 and at most `most`; nan, which no comparison refuses, is none."""

    def __init__(self, most: float) -> None:
        super().__init__(0, most, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; fails as click's own types do."""
        found: float = super().convert(value, param, ctx)
        if found != found:  # noqa: PLR0124  # what only nan is
            self.fail(f"{value} is not a number", param, ctx)
        return found


class Option(click.Option):
    """An option that does not look at its help before that is shown.

    Click takes the indentation out of it with a module whose import costs more than its own.
    """

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.help = help


class Command(click.Command):
    """A command whose `--help` is such an option."""

    _own_help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option, made once: click tells options apart by identity."""
        names = self.get_help_option_names(ctx)
        if self._own_help is None and names:
            self._own_help = eager(names, _show_help, "Show this message and exit.")
        return self._own_help


def eager(
    names: Sequence[str],
    action: Callable[[click.Context], None],
    help: str,
) -> Option:
    """A switch that does one thing, whatever else is asked for, and ends."""

    def callback(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            action(ctx)
            ctx.exit()

    return Option(
        list(names), is_flag=True, expose_value=False, is_eager=True, callback=callback, help=help
    )


def _show_help(ctx: click.Context) -> None:
    click.echo(ctx.get_help(), color=ctx.color)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every command with an answer has, spelled alike everywhere."""
    for option in (
        click.option(
            "--exit-zero", cls=Option, is_flag=True, help="Exit 0 whatever was found (10-14)."
        ),
        click.option(
            "--color",
            cls=Option,
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="When to colour the answer.",
        ),
        click.option(
            "--json", "as_json", cls=Option, is_flag=True, help="Print one JSON document."
        ),
    ):
        function = option(function)
    return function


def code(found: int, *, exit_zero: bool) -> int:
    """The exit code to leave with, findings silenced on request."""
    return 0 if exit_zero and found in FINDINGS else found


def take_over_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --take-over to a command that launches."""
    return click.option(
        "--take-over",
        metavar="UNIT",
        multiple=True,
        help="Stop this running systemd unit meanwhile; it is started again at every end.",
    )(function)


def take_over(units: tuple[str, ...]) -> None:
    """Stop these units until the command ends, however it ends."""
    if units:
        from triage.launch.takeover import taken_over

        for unit in units:
            name = unit if "." in unit else f"{unit}.service"
            click.get_current_context().with_resource(taken_over(name, talk))
