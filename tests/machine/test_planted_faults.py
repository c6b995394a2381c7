"""Faults that no report of the list stands for: one of each check that the list leaves out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Run
from fake_gpus import FakeGpus
from planted import COMMAND, GB, node

from triage.core.doctor.catalogue import CHECKS

ROOT = Path(__file__).parents[2]
DRAFTED = f"{COMMAND} --speculative-draft-model-path {{draft}}"
B200 = ["all.name=NVIDIA B200", "all.capability=100"]
H100_PCIE = ["all.name=NVIDIA H100 PCIe", "all.capability=90", "all.fabric_state=0", "all.links=0"]

# Name of the test -> check, command, fault, a piece of the evidence or the sentence.
FAULTS: dict[str, tuple[str, str | None, dict[str, Any], str]] = {
    "an update without a restart": (
        "driver", None, {"gpus": ["system.fail.nvmlInit_v2=18"]}, "different versions"),
    "cuda that does not start": (
        "cuda-start", None, {"env": {"FAKE_CUDA_INIT": "802"}}, "802 CUDA_ERROR_SYSTEM_NOT_READY"),
    "gpus that cannot multicast": (
        "multicast", f"{COMMAND} --enable-nccl-nvls", {"env": {"FAKE_CUDA_MULTICAST": "11110111"}},
        "is 0 for GPU 4"),
    "a lost gpu": ("gpu-lost", None, {"gpus": ["3.fail.*=15"]}, "gpu is lost"),
    "a gpu off the bus": (
        "xid", None,
        {"root": {"dev/kmsg": "3,9,89999000000,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off\n"}},
        "Xid (PCI:0000:1b:00): 79"),
    "no driver": ("no-gpu", COMMAND, {"gpus": ["system.fail.nvmlInit_v2=12"]}, "libnvidia-ml.so.1"),
    "no gpu at all": ("no-gpu", COMMAND, {"gpus": ["system.count=0"]}, "counts no GPU"),
    "a row that could not be replaced": ("ecc", None, {"gpus": ["6.remap_failed=1"]}, "remapping failed"),
    "two kinds of gpu": (
        "gpus-differ", COMMAND, {"gpus": ["7.name=NVIDIA B200"]}, "NVIDIA B200: GPU 7"),
    "instances": ("mig", COMMAND, {"gpus": ["0.mig=1"]}, "MIG mode enabled"),
    "heat": ("clocks-held-down", None, {"gpus": ["2.reasons=0x40", "2.temperature=91"]}, "91 °C"),
    "an unhealthy fabric": ("fabric-unhealthy", None, {"gpus": ["1.fabric_health=2"]}, "unhealthy"),
    "two cliques": ("fabric-unhealthy", None, {"gpus": ["4.fabric_clique=2"]}, "clique 2: GPU 4"),
    "a link that is down": ("nvlink-down", None, {"gpus": ["2.link.7=0"]}, "link 7 inactive"),
    "no peer access": (
        "peer-access", COMMAND, {"gpus": ["all.p2p=5", "all.links=0"]}, "GPU 0 and GPU 1"),
    "fusion without a switch": (
        "fusion-without-multicast", f"{COMMAND} --enable-flashinfer-allreduce-fusion",
        {"gpus": H100_PCIE}, "no completed fabric"),
    "nvls without a switch": (
        "nvls-without-fabric", f"{COMMAND} --enable-nccl-nvls", {"gpus": H100_PCIE}, "NVML"),
    "another fabric manager": (
        "fabric-manager-version", None,
        {"root": {"usr/bin/nv-fabricmanager": "#!/bin/sh\necho Fabric Manager version is : 570.10.01\n"}}, "570.10.01"),
    "memory that a dead process holds": (
        "gpu-memory-held", None, {"leaked": {"5": 70000}}, "by no process"),
    "a package in two versions": (
        "two-versions", None, {"packages": {"sgl-kernel": ["0.3.20", "0.3.21"],
                                            "sglang-kernel": None}}, "0.3.20"),
    "cublas under two names": (
        "cublas-names", None, {"packages": {"nvidia-cublas-cu12": "12.9.1.4"}}, "nvidia-cublas-cu12"),
    "nccl put in front": (
        "nccl-copies", None, {"env": {"LD_PRELOAD_": "", "SGLANG_NCCL_SO_PATH": "/opt/libnccl.so.2"}},
        "/opt/libnccl.so.2"),
    "no ninja": ("ninja", None, {"packages": {"ninja": None}, "env": {"PATH": "{folder}/bin"}}, "ninja"),
    "a container without shared memory": (
        "container-shm", f"docker run --gpus all IMAGE {COMMAND}".replace("IMAGE", "lmsysorg/sglang"), {},
        "64 MiB"),
    "a container without gpus": (
        "container-gpus", f"docker run --ipc=host --rm lmsysorg/sglang {COMMAND}", {}, "no --gpus"),
    "a container that may not lock": (
        "container-memlock",
        f"podman run --device nvidia.com/gpu=all --ipc=host lmsysorg/sglang {COMMAND} --moe-a2a-backend deepep",
        {}, "--ulimit memlock=-1 and no --device /dev/infiniband"),
    "a checkpoint that is not there": (
        "model-path", "python -m sglang.launch_server --model-path /models/gone", {}, "/models/gone"),
    "a shard that is missing": (
        "checkpoint", COMMAND,
        {"model": {"files": {"model.safetensors.index.json":
                             '{"weight_map": {"w": "model-00002-of-00002.safetensors"}}'}}},
        "model-00002-of-00002.safetensors"),
    "a broken header": (
        "checkpoint", COMMAND, {"model": {"files": {"model.safetensors": b"\x09" + bytes(7) + b"{not json"}}},
        "header cannot be read"),
    "fa3 on blackwell": (
        "attention-backend", f"{COMMAND} --attention-backend fa3", {"gpus": B200}, "10.0"),
    "an mla backend for another model": (
        "attention-backend", f"{COMMAND} --attention-backend trtllm_mla", {"model": {"kv_lora_rank": None}},
        "no kv_lora_rank"),
    "another eagle": (
        "draft-hidden-size", f"{DRAFTED} --speculative-algorithm EAGLE3", {"draft": {"hidden_size": 4096}},
        "4096"),
    "a tree without pages": (
        "speculation",
        f"{DRAFTED} --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 4"
        " --speculative-num-draft-tokens 8 --page-size 64 --attention-backend cutlass_mla",
        {}, "--page-size 64"),
    "key-value heads": (
        "heads", "python -m sglang.launch_server --model-path {model} --tp-size 6",
        {"model": {"num_attention_heads": 12, "num_key_value_heads": 4}}, "num_key_value_heads 4"),
    "a hub that asks for a name": ("hub", "python -m sglang.launch_server --model-path a/b", {"hub": 404}, "404"),
}  # fmt: skip

DEEP = {"cuda-start", "multicast", "hub"}  # what is asked only then


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(
    name: str, tmp_path: Path, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, command, fault, piece = FAULTS[name]
    with node(tmp_path, fake_gpus, monkeypatch, fault) as made:
        found = made.examine(command, deep=check in DEEP).findings
    hits = [f for f in found if f.id == check]
    assert hits, found
    assert piece in " ".join(part for f in hits for part in (f.say, *f.evidence))
    assert all(f.fix and f.breaks and f.source for f in hits)


def test_every_check_has_a_fault_that_is_planted() -> None:
    reports = yaml.safe_load((ROOT / "fixtures/doctor/reports.yaml").read_text())
    planted = {report["check"] for report in reports} | {check for check, *_ in FAULTS.values()}
    assert planted | {"nofile"} == {check.id for check in CHECKS}


def test_an_unequal_gpu_is_an_error_only_for_a_launch(
    tmp_path: Path, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node(tmp_path, fake_gpus, monkeypatch, {"gpus": ["5.used=40000"]}) as made:
        severity = {
            command: [
                f.severity for f in made.examine(command).findings if f.id == "gpu-memory-unequal"
            ]
            for command in (None, COMMAND)
        }
    assert severity == {None: ["warning"], COMMAND: ["error"]}


def test_a_newer_nccl_than_torchs_is_what_the_images_of_sglang_have(
    tmp_path: Path, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {
        "packages": {"nvidia-nccl-cu13": "2.30.7", "torch": "2.13.0"},
        "requires": {"torch": ["nvidia-nccl-cu13==2.29.7"], "sglang": [], "torchvision": []},
    }
    with node(tmp_path, fake_gpus, monkeypatch, fault) as made:
        found = made.examine(COMMAND).findings
    assert not [f for f in found if f.id in ("nccl-copies", "pins")]


def test_limits_of_the_process_are_read_for_real(tmp_path: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024));"
        "from triage.machine.host import host; print(host().nofile)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout == b"1024\n"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
def test_a_small_shared_memory_is_found_for_real(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text(COMMAND.replace("{model}", "/m") + "\n")
    script = (
        "mount -t tmpfs -o size=64m small /dev/shm && "
        f"exec {sys.executable} -m triage doctor serve.sh --json"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    if done.returncode == 1 and not done.stdout:
        pytest.skip("no file system may be mounted here")
    found = yaml.safe_load(done.stdout)["findings"]
    (small,) = [f for f in found if f["id"] == "shm-small"]
    assert small["evidence"] == ["64 MiB in all, 64 MiB free; several ranks want 1 GiB"]


def test_a_leaked_segment_is_found_for_real(triage: Run) -> None:
    leaked = Path(f"/dev/shm/nccl-triage{os.getpid()}")
    held = Path(f"/dev/shm/nccl-triage-live{os.getpid()}")
    try:
        for path in (leaked, held):
            path.write_bytes(bytes(2 << 20))
            os.utime(path, (time.time() - 7200,) * 2)
        with held.open("rb"):
            done = triage("doctor", "--json")
    except OSError:
        pytest.skip("no /dev/shm")
    finally:
        leaked.unlink(missing_ok=True)
        held.unlink(missing_ok=True)
    (found,) = [f for f in yaml.safe_load(done.stdout)["findings"] if f["id"] == "shm-leftovers"]
    assert any(line.startswith(f"{leaked}: 2 MiB, 2.0 h old") for line in found["evidence"])
    assert str(held) not in str(found)


def test_weights_are_counted_without_reading_them(
    tmp_path: Path, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = time.process_time()
    with node(tmp_path, fake_gpus, monkeypatch, {"model": {"gb": 600}}) as made:
        weights = made.folder / "model/model.safetensors"
        assert weights.stat().st_size > 600 * GB
        found = made.examine(COMMAND + " --mem-fraction-static 0.2").findings
    assert [f.evidence for f in found if f.id == "weights-fit"] == [
        ("600.0 GiB of weights over 8 ranks", "--mem-fraction-static 0.2 of 268.6 GiB")
    ]
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "copy",
    [
        ({"config.json": "{}", "model.safetensors": ""}, "1", None),
        ({"config.json": "{}"}, "1", "error"),
        ({"config.json": "{}", "../../blobs/abc.incomplete": "", "model.safetensors": ""}, "1", "error"),
        ({"config.json": "{}", "model.safetensors.index.json": '{"weight_map": {"w": "gone"}}',
          "a.safetensors": ""}, "0", "warning"),
    ],
    ids=["complete", "no weights", "broken off", "a shard is missing"],
)  # fmt: skip
def test_a_copy_in_the_cache_is_taken_for_what_it_is(
    copy: tuple[dict[str, str], str, str | None],
    tmp_path: Path,
    fake_gpus: FakeGpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, offline, severity = copy
    with node(tmp_path, fake_gpus, monkeypatch, {"env": {"HF_HUB_OFFLINE": offline}}) as made:
        base = made.home / ".cache/huggingface/hub/models--organisation--name"
        for name, text in {"../../refs/main": "abc123", **files}.items():
            path = base / "snapshots/abc123" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.resolve().parent.mkdir(parents=True, exist_ok=True)
            path.resolve().write_text(text)
        seen = made.examine("python -m sglang.launch_server --model-path organisation/name")
    found = [f.severity for f in seen.findings if f.id == "hub"]
    assert found == ([severity] if severity else [])
