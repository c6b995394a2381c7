"""What a description of a case may say, checked when it is read.

In:  tools/cases/<subject>.yaml. Out: Spec values, one a case.
Not: printing (case_startup.py, case_failure.py) or files (build_cases.py).

A file is a list of descriptions, or a mapping `{defaults: {...}, cases: [...]}`. The
file's name is the subject: the id of the cause to be found, or `healthy`, `hung-*`,
`interrupted-*`, `unknown*` where none is to be named. fixtures/README.md lists the keys.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml

Style = Literal["new", "mid", "old", "vllm"]
UNNAMED = ("healthy", "hung", "interrupted", "unknown")
VERSIONS: dict[str, str] = {"new": "0.5.23", "mid": "0.5.4", "old": "0.4.3", "vllm": "0.11.0"}
_EMPTY: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One exception of a chain: its text, its own frames, how it follows from the one before.

    `frames` are `file:line:function:code`, outermost first; `relation` is "cause" or "context".
    """

    error: str
    frames: tuple[str, ...] = _EMPTY
    relation: str = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One description; keys that are left out have these values."""

    case: str
    subject: str = ""
    note: str = ""
    url: str = ""
    style: Style = "new"
    version: str = ""
    model: str = "DeepSeek-R1"
    tp: int = 1
    dp: int = 1
    ep: int = 1
    pp: int = 1
    attn_dp: int = 1  # width of attention data parallelism; its ranks are TP ranks
    nodes: int = 1
    flags: dict[str, Any] = field(default_factory=dict)
    phase: str = "unknown"  # how far the failing ranks came, and the phase to be named
    reach: dict[str, str] = field(default_factory=dict)  # ranks that came another way far
    ranks: Any = "all"  # all | main | odd | one | list of indices
    before: tuple[str, ...] = _EMPTY
    lines: tuple[str, ...] = _EMPTY
    error: str = ""
    frames: tuple[str, ...] = _EMPTY
    chain: tuple[Link, ...] = ()
    base: str = ""  # preset of outer frames: a phase, or "none"; default: the phase's
    head: str = ""  # what stands before "Traceback"
    link: int = 0  # which exception of the chain is the reason
    wrapped: bool = False  # by the capture wrapper with its list of solutions
    end: Any = None  # keywords and lines that replace the usual end
    after: tuple[str, ...] = _EMPTY  # keywords and lines behind the end
    wrap: str = "none"
    ansi: bool = False
    cut: Any = None  # lines kept before the failure; negative: the log begins inside it
    restarts: int = 1
    generations: tuple[dict[str, Any], ...] = ()
    weave: bool = False
    nccl: bool = False  # NCCL_DEBUG=INFO was set
    spec: bool = False  # a draft model is loaded and captured, too
    pd: str = ""  # prefill | decode
    root: str = ""  # the line to be named is the first with this text
    cause: Any = ""  # other than the subject; null: none
    expect: dict[str, Any] = field(default_factory=dict)
    known_miss: bool = False

    @property
    def name(self) -> str:
        """The folder of the case."""
        subject = self.subject
        for prefix in UNNAMED:
            if subject == prefix or subject.startswith(f"{prefix}-"):
                subject = prefix
        return f"{subject}--{self.case}"

    @property
    def random(self) -> random.Random:
        """Chance that is the same whenever the case is built."""
        return random.Random(self.name)

    @property
    def world(self) -> int:
        """How many scheduler processes there are."""
        return self.tp * self.pp * self.dp

    @property
    def fails(self) -> bool:
        """Whether anything goes wrong."""
        return bool(self.error or self.chain or self.lines)

    @property
    def tags(self) -> tuple[str, ...]:
        """The rank tags as the engine prints them; "" for a lone scheduler."""
        if self.style == "vllm":
            return tuple(f"Worker_TP{i}" if self.tp > 1 else "EngineCore_DP0"
                         for i in range(self.tp))  # fmt: skip
        tags = []
        for dp in range(self.dp):
            for pp in range(self.pp):
                for tp in range(self.tp):
                    parts = []
                    if self.dp > 1:
                        parts.append(f"DP{dp}")
                    elif self.attn_dp > 1:
                        parts.append(f"DP{tp // max(1, self.tp // self.attn_dp)}")
                    if self.pp > 1:
                        parts.append(f"PP{pp}")
                    if self.tp > 1:
                        parts.append(f"TP{tp}")
                    if self.ep > 1:
                        parts.append(f"EP{tp // max(1, self.tp // self.ep)}")
                    tags.append(" ".join(parts))
        return tuple(tags)

    @property
    def failing(self) -> tuple[int, ...]:
        """Indices of the schedulers that fail; empty if only the main process does."""
        if self.ranks == "main":
            return ()
        if self.ranks == "all":
            return tuple(range(self.world))
        if self.ranks == "one":
            return (self.random.randrange(self.world),)
        if self.ranks == "odd":
            return tuple(range(1, self.world, 2))
        return tuple(int(index) for index in self.ranks)

    def generation(self, changes: dict[str, Any]) -> Spec:
        """The same description with these keys changed: one start among several."""
        return _spec({**_mapping(self), **changes}, self.subject, where=self.name)


def load_specs(path: Path) -> list[Spec]:
    """The descriptions of one file, in order. Errors: ValueError, with file and case."""
    content = yaml.safe_load(path.read_text())
    defaults = content.get("defaults", {}) if isinstance(content, dict) else {}
    cases = content["cases"] if isinstance(content, dict) else content
    return [_spec({**defaults, **case}, path.stem, where=str(path)) for case in cases or ()]


def _mapping(spec: Spec) -> dict[str, Any]:
    return {item.name: getattr(spec, item.name) for item in fields(spec)}


def _spec(raw: dict[str, Any], subject: str, *, where: str) -> Spec:
    known = {item.name for item in fields(Spec)}
    if unknown := sorted(set(raw) - known):
        raise ValueError(f"{where}: {raw.get('case')}: unknown keys {', '.join(unknown)}")
    values = {**raw, "subject": subject}
    for key in ("before", "lines", "frames", "after", "generations"):
        item = values.get(key, ())
        values[key] = tuple([item] if isinstance(item, str) else item)
    values["chain"] = tuple(map(_link, values.get("chain", ())))
    spec = Spec(**values)
    if not spec.version:
        spec = replace(spec, version=VERSIONS[spec.style])
    return replace(spec, version=str(spec.version))


def _link(raw: Link | dict[str, Any]) -> Link:
    if isinstance(raw, Link):
        return raw
    return Link(**{**raw, "frames": tuple(raw.get("frames", ()))})
