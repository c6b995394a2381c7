"""Models and nodes that tests of the physics share."""

from __future__ import annotations

from triage.core.physics.model import Model
from triage.core.physics.node import Node
from triage.knowledge.physics import gpu_part, model_named, node_of


def model(name: str = "Kimi-K2.6") -> Model:
    found = model_named(name)
    assert found is not None
    return found[0].model(found[1])


def node(gpu: str = "B300", count: int = 8, expert_format: str = "int4") -> Node:
    part = gpu_part(gpu)
    assert part is not None
    return node_of(part, count, expert_format)
