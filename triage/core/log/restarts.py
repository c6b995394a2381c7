"""Whether a line shows that the engine starts again in the same log.

In:  lines, and the evidence so far. Out: yes or no; names of launches.
Not: which start counts (gather.py).

Docker's and systemd's restart policies, crash loops of Kubernetes, torchrun and shell loops
append one start to another. Several nodes, containers or servers in one log are none.
"""

from __future__ import annotations

from triage.core.log.evidence import Generation, source_of
from triage.core.log.landmarks import DUMP
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
_NAMES = ("node_rank", "port", "disaggregation_mode")
_VALUE = regex(r"['\"]?[=:] ?['\"]?([\w-]+)")


def launch_name(line: Line) -> str:
    """Who printed a dump of arguments: two with one name are two starts of one launch."""
    return " ".join((source_of(line.wrapper), *_named(line.text)))


def _named(text: str) -> list[str]:
    """What tells two launches apart, in the order of the text."""
    found: list[tuple[int, str]] = []
    for name in _NAMES:
        at = text.find(name)
        while at >= 0:
            end = at + len(name)
            begins = not at or not (text[at - 1].isalnum() or text[at - 1] == "_")
            if begins and (value := _VALUE.match(text, end)) is not None:
                found.append((at, f"{name}={value[1]}"))
            at = text.find(name, end)
    return [named for _, named in sorted(found)]


def is_again(generation: Generation, line: Line, phase: str) -> bool:
    """Whether a source that had failed starts again with this line; `phase` is the landmark's."""
    if source_of(line.wrapper) not in generation.broken and not generation.told_to_end:
        return False
    if phase in ("arg-parse", "arg-validation"):
        # A rank that had not written yet is late: each says which backend it takes.
        return line.rank == "main" or line.rank in generation.timeline.phases
    if _START.search(line.text):
        return True
    if not _BEGIN.match(line.text):
        return False
    before = generation.timeline.phases.get(line.rank, "")
    return bool(before) and order(before) >= order("dist-init")


def is_late(generation: Generation, line: Line) -> bool:
    """Whether the line, an early one, comes when its source has been past that for long.

    The end of a start may have left no trace, and a head that is cut off hides its beginning.
    """
    source = source_of(line.wrapper)
    known = [name for name in generation.streams if name.startswith(source)]
    mine = generation.spans[source][0] < line.number if source in generation.spans else False
    if not mine or (generation.streams and (not known or line.text.startswith(DUMP))):
        return False
    phases = generation.timeline.phases.values()
    return any(order(phase) >= order("dist-init") for phase in phases)
