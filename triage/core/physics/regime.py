"""What limits a step, and how far counted bytes support that it is the memory.

In:  a Step, its Node. Out: a Regime; the share of the memory's bandwidth.
Not: counters of a real GPU; only they show what a kernel waits for.
"""

from __future__ import annotations

from enum import StrEnum

from triage.core.physics.node import Node
from triage.core.physics.step import Step

HBM_BOUND = 0.60  # share of the bandwidth from which "bound by memory" may be said


class Regime(StrEnum):
    """The largest term of a step."""

    LATENCY = "latency/launch"
    KERNEL = "kernel"  # reads memory, well below what the memory could give
    HBM = "HBM"
    COMPUTE = "compute"
    LINK = "comms"


def regime(made: Step, node: Node) -> Regime:
    """What the step spends most of its time on."""
    memory = made.dense_s + made.kv_s + (0.0 if made.experts_by_compute else made.experts_s)
    terms = {
        Regime.LATENCY: made.layers_s + made.draft_s,
        Regime.LINK: made.link_s + made.alltoall_s,
        Regime.COMPUTE: (made.experts_s if made.experts_by_compute else 0.0) + made.prefill_s,
        Regime.KERNEL: memory,
    }
    largest = max(terms, key=lambda one: terms[one])
    if largest is Regime.KERNEL and hbm_share(made, node, made.seconds) >= HBM_BOUND:
        return Regime.HBM
    return largest


def hbm_share(made: Step, node: Node, seconds: float) -> float:
    """Counted bytes of a step over what the memory gives in `seconds`; 0 to 1."""
    return made.hbm_bytes / seconds / node.gpu.hbm_bytes_per_s
