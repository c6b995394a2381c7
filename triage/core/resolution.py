"""What the engine made of a configuration before it started a process.

In:  the answer of the engine's own resolution (triage.launch.resolver), or of the knowledge base.
Out: Resolution; its effective key; which flags were not taken as given.
Not: asking (triage.launch.resolver), or comparing two of them field by field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from hashlib import blake2b
from typing import Literal

from triage.core.config import Config, Value
from triage.core.diagnosis import Frame
from triage.core.flags import FlagTable
from triage.core.records import dataclass
from triage.core.server_args import NOISE, NOISY_LISTS

Verdict = Literal["accepted", "rejected", "unknown"]
Basis = Literal["engine", "knowledge"]

# What resolution cannot see, whatever its verdict. Source: the order of a startup: it ends
# before the first scheduler is started.
MASKS = (
    "the tokenizer and the chat template",
    "everything that a scheduler does: devices, weights, memory, graphs, the first request",
)
# Where triage puts a launch, and what the engine draws by chance or makes of a clock.
_PLACE = frozenset(["host", "port", "nccl_port", "random_seed", "dist_init_addr"])
_RUN = frozenset(["SGLANG_RUN_ID", "TMPDIR", "PROMETHEUS_MULTIPROC_DIR", "TRIAGE_LAUNCH"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The engine's answer to one configuration, or the knowledge base's.

    `accepted`: the configuration passed everything that the engine checks before it starts
    a process; that is no proof that it starts. `resolved` holds the value of every field
    then, in the engine's names. `env` holds the variables that the engine set meanwhile,
    None where it removed one. `rejected`: a launch ends in the same way; `exception`,
    `message` and `frames` (outermost first) say how. `unknown`: nothing is known, and
    `reason` says why. `log` is what the engine printed, as a launch would have.
    """

    verdict: Verdict
    basis: Basis = "engine"
    version: str = ""  # of the engine, "" if unknown
    phase: str = "unknown"
    exit_code: int | None = None  # that a launch would have ended with
    exception: str = ""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    resolved: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    rules: tuple[str, ...] = ()  # ids of the constraints that reject it, of basis "knowledge"
    reason: str = ""
    seconds: float = 0.0
    log: str = ""

    @property
    def where(self) -> Frame | None:
        """The innermost frame of the exception."""
        return self.frames[-1] if self.frames else None


@dataclass(frozen=True, slots=True)
class Override:
    """A flag that the user gave and the engine did not take as given."""

    flag: str
    given: Value
    became: object


def unknown(reason: str, *, seconds: float = 0.0, log: str = "") -> Resolution:
    """Nothing is known, and why."""
    return Resolution(verdict="unknown", reason=reason, seconds=seconds, log=log)


def fields_of(resolution: Resolution) -> dict[str, object]:
    """The resolved fields that are no chance, no place of the launch, and no computed list."""
    return {
        name: value
        for name, value in resolution.resolved.items()
        if name not in NOISE and name not in _PLACE and not name.startswith(NOISY_LISTS)
    }


def effective_key(resolution: Resolution, env: Mapping[str, str]) -> str:
    """Equal for configurations that are the same to the engine; "" unless it is accepted.

    Args:
        resolution: Of the engine itself; what the knowledge base says is not enough.
        env: The variables that the launch is given on top of the user's own.
    """
    if resolution.verdict != "accepted" or resolution.basis != "engine":
        return ""
    given = {name: value for name, value in env.items() if name not in _RUN}
    made = {name: value for name, value in resolution.env.items() if name not in _RUN}
    kept = {name: v for name, v in resolution.resolved.items() if name not in _PLACE}
    text = json.dumps([kept, given | made], sort_keys=True, default=str)
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def overrides(config: Config, resolution: Resolution, table: FlagTable) -> tuple[Override, ...]:
    """The flags of the configuration whose resolved value is another one than was given."""
    found = []
    for flag in config.flags:
        spec = table.specs.get(flag.name)
        if spec is None or spec.field not in resolution.resolved or spec.field in _PLACE:
            continue
        became = resolution.resolved[spec.field]
        if not _same(flag.value, became):
            found.append(Override(flag.name, flag.value, became))
    return tuple(found)


def _same(given: Value, became: object) -> bool:
    """Whether a value is the one that the words say, as far as words can say it."""
    if isinstance(given, bool):
        return given == became
    if isinstance(given, tuple):
        listed = became if isinstance(became, list | tuple) else [became]
        return len(listed) == len(given) and all(map(_same, given, listed))
    if isinstance(became, bool):
        return given.lower() in (str(became).lower(), str(int(became)))
    if isinstance(became, int | float):
        return _number(given) == became
    if isinstance(became, dict | list):
        try:
            return bool(json.loads(given) == became)
        except ValueError:
            return given == str(became)
    return given == str(became)


def _number(text: str) -> float | None:
    """The number that the words say; engines take 4k for 4096 or 4000, so both never differ."""
    try:
        return float(text)
    except ValueError:
        return None
