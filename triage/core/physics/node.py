"""One node of equal GPUs, and how much of it kernels reach.

In:  nothing. Out: GpuModel, Node, Reach.
Not: where a figure comes from (triage/knowledge/hardware.yaml names a source for each).
"""

from __future__ import annotations

from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One GPU model, as its data sheet has it; rates per GPU, operations without sparsity."""

    name: str
    family: str  # ampere | hopper | blackwell | blackwell-pcie
    hbm_bytes: float
    hbm_bytes_per_s: float
    link_bytes_per_s: float  # one direction, all links to the other GPUs
    bf16_operations_per_s: float
    fp8_operations_per_s: float
    fp4_operations_per_s: float
    power_limit_w: float
    multicast: bool  # whether a switch can reduce (NVLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What kernels reach, as shares from 0 to 1 of the data sheet, and what a launch costs.

    `layer_s` is the serial cost of one layer in a captured graph, two small all-reduces
    of the custom kernel (`custom_allreduce_s` each) included. `eager_factor` multiplies it
    without graphs. `expert_share` is that of the experts' kernel for the model's format.
    """

    layer_s: float
    eager_factor: float
    dense_share: float
    kv_share: float
    expert_share: float
    link_share: float
    operations_share: float
    custom_allreduce_s: float
    multicast_allreduce_s: float
    nccl_allreduce_s: float
    pcie_allreduce_s: float
    alltoall_s: float  # of one launch; two a layer
    prefill_share: float  # of the bf16 rate that prompts reach, whatever the format
    draft_s: float  # drafting and host work of one step with speculation


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`count` equal GPUs that share one switch or one PCIe root."""

    gpu: GpuModel
    count: int
    reach: Reach
