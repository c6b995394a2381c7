"""The command line: parse, call the session, print, exit. One boundary turns errors into text."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from _thread import _local as local  # where `threading` has it from
from collections.abc import Sequence

from triage.cli.postponed import postpone, stand_ins
from triage.core import typed

# Before the imports that follow: thousands of objects that stay make the collector run in vain.
gc.set_threshold(100_000)
postpone("inspect")  # a third of what click takes; only help needs it
# A third of the rest is for sorts of options that no command has, and for help and errors.
with stand_ins(
    uuid=("UUID",),
    datetime=("datetime",),
    gettext=("gettext", "ngettext"),
    threading={"local": local},
    typing={name: getattr(typed, name) for name in typed.__all__},
):
    import click

from triage.cli import console
from triage.errors import HostError, TriageError, hint

# Command -> its module and the line in `triage --help`. The module is imported
# only when its command runs: cold start matters.
COMMANDS: dict[str, tuple[str, str]] = {
    "classify": ("triage.cli.classify", "Name the cause of a failed launch from its log."),
    "doctor": ("triage.cli.doctor", "Examine this machine before a launch."),
    "run": ("triage.cli.run", "Launch a server once, capture it, classify what happens."),
    "bisect": ("triage.cli.bisect", "Find by launching which flags make a launch fail."),
    "plan": ("triage.cli.plan", "Show what a search would launch next, and why."),
    "recommend": ("triage.cli.recommend", "Show the working configuration that changes least."),
    "confirm": ("triage.cli.confirm", "Launch the recommended configuration and prove it."),
    "runbook": ("triage.cli.runbook", "Write the document to hand over."),
    "issue": ("triage.cli.issue", "Write the report to the engine's authors."),
    "diff": ("triage.cli.diff", "Compare two launches: what was set, and what moved with it."),
    "probe": ("triage.cli.probe", "Run a short experiment that tells causes apart."),
    "advise": ("triage.cli.advise", "Tell what a flag could bring, and whether to go on."),
    "check": ("triage.cli.check", "Compare recorded cases with what is found in their logs."),
    "cluster": ("triage.cli.cluster", "Group failures that no cause explains."),
    "explain": ("triage.cli.explain", "Tell what a cause means and what helps."),
    "causes": ("triage.cli.causes", "List, check and audit the knowledge base; draft a cause."),
    "config": ("triage.cli.config", "Read a server command and print what it sets."),
    "inspect": ("triage.cli.inspect", "Find what cannot work with the installed engine."),
    "resolve": ("triage.cli.resolve", "Ask the engine about a command without a launch."),
    "flags": ("triage.cli.flags", "Write the flag table of an installed engine."),
}


class LazyGroup(console.Command, click.Group):
    """A click group that imports a command's module only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which an engineer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101  a module of ours
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name as the hint."""
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 1)
            say = f"triage {near[0]} --help" if near else "triage --help"
            from triage.errors import UsageError

            raise UsageError(f"there is no command {name!r}", hint=say)
        return super().resolve_command(ctx, args)


EPILOG = """\b
Exit codes: 0 done, nothing wrong · 1 triage failed · 2 usage · 3 nothing to
examine · 4 this host cannot do it · 10 launch failed, cause named · 11 launch
failed, cause unknown · 12 no working configuration, or not confirmed ·
13 inconclusive · 14 a check found something · 130 interrupted.
"""


def _show_version(_ctx: click.Context) -> None:
    from importlib.metadata import version

    click.echo(f"triage, version {version('sglang-triage')}")


@click.command(
    cls=LazyGroup,
    params=[console.eager(["--version"], _show_version, "Show the version and exit.")],
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Find out why an LLM inference server does not start, and what to change."""
    if ctx.invoked_subcommand is None:
        console.page(ctx.get_help())


# Commands that only read and print: what they leave behind, the system takes back faster.
_READERS = frozenset(("-h", "--help", "classify", "explain", "causes", "config"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; never with a traceback for bad input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = run(words)
    if words[:1] and words[0] in _READERS:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            sys.exit(code)
        os._exit(code)  # a tenth of a short command is taking its objects apart one by one
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of one command line; errors are printed as a sentence and a hint."""
    try:
        code = group.main(arguments, prog_name="triage", standalone_mode=False)
        sys.stdout.flush()
    except TriageError as error:
        code = _say(error.message, error.hint, error.exit_code)
        return console.code(code, exit_zero="--exit-zero" in _before_dashes(arguments))
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "triage"
        return _say(_sentence(error.format_message()), f"{path} --help", 2)
    except click.ClickException as error:
        return _say(_sentence(error.format_message()), "triage --help", 2)
    except (KeyboardInterrupt, click.Abort):
        return _say(
            "interrupted; nothing of the launch is left", "type the same command again", 130
        )
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        from pathlib import Path

        folder = next(p for p in Path(error.filename or ".").absolute().parents if p.is_dir())
        failure = HostError(f"{where}{error.strerror or error}", hint=hint("df", "-h", folder))
        return _say(failure.message, failure.hint, failure.exit_code)
    return code if isinstance(code, int) else 0


def _before_dashes(arguments: list[str]) -> list[str]:
    """The words that are ours: a server command after `--` has options of its own."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[:2] != text[:2].upper() else text


def _say(message: str, hint: str, code: int) -> int:
    console.talk(f"error: {message}")
    if hint:
        console.talk(f"  try: {hint}")
    return code
