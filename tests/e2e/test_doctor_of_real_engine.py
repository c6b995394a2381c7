"""The doctor over the real SGLang of the CPU and its tiny models: broken ones are told, sound ones are not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from command_line import Run

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".sglang/bin/python"
MODELS = ROOT / ".models"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PYTHON.exists() or not MODELS.exists(), reason="make sglang-cpu models"),
]


def errors(triage: Run, model: str, *flags: str) -> dict[str, list[str]]:
    words = " ".join(
        (f"{PYTHON} -m sglang.launch_server --model-path {MODELS / model} --device cpu", *flags)
    )
    Path("serve.sh").write_text(words + "\n")
    begin = time.perf_counter()
    document = json.loads(triage("doctor", "serve.sh", "--json").stdout)
    assert document["machine"]["packages"]["sglang"] == "0.5.23"
    assert time.perf_counter() - begin < 20
    found: dict[str, list[str]] = {}
    for finding in document["findings"]:
        if finding["severity"] == "error":
            found.setdefault(finding["id"], []).extend(finding["evidence"])
    return found


@pytest.mark.parametrize("model", ["tiny", "mixtral", "qwen3moe"])
def test_a_model_that_starts_has_no_error(triage: Run, model: str) -> None:
    found = errors(triage, model)
    found.pop("cache-not-writable", None)  # of the machine, not of the model
    found.pop("ports", None)
    assert found == {}


@pytest.mark.parametrize(
    ("model", "check", "piece"),
    [
        ("unknown-type", "model-type", "model_type foo"),
        ("unknown-type", "architecture", "FooForCausalLM"),
        ("custom-code", "model-type", "model_type custom"),
        ("truncated", "checkpoint", "cut: "),
        ("lfs-pointer", "checkpoint", "a pointer of Git LFS"),
        ("no-weights", "checkpoint", "no .safetensors"),
        ("bad-config", "config-json", "config.json"),
        ("bad-tokenizer", "config-json", "tokenizer.json"),
    ],
)
def test_a_model_that_fails_is_told_before_the_launch(
    triage: Run, model: str, check: str, piece: str
) -> None:
    found = errors(triage, model)
    assert piece in " ".join(found[check])


def test_heads_that_do_not_divide_are_told_before_the_launch(triage: Run) -> None:
    assert "3 attention heads" in " ".join(errors(triage, "three-heads", "--tp-size 2")["heads"])


def test_symbols_that_torch_needs_of_itself_are_all_found() -> None:
    from triage.machine.elf import defines, needs

    torch = next(ROOT.glob(".sglang/lib/python3.*/site-packages/torch/lib"))
    wanted = set(needs(torch / "libtorch_python.so", ["_ZN3c10", "_ZN2at", "_ZN5torch"]).undefined)
    assert len(wanted) > 1000
    for name in ("libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"):
        if (torch / name).exists():
            wanted -= defines(torch / name, wanted)
    assert wanted == set()
    assert defines(torch / "libc10.so", {"_ZN5torch3jit17parseSchemaOrNameERKSsb"}) == set()
