"""All stages of an advice in their order.

In:  a Situation, a Problem, what launches showed, rules. Out: Advice.
Not: reading files (triage.session.advise).
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.advice.decide import decide
from triage.core.advice.flags import layout_of, not_modelled
from triage.core.advice.gains import baseline, curves, trees
from triage.core.advice.measured import bandwidth, comparisons
from triage.core.advice.options import alternative_options, wanted_options
from triage.core.advice.values import Advice, Chance, Rules, Situation, Status
from triage.core.trials import Problem


def advise(
    about: Situation, rules: Rules, problem: Problem,
    chances: Mapping[str, tuple[Status, Chance]], *, simulated: bool = False,
) -> Advice:  # fmt: skip
    """What each wanted flag could bring, and what to do next."""
    layout = layout_of(problem.baseline)
    wanted = wanted_options(about, rules, problem, chances)
    options = sorted(
        (*wanted, *alternative_options(about, rules, layout, problem.keys())),
        key=lambda option: (-option.gain_per_hour, not option.wanted, option.key),
    )
    figures = comparisons(about, rules, layout)
    claim = bandwidth(about, rules, layout)
    return Advice(
        situation=about,
        layout=layout,
        baseline=baseline(about, layout),
        options=tuple(options),
        comparisons=figures,
        bandwidth=claim,
        decision=decide(
            about, rules, problem, layout, options=options, figures=figures, claim=claim
        ),
        curves=curves(about, layout),
        assumptions=_assumptions(about, rules),
        not_modelled=not_modelled(problem.config(problem.keys())),
        simulated=simulated,
    )


def _assumptions(about: Situation, rules: Rules) -> tuple[str, ...]:
    found = [
        f"model: {about.model_source}",
        f"GPUs: {about.node_source}",
        f"{about.input_tokens:.0f} tokens in and {about.output_tokens:.0f} out a sequence, no"
        " queueing; gains are those of decode steps: prompts, drafting and host work dilute them",
        "figures are modelled from published constants; nothing was measured for them",
    ]
    if about.speculation and about.verify_tokens is None:
        usual = trees(about, rules)[-1]
        found.append(
            f"the tree of the speculation is not said: {usual} verified tokens a step, and none,"
            f" for gains; {min(rules.tree_tokens)} to {max(rules.tree_tokens)} for figures"
        )
    return tuple(found)
