"""Whether a line shows that the engine starts again in the same log.

In:  lines, and the evidence so far. Out: yes or no; names of launches.
Not: which start counts (gather.py).

Docker's and systemd's restart policies, crash loops of Kubernetes, torchrun and shell loops
append one start to another. Several nodes, containers or servers in one log are none.
"""

from __future__ import annotations

from triage.core.log.evidence import Generation, source_of
from triage.core.log.lines import Line
from triage.core.phases import order
from triage.core.regex import regex

# What a fresh process, or who starts it, prints first.
_START = regex(
    r"vLLM API server version|[Ss]cheduled restart job|\.service: Start(?:ed|ing)\b"
    r"|systemd\[\d+\]: Start(?:ed|ing) |^Start(?:ed|ing) \S+\.service"
    r"|will restart worker group|Restarting worker group"
    r"|^Container image Copyright|^=+ (?:CUDA|PyTorch|SGLang|vLLM) =+$|^== (?:CUDA|PyTorch) ==$"
    r"|[Rr]e-?starting (?:the )?(?:server|engine|sglang|vllm|container|launch|in \d)"
    r"|[Rr]e-?starting (?:after|\(attempt|attempt)|^(?:Attempt|Try|Retry) \d+(?:/\d+)?:? ",
    needs=(
        "vLLM API server version",
        "cheduled restart job",
        ".service",
        "]: Start",
        "worker group",
        "Container image Copyright",
        "= ",
        "tarting ",
        "Attempt ",
        "try ",
        "Try ",
    ),
)
LITERALS = frozenset(
    ("API server version", "restart job", "Started ", "Starting ", "worker group",
     "Container image Copyright", "== CUDA ==", "== PyTorch ==", "estarting ", "Attempt ", "Retry ")
)  # fmt: skip
_BEGIN = regex(r"Init (?:torch distributed|parallel|nccl) begin", needs=(" begin",))
_NAME = regex(r"['\"]?\b(node_rank|port|disaggregation_mode)['\"]?[=:] ?['\"]?([\w-]+)")


def launch_name(line: Line) -> str:
    """Who printed a dump of arguments: two with one name are two starts of one launch."""
    return " ".join((source_of(line.wrapper), *(f"{k}={v}" for k, v in _NAME.findall(line.text))))


def is_again(generation: Generation, line: Line, phase: str) -> bool:
    """Whether a source that had failed starts again with this line; `phase` is the landmark's."""
    if source_of(line.wrapper) not in generation.broken and not generation.stop:
        return False
    if phase in ("arg-parse", "arg-validation") or _START.search(line.text):
        return True
    if not _BEGIN.match(line.text):
        return False
    before = generation.timeline.phases.get(line.rank, "")
    return bool(before) and order(before) >= order("dist-init")
