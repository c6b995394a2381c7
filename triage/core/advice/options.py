"""The table of options: each wanted flag and each alternative, with gain, chance and hours.

In:  a Situation, the Problem, what launches showed. Out: Options, the best an hour first.
Not: choosing among them (decide.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from triage.core.advice.flags import layout_of, not_modelled, text
from triage.core.advice.gains import data_parallel, gain, lifted, served_range
from triage.core.advice.values import (
    Alternative,
    Chance,
    Gain,
    Hypothesis,
    Option,
    Rules,
    Situation,
    Status,
)
from triage.core.config import Config, SetEnv, UnsetEnv
from triage.core.physics.layout import Layout, Reduce
from triage.core.physics.model import Model
from triage.core.trials import Item, Problem
from triage.core.wording import spell

_SAME = 1e-9
_UNSEEN = 0.005  # an alternative that changes less is not shown
_TOGETHER = (frozenset(["enable-dp-attention", "dp-size"]),)
# The wanted flag that is the alternative itself.
_FLAG = {
    "multicast": "enable-nccl-nvls",
    "dp-attention-ep": "enable-dp-attention",
    "kv-fp8": "kv-cache-dtype",
}
_ROUTING = (
    "experts are chosen independently and evenly: skewed or correlated tokens touch fewer"
    " experts and lie less evenly on the ranks"
)
_SAME_ALLREDUCE = (
    "without an all-to-all backend EP uses the all-reduce of TP: it saves no communication"
)


def wanted_options(
    about: Situation, rules: Rules, problem: Problem,
    chances: Mapping[str, tuple[Status, Chance]],
) -> tuple[Option, ...]:  # fmt: skip
    """One option for each wanted item, in the problem's order.

    Each is held against the baseline. What brings nothing on top of the items that work, or
    of untried ones that promise more, is shown so: of two that shorten the same wait one gains.
    `chances` has what launches showed of each item, and what one more attempt promises.
    """
    base = {key for key, (status, _) in chances.items() if status is Status.WORKS}
    found = {
        item.key: _wanted(about, rules, problem, item, chance=chances[item.key], base=frozenset())
        for item in problem.items
    }
    order = {Status.WORKS: 0, Status.UNTRIED: 1, Status.FAILS: 2}
    for option in sorted(found.values(), key=lambda o: (order[o.status], -o.gain_per_hour, o.key)):
        if option.key in base or not harmless(option, rules):
            continue
        item = next(i for i in problem.items if i.key == option.key)
        on_top = _wanted(about, rules, problem, item, chance=chances[item.key], base=base)
        if not harmless(on_top, rules):
            found[item.key] = on_top
        elif option.status is Status.UNTRIED:
            base = base | {item.key}
    return tuple(found.values())


def harmless(option: Option, rules: Rules) -> bool:
    """Whether it can only gain, and enough to show."""
    return option.low is not None and option.low >= 0 and (option.high or 0) > rules.noise_share


def _wanted(
    about: Situation, rules: Rules, problem: Problem, item: Item, *,
    chance: tuple[Status, Chance], base: AbstractSet[str],
) -> Option:  # fmt: skip
    chosen = _with_needs(problem, {*base, item.key, *_companions(problem, item)})
    before, after = problem.config(base), problem.config(chosen)
    old, new = layout_of(before), layout_of(after)
    changed = _kv_changed(about, before, after)
    if not _is_modelled(problem, item) or (old == new and changed is None):
        return _unmodelled(item, *chance)
    return _option(
        about, rules, (old, new), changed,
        key=item.key, title=spell(item.change), wanted=True, status=chance[0],
        chance=chance[1], hypothesis=lifted(about, rules, old, new), risk="",
        assumptions=_assumptions(old, new),
    )  # fmt: skip


def alternative_options(
    about: Situation, rules: Rules, layout: Layout, wanted: AbstractSet[str]
) -> tuple[Option, ...]:
    """What else than the wanted items could be done on this node, and changes anything."""
    found = []
    for one in about.alternatives:
        if _FLAG.get(one.kind) in wanted:
            continue
        made = _alternative(about, layout, one)
        if made is None:
            continue
        new, model = made
        option = _option(
            about, rules, (layout, new), model,
            key=one.kind, title=one.title, wanted=False, status=Status.UNTRIED,
            chance=one.chance, hypothesis=None, risk=one.risk,
            assumptions=_assumptions(layout, new),
        )  # fmt: skip
        if any(abs(edge - 1) >= _UNSEEN for g in option.gains for edge in (g.low, g.high)):
            found.append(option)
    return tuple(found)


def _alternative(
    about: Situation, layout: Layout, one: Alternative
) -> tuple[Layout, Model | None] | None:
    """The layout and model that it would give; None where it changes nothing here."""
    model = about.model
    splits = model.experts > 0 and layout.gpus > 1 and model.experts % layout.gpus == 0
    match one.kind:
        case "nvfp4" if about.nvfp4 is not None:
            other, share = about.nvfp4
            return replace(layout, expert_share=share), other
        case "dp-attention-ep" if splits and not layout.attention_data_parallel:
            return data_parallel(
                replace(layout, tensor_parallel=layout.gpus, pipeline_parallel=1)
            ), None
        case "kv-fp8" if model.kv_bytes_per_element > 1:
            return layout, replace(model, kv_bytes_per_element=1.0)
        case "graphs" if not layout.graphs:
            return replace(layout, graphs=True), None
        case "multicast" if _could_multicast(about, layout):
            return replace(layout, reduce=Reduce.MULTICAST), None
    return None


def _could_multicast(about: Situation, layout: Layout) -> bool:
    split = layout.tensor_parallel > 1
    return split and about.node.gpu.multicast and layout.reduce is Reduce.CUSTOM


def _option(
    about: Situation, rules: Rules, layouts: tuple[Layout, Layout], model: Model | None, *,
    key: str, title: str, wanted: bool, status: Status, chance: Chance,
    hypothesis: Hypothesis | None, risk: str, assumptions: tuple[str, ...],
) -> Option:  # fmt: skip
    old, new = layouts
    low, high = served_range(about, rules, old, new, model)
    low, high = (0.0 if abs(x) < _SAME else x for x in (low, high))
    gains: tuple[Gain, ...] = tuple(
        gain(about, rules, old, new, c, model=model) for c in about.shown
    )
    expected = max(0.0, (low + high) / 2) * chance.share
    if hypothesis is not None and high <= rules.noise_share:
        chance = replace(
            chance,
            hours=max(chance.hours, rules.hypothesis_hours),
            share=chance.share * rules.hypothesis_chance,
            why=f"{chance.why}; times {rules.hypothesis_chance * 100:.0f} % that"
            f" {hypothesis.say[3:]}",
        )
        expected = max(0.0, hypothesis.high) * chance.share
    return Option(
        key=key, title=title, wanted=wanted, status=status, gains=gains, low=low, high=high,
        hypothesis=hypothesis, chance=chance, gain_per_hour=expected / chance.hours,
        risk=risk, assumptions=assumptions,
    )  # fmt: skip


def _unmodelled(item: Item, status: Status, chance: Chance) -> Option:
    return Option(
        key=item.key, title=spell(item.change), wanted=True, status=status, gains=(),
        low=None, high=None, hypothesis=None, chance=chance, gain_per_hour=0.0,
        assumptions=("not modelled: what it brings has to be measured",),
    )  # fmt: skip


def _is_modelled(problem: Problem, item: Item) -> bool:
    """Whether the model of a step knows what this change changes."""
    if isinstance(item.change, SetEnv | UnsetEnv):
        return False
    name = item.change.name
    return name not in not_modelled(problem.config({item.key})) or name in not_modelled(
        problem.baseline
    )


def _companions(problem: Problem, item: Item) -> set[str]:
    """Wanted items without which this one changes nothing, such as dp-size."""
    together = next((group for group in _TOGETHER if item.key in group), frozenset())
    return set(together & problem.keys())


def _with_needs(problem: Problem, keys: AbstractSet[str]) -> set[str]:
    """The items, and the wanted ones that they need."""
    chosen = set(keys)
    while missing := {needed for _, needed in problem.unmet(chosen)} & problem.keys() - chosen:
        chosen |= missing
    return chosen


def _kv_changed(about: Situation, old: Config, new: Config) -> Model | None:
    """The model with another width of its cache, if the change sets one."""
    before, after = (text(c.get("kv-cache-dtype")) for c in (old, new))
    if before == after:
        return None
    width = 1.0 if after.startswith("fp8") else 0.5 if after.startswith("fp4") else 2.0
    if width == about.model.kv_bytes_per_element:
        return None
    return replace(about.model, kv_bytes_per_element=width)


def _assumptions(old: Layout, new: Layout) -> tuple[str, ...]:
    found = []
    if new.expert_parallel and not old.expert_parallel:
        found.append(_ROUTING)
        if not new.alltoall:
            found.append(_SAME_ALLREDUCE)
    if new.reduce.short and not old.reduce.short:
        found.append("an all-reduce takes 6 us instead of 8; both are assumed")
    return tuple(found)
