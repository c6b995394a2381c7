"""`triage advise` as a user meets it: text, JSON, the figure, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, is_an_error, typed

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes/kimi-k2.6-b300.yaml"
TINY = """\
schema: triage.recipe/1
name: tiny
baseline: {{flags: {{model-path: {model}, tp-size: {tp}}}}}
wanted: [{{flag: ep-size, value: {tp}}}]
"""


def recipe(folder: Path, model: str, tp: int = 8) -> Path:
    path = folder / "r.yaml"
    path.write_text(TINY.format(model=model, tp=tp))
    return path


def test_the_founding_recipe_gets_its_advice(triage: Run) -> None:
    done = triage("advise", RECIPE, "--concurrency", "1,64,1024")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(done.stdout.split())
    for part in (
        "pivot: keep tp-size 8, enable-nccl-nvls and speculative-algorithm DDTREE",
        "next: NVFP4 checkpoint", "up to +37 % only if EP lifts the expert kernel",
        "(not shown)", "+1 to +6 %", 'bound by HBM bandwidth": not shown: 7-24 %',
        "reported by the founding case", "512 sequences at once", "C=1024",
    ):  # fmt: skip
        assert part in text, part


def test_a_session_counts_what_its_launches_showed() -> None:
    from triage.core.advice.values import Status
    from triage.core.search.recommend import Recommendation
    from triage.core.trials import FailingSet
    from triage.recipe import load_recipe
    from triage.session.advise import _chances
    from triage.session.logs import flag_table

    def failing(cause: str | None, *items: str) -> FailingSet:
        return FailingSet(
            items=frozenset(items), signature=cause or "v1:0", cause=cause, title="",
            phase="graph-capture", entry=2,
        )  # fmt: skip

    found = Recommendation(
        reason="found", say="", items=frozenset({"enable-nccl-nvls"}),
        sets=(
            failing("nonetype-capture-batch-field", "ep-size"),
            failing("cublas-mla-absorb-bmm", "ep-size", "enable-nccl-nvls"),
            failing(None, "enable-flashinfer-allreduce-fusion"),
        ),
    )  # fmt: skip
    problem = load_recipe(RECIPE, flag_table()).problem
    chances = _chances(problem, found)
    assert {key: status for key, (status, _) in chances.items()} == {
        "ep-size": Status.FAILS, "enable-nccl-nvls": Status.WORKS,
        "enable-flashinfer-allreduce-fusion": Status.FAILS,
    }  # fmt: skip
    assert chances["ep-size"][1].share == pytest.approx(0.15 * 0.15), "two faults in series"
    assert chances["enable-flashinfer-allreduce-fusion"][1].why.startswith("unnamed: fails of")
    assert _chances(problem, None)["ep-size"][0] is Status.UNTRIED


def test_the_document_fits_its_schema_and_every_constant_has_a_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from jsonschema import Draft202012Validator

    shown = json.loads(typed(capsys, "advise", RECIPE, "--json", "--concurrency", "1,64").stdout)
    schema = json.loads((ROOT / "docs/schema/advice-1.json").read_text())
    assert [e.message for e in Draft202012Validator(schema).iter_errors(shown)] == []
    assert next(iter(shown)) == "schema"
    assert all(c["source"] for c in shown["constants"])
    assert [b["concurrency"] for b in shown["baseline"]] == [1, 64]


def test_a_slow_measurement_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    done = typed(capsys, "advise", RECIPE, "--gpu", "H200", "--measured", "16=302")
    assert "3.6x slower than physics: look for queueing first" in " ".join(done.stdout.split())


def test_a_models_own_config_comes_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    config = {
        "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 1000,
        "intermediate_size": 4096, "num_experts": 16, "num_experts_per_tok": 2,
        "moe_intermediate_size": 512, "num_key_value_heads": 4,
    }  # fmt: skip
    (tmp_path / "m/config.json").write_text(json.dumps(config))
    path = recipe(tmp_path, str(tmp_path / "m"))
    done = typed(capsys, "advise", path, "--gpu", "H100", "--json")
    shown = json.loads(done.stdout)
    assert shown["situation"]["model"] == "m (bf16)"
    assert shown["situation"]["model_source"].endswith("m/config.json")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--gpu", "Voodoo2"], 2, "the GPU 'Voodoo2' is unknown; known are A100"),
        (["--concurrency", "many"], 2, "'many' is no list of concurrencies"),
        (["--concurrency", "0"], 2, "'0' is no list"),
        (["--measured", "64:3"], 2, "'64:3' is no figure"),
        (["--gpus", "4"], 2, "the baseline takes 8 GPUs, and there are 4"),
        (["--model-config", "none.json"], 2, "none.json: no config.json that can be read"),
    ],
)
def test_what_cannot_be_answered_says_what_to_type(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    is_an_error(typed(capsys, "advise", RECIPE, *words), code, says)


def test_a_model_that_nobody_knows_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = typed(capsys, "advise", recipe(tmp_path, "/m/unheard-of"), "--gpu", "H100")
    is_an_error(done, 2, "the model '/m/unheard-of' is unknown")


def test_a_broken_config_is_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text('{"hidden_size": 7}')
    done = typed(capsys, "advise", RECIPE, "--model-config", tmp_path / "c.json")
    is_an_error(done, 2, "has no usable num_hidden_layers")


def test_the_figure_is_an_svg_with_a_line_for_each_layout(triage: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    done = triage("advise", RECIPE, "--figure", "f.svg")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "f.svg").read_text()
    assert text.startswith("<svg")
    assert "modelled from published constants" in text
    for name in ("TP8", "TP8 + NVLS", "EP8", "DP attention + EP8", "with speculation"):
        assert f">{name}<" in text, name
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org/", "")


def test_what_a_confirmation_measured_is_held_against_the_model(tmp_path: Path) -> None:
    from triage.core.config import Config
    from triage.core.handover.confirmation import Confirmation
    from triage.core.handover.load import Level
    from triage.recipe import load_recipe
    from triage.session.advise import Asked, _figures
    from triage.session.logs import flag_table

    levels = (
        Level(concurrency=1, requests=2, answered=2, cut=0, seconds=1.0, tokens=8, tokens_per_s=120.0),
        Level(concurrency=16, requests=2, answered=2, cut=0, seconds=1.0, tokens=0),
    )  # fmt: skip
    confirmed = Confirmation(
        config=Config(), ready_s=1.0, levels=levels, date="2026-07-01T12:00:00"
    )
    found = _figures(load_recipe(RECIPE, flag_table()), Asked(measured=((64, 4000.0),)), confirmed)
    assert [(f.concurrency, f.tokens_per_s) for f in found] == [(64, 4000.0), (1, 120.0)]
    assert found[1].source == "measured by the confirmation of 2026-07-01"
