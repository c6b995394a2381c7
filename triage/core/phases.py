"""The named stretches of a startup, in the order in which an engine passes them.

Source: the phase column of the failure taxonomy; SGLang 0.5.23 prints the
landmarks that log/landmarks.py recognises.
"""

from __future__ import annotations

# Earlier phases hide later ones: a launch that dies in `weight-load` says
# nothing about `graph-capture`.
PHASES: tuple[str, ...] = (
    "container",
    "import",
    "arg-parse",
    "arg-validation",
    "config-load",
    "tokenizer-processor",
    "process-spawn",
    "device-init",
    "dist-init",
    "model-construct",
    "weight-load",
    "draft-config-load",
    "draft-worker-init",
    "lora-init",
    "attn-backend-init",
    "memory-profiling",
    "kv-pool-init",
    "comm-buffer-init",
    "flashinfer-autotune",
    "graph-capture",
    "prefill-graph-capture",
    "draft-graph-capture",
    "scheduler-init",
    "pd-init",
    "router-start",
    "warmup-or-first-forward",
    "warmup-request",
    "serving",
    "unknown",
)

_ORDER = {phase: index for index, phase in enumerate(PHASES)}


def order(phase: str) -> int:
    """Place of the phase in a startup, from 0; unknown names come last."""
    return _ORDER.get(phase, len(PHASES))
