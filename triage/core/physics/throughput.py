"""Tokens a second of a layout, and how two layouts compare.

In:  Model, Node, Layout, Load, accepted tokens a step. Out: rates and their ratio.
Not: which layouts are worth comparing (triage.core.advice).
"""

from __future__ import annotations

from dataclasses import replace

from triage.core.physics.layout import Layout, Load
from triage.core.physics.model import Model
from triage.core.physics.node import Node
from triage.core.physics.step import Step, step


def tokens_per_s(made: Step, load: Load, accepted_tokens: float = 1.0) -> float:
    """Output tokens a second of all sequences; `accepted_tokens` a step, the bonus included."""
    return load.concurrency * accepted_tokens / made.seconds


def relative(model: Model, node: Node, old: Layout, new: Layout, load: Load) -> float:
    """Throughput of `new` over that of `old` at the same load and the same acceptance."""
    return step(model, node, old, load).seconds / step(model, node, new, load).seconds


def speculation_gain(
    model: Model, node: Node, layout: Layout, load: Load, accepted_tokens: float
) -> float:
    """Throughput with the load's verified tokens over that without speculation."""
    alone = step(model, node, layout, replace(load, verify_tokens=1)).seconds
    return accepted_tokens * alone / step(model, node, layout, load).seconds


def accepted_for(made: Step, load: Load, measured_tokens_per_s: float) -> float:
    """Tokens that a step must yield a sequence, if it takes the modelled time."""
    return measured_tokens_per_s * made.seconds / load.concurrency
