"""Examinations as documents: triage.doctor/1, and what a session keeps of its machine.

In:  Facts and Outcomes. Out: plain values.
Not: text for a terminal (doctor_text.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from triage.core.doctor.checks import Finding, Outcome, findings
from triage.core.doctor.facts import Facts
from triage.core.machine.facts import Unavailable, known_or

_PACKAGES = ("sglang", "torch", "sglang-kernel", "sgl-kernel", "flashinfer-python",
             "flashinfer-cubin", "flashinfer-jit-cache", "triton", "transformers", "xgrammar",
             "nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-cublas", "nvidia-cublas-cu12",
             "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")  # fmt: skip


def doctor_document(target: str, facts: Facts, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What was found, what every check came to, and the machine."""
    outcomes = tuple(outcomes)
    return {
        "schema": "triage.doctor/1",
        "target": target or None,
        "findings": [finding_document(finding) for finding in findings(outcomes)],
        "checks": [
            {
                "id": outcome.check.id,
                "group": outcome.check.group,
                "state": outcome.state,
                "reason": outcome.reason,
            }
            for outcome in outcomes
        ],
        "machine": machine_document(facts),
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding, all keys."""
    return {
        "id": finding.id,
        "group": finding.group,
        "severity": finding.severity,
        "say": finding.say,
        "evidence": list(finding.evidence),
        "breaks": finding.breaks,
        "fix": finding.fix,
        "source": finding.source,
        "prevents": list(finding.prevents),
        "hardware": finding.hardware,
    }


def machine_document(facts: Facts) -> dict[str, Any]:
    """What machine it is; null where it cannot be said, with the reasons in `unavailable`."""
    gpus, python, host = facts.gpus, facts.python, facts.host
    reasons = {}
    document: dict[str, Any] = {
        "system": host.system,
        "kernel": host.kernel,
        "container": host.container,
        "memory_mib": known_or(host.memory_total_mib, None),
        "shm_mib": None if isinstance(host.shm, Unavailable) else host.shm.total_mib,
        "driver": None,
        "cuda": None,
        "gpus": None,
        "python": None,
        "torch_cuda": None,
        "packages": None,
    }
    if isinstance(gpus, Unavailable):
        reasons["gpus"] = gpus.reason
    else:
        document["driver"] = gpus.driver
        document["cuda"] = _dotted(known_or(gpus.cuda, ()))
        free = {reading.index: known_or(reading.memory_free_mib, None) for reading in gpus.readings}
        document["gpus"] = [
            {
                "index": gpu.index,
                "name": gpu.name,
                "capability": _dotted(known_or(gpu.capability, ())),
                "memory_mib": known_or(gpu.memory_total_mib, None),
                "free_mib": free.get(gpu.index),
            }
            for gpu in gpus.devices
        ]
    if isinstance(python, Unavailable):
        reasons["packages"] = python.reason
    else:
        document["python"] = _dotted(python.version)
        document["torch_cuda"] = known_or(python.torch_cuda, None)
        document["packages"] = {
            name: python.version_of(name) for name in _PACKAGES if python.version_of(name)
        }
    document["unavailable"] = reasons
    return document


def _dotted(numbers: tuple[int, ...]) -> str | None:
    return ".".join(map(str, numbers)) or None
