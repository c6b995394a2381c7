"""A step: never faster than the hardware allows, monotone where physics is, and its limits named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_data import model, node

from triage.core.physics.layout import Layout, Load, Reduce
from triage.core.physics.model import Model
from triage.core.physics.node import Node
from triage.core.physics.regime import Regime, hbm_share, regime
from triage.core.physics.step import step
from triage.core.physics.throughput import relative, tokens_per_s

MODELS = [model(n) for n in ("Kimi-K2.6", "DeepSeek-R1", "Qwen3-235B-A22B-FP8", "gpt-oss-120b")]
GPUS = ["A100", "H100", "H200", "B200", "B300", "RTX PRO 6000"]
LAYOUTS = st.builds(
    Layout,
    tensor_parallel=st.sampled_from([1, 2, 4, 8]),
    expert_ranks=st.sampled_from([1, 2, 4, 8]),
    attention_data_parallel=st.booleans(),
    alltoall=st.booleans(),
    reduce=st.sampled_from(list(Reduce)),
    graphs=st.booleans(),
)
LOADS = st.builds(
    Load,
    concurrency=st.integers(1, 4096).map(float),
    input_tokens=st.integers(1, 100_000).map(float),
    output_tokens=st.integers(1, 8192).map(float),
    verify_tokens=st.integers(1, 64),
    prefill=st.booleans(),
)
SITUATIONS = st.tuples(st.sampled_from(MODELS), st.sampled_from(GPUS).map(node), LAYOUTS, LOADS)


@given(SITUATIONS)
def test_no_step_beats_the_bandwidth_or_the_arithmetic(
    situation: tuple[Model, Node, Layout, Load],
) -> None:
    one, machine, layout, load = situation
    made = step(one, machine, layout, load)
    assert made.seconds >= made.limit_s
    assert made.seconds >= made.hbm_bytes / machine.gpu.hbm_bytes_per_s
    assert 0 < hbm_share(made, machine, made.seconds) <= 1
    assert tokens_per_s(made, load) <= load.concurrency / made.limit_s


@given(SITUATIONS, st.integers(2, 4))
def test_more_sequences_give_more_in_all_and_less_to_each(
    situation: tuple[Model, Node, Layout, Load], times: int
) -> None:
    one, machine, layout, load = situation
    more = replace(load, concurrency=load.concurrency * times)
    less, much = (step(one, machine, layout, x) for x in (load, more))
    assert much.seconds >= less.seconds * (1 - 1e-9)
    assert much.expert_bytes >= less.expert_bytes * (1 - 1e-9), "the busiest rank reads no less"
    assert much.seconds <= times * less.seconds * (1 + 1e-9)


@given(SITUATIONS)
def test_a_faster_memory_link_or_layer_is_never_slower(
    situation: tuple[Model, Node, Layout, Load],
) -> None:
    one, machine, layout, load = situation
    before = step(one, machine, layout, load).seconds
    gpu = machine.gpu
    for better in (
        replace(machine, gpu=replace(gpu, hbm_bytes_per_s=gpu.hbm_bytes_per_s * 1.5)),
        replace(machine, gpu=replace(gpu, link_bytes_per_s=gpu.link_bytes_per_s * 1.5)),
        replace(machine, reach=replace(machine.reach, layer_s=machine.reach.layer_s * 1.5)),
    ):
        after = step(one, better, layout, load).seconds
        slower = better.reach.layer_s > machine.reach.layer_s
        assert after >= before if slower else after <= before


@given(SITUATIONS)
def test_graphs_and_longer_contexts_go_one_way(
    situation: tuple[Model, Node, Layout, Load],
) -> None:
    one, machine, layout, load = situation
    eager, graphs = (
        step(one, machine, replace(layout, graphs=g), load).seconds for g in (False, True)
    )
    assert eager > graphs
    longer = replace(load, input_tokens=load.input_tokens * 2, prefill=False)
    short = replace(load, prefill=False)
    assert step(one, machine, layout, longer).seconds >= step(one, machine, layout, short).seconds


@settings(max_examples=30)
@given(st.sampled_from(GPUS), st.integers(1, 2048))
def test_expert_parallelism_without_alltoall_never_gains(gpu: str, concurrency: int) -> None:
    plain = Layout(tensor_parallel=8)
    whole = replace(plain, expert_ranks=8)
    ratio = relative(MODELS[0], node(gpu), plain, whole, Load(concurrency=float(concurrency)))
    assert ratio <= 1 + 1e-9


@pytest.mark.parametrize(
    ("concurrency", "verify", "expected"),
    [
        (1, 1, [1.04, 0.90, 0.96, 0.52]), (1, 16, [1.02, 0.86, 1.12, 0.63]), (8, 1, [1.03, 0.85, 1.04, 0.58]),
        (64, 1, [1.01, 0.93, 1.31, 0.80]), (64, 16, [1.06, 1.00, 1.37, 0.96]),
        (256, 1, [1.02, 0.99, 1.35, 0.99]), (1024, 1, [1.03, 1.00, 1.20, 1.43]),
    ],
)  # fmt: skip
def test_layouts_of_the_founding_model_compare_as_documented(
    concurrency: int, verify: int, expected: list[float]
) -> None:
    kimi, machine = MODELS[0], node("B300")
    load = Load(concurrency=float(concurrency), verify_tokens=verify)
    machine = replace(machine, reach=replace(machine.reach, draft_s=0.0))
    plain = Layout(tensor_parallel=8)
    whole = replace(plain, expert_ranks=8)
    layouts = (
        replace(plain, reduce=Reduce.MULTICAST),
        whole,
        replace(whole, expert_share=0.65),
        replace(whole, attention_data_parallel=True, alltoall=True),
    )
    found = [relative(kimi, machine, plain, one, load) for one in layouts]
    assert found == pytest.approx(expected, abs=0.015), (
        "NVLS, EP, EP with a better kernel, DP attention"
    )


def test_few_sequences_wait_for_launches_and_many_for_the_kernel() -> None:
    kimi, machine, plain = MODELS[0], node("B300"), Layout(tensor_parallel=8)
    named = {
        c: regime(step(kimi, machine, plain, Load(concurrency=float(c))), machine)
        for c in (1, 64, 256)
    }
    assert named == {1: Regime.LATENCY, 64: Regime.KERNEL, 256: Regime.KERNEL}


def test_a_node_without_links_waits_for_its_collectives() -> None:
    kimi, slow = MODELS[0], node("RTX PRO 6000")
    made = step(kimi, slow, Layout(tensor_parallel=8), Load(concurrency=1.0))
    assert 1 / made.seconds == pytest.approx(69, rel=0.05)


def test_memory_is_named_only_near_its_rate() -> None:
    dense = replace(MODELS[0], experts=0, dense_intermediate=200_000, layers=8, window_layers=0)
    machine = node("B300")
    fast = replace(machine, reach=replace(machine.reach, dense_share=0.9, layer_s=20e-6))
    made = step(dense, fast, Layout(tensor_parallel=1), Load(concurrency=1.0))
    assert regime(made, fast) is Regime.HBM
    assert hbm_share(made, fast, made.seconds) > 0.6
