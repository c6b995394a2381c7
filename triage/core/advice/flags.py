"""What the flags of a configuration mean for the layout of a step.

In:  a Config, GPUs of the node. Out: Layout; which flags the model does not know.
Not: what the engine decides by itself: only what the user set is read.
"""

from __future__ import annotations

from triage.core.config import Config, Value
from triage.core.physics.layout import Layout, Reduce

# Flags that change the layout or the load; everything else is not modelled.
KNOWN = frozenset(
    [
        "tp-size", "pp-size", "dp-size", "ep-size", "enable-dp-attention", "moe-a2a-backend",
        "enable-nccl-nvls", "disable-cuda-graph", "disable-decode-cuda-graph",
        "cuda-graph-backend-decode", "disable-custom-all-reduce",
        "enable-flashinfer-allreduce-fusion", "flashinfer-allreduce-fusion-backend",
        "kv-cache-dtype", "speculative-algorithm", "speculative-num-draft-tokens",
        "speculative-num-steps", "model-path",
    ]
)  # fmt: skip
# Flags that cannot change how fast a step is.
NEUTRAL = frozenset(
    [
        "host", "port", "trust-remote-code", "served-model-name", "tokenizer-path", "log-level",
        "tool-call-parser", "reasoning-parser", "api-key", "watchdog-timeout", "enable-metrics",
        "speculative-draft-model-path",
    ]
)  # fmt: skip
# All-to-all backends come with whole experts on each rank.
_NO_ALLTOALL = ("", "none")


def layout_of(config: Config) -> Layout:
    """The layout that these flags ask for; what is absent is off, widths are 1."""
    tensor = number(config.get("tp-size"), 1)
    alltoall = text(config.get("moe-a2a-backend")) not in _NO_ALLTOALL
    data = config.get("enable-dp-attention") is True and number(config.get("dp-size"), 1) > 1
    return Layout(
        tensor_parallel=tensor,
        pipeline_parallel=number(config.get("pp-size"), 1),
        expert_ranks=tensor if alltoall else number(config.get("ep-size"), 1),
        attention_data_parallel=data,
        alltoall=alltoall,
        reduce=_reduce(config),
        graphs=not _eager(config),
    )


def not_modelled(config: Config) -> tuple[str, ...]:
    """Flags and variables that may change the speed in a way that is not modelled."""
    flags = [f.name for f in config.flags if f.name not in KNOWN | NEUTRAL]
    return (*flags, *(f"env:{name}" for name, _ in config.env))


def verify_tokens(config: Config) -> int | None:
    """Tokens that a step verifies a sequence: 1 without speculation, None if it is not said."""
    if not speculates(config):
        return 1
    told = config.get("speculative-num-draft-tokens")
    if told is not None:
        return max(1, number(told, 1))
    steps = config.get("speculative-num-steps")
    return number(steps, 0) + 1 if steps is not None else None


def speculates(config: Config) -> bool:
    """Whether a speculative algorithm is set."""
    return text(config.get("speculative-algorithm")) not in ("", "none")


def number(value: Value | None, default: int) -> int:
    """The whole number of a flag's value, at least 1; the default if it is none."""
    try:
        return max(1, int(str(value)))
    except ValueError:
        return default


def text(value: Value | None) -> str:
    """The value in lower case; "" if it is absent or a switch."""
    return value.lower() if isinstance(value, str) else ""


def _reduce(config: Config) -> Reduce:
    """The small all-reduces: fused before NVLS before the engine's own before NCCL's."""
    backend = text(config.get("flashinfer-allreduce-fusion-backend"))
    if config.get("enable-flashinfer-allreduce-fusion") is True or backend not in ("", "none"):
        return Reduce.FUSED_MULTICAST if _multicast(config) else Reduce.FUSED
    if _multicast(config):
        return Reduce.MULTICAST
    if config.get("disable-custom-all-reduce") is True:
        return Reduce.NCCL
    return Reduce.CUSTOM


def _multicast(config: Config) -> bool:
    return config.get("enable-nccl-nvls") is True


def _eager(config: Config) -> bool:
    switches = ("disable-cuda-graph", "disable-decode-cuda-graph")
    return any(config.get(name) is True for name in switches) or (
        text(config.get("cuda-graph-backend-decode")) == "disabled"
    )
