"""What the engine made of a configuration, as JSON and as text for a terminal.

In:  a Resolution, the configuration, the Diagnosis of a rejection. Out: a dict, or lines.
Not: asking the engine (triage.session.resolve).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from triage.core.config import Config, Flag, words
from triage.core.diagnosis import Diagnosis
from triage.core.resolution import MASKS, Override, Resolution, fields_of
from triage.core.server_args import FILLED_IN
from triage.render.documents import Json, config_document, value_document
from triage.render.markdown import visible

WIDTH = 80
MAX_MOVED = 12  # fields named in the text; the JSON has all
# Source: `_set_envs_and_config` of SGLang 0.5.23, which sets these whatever the flags are.
_ALWAYS = frozenset(
    ["SGLANG_RUN_ID", "CUDA_DEVICE_MAX_CONNECTIONS", "CUTE_DSL_LOG_LEVEL", "TRTLLM_ENABLE_PDL",
     "CUTE_DSL_LOG_TO_CONSOLE", "SGLANG_USE_CUDA_IPC_TRANSPORT", "SGLANG_ENABLE_TORCH_COMPILE",
     "SGLANG_DISABLE_OUTLINES_DISK_CACHE", "SGLANG_ENABLE_DETERMINISTIC_INFERENCE"]
)  # fmt: skip


def resolution_document(
    resolution: Resolution,
    config: Config,
    *,
    diagnosis: Diagnosis | None,
    overridden: Sequence[Override],
    import_s: float = 0.0,
) -> dict[str, Json]:
    """`triage.resolution/1`: the verdict of the engine itself, or of the knowledge base."""
    r, where = resolution, resolution.where
    return {
        "schema": "triage.resolution/1",
        "verdict": r.verdict,
        "basis": r.basis,
        "engine": {"name": "sglang", "version": r.version},
        "phase": r.phase,
        "exit_code": r.exit_code,
        "signature": diagnosis.signature if diagnosis else None,
        "cause": diagnosis.cause if diagnosis else None,
        "title": diagnosis.title if diagnosis else "",
        "exception": r.exception,
        "message": r.message,
        "frame": None
        if where is None
        else {"file": where.file, "line": where.line, "function": where.function},
        "config": config_document(config),
        "overrides": [
            {"flag": o.flag, "given": value_document(o.given), "became": _json(o.became)}
            for o in overridden
        ],
        "resolved": {name: _json(value) for name, value in r.resolved.items()},
        "env": dict[str, Json](r.env),
        "rules": list[Json](r.rules),
        "masks": list[Json](MASKS),
        "reason": r.reason,
        "seconds": round(r.seconds, 3),
        "import_seconds": round(import_s, 2),
    }


def resolution_text(
    resolution: Resolution,
    *,
    diagnosis: Diagnosis | None,
    overridden: Sequence[Override],
    moved: Mapping[str, object],
) -> str:
    """The verdict, what was not taken as given, what is in effect besides, and what is not seen.

    `moved` are fields that the command does not set and that are not at their default.
    """
    r = resolution
    by = f"sglang {r.version}".strip() if r.basis == "engine" else "the knowledge base"
    lines = [f"{r.verdict} by {by} in {r.seconds:.1f} s, without a launch"]
    if r.verdict == "unknown":
        return _wrapped(f"unknown: {r.reason}", "  ")
    if r.verdict == "rejected":
        title = f"{diagnosis.cause}: {diagnosis.title}" if diagnosis and diagnosis.cause else ""
        lines += [_wrapped(f"  {title}", "    ")] if title else []
        said = f"{r.exception}: {r.message}" if r.exception else r.message
        lines.append(_wrapped(f"  {said}", "    "))
        if r.where:
            at = f"{r.where.file}:{r.where.line} in {r.where.function}"
            lines.append(f"  at {visible(at)}")
        lines += [f"  rule {rule}" for rule in r.rules]
        return "\n".join(lines)
    if overridden:
        lines.append("not taken as given")
        for o in overridden:
            given = " ".join(words(Flag(o.flag, o.given)))
            lines.append(_wrapped(f"  {given} -> {o.became}", "    "))
    if moved:
        lines.append("in effect without being given")
        for name, value in list(moved.items())[:MAX_MOVED]:
            lines.append(_wrapped(f"  {name} = {value}", "    "))
        if len(moved) > MAX_MOVED:
            lines.append(f"  and {len(moved) - MAX_MOVED} more: --json has all")
    env = {name: value for name, value in r.env.items() if name not in _ALWAYS}
    if env:
        lines.append("variables that the engine sets")
        lines += [f"  {name}={'' if v is None else visible(v)}" for name, v in env.items()]
    lines.append("not seen without a launch")
    lines += [_wrapped(f"  {mask}", "    ") for mask in MASKS]
    return "\n".join(lines)


def moved_besides(
    resolution: Resolution, config: Config, fields: Mapping[str, tuple[str, object]]
) -> dict[str, object]:
    """Fields that the command does not set and whose value is neither the default nor usual.

    `fields` maps a field to its flag and default, as the flag table has it.
    """
    given = {flag.name for flag in config.flags}
    found = {}
    for name, value in fields_of(resolution).items():
        flag, default = fields.get(name, ("", None))
        if not flag or flag in given or value in (default, None, False, "", [], {}):
            continue
        usual = FILLED_IN.get(name, default)
        if isinstance(default, tuple):
            default = list(default)
        if value not in (usual, default) and value != resolution.resolved.get("model_path"):
            found[name] = value
    return found


def _json(value: object) -> Json:
    """A value of the engine as JSON; what has no such form is its text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            items: dict[Any, Any] = value
            return {str(key): _json(one) for key, one in items.items()}
        case list() | tuple():
            return [_json(one) for one in value]
        case _:
            return str(value)


def _wrapped(text: str, later: str) -> str:
    return textwrap.fill(
        visible(" ".join(text.split("\n"))),
        WIDTH,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
