"""Flags under other names: of older releases, of other engines, and slips of the pen.

In:  a flag that a remedy or a command names, and what the launched engine knows.
Out: changes under the names that this engine takes; replacements of refused options.
Not: which spellings a version accepts (triage.core.flags).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.core.config import Change, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.flags import FlagTable, Known, Unknown
from triage.core.regex import regex

# A flag and value of today -> the flag that did the same before it.
_OLDER: dict[tuple[str, Value | None], tuple[str, Value | None]] = {
    ("cuda-graph-backend-decode", "disabled"): ("disable-cuda-graph", True),
    ("cuda-graph-backend-prefill", "disabled"): ("disable-piecewise-cuda-graph", True),
    ("cuda-graph-max-bs-decode", None): ("cuda-graph-max-bs", None),
    ("cuda-graph-bs-decode", None): ("cuda-graph-bs", None),
    ("enforce-disable-flashinfer-allreduce-fusion", True): (
        "disable-flashinfer-allreduce-fusion", True
    ),
    ("attn-dp-size", None): ("dp-size", None),
}  # fmt: skip
# Options that a release dropped, or that another engine has -> what does the same here.
# The value of a renamed option is kept where the successor has none.
_SUCCESSORS: dict[str, tuple[str, Value | None]] = {
    "enable-deepep-moe": ("moe-a2a-backend", "deepep"),
    "enable-flashinfer-mla": ("attention-backend", "flashinfer"),
    "enable-flashinfer-cutlass-moe": ("moe-runner-backend", "flashinfer_cutlass"),
    "enable-flashinfer-trtllm-moe": ("moe-runner-backend", "flashinfer_trtllm"),
    "enable-flashmla": ("attention-backend", "flashmla"),
    "disable-piecewise-cuda-graph": ("cuda-graph-backend-prefill", "disabled"),
    "piecewise-cuda-graph-max-tokens": ("cuda-graph-max-bs-prefill", None),
    "cuda-graph-max-bs": ("cuda-graph-max-bs-decode", None),
    "cuda-graph-bs": ("cuda-graph-bs-decode", None),
    "enforce-eager": ("cuda-graph-backend-decode", "disabled"),
    "gpu-memory-utilization": ("mem-fraction-static", None),
    "tensor-parallel-size": ("tp-size", None),
    "pipeline-parallel-size": ("pp-size", None),
    "data-parallel-size": ("dp-size", None),
    "max-model-len": ("context-length", None),
    "max-num-seqs": ("max-running-requests", None),
    "max-num-batched-tokens": ("max-prefill-tokens", None),
    "nsa-prefill-backend": ("dsa-prefill-backend", None),
    "nsa-decode-backend": ("dsa-decode-backend", None),
    "tp": ("tp-size", None),
    "dp": ("dp-size", None),
    "pp": ("pp-size", None),
    "ep": ("ep-size", None),
}
_REFUSED = regex(r"unrecognized arguments?: (?P<words>.+)")
_NAMED = regex(r"--?[A-Za-z][\w-]*")
_MOST = 6


def older(change: Change, fields: Collection[str], table: FlagTable | None) -> Change | None:
    """The change under the name that an engine with these fields takes; None if it has none.

    Args:
        change: A change under today's names.
        fields: Names of the arguments that the engine printed; empty if they are not known.
        table: The flags of the newest version.
    """
    if not fields or table is None or isinstance(change, SetEnv | UnsetEnv):
        return change
    spec = table.specs.get(change.name)
    if spec is None or spec.field in fields:
        return change
    value = change.value if isinstance(change, SetFlag) else None
    for key in ((change.name, value), (change.name, None)):
        name, other = _OLDER.get(key, ("", None))
        if name and name.replace("-", "_") in fields:
            if isinstance(change, SetFlag):
                return SetFlag(name, change.value if other is None else other)
            return UnsetFlag(name)
    # Leaving out a flag that the engine does not have changes nothing: propose says so.
    return change if isinstance(change, UnsetFlag) else None


def refused_options(message: str) -> tuple[str, ...]:
    """The options of the engine's "unrecognized arguments", as they were written."""
    found = _REFUSED.search(message)
    return tuple(dict.fromkeys(_NAMED.findall(found["words"])))[:_MOST] if found else ()


def replacements(
    option: str, values: dict[str, Value], table: FlagTable
) -> Sequence[tuple[str, tuple[Change, ...]]]:
    """What may stand in place of an option that the engine refuses, the likeliest first.

    Each with a sentence; a value that the command has is kept. The last is to leave it out.
    """
    name = option.lstrip("-").replace("_", "-")
    own = next((n for n in (name, option.lstrip("-"), option) if n in values), name)
    value = values.get(own, True)
    found: list[tuple[str, tuple[Change, ...]]] = []
    gone: tuple[Change, ...] = (UnsetFlag(own),)
    if name in _SUCCESSORS:
        successor, new = _SUCCESSORS[name]
        set_to = value if new is None else new
        if not (new is None and set_to is True and own not in values):
            say = f"Replace {option} by its successor --{successor}"
            found.append((say, (*gone, SetFlag(successor, set_to))))
        else:
            found.append((f"Replace {option} by its successor --{successor}", ()))
    match table.lookup(name):
        case Known(spec, _, negated):
            set_to = value if own in values else (not negated if spec.style == "switch" else "")
            changes = (*gone, SetFlag(spec.name, set_to)) if set_to != "" else ()
            if spec.name == own:
                changes = ()  # the reader has put the spelling right already
            found.append((f"Write {option} as --{spec.name}", changes))
        case Unknown((close, *_)) if name not in _SUCCESSORS:
            known = table.lookup(close)
            if isinstance(known, Known):
                set_to = value if own in values else (True if known.spec.style == "switch" else "")
                changes = (*gone, SetFlag(known.spec.name, set_to)) if set_to != "" else ()
                found.append((f"Write {option} as {close}, if that was meant", changes))
        case _:
            pass
    found.append((f"Leave {option} out", gone))
    return found
