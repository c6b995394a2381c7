"""Write up a session: everything that it holds, in one document.

In:  a session folder. Out: the runbook.
Not: the proposal or the proof (handover.py), or wording (triage.core.handover.runbook).
"""

from __future__ import annotations

from pathlib import Path

from triage.command import read_command, write_command
from triage.core.config import Config, ServerCommand, argv
from triage.core.diagnosis import Diagnosis
from triage.core.handover.confirmation import Confirmation
from triage.core.handover.investigation import Investigation
from triage.core.handover.runbook import build_runbook
from triage.core.redact import redact_text
from triage.core.search.recommend import Recommendation
from triage.core.trials import Entry
from triage.errors import UsageError, hint
from triage.render.confirmation import confirmation_of
from triage.render.markdown import markdown
from triage.session.handover import CONFIRMATION, proposal_of
from triage.session.logs import causes, classify, flag_table
from triage.session.search import Search, searched_entry
from triage.session.stored import claim
from triage.session.trial import stored_outcome
from triage.store import SessionFolder


def write_runbook(path: Path) -> tuple[SessionFolder, str]:
    """The runbook as Markdown, from everything that the session holds.

    Raises:
        NothingError: no trial has finished yet.
        HostError: another triage works in the session.
    """
    session, journal, search = claim(path)
    proposal = proposal_of(session, journal, search)
    base, old, new, language = _commands(search, proposal)
    searched = searched_entry(journal.entries)
    found = Investigation(
        problem=search.recipe.problem,
        journal=tuple(journal.entries),
        recommendation=proposal,
        diagnosis=_diagnosis(session, searched) if searched else None,
        diagnosed=searched.items if searched else None,
        confirmation=_confirmation(session, proposal),
        causes=causes(),
        base_command=base,
        old_command=old,
        new_command=new,
        command_language=language,
        cwd=_needed_folder(search),
        session=str(path),
        assumptions=(*search.recipe.assumptions, *search.recipe.notes),
        reported=search.recipe.reported,
    )
    return session, redact_text(markdown(build_runbook(found)))


def _needed_folder(search: Search) -> str:
    """The folder of the launches, if a word of the command is a path relative to it."""
    words = (*search.recipe.command, *argv(search.recipe.problem.baseline))
    folder = search.recipe.cwd
    relative = [w for w in words if not w.startswith(("-", "/")) and (folder / w).exists()]
    return str(folder) if relative and search.replay is None else ""


def _diagnosis(session: SessionFolder, entry: Entry) -> Diagnosis:
    """The diagnosis of a finished trial, from its raw log and how the launch ended."""
    folder = session.path / "trials" / f"{entry.number:03d}"
    return classify(str(folder / "server.log"), outcome=stored_outcome(folder))


def _confirmation(session: SessionFolder, proposal: Recommendation) -> Confirmation | None:
    """The stored confirmation, if it is one of this proposal.

    Raises:
        UsageError: the file is damaged.
    """
    stored = session.read(CONFIRMATION)
    if stored is None:
        return None
    try:
        shown = confirmation_of(stored)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{session.path / CONFIRMATION} is damaged",
            hint=hint("triage", "confirm", session.path),
        ) from error
    return shown if shown.items == proposal.items else None


def _commands(search: Search, proposal: Recommendation) -> tuple[str, str, str, str]:
    """The working, wanted and proposed command in the user's own form, and its language.

    With a good command given, the new one is that one with the fewest edits: an
    engineer changes one thing in the unit that works, not in the script that failed.
    """
    table = flag_table()
    problem = search.recipe.problem
    source = search.sources.get("good")
    if source:
        command = read_command(source, table)
    else:
        command = ServerCommand(
            form="shell", program=search.recipe.command, config=problem.baseline
        )
    language = {"systemd": "ini", "sglang-config": "yaml"}.get(command.form, "sh")
    configs = (problem.baseline, problem.config(problem.keys()), proposal.config)
    base, old, new = (
        write_command(command, _placed(config, command), table) if config else ""
        for config in configs
    )
    return (source or base), old, new, language


def _placed(config: Config, command: ServerCommand) -> Config:
    """The config with the host and port that the user's own command names, or without any."""
    values = config.without(("host", "port")).flag_values()
    for name in ("host", "port"):
        if (value := command.config.get(name)) is not None:
            values[name] = value
    return Config.of(values, config.env_values())
