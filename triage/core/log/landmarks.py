"""Which line says that a startup reached a phase, and how far each rank came.

In:  Line values. Out: phases, the ready line, a timeline per rank.
Not: errors (endings.py, tracebacks.py) or the phase of a failure's frames (frames.py).

Source: log calls of SGLang 0.5.23 and older, and of vLLM; an end line opens the
phase that follows it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from triage.core.log.lines import Line
from triage.core.phases import order
from triage.core.records import dataclass, field
from triage.core.regex import regex

READY = ("The server is fired up and ready to roll!", "Application startup complete.")
# The main process of a node other than the first has its ranks up, and waits for their end.
JOINED = ("Dummy health check server started", "Dummy health check server scheduled")
DUMP = "server_args="

# The start of a line -> the phase that the process is in from there on.
_STARTS: tuple[tuple[str, str], ...] = (
    (DUMP, "config-load"),
    ("Using default HuggingFace chat template", "process-spawn"),
    ("Watchdog TokenizerManager initialized", "process-spawn"),
    ("Init torch distributed begin", "dist-init"),
    ("Init nccl begin", "dist-init"),
    ("Init parallel begin", "dist-init"),
    ("Init torch distributed ends", "model-construct"),
    ("Init parallel ends", "model-construct"),
    ("Memory baseline taken", "model-construct"),
    ("Load weight begin", "model-construct"),
    ("Multi-thread loading shards", "weight-load"),
    ("Loading safetensors checkpoint shards", "weight-load"),
    ("Loading pt checkpoint shards", "weight-load"),
    ("Load weight end", "kv-pool-init"),
    ("Using KV cache dtype", "kv-pool-init"),
    ("KV Cache is allocated", "kv-pool-init"),
    ("Mamba Cache is allocated", "kv-pool-init"),
    ("Memory pool end", "attn-backend-init"),
    ("Running FlashInfer autotune", "flashinfer-autotune"),
    ("FlashInfer autotune completed", "graph-capture"),
    ("Capturing batches (", ""),  # says nothing on its own: which graph?
    ("Capture cuda graph bs", "graph-capture"),
    ("Capture cuda graph num tokens", "prefill-graph-capture"),
    ("max_total_num_tokens=", "scheduler-init"),
    ("Tree cache initialized", "scheduler-init"),
    ("CommonKVBootstrapServer started", "pd-init"),
    ("Prefill register attempt", "pd-init"),
    ("Prefill instance failed to register", "pd-init"),
    ("Engine startup timings", "warmup-request"),
    ("INFO:     Started server process", "warmup-request"),
    ("INFO:     Uvicorn running on", "warmup-request"),
    ("Prefill batch", "warmup-request"),
    ("Start of prefill warmup", "warmup-request"),
    *((text, "warmup-request") for text in JOINED),
    (READY[0], "serving"),
    ("Attention backend not", "arg-validation"),
    ("DP attention is enabled", "arg-validation"),
    ("Use flashinfer_trtllm as MoE runner backend", "arg-validation"),
    ("FlashInfer TRTLLM MoE is enabled", "arg-validation"),
    ("Starting to load model", "model-construct"),  # from here on: vLLM
    ("Loading weights took", "memory-profiling"),
    ("Available KV cache memory", "kv-pool-init"),
    ("GPU KV cache size", "kv-pool-init"),
    ("Capturing CUDA graphs", "graph-capture"),
    ("Graph capturing finished", "scheduler-init"),
)
_HEAD = 4  # characters by which the starts are told apart: "DP a", "Init"
_BY_HEAD: dict[str, list[tuple[str, str]]] = {}
for _start, _phase in _STARTS:
    _BY_HEAD.setdefault(_start[:_HEAD], []).append((_start, _phase))
_CAPTURE = regex(
    r"Capture (?P<what>.{0,60}?)(?:CUDA|cuda|CPU|npu|NPU) graph (?P<edge>begin|end)\b",
    needs=(" graph begin", " graph end"),
)
_LAUNCHER = "launch_server.py"
_NAMED = ("vllm api server version", "sglang")
_VERSION = regex(
    r"(?:vLLM API server version|sglang(?: version)?[ :=v]+) ?(\d+\.\d+\.\d+\S*)", re.IGNORECASE
)

# In much of what a healthy server writes: such lines are read only near others (scan.Sink).
FREQUENT = ("Prefill batch", "sglang", "vLLM")
FREQUENT_RAW = tuple(text.encode() for text in FREQUENT)
# uvicorn colours the level, so that in the raw bytes it does not stand before its text.
LITERALS = frozenset(
    {start.removeprefix("INFO:     ") for start, phase in _STARTS if phase}
    | {"Capture ", READY[1], f"{_LAUNCHER}:"}
) - frozenset(FREQUENT)

# A warm-up has the server for itself, and ends before it tells how fast it decodes.
_BESIDE = regex(r"Prefill batch.{0,300}?#running-req: [1-9]", needs=("Prefill batch",))
_SERVES = regex(
    r"Decode batch\b.{0,300}?#running-req: \d"
    r"|(?:Engine \d+: )?Avg prompt throughput: [\d.]+ tokens/s",
    needs=("Decode batch", "Avg prompt throughput: "),
)
SERVES = (b"Decode batch", b"Avg prompt throughput: ")

# Every rank prints these; others only the first of them, or the main process.
_EACH = ("Init torch distributed ", "Init parallel ", "Init nccl begin", "Memory baseline taken",
         "Load weight ", "KV Cache is allocated", "Memory pool end", "Capture ",
         "Running FlashInfer autotune", "FlashInfer autotune completed")  # fmt: skip


def is_of_each(text: str) -> bool:
    """Whether every rank prints this landmark, so that one who did not is not there yet."""
    return text.startswith(_EACH) and "graph bs" not in text and "graph num" not in text


def is_beside_others(text: str) -> bool:
    """Whether a batch was made while other requests ran: somebody uses the server."""
    return _BESIDE.match(text) is not None


def is_of_service(text: str) -> bool:
    """Whether a server that is up says how fast it answers."""
    return _SERVES.match(text) is not None


def phase_of(text: str) -> str:
    """The phase that this line opens, or "" if it is no landmark."""
    text = text.lstrip()
    for start, phase in _BY_HEAD.get(text[:_HEAD], ()):
        if text.startswith(start):
            return phase
    if text.startswith("Capture ") and (found := _CAPTURE.match(text)) is not None:
        if found["edge"] == "end":
            return "scheduler-init"
        what = found["what"].lower()
        if "draft" in what or "verify" in what or "mtp" in what:
            return "draft-graph-capture"
        return "prefill-graph-capture" if "prefill" in what else "graph-capture"
    if _LAUNCHER in text and "UserWarning" in text:
        return "arg-parse"
    return ""


@lru_cache(maxsize=128)  # of an engine that names no version, many lines are looked through
def version_of(text: str) -> str | None:
    """The version of an engine that the line names behind its name, if any."""
    small = text.lower()
    if len(small) != len(text):  # a character that has two small letters
        small = text
    for name in _NAMED:
        at = small.find(name)
        while at >= 0:
            if (found := _VERSION.match(text, at)) is not None:
                return found[1].rstrip(".,;:)'\"")
            at = small.find(name, at + 1)
    return None


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Reached:
    """A rank came into a phase at a line."""

    rank: str
    phase: str
    line: Line


@dataclass(slots=True)
class Timeline:
    """How far each rank has come, updated line by line.

    `last` is the last landmark of any rank, `steps` the changes of phase in order,
    `lines` the last line by which a rank showed that it goes on.
    """

    phases: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    steps: list[Reached] = field(default_factory=list)
    last: Reached | None = None
    _loads: dict[str, int] = field(default_factory=dict)
    _loading: set[str] = field(default_factory=set)  # ranks that began to load and did not end

    def mark(self, line: Line, phase: str) -> None:
        """The line is a landmark of this phase."""
        if len(self.phases) >= _RANKS and line.rank not in self.phases:
            return
        if line.text.startswith("Load weight begin"):
            self._begin_load(line.rank)
        elif line.text.startswith("Load weight end"):
            self._loading.discard(line.rank)
        if phase in ("model-construct", "weight-load") and self._loads.get(line.rank, 0) > 1:
            phase = "draft-worker-init"
        ranks = [line.rank]
        if phase == "weight-load" and not line.headed:
            # Rank 0 draws the bar for all of them, without a tag.
            tagged = [r for r in self.phases if r != "main"]
            ranks = [r for r in tagged if self.phases[r] == "model-construct"]
            if not ranks and tagged:
                self.last = Reached(line.rank, phase, line)
                return
            ranks = ranks or [line.rank]
        for rank in ranks:
            self._reach(rank, phase, line)

    def _begin_load(self, rank: str) -> None:
        """Count a load. A draft is loaded once the target is: its line comes behind an end.

        Where lines have lost their tags another rank begins as one has begun.
        """
        if rank != "main" or rank not in self._loading:
            self._loads[rank] = self._loads.get(rank, 0) + 1
        self._loading.add(rank)

    def _reach(self, rank: str, phase: str, line: Line) -> None:
        if phase != "weight-load" or "Completed" not in line.text:
            self.lines[rank] = line.number  # a bar is redrawn on the way out, too
        self.last = Reached(rank, phase, line)
        if self.phases.get(rank) != phase:
            self.phases[rank] = phase
            if len(self.steps) < _STEPS:
                self.steps.append(self.last)

    def phase(self, rank: str, *, tagged: bool = True) -> str:
        """The phase that the rank is in; of an untagged line, that of the last landmark.

        Once the HTTP server is up, all ranks are in the phase of the main process.
        """
        if not tagged:
            return self.last.phase if self.last else "unknown"
        main = self.phases.get("main", "unknown")
        own = self.phases.get(rank, main)
        return main if main in ("warmup-request", "serving") else own

    def passed(self, rank: str, line: int, *, tagged: bool, native: bool = False) -> bool:
        """Whether whoever printed this line went on afterwards.

        A line without a tag may be any rank's: it was survived if all ranks went on. A
        library's (`native`) hardly is the main process's.
        """
        own = self.lines.get(rank, 0) > line
        if tagged or rank != "main":
            return own
        ranks = [last for name, last in self.lines.items() if name != "main"]
        all_did = bool(ranks) and min(ranks) > line
        return all_did or (own and not (native and ranks))

    def furthest(self) -> str:
        """The latest phase that any rank reached."""
        known = [phase for phase in self.phases.values() if phase != "unknown"]
        return max(known, key=order, default="unknown")


_RANKS = 1024
_STEPS = 4000
