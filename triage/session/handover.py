"""From a finished search to its proposal and its proof.

In:  a session folder. Out: Recommendation, Confirmation.
Not: searching (search.py) or the document (runbook.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from triage.core.config import Config, argv
from triage.core.handover.confirmation import Confirmation
from triage.core.redact import redact_text, redact_words
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Seen
from triage.errors import NotFoundWorking, NothingError, hint
from triage.launch.load import Load
from triage.recipe import Confirm
from triage.render.confirmation import confirmation_document
from triage.session.confirm import Candidate, Wish, prove
from triage.session.logs import causes
from triage.session.search import Search
from triage.session.stored import claim, reopen, reveal
from triage.store import Journal, SessionFolder

CONFIRMATION = "confirmation.json"


def proposal_of(session: SessionFolder, journal: Journal, search: Search) -> Recommendation:
    """The proposal of a session that was read; raises NothingError if it holds no trial."""
    if not journal.entries:
        raise NothingError(
            f"{session.path} holds no finished trial",
            hint=hint("triage", "bisect", "--session", session.path),
        )
    return recommend(search.recipe.problem, journal.entries, causes())


def confirm(
    path: Path, wish: Callable[[Confirm], Wish], say: Callable[[str], None]
) -> tuple[SessionFolder, Confirmation]:
    """Launch the proposal and check what it does; `wish` makes it of what the recipe asks for.

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
    candidate = Candidate(
        setup=search.setup,
        config=proposal.config,
        unset=search.recipe.problem.unset_env(proposal.items),
        items=proposal.items,
        simulated=session.facts["simulated"],
        flaky=_may_be_flaky(search, journal),
        command=_shown_command(search, proposal.config),
    )
    shown = prove(session, candidate, wish(search.recipe.confirm), say)
    session.write(CONFIRMATION, confirmation_document(shown))
    return session, shown


def wish_of(asked: Confirm, repeat: int | None = None) -> Wish:
    """What a recipe's `confirm` asks for."""
    return Wish(
        repeat=repeat,
        levels=asked.concurrency,
        load=Load(requests=asked.requests, tokens=asked.tokens),
        any_text=asked.any_text,
    )


def _may_be_flaky(search: Search, journal: Journal) -> bool:
    """Whether starts of this session failed by chance, or are said to."""
    transient = {cause.id for cause in causes() if cause.transient}
    return search.recipe.problem.noise.transient > 0 or any(
        entry.seen is Seen.UNRESOLVED and any(name in entry.reason for name in transient)
        for entry in journal.entries
    )


def _shown_command(search: Search, config: Config) -> str:
    return redact_text(shlex.join(redact_words([*search.setup.program, *argv(config)])))


def proposed_command(path: Path) -> str:
    """The command that `confirm` would launch, less the port that triage adds."""
    session, journal, search = reopen(path)
    proposal = proposal_of(session, journal, search)
    if proposal.config is None:
        raise NotFoundWorking(proposal.say, hint=hint("triage", "recommend", session.path))
    return shlex.join([*search.setup.program, *argv(proposal.config)])
