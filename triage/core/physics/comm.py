"""Bytes that one GPU sends in a step, and the latency of sending them.

In:  tokens, hidden size, GPUs, the kernel. Out: bytes and seconds of one collective.
Not: how often it runs (step.py).
"""

from __future__ import annotations

from triage.core.physics.layout import Reduce
from triage.core.physics.node import Node

ACTIVATION_BYTES = 2.0  # bf16
DISPATCH_BYTES, COMBINE_BYTES = 1.0, 2.0  # fp8 to the experts, bf16 back


def allreduce_bytes(tokens: float, hidden: int, gpus: int, reduce: Reduce) -> float:
    """Bytes sent per GPU: 2 S (n-1)/n; a switch that reduces makes it S (1 + 1/n)."""
    if gpus <= 1:
        return 0.0
    size = tokens * hidden * ACTIVATION_BYTES
    if reduce.in_switch:
        return size * (1 + 1 / gpus)
    return 2 * size * (gpus - 1) / gpus


def allreduce_latency_s(node: Node, reduce: Reduce, gpus: int) -> float:
    """Seconds of an all-reduce of next to nothing."""
    if gpus <= 1:
        return 0.0
    reach = node.reach
    if node.gpu.family == "blackwell-pcie":
        return reach.pcie_allreduce_s
    reduce = on_this_node(node, reduce)
    if reduce.short:
        return reach.multicast_allreduce_s
    return reach.nccl_allreduce_s if reduce is Reduce.NCCL else reach.custom_allreduce_s


def on_this_node(node: Node, reduce: Reduce) -> Reduce:
    """What becomes of it where no switch can reduce."""
    if node.gpu.multicast or not reduce.in_switch:
        return reduce
    return Reduce.FUSED if reduce is Reduce.FUSED_MULTICAST else Reduce.CUSTOM


def alltoall_bytes(tokens: float, hidden: int, gpus: int, per_token: int) -> float:
    """Bytes sent per GPU and layer to reach the experts of its share of tokens, and back."""
    if gpus <= 1:
        return 0.0
    away = (gpus - 1) / gpus
    return tokens / gpus * per_token * away * hidden * (DISPATCH_BYTES + COMBINE_BYTES)
