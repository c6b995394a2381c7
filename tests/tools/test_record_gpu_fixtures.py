"""The recorder of GPU fixtures, as far as a machine without a GPU goes."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from triage.core.probes.catalogue import PROBES

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def tool() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import record_gpu_fixtures
    finally:
        sys.path.pop(0)
    return record_gpu_fixtures


def test_every_program_compiles_and_names_what_it_provokes(tool: Any) -> None:
    names = [one.name for one in tool.PROVOCATIONS]
    assert len(set(names)) == len(names) >= 12
    for one in tool.PROVOCATIONS:
        compile(one.program, one.name, "exec")
        assert all(one.expected)


def test_what_needs_no_gpu_is_recorded_and_the_rest_says_what_it_lacked(
    tool: Any, tmp_path: Path
) -> None:
    home = tool.Provocation(
        name="named-host", expected=("Traceback",),
        program=f"raise RuntimeError('on {platform.node()} for /home/somebody/x')", gpus=0,
    )  # fmt: skip
    endless = tool.Provocation(name="endless", expected=("never",), program="while 1: pass", gpus=0)
    segv = next(one for one in tool.PROVOCATIONS if one.name == "segv-native")
    found = tool.record(
        sys.executable, tmp_path / "out", provocations=(segv, home), probes=("multicast", "rendezvous"),
        limit_s=20, say=lambda _: None,
    )  # fmt: skip
    assert found["probes"]["multicast"]["outcome"] in ("unavailable", "done")
    assert found["probes"]["rendezvous"]["outcome"] in ("unavailable", "done")
    assert found["provocations"]["segv-native"]["exit_code"] == -11
    assert found["provocations"]["segv-native"]["provoked"] == ["Segmentation fault"]
    text = (tmp_path / "out/named-host.log").read_text()
    assert "somebody" not in text
    assert sys.base_prefix not in (tmp_path / "out/segv-native.log").read_text()
    assert "/opt/venv/lib/" in (tmp_path / "out/segv-native.log").read_text()
    assert "/home/user/x" in text
    assert json.loads((tmp_path / "out/machine.json").read_text()) == found
    assert (
        json.loads((tmp_path / "out/probe-multicast.json").read_text())["schema"]
        == "triage.probe/1"
    )
    raw, code = tool.provoke(sys.executable, endless, 0.5)
    assert (raw, code) == (b"", None)
    assert "Segmentation fault -> " in tool.summary(found)


def test_by_default_every_probe_is_recorded(tool: Any) -> None:
    import inspect

    assert inspect.signature(tool.record).parameters["probes"].default == tuple(
        p.name for p in PROBES
    )


def test_a_python_that_is_not_there_is_one_sentence(tool: Any, tmp_path: Path, capsys: Any) -> None:
    assert tool.main(["--python", "/no/python", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
