"""Modelled throughput: of the baseline, of each option against it, and the curves of a figure.

In:  a Situation and layouts. Out: Baseline, Gain, Hypothesis, Curve.
Not: chances and hours (options.py), the decision (decide.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from triage.core.advice.values import Baseline, Curve, Gain, Hypothesis, Rules, Situation
from triage.core.physics.layout import Layout, Load, Reduce
from triage.core.physics.model import Model, kv_bytes_per_token, replicated_bytes, weight_bytes
from triage.core.physics.regime import hbm_share, regime
from triage.core.physics.step import step

USABLE = 0.9  # of the memory: the rest is for activations, graphs and communication
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def baseline(about: Situation, layout: Layout) -> tuple[Baseline, ...]:
    """What the baseline does at each shown concurrency without speculation."""
    return tuple(_baseline(about, layout, concurrency) for concurrency in about.shown)


def _baseline(about: Situation, layout: Layout, concurrency: int) -> Baseline:
    load = served_load(about, concurrency)
    made = step(about.model, about.node, layout, load)
    return Baseline(
        concurrency=concurrency,
        step_s=made.seconds,
        tokens_per_s=concurrency / made.seconds,
        regime=regime(made, about.node).value,
        hbm_share=hbm_share(made, about.node, made.seconds),
        terms_s=(
            ("layers_s", made.layers_s),
            ("dense_s", made.dense_s),
            ("experts_s", made.experts_s),
            ("kv_s", made.kv_s),
            ("link_s", made.link_s),
            ("alltoall_s", made.alltoall_s),
            ("prefill_s", made.prefill_s),
        ),
        fits=fits(about.model, about, layout, load),
    )


def served_load(about: Situation, concurrency: float, verify_tokens: int = 1) -> Load:
    """The load as a server has it: the prompts of new sequences interrupt decoding."""
    return replace(about.load(concurrency, verify_tokens), prefill=True)


def fits(model: Model, about: Situation, layout: Layout, load: Load) -> bool:
    """Whether weights and the context of the load have room in the memory of the GPUs."""
    gpus = layout.gpus
    context = load.concurrency * load.context_tokens
    each = kv_bytes_per_token(model, layout.tensor_parallel, load.context_tokens)
    weights = weight_bytes(model) / gpus
    kv = context * each / layout.pipeline_parallel
    if layout.attention_data_parallel:
        weights += replicated_bytes(model) * (1 - 1 / layout.tensor_parallel)
        each = kv_bytes_per_token(model, 1, load.context_tokens)
        kv = context * each / gpus
    return weights + kv <= USABLE * about.node.gpu.hbm_bytes


def trees(about: Situation, rules: Rules) -> tuple[int, ...]:
    """Verified tokens to look at: none, and with speculation those of its tree."""
    if not about.speculation:
        return (1,)
    told = about.verify_tokens
    return (1, rules.usual_tree_tokens) if told is None else tuple(sorted({1, told}))


def gain(
    about: Situation, rules: Rules, old: Layout, new: Layout, concurrency: int, *,
    model: Model | None = None,
) -> Gain:  # fmt: skip
    """Throughput of `new` over `old` at one concurrency, of the target's decode steps alone.

    `model` is set if the option changes the model, too. The acceptance is the same in both,
    so it falls out. Prompts, drafting and host work are in neither: they dilute every gain.
    """
    ratios = {}
    for tokens in trees(about, rules):
        load = about.load(concurrency, tokens)
        before = _seconds(about, about.model, old, load)
        ratios[tokens] = before / _seconds(about, model or about.model, new, load)
    usual = max(ratios)
    made = step(model or about.model, about.node, new, about.load(concurrency, usual))
    return Gain(
        concurrency=concurrency,
        ratio=ratios[usual],
        low=min(ratios.values()),
        high=max(ratios.values()),
        regime=regime(made, about.node).value,
    )


def _seconds(about: Situation, model: Model, layout: Layout, load: Load) -> float:
    made = step(model, about.node, layout, load)
    return made.seconds - made.draft_s


def served_range(
    about: Situation, rules: Rules, old: Layout, new: Layout, model: Model | None = None
) -> tuple[float, float]:
    """Least and largest gain over the served concurrencies, as shares: 0.06 is 6 %."""
    found = [gain(about, rules, old, new, c, model=model) for c in about.served]
    return min(g.low for g in found) - 1, max(g.high for g in found) - 1


def lifted(about: Situation, rules: Rules, old: Layout, new: Layout) -> Hypothesis | None:
    """What the option would bring if whole experts made their kernel reach more of the memory."""
    reached = about.node.reach.expert_share
    if not new.expert_parallel or old.expert_parallel or reached >= rules.lifted_expert_share:
        return None
    better = replace(new, expert_share=rules.lifted_expert_share)
    low, high = served_range(about, rules, old, better)
    return Hypothesis(
        say=f"if EP lifts the expert kernel from {reached:.2f} to"
        f" {rules.lifted_expert_share:.2f} of the memory's rate",
        low=low,
        high=high,
        shown_by="a benchmark of the engine's own kernel; `triage probe moe-kernel` has torch's",
    )


def worth_again(
    about: Situation, rules: Rules, old: Layout, new: Layout
) -> tuple[int | None, int | None]:
    """From which concurrency, and from which context at the most served one, `new` is worth it.

    None where it is not within 16,384 sequences, or 256k tokens.
    """
    enough = 1 + rules.worth_share
    from_concurrency = next(
        (c for c in _doubling(1, 16384) if gain(about, rules, old, new, c).low >= enough), None
    )
    most = max(about.served)
    longer = (
        (tokens, replace(about, input_tokens=float(tokens), output_tokens=1024.0))
        for tokens in _doubling(1024, 262144)
    )
    from_context = next(
        (t for t, other in longer if gain(other, rules, old, new, most).low >= enough), None
    )
    return from_concurrency, from_context


def _doubling(first: int, last: int) -> Iterable[int]:
    while first <= last:
        yield first
        first *= 2


def usual_layouts(about: Situation, layout: Layout) -> tuple[tuple[str, Layout], ...]:
    """The layouts of the figure on as many GPUs as the baseline has."""
    gpus = layout.gpus
    plain = Layout(tensor_parallel=gpus, graphs=layout.graphs)
    found = [(f"TP{gpus}", plain)]
    if about.node.gpu.multicast and gpus > 1:
        found.append((f"TP{gpus} + NVLS", replace(plain, reduce=Reduce.MULTICAST)))
    if about.model.experts and gpus > 1 and about.model.experts % gpus == 0:
        found.append((f"EP{gpus}", replace(plain, expert_ranks=gpus)))
        found.append((f"DP attention + EP{gpus}", data_parallel(plain)))
    return tuple(found)


def data_parallel(layout: Layout) -> Layout:
    """The layout with data-parallel attention, and tokens sent to their experts."""
    return replace(
        layout, attention_data_parallel=True, expert_ranks=layout.tensor_parallel, alltoall=True,
        reduce=Reduce.CUSTOM,
    )  # fmt: skip


def curves(about: Situation, layout: Layout) -> tuple[Curve, ...]:
    """Throughput without speculation over concurrency, as far as it fits in memory."""
    found = []
    for name, one in usual_layouts(about, layout):
        loads = [(c, served_load(about, c)) for c in sorted({*CURVE, *about.shown})]
        points = tuple(
            (c, c / _seconds(about, about.model, one, load))
            for c, load in loads
            if fits(about.model, about, one, load)
        )
        found.append(Curve(name=name, points=points))
    return tuple(found)
