"""hardware.yaml, models.yaml and options.yaml: sources, units, names that exist."""

from __future__ import annotations

import re

import pytest

from triage.core.advice.values import Constant
from triage.knowledge import load_causes
from triage.knowledge.physics import (
    Quantity,
    constants_of,
    gpu_part,
    hardware,
    model_named,
    models,
    node_of,
    options,
)

UNIT = re.compile(r"(_bytes|_bytes_per_s|_per_s|_s|_w|_share|_factor)\Z")


def every_constant() -> list[Constant]:
    return [
        constant
        for gpu in hardware().gpus
        for form in ("int4", "nvfp4", "fp8", "bf16")
        for constant in constants_of(gpu, form)
    ]


def test_every_constant_has_a_unit_in_its_name_and_a_source() -> None:
    found = every_constant()
    assert len(found) > 100
    assert [c.name for c in found if not UNIT.search(c.name)] == []
    assert [c.name for c in found if len(c.source) < 5] == []


def test_a_constant_outside_its_own_range_is_refused() -> None:
    with pytest.raises(ValueError, match="between low and high"):
        Quantity(value=2.0, low=3.0, source="x")


def test_every_model_and_class_names_its_source() -> None:
    assert all(m.source and f.source for m in models() for f in m.formats)
    assert all(c.source for c in options().classes)


def test_causes_of_the_chances_exist_and_none_is_listed_twice() -> None:
    known = {cause.id for cause in load_causes()}
    listed = [cause for part in options().classes for cause in part.causes]
    assert set(listed) <= known
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("moonshotai/Kimi-K2.6", "Kimi-K2 (int4)"),
        ("/models/Kimi-K2.5-NVFP4/", "Kimi-K2 (nvfp4)"),
        ("nvidia/DeepSeek-R1-0528-FP4", "DeepSeek-V3 (nvfp4)"),
        ("deepseek-ai/DeepSeek-V3", "DeepSeek-V3 (fp8)"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen3-235B-A22B (fp8)"),
        ("zai-org/GLM-4.6", "GLM-4.6 (bf16)"),
        ("zai-org/GLM-4.5-Air", None),
        ("meta-llama/Llama-3.1-8B", None),
        ("", None),
    ],
)
def test_models_are_known_by_the_names_that_people_use(named: str, expected: str | None) -> None:
    found = model_named(named)
    assert (found[0].model(found[1]).name if found else None) == expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("B300", "B300-HGX"), ("NVIDIA B300 SXM6 AC", "B300-HGX"), ("NVIDIA H200", "H200-SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"), ("H100", "H100-SXM"), ("L4", None),
    ],
)  # fmt: skip
def test_gpus_are_known_by_what_the_driver_calls_them(named: str, expected: str | None) -> None:
    found = gpu_part(named)
    assert (found.name if found else None) == expected


def test_a_format_that_nobody_measured_gets_the_unknown_share() -> None:
    part = gpu_part("A100")
    assert part is not None
    reach = node_of(part, 8, "fp8").reach
    assert reach.expert_share == hardware().unknown_expert_share.value
