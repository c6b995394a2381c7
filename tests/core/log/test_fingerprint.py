"""Equal failures have equal names, different ones different names."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Frame
from triage.core.log.fingerprint import fingerprint, masked

SGL = "/opt/venv/lib/python3.11/site-packages/sglang/srt/layers/moe.py"


def test_a_fingerprint_has_a_version_and_a_preimage() -> None:
    mark, text = fingerprint(
        "ValueError", "tp_size 8 is bad", [Frame(file=SGL, line=9, function="f")]
    )
    assert text == "ValueError | tp_size <number> is bad | sglang.srt.layers.moe:f"
    assert mark == "v1:54d2bc7e8a7d"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("out of memory at 12.5 GiB", "out of memory at 3.25 GiB"),
        ("port 10.0.0.3:30000 refused", "port 192.168.1.9:4711 refused"),
        ("no file /models/a/config.json here", "no file /srv/b/c.json here"),
        ("cannot load 'vllm'", "cannot load 'sgl_kernel'"),
        ("at 0x7f33aa", "at 0x5501bc"),
        ("TP3 failed", "TP5 failed"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174fff"),
        ("commit deadbeef42", "commit 0123abc"),
    ],
)
def test_what_differs_between_launches_does_not_count(one: str, other: str) -> None:
    assert masked(one) == masked(other)
    assert fingerprint("E", one)[0] == fingerprint("E", other)[0]


def test_line_numbers_and_install_paths_do_not_count() -> None:
    here = [Frame(file=SGL, line=9, function="f")]
    there = [Frame(file="/usr/lib/python3/dist-packages/sglang/srt/layers/moe.py", line=77,
                   function="f")]  # fmt: skip
    assert fingerprint("E", "m", here) == fingerprint("E", "m", there)


def test_frames_of_torch_and_python_are_skipped() -> None:
    own = [Frame(file=SGL, line=9, function="f")]
    deeper = [
        *own,
        Frame(file="/x/site-packages/torch/nn/modules/module.py", line=1, function="_call_impl"),
        Frame(file="/usr/lib/python3.11/threading.py", line=1, function="run"),
        Frame(file="<frozen runpy>", line=1, function="_run_code"),
    ]
    assert fingerprint("E", "m", own) == fingerprint("E", "m", deeper)


def test_another_type_message_or_function_is_another_failure() -> None:
    base = fingerprint("E", "m", [Frame(file=SGL, line=9, function="f")])[0]
    assert fingerprint("F", "m", [Frame(file=SGL, line=9, function="f")])[0] != base
    assert fingerprint("E", "n", [Frame(file=SGL, line=9, function="f")])[0] != base
    assert fingerprint("E", "m", [Frame(file=SGL, line=9, function="g")])[0] != base


def test_only_the_first_sentence_counts() -> None:
    assert fingerprint("E", "It broke. Try again.")[0] == fingerprint("E", "It broke. Ask.")[0]
