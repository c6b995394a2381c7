"""What hangs, what may not be read and what is nonsense gives a reason, never an exception."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_gpus import FakeGpus
from planted import COMMAND, node

from triage.core.machine.facts import Unavailable
from triage.machine.disks import disk
from triage.machine.elf import NotElfError, needs
from triage.machine.patience import Reading

HUNG = """
import triage.machine.collect as c
from triage.core.doctor.catalogue import CHECKS
from triage.core.doctor.checks import examine, findings
c.PATIENCE_S = 0.5
print([f.say for f in findings(examine(c.collect(), CHECKS)) if f.id == "driver"])
import os; os._exit(0)
"""


def test_a_driver_that_hangs_is_told_and_does_not_hang_the_doctor(fake_gpus: FakeGpus) -> None:
    fake_gpus.set("system.wait.nvmlInit_v2=20000")
    done = subprocess.run(
        [sys.executable, "-c", HUNG], env={**os.environ, **fake_gpus.env},
        capture_output=True, text=True, check=True, timeout=15,
    )  # fmt: skip
    assert done.stdout == "['The NVIDIA driver hangs.']\n"


def test_a_reader_that_fails_hides_no_other() -> None:
    def divide() -> int:
        return 1 // 0

    def refuse() -> int:
        raise PermissionError(13, "Permission denied", "/proc/1/maps")

    assert Reading("it", lambda: 7, 1).fact() == 7
    assert Reading("it", refuse, 1).fact() == Unavailable("/proc/1/maps: Permission denied")
    fact = Reading("it", divide, 1).fact()
    assert isinstance(fact, Unavailable)
    assert fact.reason.startswith("it could not be read: ZeroDivisionError")


STRANGER = """
import json, os, sys
from pathlib import Path
from triage.session.doctor import doctor
from triage.render.doctor_documents import doctor_document
def told():
    found = doctor(None, python="/usr/bin/env")
    return doctor_document(found.target, found.facts, found.outcomes)
told()  # what is imported late is imported now: a stranger may not read this checkout
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
print(json.dumps(told()))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_learns_what_he_may_not_do(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    env = {**os.environ, "HOME": str(home), "TMPDIR": "/tmp"}
    for name in ("HF_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", STRANGER], env=env, capture_output=True, text=True, check=True
    )
    document = json.loads(done.stdout)
    places = [f["evidence"][0] for f in document["findings"] if f["id"] == "cache-not-writable"]
    assert f"{home}/.triton/cache: no permission to write" in places
    assert not [c for c in document["checks"] if "could not be read" in c["reason"]]


@pytest.mark.parametrize(
    "config",
    [
        "[]",
        '{"num_attention_heads": "many", "architectures": "X", "quantization_config": []}',
        '{"num_attention_heads": 0, "num_key_value_heads": 0, "vision_config": {"num_heads": "a"}}',
        '{"text_config": [], "rope_scaling": {"factor": 1e400}, "max_position_embeddings": 9}',
        '{"quantization_config": {"weight_block_size": ["a"]}, "auto_map": {"AutoConfig": 3}}',
        '{"quantization_config": {"config_groups": {"g": 3}, "quant_method": 7}}',
        "[" * 100_000,
    ],
)
def test_a_config_of_nonsense_is_judged_without_an_exception(
    config: str, tmp_path: Path, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {
        "model": {"files": {"config.json": config}},
        "draft": {"files": {"config.json": config}},
    }
    command = (
        COMMAND + " --context-length 99999999999999999999 --speculative-draft-model-path {draft}"
        " --mem-fraction-static 0.9.9 --hicache-size x --enable-hierarchical-cache --ep-size 0"
        " --speculative-algorithm EAGLE3 --port ²"
    )
    with node(tmp_path, fake_gpus, monkeypatch, fault) as made:
        seen = made.examine(command)
    assert not [o.reason for o in seen.outcomes if "could not be read" in o.reason]


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(20), b"\x7fELF\x02\x01" + b"\xff" * 90],
    ids=["empty", "magic", "zeros", "ones"],
)
def test_a_library_that_is_cut_is_no_library(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(raw)
    with pytest.raises((NotElfError, ValueError)):
        needs(tmp_path / "x.so")


def test_a_path_that_is_not_there_counts_for_its_nearest_folder(tmp_path: Path) -> None:
    found = disk(tmp_path / "a/b/c")
    assert not isinstance(found, Unavailable)
    assert found.path == str(tmp_path / "a/b/c")
    assert found.total_mib > 0
