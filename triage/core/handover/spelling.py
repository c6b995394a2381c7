"""Flags under other names: of older releases, of other engines, and slips of the pen.

In:  a flag that a remedy or a command names, and what the launched engine knows.
Out: changes under the names that this engine takes; advice on options that it refuses.
Not: which spellings a version accepts (triage.core.flags).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from triage.core.config import Change, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.diagnosis import Advice
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
# What one switches off today was switched on before.
_OPT_IN: dict[tuple[str, Value | None], str] = {
    ("cuda-graph-backend-prefill", "disabled"): "enable-piecewise-cuda-graph",
}
# Flags that vLLM has under another name; those that are the same stand in _SHARED.
_VLLM: dict[str, str] = {
    "tp-size": "tensor-parallel-size",
    "pp-size": "pipeline-parallel-size",
    "dp-size": "data-parallel-size",
    "context-length": "max-model-len",
    "mem-fraction-static": "gpu-memory-utilization",
    "max-running-requests": "max-num-seqs",
    "max-prefill-tokens": "max-num-batched-tokens",
    "disable-cuda-graph": "enforce-eager",
}
_VLLM_FUSION_OFF = '{"pass_config": {"fuse_allreduce_rms": false}}'
_SHARED = frozenset(
    ("disable-custom-all-reduce", "trust-remote-code", "quantization", "kv-cache-dtype", "dtype",
     "load-format", "download-dir", "port", "host", "reasoning-parser", "enable-lora")
)  # fmt: skip
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
_NAMED = regex(r"--[A-Za-z][\w-]*")
_OPTION = regex(r"--?[A-Za-z][\w-]*\Z")
_WHOLE = 150  # fields of a dump from which one can tell what an engine does not have
_AMBIGUOUS = regex(r"ambiguous option: (?P<option>\S+) could match (?P<names>.+)")
_MOST = 6
_DROPPED = "user-confirmed"  # reports: servers start without the option
_RESPELLED = "maintainer-confirmed"  # releases answer so: the option goes by another name


def older(
    change: Change, fields: Collection[str], table: FlagTable | None, values: Mapping[str, Value]
) -> Change | None:
    """The change under the name that an engine with these fields takes; None if it has none.

    Args:
        change: A change under today's names.
        fields: Names of the arguments that the engine printed; empty if they are not known.
        table: The flags of the newest version.
        values: The flags of the launch.
    """
    if not fields or table is None or isinstance(change, SetEnv | UnsetEnv):
        return change
    spec = table.specs.get(change.name)
    if spec is None or spec.field in fields:
        return change
    value = change.value if isinstance(change, SetFlag) else None
    if (change.name, value) in _OPT_IN and _OPT_IN[change.name, value] in values:
        return UnsetFlag(_OPT_IN[change.name, value])
    for key in ((change.name, value), (change.name, None)):
        name, other = _OLDER.get(key, ("", None))
        if name and name.replace("-", "_") in fields:
            if isinstance(change, SetFlag):
                return SetFlag(name, change.value if other is None else other)
            return UnsetFlag(name)
    # Leaving out a flag that the engine does not have changes nothing: propose says so.
    return None if isinstance(change, SetFlag) and len(fields) >= _WHOLE else change


def vllm(change: Change, table: FlagTable | None) -> Change | None:
    """The change as vLLM takes it; None if it has no such flag."""
    if isinstance(change, SetEnv | UnsetEnv):
        return change
    eager = ("cuda-graph-backend-decode", "disabled")
    if isinstance(change, SetFlag) and (change.name, change.value) == eager:
        return SetFlag("enforce-eager", value=True)
    if change.name == "enforce-disable-flashinfer-allreduce-fusion":
        return SetFlag("compilation-config", _VLLM_FUSION_OFF)
    if isinstance(change, UnsetFlag) and "flashinfer-allreduce-fusion" in change.name:
        return change  # there is no such flag, and so nothing to drop
    name = _VLLM.get(change.name, change.name)
    if name == change.name and name not in _SHARED and table and name in table.specs:
        return None
    return SetFlag(name, change.value) if isinstance(change, SetFlag) else UnsetFlag(name)


def ambiguous(message: str, values: Mapping[str, Value], table: FlagTable) -> Iterator[Advice]:
    """The full names that an abbreviation may stand for, one advice each."""
    found = _AMBIGUOUS.search(message)
    if found is None:
        return
    word, _, given = found["option"].partition("=")
    own = next((n for n in (word.lstrip("-"), word) if n in values), word.lstrip("-"))
    for name in _NAMED.findall(found["names"]):
        value = values.get(own, given or True)
        setting = _setting(name.lstrip("-"), value, table)
        if setting is not None or own not in values:
            yield Advice(
                say=f"Write {word} out as {name}",
                changes=(UnsetFlag(own), setting) if setting is not None else (),
                disposition="safe",
                cost="none",
                evidence="program-output",
            )


def refused_options(message: str) -> dict[str, Value]:
    """The options of the engine's "unrecognized arguments", as written, with their values."""
    found = _REFUSED.search(message)
    options: dict[str, Value] = {}
    last = ""
    for word in found["words"].split() if found else ():
        name, equals, text = word.partition("=")
        if _OPTION.match(name):
            last = name
            options.setdefault(last, text if equals else True)
        elif last:
            before = options[last]
            options[last] = word if before is True else f"{before} {word}"
    return dict(list(options.items())[:_MOST])


def refused(message: str, values: Mapping[str, Value], table: FlagTable) -> Iterator[Advice]:
    """What may stand in place of the options that the engine refuses, or their end.

    Args:
        message: The engine's message.
        values: The flags of the command; empty if it is not known.
        table: The flags of the engine's version.
    """
    options = refused_options(message)
    replaced: list[Change] = []
    dropped: list[Change] = []
    said: list[str] = []
    for option, printed in options.items():
        plain = option.lstrip("-")
        own = next((n for n in (plain, plain.replace("_", "-"), option) if n in values), plain)
        dropped.append(UnsetFlag(own))
        found = _successor(option, values.get(own, printed), table)
        if found is None:
            replaced.append(UnsetFlag(own))
            said.append(f"{option} goes")
        else:
            replaced += [] if found.name == own else [UnsetFlag(own)]
            replaced.append(found)
            said.append(f"{option} becomes --{found.name}")
    names = " and ".join(options)
    if any(isinstance(change, SetFlag) for change in replaced):
        yield Advice(
            say=f"Use the names of this release: {', '.join(said)}",
            changes=tuple(replaced),
            disposition="safe",
            cost="none",
            evidence=_RESPELLED,
        )
    if options:
        yield Advice(
            say=f"Leave {names} out, if this release has no such feature",
            changes=tuple(dropped),
            disposition="lossy",
            cost="what the option was meant to do",
            evidence=_DROPPED,
        )


def _successor(option: str, value: Value, table: FlagTable) -> SetFlag | None:
    """The flag of this release that does what the option did, with the option's value."""
    name = option.lstrip("-").replace("_", "-")
    if name in _SUCCESSORS:
        flag, fixed = _SUCCESSORS[name]
        return _setting(flag, value if fixed is None else fixed, table)
    match table.lookup(name):
        case Known(spec, _, negated):
            return _setting(spec.name, False if negated else value, table)
        case Unknown((close, *_)):
            known = table.lookup(close, suggest=False)
            return _setting(known.spec.name, value, table) if isinstance(known, Known) else None
        case _:
            return None


def _setting(flag: str, value: Value, table: FlagTable) -> SetFlag | None:
    """The flag with the value, if it takes such a one."""
    spec = table.specs.get(flag)
    switch = spec is not None and spec.style in ("switch", "bool-optional")
    return SetFlag(flag, value) if switch == isinstance(value, bool) else None
