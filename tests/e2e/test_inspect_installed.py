"""The static check against real SGLang as it is installed, and against what it registers when run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from triage.installed import installed_engine
from triage.knowledge import load_flag_table

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".sglang/bin/python"
MODELS = ROOT / ".models"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PYTHON.exists(), reason="make sglang-cpu"),
]

# Imports every module of runners that loads on this machine, and prints what they registered.
REGISTERED = """
import importlib, json
from sglang.srt.layers.moe.moe_runner import base
names = ("triton triton_kernels deep_gemm marlin flashinfer_trtllm flashinfer_cutlass"
         " flashinfer_cutedsl humming aiter ascend").split()
loaded = []
for name in names:
    try:
        importlib.import_module(f"sglang.srt.layers.moe.moe_runner.{name}")
        loaded.append(name)
    except Exception:
        pass
pools = [base.FusedOpPool._fused_funcs, base.PermuteMethodPool._pre_permute_methods,
         base.PermuteMethodPool._post_permute_methods]
print(json.dumps([loaded, *[sorted(map(list, pool)) for pool in pools]]))
"""


def inspect(model: str, *flags: str) -> tuple[int, list[tuple[str, str]]]:
    command = [
        str(PYTHON),
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(MODELS / model),
        *flags,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "triage", "inspect", "--json", "--", *command],
        capture_output=True, text=True, check=False, timeout=60, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(done.stdout)["findings"]
    return done.returncode, [(f["check"], f["where"][0]) for f in found]


def test_what_is_read_from_source_is_what_the_engine_registers_when_it_is_imported() -> None:
    moe = installed_engine(PYTHON).moe
    done = subprocess.run(
        [PYTHON, "-c", REGISTERED], capture_output=True, text=True, check=True, timeout=200
    )
    loaded, fused, pre, post = json.loads(done.stdout.splitlines()[-1])
    assert {"triton", "marlin", "deep_gemm"} <= set(loaded)
    # What runs is in the source; what only other devices load is read from source alone.
    assert {tuple(pair) for pair in fused} <= moe.fused.keys()
    assert {tuple(pair) for pair in pre} <= moe.pre.keys()
    assert {tuple(pair) for pair in post} <= moe.post.keys()
    assert len(fused) > 8
    in_loaded = {pair for pair, at in moe.fused.items() if Path(at.file).stem in loaded}
    assert in_loaded == {tuple(pair) for pair in fused} & in_loaded


def test_the_table_of_what_moves_what_is_that_of_the_installed_source() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from make_moves import FOLDER, collect, field_names
    finally:
        sys.path.pop(0)
    engine = installed_engine(PYTHON)
    table = load_flag_table()
    if engine.version != table.version:
        pytest.skip("the table is of another release")
    stored = json.loads((FOLDER / f"sglang-{engine.version}.json").read_bytes())
    root = Path(engine.root)
    assert stored["moves"] == collect(root, field_names(root, table))


@pytest.mark.parametrize(
    ("model", "flags", "found"),
    [
        # Launches of which the end is recorded: they started, or failed as it is found here.
        ("tiny", "--page-size 16", []),
        ("mixtral", "--pp-size 2", []),
        ("qwen3moe", "--tp-size 2", []),
        ("three-heads", "--tp-size 2",
         [("divisibility", "config.json: num_attention_heads"),
          ("divisibility", "config.json: num_key_value_heads")]),
        ("mixtral", "--pp-size 3", [("divisibility", "config.json: num_hidden_layers")]),
        ("tiny", "--speculative-algorithm DDTREE",
         [("speculative-algorithm", "speculative/spec_info.py:32")]),
        ("tiny", "--attention-backend flashinfer", [("package", "entrypoints/engine.py:1954")]),
        ("qwen3moe", "--tp-size 2 --moe-a2a-backend deepep --moe-runner-backend marlin",
         [("moe-pair", "layers/moe/moe_runner/runner.py:124")]),
        ("qwen3moe", "--tp-size 2 --moe-a2a-backend deepep --moe-runner-backend deep_gemm", []),
    ],
)  # fmt: skip
def test_real_configurations_are_judged_as_their_launches_ended(
    model: str, flags: str, found: list[tuple[str, str]]
) -> None:
    code, told = inspect(model, *flags.split())
    assert told == found
    assert code == (14 if found else 0)
