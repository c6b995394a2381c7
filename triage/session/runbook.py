"""Write up a session: everything that it holds, in one document.

In:  a session folder. Out: the runbook, as Markdown and as a page.
Not: the proposal or the proof (handover.py), or wording (triage.core.handover.runbook).
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from shlex import join as shell_join

from triage.command import read_command, write_command
from triage.core.advice.values import Advice
from triage.core.config import Config, ServerCommand, argv
from triage.core.diagnosis import Diagnosis
from triage.core.handover.confirmation import Confirmation
from triage.core.handover.document import Runbook, with_text
from triage.core.handover.investigation import Investigation, Launch
from triage.core.handover.judged import Assumption
from triage.core.handover.runbook import build_runbook
from triage.core.redact import redact_text
from triage.core.search.recommend import Recommendation
from triage.core.trials import Entry, Problem
from triage.core.wording import braces
from triage.errors import TriageError, UsageError, hint
from triage.render.confirmation import confirmation_of
from triage.render.html import page
from triage.render.markdown import markdown
from triage.session.diff import of_log
from triage.session.evidence import read_evidence
from triage.session.excerpt import Excerpt, excerpt
from triage.session.handover import CONFIRMATION, proposal_of
from triage.session.logs import causes, flag_table
from triage.session.probe import stored_probes, with_probes
from triage.session.reports import redactor
from triage.session.search import Search, searched_entry
from triage.session.stored import claim
from triage.session.trial import stored_diagnosis
from triage.store import SessionFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """One document in both its forms."""

    markdown: str
    html: str


def write_runbook(path: Path, *, share: bool = False) -> tuple[SessionFolder, Pages]:
    """The runbook of a session, from everything that it holds.

    Secrets are taken out; with `share` the names of machines, people and addresses, too.

    Raises:
        NothingError: no trial has finished yet.
        HostError: another triage works in the session.
    """
    session, found = investigation(path)
    book = with_text(build_runbook(found), redact_text)
    if share:
        book = without_names(book)
    facts = session.facts
    footer = (
        f"Written by triage {version('sglang-triage')} from a session of "
        f"{facts.get('created', 'unknown date')[:16].replace('T', ' ')}. "
        + (
            "Names of machines, people and addresses are stand-ins."
            if share
            else "It names machines and paths as they are; `triage runbook --share` takes them out."
        )
    )
    return session, Pages(markdown=markdown(book), html=page(book, footer=footer))


def without_names(book: Runbook) -> Runbook:
    """The document as it may leave this machine: equal names, equal stand-ins."""
    clean = redactor()

    def learn(text: str) -> str:
        clean.text(text)
        return text

    with_text(book, learn)  # a name is known from one place, and goes at all of them
    return with_text(book, clean.text)


def investigation(path: Path) -> tuple[SessionFolder, Investigation]:
    """Everything that a session found, as a value."""
    session, journal, search = claim(path)
    proposal = proposal_of(session, journal, search)
    base, old, new, language = _commands(search, proposal)
    searched = searched_entry(journal.entries)
    problem = search.recipe.problem
    failed = _launch(session, searched, problem) if searched else None
    proof = next((e for e in journal.entries if e.number == proposal.proof), None)
    quoted = _excerpt(session, searched, failed.diagnosis) if searched and failed else Excerpt()
    return session, Investigation(
        problem=problem,
        journal=tuple(journal.entries),
        recommendation=proposal,
        diagnosis=failed.diagnosis if failed else None,
        diagnosed=searched.items if searched else None,
        confirmation=_confirmation(session, proposal),
        causes=causes(),
        base_command=base,
        old_command=old,
        new_command=new,
        command_language=language,
        program=search.recipe.command,
        cwd=_needed_folder(search),
        session=str(path),
        assumptions=(
            *search.recipe.assumptions,
            *(Assumption(say=n, evidence="the commands' text") for n in search.recipe.notes),
        ),
        reported=search.recipe.reported,
        worth=search.recipe.worth,
        doubts=search.recipe.not_shown,
        advice=_advice(path),
        context=quoted.lines,
        launches=tuple(
            launch
            for launch in (failed, _launch(session, proof, problem) if proof else None)
            if launch is not None
        ),
        environment=_environment(session, search, searched, failed),
        evidence=tuple(
            (entry.number, kept)
            for entry in (searched, proof if proof is not searched else None)
            if entry is not None
            and (kept := read_evidence(trial_log(session, entry).parent)) is not None
        ),
    )


def _advice(path: Path) -> Advice | None:
    """The advice on the session; None where model or GPU are not known."""
    from triage.session.advise import advise_session

    try:
        return advise_session(path)
    except TriageError:
        return None


def _launch(session: SessionFolder, entry: Entry, problem: Problem) -> Launch | None:
    """A launch to be drawn; None if its log is gone, or there never was one."""
    if not trial_log(session, entry).is_file():
        return None
    told = _diagnosis(session, entry)
    root = told.root
    at = excerpt(trial_log(session, entry), root.line if root else 0, root.text if root else "")
    ended = at.at_s if told.root and told.outcome == "failed" else at.end_s
    what = braces(entry.items, problem) if entry.items else "the baseline"
    how = "came up" if told.outcome == "healthy" else "failed"
    return Launch(what=f"trial {entry.number}, {what}, which {how}", diagnosis=told, ended_s=ended)


def _excerpt(session: SessionFolder, entry: Entry, told: Diagnosis) -> Excerpt:
    if told.root is None:
        return Excerpt()
    return excerpt(trial_log(session, entry), told.root.line, told.root.text)


def _environment(
    session: SessionFolder, search: Search, entry: Entry | None, failed: Launch | None
) -> tuple[tuple[str, str], ...]:
    """What the launches ran on, as far as the session and the failed launch's log know it."""
    facts, recipe = session.facts, search.recipe
    told = failed.diagnosis if failed else None
    side = of_log(trial_log(session, entry)) if entry and failed else None
    rows = [
        ("session", str(session.path)),
        ("begun", str(facts.get("created", ""))[:19].replace("T", " ")),
        ("engine", "the replay engine (simulated)" if search.replay else recipe.engine),
        ("engine version in the log", told.engine_version or "not printed" if told else ""),
        *sorted(side.versions.items() if side else ()),
        ("flags read with the table of", recipe.engine_version),
        ("launched as", recipe.target),
        ("program", shell_join(recipe.command)),
        ("variables", shell_join(f"{n}={v}" for n, v in recipe.env)),
        *((f"probe {p.probe}", " ".join(p.meaning)) for p in stored_probes(session)),
        ("triage", version("sglang-triage")),
        ("machine", f"{platform.system()} {platform.release()}, {platform.machine()}"),
    ]
    return tuple((name, value) for name, value in rows if value)


def trial_log(session: SessionFolder, entry: Entry) -> Path:
    """The raw log of a finished trial; it may be gone."""
    return session.path / "trials" / f"{entry.number:03d}" / "server.log"


def _needed_folder(search: Search) -> str:
    """The folder of the launches, if a word of the command is a path relative to it."""
    words = (*search.recipe.command, *argv(search.recipe.problem.baseline))
    folder = search.recipe.cwd
    relative = [w for w in words if not w.startswith(("-", "/")) and (folder / w).exists()]
    return str(folder) if relative and search.replay is None else ""


def _diagnosis(session: SessionFolder, entry: Entry) -> Diagnosis:
    """The diagnosis of a finished trial, from its raw log and how the launch ended."""
    log = trial_log(session, entry)
    return with_probes(session, stored_diagnosis(log.parent))


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
