"""The advice on the founding case, and on situations in which it must be another one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from physics_data import model, node

from triage.core.advice.advise import advise
from triage.core.advice.flags import layout_of, not_modelled, verify_tokens
from triage.core.advice.gains import baseline
from triage.core.advice.values import Advice, Chance, Option, Reported, Situation, Status
from triage.core.config import Config, SetEnv, SetFlag
from triage.core.physics.layout import Reduce
from triage.core.trials import Item, Problem
from triage.knowledge.physics import alternatives, chance_of, rules

BASE = {"model-path": "/models/Kimi-K2.6", "tp-size": "8", "speculative-algorithm": "DDTREE"}
SOURCE = "reported by the founding case"
FIGURES = (
    Reported(concurrency=1, tokens_per_s=285, source=SOURCE),
    Reported(concurrency=64, tokens_per_s=3795, source=SOURCE),
    Reported(
        concurrency=1, tokens_per_s=132.6, source=SOURCE, without=("speculative-algorithm",)
    ),
)  # fmt: skip
WORKS = (Status.WORKS, Chance(share=1.0, hours=0.5, why="it starts"))


def fails(*causes: str) -> tuple[Status, Chance]:
    return Status.FAILS, chance_of(causes)


SEEN = {
    "ep-size": fails("nonetype-capture-batch-field", "cublas-mla-absorb-bmm"),
    "enable-nccl-nvls": WORKS,
    "enable-flashinfer-allreduce-fusion": fails("flashinfer-allreduce-rendezvous-hang"),
}
UNTRIED = dict.fromkeys(SEEN, (Status.UNTRIED, chance_of(())))


def problem(flags: dict[str, str] | None = None) -> Problem:
    return Problem(
        name="kimi",
        baseline=Config.of({**BASE, **(flags or {})}),
        items=(
            Item(key="ep-size", change=SetFlag("ep-size", "8")),
            Item(key="enable-nccl-nvls", change=SetFlag("enable-nccl-nvls", value=True)),
            Item(
                key="enable-flashinfer-allreduce-fusion",
                change=SetFlag("enable-flashinfer-allreduce-fusion", value=True),
            ),
        ),
    )


def situation(
    served: tuple[int, ...] = (1, 64),
    figures: tuple[Reported, ...] = FIGURES,
    *,
    speculation: bool = True,
) -> Situation:
    kimi, machine = model(), node("B300")
    nvfp4 = replace(kimi, expert_format="nvfp4")
    return Situation(
        name="kimi", model=kimi, node=machine, model_source="test", node_source="test",
        served=served, shown=served, input_tokens=1024.0, output_tokens=1024.0,
        speculation=speculation, verify_tokens=None if speculation else 1, reported=figures,
        alternatives=alternatives(), nvfp4=(nvfp4, 0.75),
    )  # fmt: skip


def option(advice: Advice, key: str) -> Option:
    return next(o for o in advice.options if o.key == key)


@pytest.fixture(params=["launched", "recipe alone"])
def founding(request: pytest.FixtureRequest) -> Advice:
    chances = SEEN if request.param == "launched" else UNTRIED
    return advise(situation(), rules(), problem(), chances)


def test_ep_gains_nothing_or_loses_unless_it_lifts_its_kernel(founding: Advice) -> None:
    expert = option(founding, "ep-size")
    assert expert.high is not None
    assert expert.low is not None
    assert expert.high <= 0
    assert -0.17 < expert.low < -0.10
    assert expert.hypothesis is not None
    assert round(expert.hypothesis.high * 100) == 37
    assert "lifts the expert kernel" in expert.hypothesis.say
    assert "triage probe moe-kernel" in expert.hypothesis.shown_by


def test_nvls_gains_one_to_six_percent(founding: Advice) -> None:
    nvls = option(founding, "enable-nccl-nvls")
    assert nvls.low is not None
    assert nvls.high is not None
    assert (round(nvls.low * 100), round(nvls.high * 100)) == (1, 6)


def test_bound_by_the_memory_is_not_shown(founding: Advice) -> None:
    claim = founding.bandwidth
    assert not claim.shown
    assert (round(claim.low * 100), round(claim.high * 100)) == (7, 24)
    assert claim.say.startswith("not shown: 7-24 %")
    assert "DRAM_ACTIVE" in claim.shown_by


def test_the_decision_is_to_pivot_and_keep_what_works(founding: Advice) -> None:
    decision = founding.decision
    assert decision.kind == "pivot"
    assert decision.say.startswith(
        "pivot: keep tp-size 8, enable-nccl-nvls and speculative-algorithm DDTREE; stop work on ep-size"
    )
    assert decision.next == "nvfp4"
    chosen = option(founding, decision.next)
    assert "accuracy" in chosen.risk
    assert chosen.high is not None
    assert chosen.high > 0.3
    assert [what for what, _ in decision.stop][:1] == ["ep-size 8"]


def test_it_says_when_ep_is_worth_it_again(founding: Advice) -> None:
    said = next(s for s in founding.decision.changed_by if "DP attention" in s)
    assert "512 sequences" in said
    assert "more than 8 GPUs" in said
    assert any("expert kernel" in s for s in founding.decision.changed_by)


def test_fusion_on_top_of_nvls_is_less_than_a_benchmark_shows(founding: Advice) -> None:
    why = dict(founding.decision.stop)["enable-flashinfer-allreduce-fusion"]
    assert "less than a benchmark shows" in why


def test_figures_are_held_against_the_model(founding: Advice) -> None:
    one, many, alone = founding.comparisons
    assert one.accepted[0][1] == pytest.approx(3.2, abs=0.1)
    assert one.accepted[-1][1] == pytest.approx(5.5, abs=0.1)
    assert many.modelled_tokens_per_s == pytest.approx(2452, rel=0.005)
    assert many.ratio == pytest.approx(1.55, abs=0.01)
    assert not alone.speculation
    assert "9 % slower than modelled" in alone.say


def test_two_faults_in_series_are_less_likely_repaired_than_one() -> None:
    one = chance_of(["nonetype-capture-batch-field"])
    two = chance_of(["nonetype-capture-batch-field", "cublas-mla-absorb-bmm"])
    assert two.share == pytest.approx(one.share * 0.15)
    assert chance_of([None]).share == 0.15
    assert chance_of(["flashinfer-version-mismatch"]).share == 0.8


def test_a_slow_server_is_told_to_look_for_queueing_first() -> None:
    slow = (Reported(concurrency=64, tokens_per_s=663, source="test"),)
    made = advise(situation(figures=slow, speculation=False), rules(), problem(), UNTRIED)
    assert made.comparisons[0].slow
    assert made.comparisons[0].say == "3.7x slower than physics: look for queueing first"
    assert made.decision.changed_by[0].startswith("64 sequences: 3.7x slower than physics")
    # What queueing slows down says nothing of the memory.
    assert made.bandwidth.say.endswith("modelled")


def test_a_blocked_flag_that_brings_much_is_worth_more_attempts() -> None:
    many = problem({"dp-size": "8", "moe-a2a-backend": "deepep"})
    data = Item(
        key="enable-dp-attention", change=SetFlag("enable-dp-attention", value=True), weight=1.0
    )
    wanted = replace(many, items=(data,))
    chances = {"enable-dp-attention": fails("flashinfer-version-mismatch")}
    about = replace(situation((2048,), ()), nvfp4=None)
    made = advise(about, rules(), wanted, chances)
    assert made.decision.kind == "persevere"
    assert made.decision.next == "enable-dp-attention"
    assert 1 <= made.decision.launches <= rules().launches_at_most
    assert made.decision.say.startswith("persevere with enable-dp-attention")


def test_what_is_not_modelled_is_said_and_not_guessed() -> None:
    other = Item(key="enable-mixed-chunk", change=SetFlag("enable-mixed-chunk", value=True))
    variable = Item(key="env:A", change=SetEnv("A", "1"))
    one = replace(problem(), items=(other, variable))
    chances = dict.fromkeys(("enable-mixed-chunk", "env:A"), (Status.UNTRIED, chance_of(())))
    made = advise(situation(), rules(), one, chances)
    assert made.not_modelled == ("enable-mixed-chunk", "env:A")
    assert option(made, "enable-mixed-chunk").low is None
    assert option(made, "env:A").gains == ()
    assert made.decision.kind == "pivot", "an alternative is modelled"
    assert made.decision.not_judged == ("enable-mixed-chunk", "A=1")
    assert made.decision.stop == ()


def test_with_nothing_modelled_the_flags_are_to_be_measured() -> None:
    other = Item(key="enable-mixed-chunk", change=SetFlag("enable-mixed-chunk", value=True))
    one = replace(problem(), items=(other,))
    about = replace(situation(), alternatives=())
    made = advise(about, rules(), one, {"enable-mixed-chunk": (Status.UNTRIED, chance_of(()))})
    assert made.decision.kind == "persevere"
    assert "launch and measure enable-mixed-chunk" in made.decision.say


def test_dp_attention_is_judged_with_its_width() -> None:
    both = (
        Item(key="enable-dp-attention", change=SetFlag("enable-dp-attention", value=True)),
        Item(key="dp-size", change=SetFlag("dp-size", "8")),
    )
    one = replace(problem(), items=both)
    chances = {i.key: (Status.UNTRIED, chance_of(())) for i in both}
    made = advise(situation((1024,)), rules(), one, chances)
    assert option(made, "enable-dp-attention").gains == option(made, "dp-size").gains != ()


def test_an_option_that_the_node_has_no_use_for_is_not_offered() -> None:
    about = replace(situation(), nvfp4=None)
    made = advise(about, rules(), problem(), SEEN)
    keys = {o.key for o in made.options if not o.wanted}
    assert keys == {"dp-attention-ep", "kv-fp8"}
    eager = problem({"disable-cuda-graph": "true"})
    eager = replace(eager, baseline=Config.of({**BASE, "disable-cuda-graph": True}))
    assert "graphs" in {o.key for o in advise(about, rules(), eager, SEEN).options}


def test_a_load_that_does_not_fit_in_memory_is_marked() -> None:
    about = replace(situation((1, 100_000)), node=node("H200"))
    rows = baseline(about, layout_of(problem().baseline))
    assert [row.fits for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"enable-nccl-nvls": True}, Reduce.MULTICAST),
        ({"disable-custom-all-reduce": True}, Reduce.NCCL),
        ({"flashinfer-allreduce-fusion-backend": "auto"}, Reduce.FUSED),
        ({"flashinfer-allreduce-fusion-backend": "none"}, Reduce.CUSTOM),
        (
            {"enable-flashinfer-allreduce-fusion": True, "enable-nccl-nvls": True},
            Reduce.FUSED_MULTICAST,
        ),
    ],
)
def test_flags_choose_the_all_reduce(flags: dict[str, str | bool], expected: Reduce) -> None:
    assert layout_of(Config.of({"tp-size": "8", **flags})).reduce is expected


def test_flags_choose_the_layout() -> None:
    made = layout_of(
        Config.of({
            "tp-size": "8", "dp-size": "8", "enable-dp-attention": True,
            "moe-a2a-backend": "deepep", "cuda-graph-backend-decode": "disabled",
        })
    )  # fmt: skip
    assert made.attention_data_parallel
    assert made.expert_parallel
    assert made.alltoall
    assert not made.graphs
    assert layout_of(Config()).gpus == 1


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, 1), ({"speculative-algorithm": "EAGLE"}, None),
        ({"speculative-algorithm": "EAGLE", "speculative-num-steps": "3"}, 4),
        ({"speculative-algorithm": "EAGLE", "speculative-num-draft-tokens": "16"}, 16),
    ],
)  # fmt: skip
def test_verified_tokens_are_read_from_the_flags(flags: dict[str, str], expected: int) -> None:
    assert verify_tokens(Config.of(dict(flags))) == expected


def test_flags_without_an_effect_on_speed_are_not_called_unmodelled() -> None:
    assert not_modelled(Config.of({"port": "1", "tp-size": "8", "attention-backend": "fa3"})) == (
        "attention-backend",
    )
