"""What cannot work, found on disk: each check on a small engine, its places, and what stays open."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from installed_tree import FILES, distribution, engine, model, site_of

from triage.core.config import Config
from triage.core.inspection.checks import inspect
from triage.core.inspection.facts import Inspection
from triage.installed import installed_engine, read_model

INT4 = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "group_0": {
            "weights": {"num_bits": 4, "type": "int", "group_size": 32},
            "input_activations": None,
        }
    },
}


def found(python: Path, folder: Path, flags: dict[str, Any], **values: object) -> Inspection:
    path = model(folder, **values)
    env = flags.pop("env", None)
    config = Config.of({"model-path": str(path), **flags}, env)
    return inspect(installed_engine(python), read_model(str(path)), config)


def said(inspection: Inspection) -> list[tuple[str, str]]:
    return [(f.check, f.say) for f in inspection.findings]


def test_what_is_registered_is_read_from_decorators_calls_and_branches(tmp_path: Path) -> None:
    moe = installed_engine(engine(tmp_path)).moe
    assert moe.works("none", "marlin")
    assert moe.works("deepep", "deep_gemm")
    assert moe.works("nixl", "deep_gemm"), "it gives out another's format"
    assert not moe.works("deepep", "triton")
    assert not moe.works("deepep", "marlin")
    assert moe.runners("deepep") == ("deep_gemm",)
    assert set(moe.coreless) == {"marlin", "flashinfer_trtllm", "flashinfer_trtllm_routed"}
    assert str(moe.coreless["marlin"]) == "layers/moe/moe_runner/runner.py:12"
    made = moe.schemes["layers/quantization/moe_wna16.py"]
    assert made is not None
    assert [(name, str(at)) for name, at in made] == [
        ("triton", "layers/quantization/moe_wna16.py:3")
    ]
    assert moe.schemes["layers/quantization/fp8.py"] is None


@pytest.mark.parametrize(
    ("backend", "runner", "bad"),
    [
        ("deepep", "marlin", True), ("deepep", "triton", True), ("deepep", "deep_gemm", False),
        ("none", "marlin", False), ("nixl", "flashinfer_trtllm", True), ("deepep", "auto", False),
        ("nosuch", "marlin", False), ("deepep", "a-plugin's", False),
    ],
)  # fmt: skip
def test_a_named_runner_that_has_nothing_for_the_backend_is_found(
    tmp_path: Path, backend: str, runner: str, bad: bool
) -> None:
    flags = {"moe-a2a-backend": backend, "moe-runner-backend": runner}
    told = found(engine(tmp_path), tmp_path, flags)
    assert [f.check for f in told.findings] == (["moe-pair"] if bad else [])
    for finding in told.findings:
        assert finding.flags == ("moe-a2a-backend", "moe-runner-backend")
        assert finding.where[0].startswith("layers/moe/moe_runner/runner.py")
        assert "deep_gemm" in finding.say


def test_a_quantisation_without_a_runner_for_the_backend_is_found_with_its_key(
    tmp_path: Path,
) -> None:
    python = engine(tmp_path)
    experts = {"n_routed_experts": 8, "quantization_config": INT4}
    (finding,) = found(python, tmp_path, {"moe-a2a-backend": "deepep"}, **experts).findings
    assert finding.check == "moe-quantization"
    assert "INT4 (W4A16) run on marlin or triton only" in finding.say
    assert finding.where[-2:] == (
        "config.json: quantization_config.config_groups.group_0.weights.num_bits",
        "config.json: quantization_config.config_groups.group_0.weights.type",
    )
    assert finding.where[0].endswith("compressed_tensors_wNa16_moe.py:3")
    assert found(python, tmp_path, {}, **experts).findings == ()
    # Without experts, and with a method that chooses at run time, nothing is claimed.
    a2a = {"moe-a2a-backend": "deepep"}
    assert found(python, tmp_path, a2a, n_routed_experts=0, quantization_config=INT4).findings == ()
    fp8 = {"quant_method": "fp8"}
    assert found(python, tmp_path, a2a, n_routed_experts=8, quantization_config=fp8).findings == ()
    asked = {"moe-a2a-backend": "deepep", "quantization": "moe_wna16"}
    (finding,) = found(python, tmp_path, asked, n_routed_experts=8).findings
    assert finding.flags == ("moe-a2a-backend", "quantization")


@pytest.mark.parametrize("name", ["EAGLE", "ngram", "NEXTN"])
def test_an_algorithm_that_the_engine_has_is_none(tmp_path: Path, name: str) -> None:
    assert found(engine(tmp_path), tmp_path, {"speculative-algorithm": name}).findings == ()


def plugin(python: Path, source: str, value: str = "tree_plugin:setup") -> None:
    site = site_of(python)
    distribution(site, "tree-plugin", "1.0", f"[sglang.srt.plugins]\ntree = {value}\n")
    (site / "tree_plugin.py").write_text(source)


REGISTERS = "def setup():\n    SpeculativeAlgorithm.register('DDTREE', supports_overlap=True)\n"


def test_an_unknown_algorithm_is_found_unless_a_plugin_registers_it(tmp_path: Path) -> None:
    python, flags = engine(tmp_path), {"speculative-algorithm": "ddtree"}
    (finding,) = found(python, tmp_path, dict(flags)).findings
    assert finding.say.startswith("this engine has no speculative algorithm DDTREE; it has EAGLE")
    assert finding.where == ("speculative/spec_info.py:1",)
    assert finding.sure
    plugin(python, REGISTERS)
    assert found(python, tmp_path, dict(flags)).findings == ()


@pytest.mark.parametrize(
    ("source", "value", "trouble"),
    [
        (REGISTERS, "tree_plugin:setup", ""),
        ("import json, os.path\nfrom tree_plugin import x\n" + REGISTERS, "tree_plugin:setup", ""),
        ("try:\n    import nosuchlib\nexcept ImportError:\n    pass\n" + REGISTERS,
         "tree_plugin:setup", ""),
        ("import nosuchlib\n" + REGISTERS, "tree_plugin:setup", "imports nosuchlib"),
        ("def other(): pass\n", "tree_plugin:setup", "has no setup"),
        ("def (:\n", "tree_plugin:setup", "cannot be parsed"),
        (REGISTERS, "tree_plugin.inner:setup", "no module tree_plugin.inner"),
        (REGISTERS, "nosuchmodule:setup", "no module nosuchmodule"),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_loaded_is_found(
    tmp_path: Path, source: str, value: str, trouble: str
) -> None:
    python = engine(tmp_path)
    plugin(python, source, value)
    told = found(python, tmp_path, {"speculative-algorithm": "DDTREE"} if trouble else {})
    assert bool(told.findings) == bool(trouble)
    if trouble:
        by = {f.check: f for f in told.findings}
        assert trouble in by["plugin"].say
        assert by["plugin"].where[0]
        if "register" not in source:
            assert "plugin tree cannot be loaded" in by["speculative-algorithm"].say
    # A plugin that is switched off is nobody's trouble, and one that is not there is.
    off = found(python, tmp_path, {"env": {"SGLANG_PLUGINS": "else"}})
    assert [f.say[:24] for f in off.findings] == ["SGLANG_PLUGINS names els"]


def test_packages_that_differ_or_are_refused_are_found(tmp_path: Path) -> None:
    python = engine(tmp_path)
    site = site_of(python)
    assert found(python, tmp_path, {}).findings == ()
    asked = found(python, tmp_path, {"attention-backend": "flashinfer"})
    assert said(asked) == [
        ("package", "flashinfer-python is not installed, and the configuration asks for it")
    ]
    assert asked.findings[0].where[0] == "entrypoints/engine.py:2"
    distribution(site, "flashinfer_python", "0.7.2+cu130")
    distribution(site, "flashinfer-cubin", "0.7.2")
    assert found(python, tmp_path, {"attention-backend": "flashinfer"}).findings == ()
    distribution(site, "flashinfer-jit-cache", "0.7.1+cu130")
    distribution(site, "sglang_kernel", "0.4.8")
    distribution(site, "torch", "2.13.0")
    assert said(found(python, tmp_path, {})) == [
        ("package", "the packages of FlashInfer differ: flashinfer-python 0.7.2+cu130, "
         "flashinfer-cubin 0.7.2, flashinfer-jit-cache 0.7.1+cu130"),
        ("package", "sglang-kernel is 0.4.8, and the engine asks for at least 0.4.9"),
        ("package", "torch is 2.13.0, and the engine asks for exactly 2.14.1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "values", "say", "key"),
    [
        ({"tp-size": "3"}, {"num_key_value_heads": 3}, "8 attention heads", "num_attention_heads"),
        ({"tp-size": "8"}, {"num_key_value_heads": 3}, "3 key-value heads", "num_key_value_heads"),
        ({"tp-size": "8", "attn-dp-size": "3"}, {}, "no multiple of 3 attention groups", ""),
        ({"tp-size": "8", "ep-size": "3"}, {}, "no multiple of ep-size 3", ""),
        ({"tp-size": "8", "ep-size": "8"}, {"num_experts": 12}, "12 experts", "num_experts"),
        ({"tp-size": "8", "moe-a2a-backend": "deepep"}, {"n_routed_experts": 12},
         "12 experts do not divide by the 8 ranks", "n_routed_experts"),
        ({"pp-size": "5"}, {}, "4 layers cannot fill 5", "num_hidden_layers"),
        ({"tp-size": "8"},
         {"intermediate_size": 1536, "quantization_config": {"weight_block_size": [128, 128]}},
         "over 8 ranks is 192", "intermediate_size"),
        ({"tp-size": "8"},
         {"num_experts": 8, "moe_intermediate_size": 384, "quantization_config": INT4},
         "no multiple of the quantisation group of 32", "moe_intermediate_size"),
    ],
)  # fmt: skip
def test_a_size_that_a_width_does_not_divide_is_found_with_its_key(
    tmp_path: Path, flags: dict[str, Any], values: dict[str, object], say: str, key: str
) -> None:
    told = found(engine(tmp_path), tmp_path, flags, **values).findings
    finding = next(f for f in told if say in f.say)
    assert finding.check == "divisibility"
    assert finding.where[0] == (f"config.json: {key}" if key else f"--{finding.flags[0]}")


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        ({"tp-size": "8"}, {}),
        ({"tp-size": "8", "attn-dp-size": "8"}, {"num_attention_heads": 3}),
        ({"tp-size": "8"}, {"kv_lora_rank": 512, "num_key_value_heads": 3}),
        ({"tp-size": "8", "ep-size": "8"}, {"num_experts": 16}),
        ({"tp-size": "8", "ep-size": "8", "ep-num-redundant-experts": "4"}, {"num_experts": 12}),
        ({"tp-size": "8", "ep-size": "8"},
         {"num_experts": 8, "moe_intermediate_size": 100, "quantization_config": INT4}),
        ({"tp-size": "$TP"}, {"num_attention_heads": 7}),
    ],
)  # fmt: skip
def test_what_divides_is_no_finding(
    tmp_path: Path, flags: dict[str, Any], values: dict[str, object]
) -> None:
    assert found(engine(tmp_path), tmp_path, flags, **values).findings == ()


def test_overrides_and_the_text_part_of_a_model_count(tmp_path: Path) -> None:
    path = model(tmp_path, text_config={"num_attention_heads": 6, "num_hidden_layers": 2})
    told = read_model(str(path), '{"text_config": {"num_hidden_layers": 1}}')
    assert told.number("num_attention_heads") == (6, "text_config.num_attention_heads")
    assert told.number("num_hidden_layers")[0] == 1
    assert read_model(str(path), '{"num_attention_heads": ').why
    assert "no config.json" in read_model("org/name").why
    (path / "config.json").write_text("[1]")
    assert "no object" in read_model(str(path)).why


def test_an_engine_of_another_shape_leaves_checks_open(tmp_path: Path) -> None:
    python = engine(tmp_path, {"layers/moe/moe_runner/runner.py": "class Other: pass\n"})
    told = found(python, tmp_path, {"moe-a2a-backend": "deepep", "moe-runner-backend": "marlin"})
    assert {check for check, _ in told.open} == {"moe-pair", "moe-quantization"}
    assert told.findings == ()
    shutil.rmtree(site_of(python) / "sglang")
    gone = found(python, tmp_path, {})
    assert gone.installed.why.endswith("has no package sglang")
    assert len(gone.open) == 5


def test_an_editable_install_is_found(tmp_path: Path) -> None:
    python = engine(tmp_path)
    site = site_of(python)
    source = tmp_path / "checkout/python"
    source.mkdir(parents=True)
    shutil.move(site / "sglang", source / "sglang")
    assert installed_engine(python).why
    (site / "sglang.pth").write_text(f"# comment\nimport os\n{source}\n")
    assert installed_engine(python).root == str(source / "sglang/srt")
    (site / "sglang.pth").unlink()
    finder = f"MAPPING: dict[str, str] = {{'sglang': {str(source / 'sglang')!r}}}\n"
    (site / "__editable___sglang_0_finder.py").write_text(finder)
    assert installed_engine(python).root == str(source / "sglang/srt")


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("content", ["\x00", "(" * 9000])
def test_source_that_is_broken_costs_a_check_and_no_traceback(
    tmp_path: Path, name: str, content: str
) -> None:
    python = engine(tmp_path, {name: content})
    flags = {"moe-a2a-backend": "deepep", "speculative-algorithm": "EAGLE", "tp-size": "8"}
    found(python, tmp_path, flags, num_experts=8, quantization_config=INT4)


def test_a_search_says_what_it_foresees_before_it_launches(triage: Run, tmp_path: Path) -> None:
    python, path = engine(tmp_path), model(tmp_path, num_attention_heads=8)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "schema: triage.recipe/1\nname: x\nlaunch:\n"
        f"  command: [{python}, -m, sglang.launch_server]\n"
        f"baseline: {{flags: {{model-path: {path}, tp-size: 2, moe-runner-backend: marlin}}}}\n"
        "wanted:\n  - {flag: moe-a2a-backend, value: deepep}\n  - {flag: pp-size, value: 5}\n"
    )
    told = [x for x in triage("bisect", "--dry-run", recipe).stderr.splitlines() if "foreseen" in x]
    assert [line.split(": ")[1] for line in told] == ["moe-pair", "divisibility"]
    assert told[0].endswith("(layers/moe/moe_runner/runner.py:12)")
    assert told[1].endswith("(config.json: num_hidden_layers)")


def test_the_command_prints_exits_and_writes_a_document(triage: Run, tmp_path: Path) -> None:
    python, path = engine(tmp_path), model(tmp_path, num_attention_heads=6)
    script = tmp_path / "serve.sh"
    script.write_text(
        f"{python} -m sglang.launch_server --model-path {path} --tp 4 --speculative-algorithm X\n"
    )
    shown = triage("inspect", script)
    assert shown.returncode == 14, shown.stderr
    assert shown.stdout.startswith("engine    sglang 0.5.23\n")
    assert "\ndivisibility: 6 attention heads do not divide by 4 ranks\n" in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines() if "/" not in line) <= 80
    document = json.loads(triage("inspect", "--json", script).stdout)
    assert document["schema"] == "triage.inspection/1"
    assert {f["check"] for f in document["findings"]} == {"speculative-algorithm", "divisibility"}
    good = ("--", str(python), "-m", "sglang.launch_server", "--model-path", str(path))
    assert triage("inspect", *good).returncode == 0
    other = triage(
        "inspect", "--python", python, "--", "sglang", "serve", "--model-path", str(path)
    )
    assert other.returncode == 0, other.stderr
    is_an_error(triage("inspect"), 2, "no command was given")
    is_an_error(triage("inspect", "--python", "/nowhere/python", script), 2, "does not exist")
    (tmp_path / "x.sh").write_text(
        "exec /nowhere/python -m sglang.launch_server --model-path a/b\n"
    )
    is_an_error(triage("inspect", "x.sh"), 3, "nothing to inspect")
