"""What a log says about the launch itself: its ranks and its configuration.

In:  the resolved arguments and the evidence of a log.
Out: configs, the number of ranks, rank lists as a diagnosis gives them.
Not: which rank failed (cascade.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.config import Config, Value
from triage.core.flags import FlagTable
from triage.core.log.evidence import Generation
from triage.core.log.ranks import by_number, members
from triage.core.regex import regex
from triage.core.server_args import (
    NOISE,
    NOISY_LISTS,
    ServerArgsDump,
    changed_flags,
    unknown_fields,
)

_SECRET = regex(
    r"key|secret|token_file|password", needs=("key", "secret", "token_file", "password")
)
_MOST_RANKS = 4096
_ANOTHER_NODE = regex(r"node_rank['\"]?[:=] ?[1-9]")


def config_of(dump: ServerArgsDump | None, table: FlagTable | None) -> Config:
    """The flags that differ from the engine's defaults: typed by the user, or resolved."""
    if dump is None:
        return Config()
    if table is None:
        return Config.of({_name(k): _plain(v) for k, v in dump.values.items() if _says(k, v)})
    return Config.of(changed_flags(dump, table))


def effective_of(
    dump: ServerArgsDump | None, table: FlagTable | None, config: Config
) -> tuple[tuple[str, str], ...]:
    """The same values as text, by name, with those that the table does not know."""
    values: dict[str, Value] = config.flag_values()
    if dump is not None and table is not None:
        for field in unknown_fields(dump, table):
            if _says(field, dump.values[field]) and not _SECRET.search(field):
                values.setdefault(_name(field), _plain(dump.values[field]))
        values |= _graphs(dump)
    return tuple(
        (name, " ".join(value) if isinstance(value, tuple) else str(value))
        for name, value in sorted(values.items())
    )


def _graphs(dump: ServerArgsDump) -> dict[str, Value]:
    """How graphs are captured: `cuda-graph-config.decode.backend`, where the dump has it."""
    config = dump.values.get("cuda_graph_config")
    phases = config.items() if isinstance(config, dict) else ()
    return {
        f"cuda-graph-config.{phase}.backend": str(sizes["backend"])
        for phase, sizes in phases
        if isinstance(sizes, dict) and isinstance(sizes.get("backend"), str)
    }


def _says(field: str, value: object) -> bool:
    if field in NOISE or field.startswith(NOISY_LISTS):
        return False
    return value not in (None, False, 0, "", [], (), {}) and isinstance(
        value, str | int | float | list | tuple
    )


def _name(field: str) -> str:
    return field.replace("_", "-")


def _plain(value: object) -> Value:
    if value is True:
        return True
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return str(value)


def total_ranks(dump: ServerArgsDump | None, generation: Generation) -> int:
    """How many scheduler processes the launch has: by its arguments, or by the tags seen."""
    size = 1
    if dump is not None:
        sizes = {key: _size(dump.values.get(key)) for key in ("tp_size", "pp_size", "dp_size")}
        # With data-parallel attention the replicas lie inside of the tensor-parallel group.
        if (
            dump.values.get("enable_dp_attention") is True
            or _size(dump.values.get("attn_dp_size")) > 1
        ):
            sizes["dp_size"] = 1
        size = sizes["tp_size"] * sizes["pp_size"] * sizes["dp_size"]
    elif generation.sizes:
        size = 1
        for width in generation.sizes.values():
            size *= max(1, width)
    return min(max(size, len(members(generation.tags)), 1), _MOST_RANKS)


def _size(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def of_another_node(generation: Generation) -> bool:
    """Whether the log has no node but such as never say that the server is ready."""
    dumps = generation.dumps
    return bool(dumps) and all(_ANOTHER_NODE.search(text) is not None for _, text in dumps)


def ranks_of(found: Sequence[str], generation: Generation, total: int) -> tuple[str, ...]:
    """The ranks as a diagnosis names them: all alike, the tags by number, or "main"."""
    tags = sorted({rank for rank in found if rank != "main"}, key=by_number)
    if not tags:
        return ("main",)
    seen = set(members(generation.tags))
    # The log of one of several nodes has its own ranks only.
    complete = len(tags) >= total or _ANOTHER_NODE.search(generation.dump) is not None
    if len(tags) > 1 and complete and seen <= set(tags):
        return ("all",)
    return tuple(tags)
