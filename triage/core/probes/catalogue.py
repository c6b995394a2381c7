"""The probes that there are, cheapest first.

In:  nothing. Out: PROBES, `named`.
Not: which causes they discriminate: the cause files name their probe.
"""

from __future__ import annotations

from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe: the question that it answers, about how long it takes, what it needs."""

    name: str
    question: str
    seconds: int  # on a node with GPUs
    torch: bool = True
    gpus: int = 1  # without them it says little; 0: none are needed
    model: bool = False  # takes its shapes from the model's config.json


PROBES = (
    Probe(
        name="multicast",
        question="Does the driver give multicast objects, which NVLS needs, over all GPUs?",
        seconds=2,
        torch=False,
        gpus=2,
    ),
    Probe(
        name="rendezvous",
        question="Do ranks of this machine find each other by its name, a port and a store?",
        seconds=8,
        gpus=0,
    ),
    Probe(
        name="graph-capture",
        question="Can a product be captured: warmed up, cold, over a second stream?",
        seconds=15,
    ),
    Probe(
        name="cublas-handle",
        question="Where can cuBLAS make its handle: on a thread, in a capture, short of memory?",
        seconds=15,
    ),
    Probe(
        name="allreduce",
        question="Does an all-reduce add up right: NVLS off and on, symmetric memory?",
        seconds=40,
        gpus=2,
    ),
    Probe(
        name="mla-absorb-bmm",
        question="Do the batched products of MLA work alone, down to which free memory?",
        seconds=60,
        model=True,
    ),
    Probe(
        name="moe-kernel",
        question="Are the weights of whole experts (EP) read faster than of slices (TP)?",
        seconds=60,
        model=True,
    ),
)
SELF_TEST = Probe(name="self-test", question="Is every way to end an outcome?", seconds=1,
                  torch=False, gpus=0)  # fmt: skip


def named(name: str) -> Probe | None:
    """The probe of that name; None if there is none."""
    return next((probe for probe in (*PROBES, SELF_TEST) if probe.name == name), None)
