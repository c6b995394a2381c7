"""Options that write results for other programs, the same for every command that has results.

In:  results, and what was asked for. Out: files; annotations on a stream.
Not: what stands in them (triage.session.reports).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from triage.cli import console
from triage.core.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from triage.core.causes import Cause
    from triage.core.results import Result

    PathType = click.ParamType[Path]
else:
    PathType = click.ParamType


class FilePath(PathType):
    """The path of a file to write; `folder` if it may be one.

    As `click.Path(path_type=Path)`, but a command without such an option needs no `pathlib`.
    """

    name = "path"

    def __init__(self, *, folder: bool = False) -> None:
        self.folder = folder

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """The value as a Path."""
        from pathlib import Path

        path = Path(value)
        if not self.folder and path.is_dir():
            self.fail(f"File {str(value)!r} is a directory.", param, ctx)
        return path


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--junit FILE`, `--sarif FILE`, `--github`."""
    file = FilePath()
    for option in (
        click.option(
            "--github",
            cls=console.Option,
            is_flag=True,
            help="Print GitHub annotations and add to the job's summary.",
        ),
        click.option(
            "--sarif", cls=console.Option, type=file, metavar="FILE", help="Write SARIF 2.1.0."
        ),
        click.option(
            "--junit",
            cls=console.Option,
            type=file,
            metavar="FILE",
            help="Write JUnit XML, a case a log.",
        ),
    ):
        function = option(function)
    return function


def knowledge_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--knowledge DIR`, which may be given several times."""
    return click.option(
        "--knowledge",
        cls=console.Option,
        multiple=True,
        metavar="DIR",
        type=FilePath(folder=True),
        help="Use the cause files of DIR too (also: TRIAGE_KNOWLEDGE).",
    )(function)


def guarded(text: str, *, github: bool) -> str:
    """The answer so that a runner takes no line of a log in it for a command of its own."""
    if not github:
        return text
    import secrets

    word = secrets.token_hex(12)
    return f"::stop-commands::{word}\n{text}\n::{word}::"


def write(
    results: Sequence[Result],
    known: Sequence[Cause],
    title: str,
    *,
    junit: Path | None,
    sarif: Path | None,
    github: bool,
    as_json: bool,
) -> None:
    """Write what was asked for; annotations go where the answer goes, unless that is JSON."""
    from triage.session import reports

    if junit:
        reports.write_junit(results, junit, title)
    if sarif:
        reports.write_sarif(results, sarif, known)
    if github:
        for line in reports.github(results, title):
            (console.talk if as_json else console.answer)(line)
