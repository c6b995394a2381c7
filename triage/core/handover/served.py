"""What a running server says of itself, in whatever form its version says it.

In:  /server_info, /v1/models, /metrics, the answers' own notes, and the log. Out: Served.
Not: asking (triage.launch.server) or judging (checks.py).

Source: SGLang 0.5.23 (`max_total_num_tokens` and `internal_states` in /server_info,
`spec_accept_length` in an answer's meta_info and as a gauge, `accept len:` in the log);
vLLM's log names the pool as `GPU KV cache size: N tokens`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from triage.core.regex import regex
from triage.core.server_args import find_dump

# Where the accept length may stand in /server_info, newest name first.
ACCEPT_KEYS = ("avg_spec_accept_length", "spec_accept_length")
# example  sglang:spec_accept_length{model_name="m"} 2.41
ACCEPT_METRIC = regex(
    r"(?m)^(?:sglang|vllm):spec\w*_accept(?:ance)?_length(?:\{[^}]*\})?\s+([\d.]+)"
)
# example  Decode batch, ... accept len: 2.41, accept rate: 0.60, ...
ACCEPT_LOG = regex(r"\baccept len: ([\d.]+)")
# example  max_total_num_tokens=4096, chunked_prefill_size=2048, ... context_len=512, ...
POOL_LOG = regex(r"\bmax_total_num_tokens=(\d+)")
CONTEXT_LOG = regex(r"\bcontext_len=(\d+)")
# example  GPU KV cache size: 163,840 tokens
POOL_VLLM = regex(r"\bGPU KV cache size: ([\d,]+) tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the server said; None where nothing says it.

    `speculation` is the algorithm, "" if it is off. `resolved` are the values that the
    engine runs with, by field. `random_weights`: it was told to load none.
    """

    version: str | None = None
    pool_tokens: int | None = None
    context: int | None = None
    speculation: str | None = None
    accept_length: float | None = None
    accept_source: str = ""
    random_weights: bool = False
    resolved: Mapping[str, object] = field(default_factory=dict)


def read_served(
    *,
    info: object = None,
    models: object = None,
    metrics: str = "",
    notes: Sequence[Mapping[str, object]] = (),
    log: str = "",
) -> Served:
    """All that these sources say together; a source that is missing costs only what it says.

    Args:
        info: The decoded answer of /server_info, or anything else.
        models: That of /v1/models.
        metrics: The text of /metrics.
        notes: What came with each answer (`meta_info`).
        log: The log up to now.
    """
    told: Mapping[str, object] = info if isinstance(info, Mapping) else {}
    dump = find_dump(log)
    resolved = dict(dump.values) if dump else {}
    resolved |= {name: told[name] for name in resolved.keys() & told.keys()}
    resolved = resolved or dict(told)
    accept, source = _accept(told, metrics, notes, log)
    algorithm = resolved.get("speculative_algorithm", told.get("speculative_algorithm", ...))
    speculation = None if algorithm is ... else str(algorithm or "")
    return Served(
        version=_text(told.get("version")),
        pool_tokens=_pool(told, log),
        context=_context(models, log, resolved),
        speculation=speculation,
        accept_length=accept,
        accept_source=source,
        random_weights=resolved.get("load_format") == "dummy",
        resolved=resolved,
    )


def _accept(
    info: Mapping[str, object], metrics: str, notes: Sequence[Mapping[str, object]], log: str
) -> tuple[float | None, str]:
    """The mean accept length, and who says so; what covers most requests goes first."""
    for state in _states(info):
        for key in ACCEPT_KEYS:
            if (value := _number(state.get(key))) is not None:
                return value, f"/server_info ({key})"
    counted = [
        (_number(n.get("spec_verify_ct")), _number(n.get("completion_tokens"))) for n in notes
    ]
    whole = [(steps, tokens) for steps, tokens in counted if steps and tokens]
    if whole:
        length = sum(tokens for _, tokens in whole) / sum(steps for steps, _ in whole)
        return length, "the answers (completion_tokens / spec_verify_ct)"
    own = [v for n in notes if (v := _number(n.get("spec_accept_length"))) is not None]
    if own:
        return sum(own) / len(own), "the answers (spec_accept_length)"
    if found := [float(v) for v in ACCEPT_METRIC.findall(metrics) if float(v) > 0]:
        return sum(found) / len(found), "/metrics"
    if found := [float(v.rstrip(".")) for v in ACCEPT_LOG.findall(log)]:
        return sum(found) / len(found), "the log (accept len)"
    return None, ""


def _states(info: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The records of /server_info that may hold figures of a running scheduler."""
    states = info.get("internal_states")
    if isinstance(states, Sequence) and not isinstance(states, str):
        yield from (s for s in states if isinstance(s, Mapping))
    yield info


def _pool(info: Mapping[str, object], log: str) -> int | None:
    """The tokens that fit into the KV pool; of several ranks the smallest."""
    found = [int(n) for n in POOL_LOG.findall(log)]
    found += [int(n.replace(",", "")) for n in POOL_VLLM.findall(log)]
    if not found:
        told = [_number(state.get("max_total_num_tokens")) for state in _states(info)]
        found = [int(n) for n in told if n]
    return min(found, default=None)


def _context(models: object, log: str, resolved: Mapping[str, object]) -> int | None:
    if found := CONTEXT_LOG.findall(log):
        return int(found[-1])
    match models:
        case {"data": [{"max_model_len": int(length)}, *_]} if length > 0:
            return length
    told = _number(resolved.get("context_length"))
    return int(told) if told else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
