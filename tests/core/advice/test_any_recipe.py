"""Advice on any configuration: an answer without an exception, within what physics allows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from physics_data import model, node

from triage.core.advice.advise import advise
from triage.core.advice.values import Chance, Reported, Situation, Status
from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetFlag
from triage.core.physics.model import Model
from triage.core.trials import Item, Problem
from triage.core.wording import item_key
from triage.knowledge.physics import alternatives, rules

MODELS = [model(n) for n in ("Kimi-K2.6", "Qwen3-235B-A22B", "gpt-oss-120b", "DeepSeek-R1-NVFP4")]
NAMES = [
    "tp-size", "pp-size", "dp-size", "ep-size", "moe-a2a-backend", "kv-cache-dtype", "x",
    "enable-dp-attention", "enable-nccl-nvls", "disable-cuda-graph", "speculative-algorithm",
    "speculative-num-draft-tokens", "disable-custom-all-reduce", "flashinfer-allreduce-fusion-backend",
]  # fmt: skip
VALUES = st.sampled_from(
    ["1", "2", "4", "8", "0", "-3", "none", "deepep", "fp8_e5m2", "", True, False]
)
FLAGS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(SetFlag, st.sampled_from(NAMES), VALUES),
    st.builds(UnsetFlag, st.sampled_from(NAMES)),
    st.builds(SetEnv, st.sampled_from(["A", "B"]), st.just("1")),
)


@settings(max_examples=60, deadline=None)
@given(
    one=st.sampled_from(MODELS),
    gpu=st.sampled_from(["A100", "H200", "B300", "RTX PRO 6000"]),
    flags=FLAGS,
    changes=st.lists(CHANGES, max_size=4, unique_by=item_key),
    figures=st.lists(st.tuples(st.integers(1, 512), st.floats(1, 1e6)), max_size=2),
    served=st.lists(st.integers(1, 2048), min_size=1, max_size=3, unique=True),
    status=st.sampled_from(list(Status)),
)
def test_any_configuration_gets_an_answer(
    *,
    one: Model,
    gpu: str,
    flags: dict[str, str | bool],
    changes: list[Change],
    figures: list[tuple[int, float]],
    served: list[int],
    status: Status,
) -> None:
    items = tuple(Item(key=item_key(c), change=c) for c in changes)
    problem = Problem(name="any", baseline=Config.of(flags), items=items)
    about = Situation(
        name="any", model=one, node=node(gpu), model_source="t", node_source="t",
        served=tuple(sorted(served)), shown=tuple(sorted(served)), input_tokens=100.0,
        output_tokens=100.0, speculation="speculative-algorithm" in flags, verify_tokens=None,
        reported=tuple(Reported(concurrency=c, tokens_per_s=x, source="t") for c, x in figures),
        alternatives=alternatives(),
    )  # fmt: skip
    chances = {i.key: (status, Chance(share=0.5, hours=1.0, why="t")) for i in items}
    made = advise(about, rules(), problem, chances)
    assert made.decision.kind in ("persevere", "pivot")
    assert made.decision.say.startswith(made.decision.kind)
    assert {o.key for o in made.options if o.wanted} == {i.key for i in items}
    for option in made.options:
        assert option.gain_per_hour >= 0
        assert (option.low is None) == (option.high is None)
        if option.low is not None and option.high is not None:
            assert -1 < option.low <= option.high
    assert all(0 < row.hbm_share <= 1 for row in made.baseline)
    if made.decision.next:
        assert 1 <= made.decision.launches <= rules().launches_at_most
    else:
        assert made.decision.kind == "pivot" or made.decision.not_judged
