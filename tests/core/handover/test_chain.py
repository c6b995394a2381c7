"""Faults in series: which proposal is launched next."""

from __future__ import annotations

from triage.core.config import Config, SetFlag
from triage.core.handover.chain import Step, Stop, begin, came_up, failed, launches, next_step
from triage.core.handover.proposals import Basis, Kind, Proposal, Proposals

BASE = Config.of({"model-path": "/m"})


def option(base: Config, name: str) -> Proposal:
    config = Config.of(base.flag_values() | {name: "1"})
    return Proposal(say=name, kind=Kind.ADD, basis=Basis.INFERRED, changes=(SetFlag(name, "1"),),
                    config=config)  # fmt: skip


def failure(
    signature: str, *names: str, base: Config = BASE, phase: str = "graph-capture"
) -> Proposals:
    return Proposals(cause=signature, signature=signature, title="", phase=phase, config=base,
                     options=tuple(option(base, name) for name in names))  # fmt: skip


def step_of(chain: object) -> Step:
    step = next_step(chain)  # type: ignore[arg-type]
    assert isinstance(step, Step)
    return step


def stop_of(chain: object) -> Stop:
    stop = next_step(chain)  # type: ignore[arg-type]
    assert isinstance(stop, Stop)
    return stop


def test_the_best_option_is_launched_first_and_ends_the_chain_if_it_comes_up() -> None:
    chain = begin(failure("a", "x", "y"))
    step = step_of(chain)
    assert (step.proposal.say, step.fault, step.launch) == ("x", 1, 1)
    chain = came_up(chain, step)
    assert chain.started == step.config
    assert stop_of(chain).reason == "came-up"


def test_the_same_failure_again_means_that_the_option_does_not_help() -> None:
    chain = begin(failure("a", "x", "y"))
    chain = failed(chain, step_of(chain), failure("a", "x2"))
    assert step_of(chain).proposal.say == "y"


def test_another_failure_further_on_is_the_next_link() -> None:
    chain = begin(failure("a", "x", "y"))
    step = step_of(chain)
    chain = failed(chain, step, failure("b", "z", base=step.config, phase="warmup-request"))
    step = step_of(chain)
    assert step.fault == 2
    assert step.config.flag_values() == {"model-path": "/m", "x": "1", "z": "1"}


def test_an_earlier_failure_is_no_progress() -> None:
    chain = begin(failure("a", "x", "y"))
    step = step_of(chain)
    chain = failed(chain, step, failure("refused", "w", base=step.config, phase="arg-validation"))
    assert step_of(chain).proposal.say == "y"


def test_when_a_link_has_nothing_left_the_one_before_is_taken_up_again() -> None:
    chain = begin(failure("a", "x", "y"))
    step = step_of(chain)
    chain = failed(chain, step, failure("b", "z", base=step.config))
    step = step_of(chain)
    chain = failed(chain, step, failure("b", base=step.config))
    step = step_of(chain)
    assert (step.proposal.say, step.fault) == ("y", 1)
    chain = failed(chain, step, failure("a", base=step.config))
    assert stop_of(chain).reason == "nothing-left"


def test_two_faults_that_take_turns_do_not_go_round_for_ever() -> None:
    chain = begin(failure("a", "x"), budget=50)
    step = step_of(chain)
    chain = failed(chain, step, failure("b", "y", base=step.config))
    step = step_of(chain)
    chain = failed(chain, step, failure("a", "q", base=step.config))
    assert stop_of(chain).reason == "nothing-left"


def test_the_budget_counts_launches_of_the_chain_only() -> None:
    chain = begin(failure("a", "x", "y", "z"), budget=2)
    for _ in range(2):
        chain = failed(chain, step_of(chain), failure("a"))
    assert launches(chain) == 2
    assert stop_of(chain).reason == "budget"


def test_no_configuration_is_launched_twice() -> None:
    chain = begin(failure("a", "x", "x", "y"))
    chain = failed(chain, step_of(chain), failure("a"))
    assert step_of(chain).proposal.say == "y"
