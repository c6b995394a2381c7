"""From a finished search to its proof and its document.

In:  a session folder. Out: recommendation, Confirmation, runbook.md.
Not: searching (search.py) or wording (triage.core.handover.runbook).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

from triage.command import read_command, write_command
from triage.core.config import Config, ServerCommand, argv
from triage.core.diagnosis import Diagnosis
from triage.core.handover.confirmation import Confirmation, Exchange
from triage.core.handover.investigation import Investigation
from triage.core.handover.runbook import build_runbook
from triage.core.launch import Crashed, Hung, Interrupted, Ready
from triage.core.redact import redact_text
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Entry, Problem
from triage.errors import NotFoundWorking, NothingError, UsageError, hint
from triage.launch import Server
from triage.render.markdown import markdown
from triage.render.search_documents import (
    confirmation_document,
    confirmation_of,
)
from triage.session.logs import causes, classify, flag_table
from triage.session.search import Search, searched_entry
from triage.session.stored import claim, reopen, reveal
from triage.session.trial import TrialResult, launch_once, provenance_of, stored_outcome
from triage.store import Journal, SessionFolder

CONFIRMATION = "confirmation.json"
# Short prompts of different kinds; a server that answers only its warm-up prompt fails one.
PROMPTS = ("The capital city of France is", "1, 2, 3, 4,")
TOKENS = 16


def recommendation(path: Path) -> tuple[SessionFolder, Problem, Recommendation]:
    """A session, its problem with secrets hidden, and the proposal from its journal.

    Raises:
        NothingError: the session holds no trial.
    """
    session, journal, search = reopen(path)
    return session, search.recipe.problem, _proposal(session, journal, search)


def _proposal(session: SessionFolder, journal: Journal, search: Search) -> Recommendation:
    if not journal.entries:
        raise NothingError(
            f"{session.path} holds no finished trial",
            hint=hint("triage", "bisect", "--session", session.path),
        )
    return recommend(search.recipe.problem, journal.entries, causes())


def confirm(path: Path, say: Callable[[str], None]) -> tuple[SessionFolder, Confirmation]:
    """Launch the proposal and ask it twice for each prompt at temperature 0.

    The confirmation is stored whether it succeeds or not; an interrupted one
    leaves none, not even an earlier one: what it proved was another launch.

    Raises:
        NotFoundWorking: there is no proposal to confirm.
        HostError: the launch could not be made on this machine.
    """
    session, journal, stored = claim(path)
    search = reveal(session, stored)
    proposal = _proposal(session, journal, search)
    if proposal.config is None:
        raise NotFoundWorking(
            f"there is nothing to confirm: {proposal.say}",
            hint=hint("triage", "recommend", session.path),
        )
    session.forget(CONFIRMATION)
    exchanges: list[Exchange] = []
    ready: list[float] = []
    started = time.monotonic()

    def ask(server: Server) -> None:
        ready.append(time.monotonic() - started)
        for prompt in PROMPTS:
            first, second = (server.generate(prompt, TOKENS) for _ in range(2))
            exchanges.append(Exchange(prompt=prompt, answers=(first, second)))

    folder = session.trial_folder(1, name="confirmation")
    result: TrialResult | None = None
    try:
        unset = search.recipe.problem.unset_env(proposal.items)
        result = launch_once(
            search.setup, proposal.config, folder, unset=unset, while_ready=ask, say=say
        )
        reason = _why_not(result)
    except OSError as error:  # of a request: the launch itself raises errors of ours
        reason = f"the server did not answer a request: {error}"
    shown = Confirmation(
        config=proposal.config,
        ready_s=round(ready[0], 2) if ready else None,
        exchanges=tuple(exchanges),
        folder=str(folder.relative_to(session.path)),
        simulated=session.facts["simulated"],
        provenance=provenance_of(result.diagnosis) if result else "launched",
        reason=reason,
        items=proposal.items,
    )
    session.write(CONFIRMATION, confirmation_document(shown))
    return session, shown


def proposed_command(path: Path) -> str:
    """The command that `confirm` would launch, less the port that triage adds."""
    session, journal, search = reopen(path)
    proposal = _proposal(session, journal, search)
    if proposal.config is None:
        raise NotFoundWorking(proposal.say, hint=hint("triage", "recommend", session.path))
    return shlex.join([*search.setup.program, *argv(proposal.config)])


def _why_not(result: TrialResult) -> str:
    """Why a launch confirms nothing; "" if it came up and stayed up."""
    failure = result.diagnosis.cause or result.diagnosis.fingerprint or "no line says why"
    match result.capture.outcome:
        case Ready():
            return ""
        case Crashed():
            return f"the launch failed this time ({failure})"
        case Hung(silent_s=silent):
            return f"the launch fell silent for {silent:.0f} s ({failure})"
        case Interrupted(by=by):
            return f"the launch was interrupted by {by}"


def write_runbook(path: Path) -> tuple[SessionFolder, str]:
    """The runbook as Markdown, from everything that the session holds.

    Raises:
        NothingError: no trial has finished yet.
        HostError: another triage works in the session.
    """
    session, journal, search = claim(path)
    proposal = _proposal(session, journal, search)
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
