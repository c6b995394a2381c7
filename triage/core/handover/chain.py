"""Several faults in series: which proposal to launch next, within a budget.

In:  the proposals of each failure, in the order in which the launches showed them.
Out: the next proposal, or why there is none.
Not: launching (triage.session) or making proposals (propose.py).

A launch that fails in another way has come further: its failure lies behind the first
one. It becomes the next link, and its proposals are edits of the configuration that got
there. One that fails as before, or earlier, teaches that its proposal does not help: the
next option is tried, and when a link has none left, the link before it is taken up again.
"""

from __future__ import annotations

from dataclasses import replace

from triage.core.config import Config
from triage.core.handover.proposals import Proposal, Proposals
from triage.core.phases import order
from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One failure on the way: its proposals, and how many of the launchable ones were tried."""

    found: Proposals
    taken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to launch next: the option of the last link."""

    proposal: Proposal
    config: Config
    fault: int  # which failure in the series it is against, from 1
    launch: int  # which launch of the chain it will be, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why nothing is launched any more: came-up, budget or nothing-left; `say` is a sentence."""

    reason: str
    say: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The way so far. `budget` is the most launches; `launched` holds every config that was tried.

    `started` is the configuration that came up, if one did.
    """

    links: tuple[Link, ...]
    budget: int = 6
    launched: tuple[Config, ...] = ()
    started: Config | None = None


def begin(found: Proposals, *, budget: int = 6) -> Chain:
    """The chain of a failed launch, which is not counted in the budget."""
    known = () if found.config is None else (found.config,)
    return Chain(links=(Link(found=found),), budget=budget, launched=known)


def launches(chain: Chain) -> int:
    """How many launches the chain has spent."""
    first = chain.links[0].found.config is not None if chain.links else False
    return len(chain.launched) - int(first)


def next_step(chain: Chain) -> Step | Stop:
    """The next launch, or why there is none. The same chain gives the same answer."""
    if chain.started is not None:
        return Stop(reason="came-up", say="the last launch came up")
    spent = launches(chain)
    if spent >= chain.budget:
        return Stop(reason="budget", say=f"the budget of {chain.budget} launches is spent")
    for number in range(len(chain.links), 0, -1):
        link = chain.links[number - 1]
        for option in link.found.launchable[link.taken :]:
            if option.config is not None and option.config not in chain.launched:
                return Step(proposal=option, config=option.config, fault=number, launch=spent + 1)
    return Stop(reason="nothing-left", say="every proposal that a launch can try was tried")


def came_up(chain: Chain, step: Step) -> Chain:
    """The chain after the step's launch came up."""
    return replace(chain, launched=(*chain.launched, step.config), started=step.config)


def failed(chain: Chain, step: Step, found: Proposals) -> Chain:
    """The chain after the step's launch failed, too.

    Args:
        chain: As it was when `next_step` gave the step.
        step: What was launched.
        found: The proposals of the new failure, edits of the step's configuration. None of
            its options can win the launch back unless it lies behind the earlier failures.
    """
    links = chain.links[: step.fault]
    last = links[-1]
    at = last.found.launchable.index(step.proposal)
    links = (*links[:-1], replace(last, taken=at + 1))
    seen = {link.found.signature for link in links}
    further = order(found.phase) >= order(last.found.phase)
    if found.signature not in seen and further:
        links = (*links, Link(found=found))
    return replace(chain, links=links, launched=(*chain.launched, step.config))
