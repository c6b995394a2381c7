"""Preconditions of remedies against a launch."""

from __future__ import annotations

import pytest

from triage.core.config import Config
from triage.core.handover.needs import Truth, is_need, judge

CONFIG = Config.of({"enable-symm-mem": True, "attention-backend": "fa3", "tp-size": "8"})
FACTS = {"engine-version": "0.5.4", "gpu": "B300", "ranks": "8"}


@pytest.mark.parametrize(
    ("need", "truth", "fact"),
    [
        ("--enable-symm-mem", Truth.HOLDS, ""),
        ("--dp-size", Truth.CONTRADICTED, "the launch does not set --dp-size"),
        ("no --dp-size", Truth.HOLDS, ""),
        ("no --tp-size", Truth.CONTRADICTED, "the launch has --tp-size 8"),
        ("no --enable-symm-mem", Truth.CONTRADICTED, "the launch has --enable-symm-mem"),
        ("--attention-backend fa3|fa4", Truth.HOLDS, ""),
        (
            "--attention-backend triton",
            Truth.CONTRADICTED,
            "the launch has --attention-backend fa3",
        ),
        ("engine-version >= 0.5.4", Truth.HOLDS, ""),
        ("engine-version >= 0.5.10", Truth.CONTRADICTED, "engine-version is 0.5.4"),
        ("engine-version < 0.5.10", Truth.HOLDS, ""),
        ("gpu = B200|B300", Truth.HOLDS, ""),
        ("gpu = H100", Truth.CONTRADICTED, "gpu is B300"),
        ("ranks > 1", Truth.HOLDS, ""),
        ("driver >= 580", Truth.UNKNOWN, ""),
    ],
)
def test_a_condition_holds_is_contradicted_or_is_not_known(
    need: str, truth: Truth, fact: str
) -> None:
    assert is_need(need)
    judged = judge(need, CONFIG, FACTS)
    assert (judged.truth, judged.fact) == (truth, fact)


def test_without_a_configuration_a_flag_is_not_known() -> None:
    assert judge("--dp-size", None, {}).truth is Truth.UNKNOWN


def test_other_texts_are_no_conditions() -> None:
    assert not is_need("a modern GPU")
    assert not is_need("dp-size")
