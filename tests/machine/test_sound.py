"""A sound node: no check finds anything, and between them these launches make every check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_gpus import FakeGpus
from planted import COMMAND, node

from triage.core.doctor.catalogue import BEFORE_A_SEARCH, CHECKS
from triage.core.doctor.checks import examine
from triage.machine.collect import collect

SPECULATION = (
    "--speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1"
    " --speculative-num-draft-tokens 4 --speculative-draft-model-path {draft}"
)
# A launch, and what is special about the node. None: the machine alone.
LAUNCHES: dict[str, tuple[str | None, dict[str, Any]]] = {
    "alone": (None, {}),
    "plain": (COMMAND, {}),
    "everything": (
        f"{COMMAND} --trust-remote-code --ep-size 8 --context-length 131072 --enable-nccl-nvls"
        " --attention-backend trtllm_mla --kv-cache-dtype auto --quantization fp8"
        " --enable-flashinfer-allreduce-fusion --enable-hierarchical-cache --hicache-size 100"
        " --moe-a2a-backend deepep --deepep-mode auto --disaggregation-mode prefill"
        " --disaggregation-transfer-backend nixl --disaggregation-bootstrap-port 20811"
        " --json-model-override-args '{\"num_hidden_layers\": 4}'"
        " --speculative-draft-attention-backend trtllm_mha " + SPECULATION,
        {"draft": {"max_position_embeddings": 131072}, "packages": {"nixl": "0.3.0"}},
    ),
    "two nodes": (
        f"{COMMAND} --nnodes 2 --tp-size 16 --dist-init-addr 10.0.0.7:20000",
        {"model": {"moe_intermediate_size": 4096, "intermediate_size": 36864}},
    ),
    "hub": ("python -m sglang.launch_server --model-path organisation/name", {"hub": 200}),
    "container": (
        COMMAND + " --enable-symm-mem",
        {"root": {".dockerenv": "", "dev/nvidia-caps-imex-channels/channel0": ""}},
    ),
    "docker": (
        "docker run --gpus all --shm-size 32g --ulimit memlock=-1 --device=/dev/infiniband"
        f" lmsysorg/sglang {COMMAND} --moe-a2a-backend deepep",
        {"env": {"http_proxy": "http://proxy.example:3128", "CUDA_VISIBLE_DEVICES": "0,0"}},
    ),
    "four bits": (
        COMMAND,
        {"model": {"quantization_config": {"quant_method": "awq", "bits": 4}}},
    ),
    "older": (
        COMMAND,
        {
            "gpus": ["all.name=NVIDIA H200", "all.capability=90", "all.total=143771"],
            "env": {"LD_LIBRARY_PATH": "{cuda}/lib64:" + "{nvml}", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"},
            "root": {"etc/ld.so.conf.d/compat.conf": "/usr/local/cuda/compat\n",
                     "usr/local/cuda/compat/libcuda.so.1": ""},
        },
    ),
}  # fmt: skip
# What this process may do is not the node's: a test machine may be limited itself.
OURS = {"nofile", "memlock"}


@pytest.fixture(scope="module")
def states() -> dict[str, set[str]]:
    """Check -> the states that it came to in all launches of this module."""
    return {check.id: set() for check in CHECKS}


@pytest.mark.parametrize("name", LAUNCHES)
def test_nothing_is_found_on_a_sound_node(
    name: str,
    states: dict[str, set[str]],
    tmp_path: Path,
    fake_gpus: FakeGpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, special = LAUNCHES[name]
    with node(tmp_path, fake_gpus, monkeypatch, {"real_python": True, **special}) as made:
        seen = made.examine(command, deep=True)
    found = [f for f in seen.findings if f.id not in OURS]
    assert [(f.id, f.say, f.evidence) for f in found] == []
    for outcome in seen.outcomes:
        states[outcome.check.id].add(outcome.state)


def test_every_check_was_made_and_came_out_sound(states: dict[str, set[str]]) -> None:
    if not any(states.values()):
        pytest.skip("the launches of this module were not made")
    assert [name for name, came in states.items() if "sound" not in came and name not in OURS] == []


def test_a_machine_without_a_gpu_is_examined_as_far_as_it_goes() -> None:
    facts = collect(python="/nonexistent/python")
    outcomes = examine(facts, CHECKS)
    assert len(outcomes) == len(CHECKS)
    for outcome in outcomes:
        assert outcome.state in ("sound", "found", "unavailable", "not-asked")
        if outcome.state in ("unavailable", "not-asked"):
            assert outcome.reason


def test_nothing_is_raised_where_nothing_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", "")
    facts = collect(python="", root=tmp_path / "no-root")
    states = {o.check.id: o.state for o in examine(facts, CHECKS)}
    assert states["shm-leftovers"] == "unavailable"
    assert states["cma"] == "unavailable"
    assert states["xid"] == "unavailable"


def test_a_search_leaves_out_what_it_answers_by_launching() -> None:
    left_out = {check.id for check in CHECKS} - {check.id for check in BEFORE_A_SEARCH}
    assert left_out == {"flags", "ports", "cache-fleeting"}
    assert [c.id for c in CHECKS if c.hardware] == [
        "driver", "cuda-start", "gpu-lost", "xid", "ecc", "fabric-not-ready", "fabric-manager-missing",
        "fabric-manager-version", "fabric-unhealthy", "nvlink-down",
    ]  # fmt: skip
