"""From a finished search to its proposal and its proof.

In:  a session folder. Out: Recommendation, Confirmation.
Not: searching (search.py) or the document (runbook.py).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

from triage.core.config import argv
from triage.core.handover.confirmation import Confirmation, Exchange
from triage.core.launch import Crashed, Hung, Interrupted, Ready
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Problem
from triage.errors import NotFoundWorking, NothingError, hint
from triage.launch import Server
from triage.render.search_documents import confirmation_document
from triage.session.logs import causes
from triage.session.search import Search
from triage.session.stored import claim, reopen, reveal
from triage.session.trial import TrialResult, launch_once, provenance_of
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
    return session, search.recipe.problem, proposal_of(session, journal, search)


def proposal_of(session: SessionFolder, journal: Journal, search: Search) -> Recommendation:
    """The proposal of a session that was read; raises NothingError if it holds no trial."""
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
    proposal = proposal_of(session, journal, search)
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
    proposal = proposal_of(session, journal, search)
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
