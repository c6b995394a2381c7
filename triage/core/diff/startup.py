"""What a log says between its first line and the ready line: sizes, decisions, versions, variables.

In:  cleaned lines in order (core.log.lines). Out: Startup.
Not: why it failed (core.log.diagnose), or what of it is noise (rules.py).

Source: the log calls of SGLang 0.5.23 and older, and NCCL's INFO lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from triage.core.diff.side import Decision, Reading
from triage.core.log.landmarks import DUMP, READY, Timeline, phase_of
from triage.core.log.lines import Line
from triage.core.log.ranks import by_number
from triage.core.records import dataclass
from triage.core.regex import regex
from triage.core.server_args import START, ServerArgsDump, find_dump

MOST_DECISIONS = 2000
LONGEST = 300  # characters of a decision
_BEFORE_DUMP = 160

_GB = r"(-?\d+(?:\.\d+)?) ?GB"
# Name -> (unit, pattern); a name that begins with "free " is what was left at that moment.
_SIZES = tuple(
    (name, unit, regex(pattern))
    for name, unit, pattern in (
        ("free before weights", "GB", rf"Load weight begin\. avail mem={_GB}"),
        ("weights", "GB", rf"Load weight end\..*? mem usage={_GB}"),
        ("free after weights", "GB", rf"Load weight end\..*? avail mem={_GB}"),
        ("KV pool tokens", "", r"KV Cache is allocated\..*?#tokens: (\d+)"),
        ("KV pool K", "GB", rf"KV Cache is allocated\..*?K size: {_GB}"),
        ("KV pool V", "GB", rf"KV Cache is allocated\..*?V size: {_GB}"),
        ("KV pool", "GB", rf"KV Cache is allocated\..*?KV size: {_GB}"),
        ("free after KV pool", "GB", rf"Memory pool end\. avail mem={_GB}"),
        ("free before decode graphs", "GB",
         rf"Capture (?:target decode )?(?:CUDA|cuda) graph begin.*? avail mem={_GB}"),
        ("free before prefill graphs", "GB",
         rf"Capture target prefill (?:CUDA|cuda) graph begin.*? avail mem={_GB}"),
        ("decode graphs", "GB",
         rf"Capture (?:target decode )?(?:CUDA|cuda) graph end.*? mem usage={_GB}"),
        ("prefill graphs", "GB",
         rf"Capture target prefill (?:CUDA|cuda) graph end.*? mem usage={_GB}"),
        ("max_total_num_tokens", "", r"max_total_num_tokens=(\d+)"),
        ("max_prefill_tokens", "", r"max_total_num_tokens=.*? max_prefill_tokens=(\d+)"),
        ("max_running_requests", "", r"max_total_num_tokens=.*? max_running_requests=(\d+)"),
        ("context_len", "", r"max_total_num_tokens=.*? context_len=(\d+)"),
    )
)  # fmt: skip
_SIZED = ("Load weight", "KV Cache is", "Memory pool end", "Capture ", "max_total_num_tokens=")
# Words by which the engine says that it chose; a line of its own, with a head.
_CHOICE = regex(
    r"\b(?:[Uu]s(?:e|es|ed|ing)|[Ee]nabl(?:e|es|ed|ing)|[Dd]isabl(?:e|es|ed|ing)"
    r"|[Ff]all(?:s|ing|en)? ?back|Fallback|[Dd]efault(?:s|ing|ed)?|[Oo]verrid(?:e|es|den|ing)"
    r"|[Ss]etting|[Ss]et to|[Rr]eset|[Aa]djusted|[Aa]uto(?:-\w+|matically)?|[Ss]elected"
    r"|[Ff]orc(?:e|es|ed|ing|ibly)|[Ii]gnor(?:e|ed|ing)|[Ss]kipp(?:ed|ing)|[Ii]nstead"
    r"|impl=\w+|[Cc]omponents)\b|type=\w+ForCausal\w+|type=\w+ForConditional\w+"
)
_VERSIONS = tuple(
    (name, regex(pattern))
    for name, pattern in (
        ("nccl", r"sglang is using nccl==([\w.]+)|NCCL version ([\w.+]+)"),
        ("transformers", r"Transformers version ([\w.+]+) is used"),
        ("python", r"/lib/python(\d\.\d+)/"),
        ("cuda", r"CUDA (?:Version|version|runtime)[:= ]+(\d+\.\d+)"),
        ("driver", r"[Dd]river [Vv]ersion:? (\d{3}\.\d+(?:\.\d+)?)"),
        ("flashinfer", r"flashinfer(?:[_-]python)?(?:==| version[: ]+)(\d+\.\d+[\w.]*)"),
        ("torch", r"torch(?:==| version[: ]+)(\d+\.\d+[\w.+]*)"),
    )
)
_ENV = tuple(
    regex(pattern)
    for pattern in (
        r"\b(NCCL_[A-Z0-9_]+) set by environment to ([^\s.]+)",
        r"environment variable ([A-Z][A-Z0-9_]{2,60})=(\S+)",
        r"\b((?:SGLANG|SGL|NCCL|CUDA)_[A-Z0-9_]{2,60}) is set\b()",
        r"\b[Ss]etting ((?:SGLANG|SGL|NCCL|CUDA)_[A-Z0-9_]{2,60})=(\S+?)[.,]?(?: |$)",
    )
)
_NAMES = ("NCCL_", "SGLANG_", "SGL_", "CUDA_")
_VERSIONED = ("nccl", "NCCL version", "version", "/lib/python", "==")


@dataclass(slots=True)
class Startup:
    """The facts of one start of the engine; lines after `over` are of no use."""

    over: bool = False
    dump: ServerArgsDump | None = None
    versions: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    _sizes: dict[str, tuple[str, dict[str, float]]] = field(default_factory=dict)
    _decisions: dict[str, tuple[int, str, dict[str, None]]] = field(default_factory=dict)
    _timeline: Timeline = field(default_factory=Timeline)

    def take(self, line: Line) -> None:
        """One line, in the order of the log."""
        text = line.text
        if self.over:
            return
        at = text.find(DUMP, 0, _BEFORE_DUMP)
        if at >= 0 and START.match(text, at):
            if self.dump is not None:
                self.over = True  # the engine starts again
            else:
                self.dump = find_dump(text[at:])
                self._timeline.mark(line, "config-load")
            return
        if READY[0] in text:
            self.over = True
            return
        if any(word in text for word in _VERSIONED):
            self._version(text)
        if any(name in text for name in _NAMES):
            self._variable(text)
        if text.startswith(_SIZED):
            self._size(line)
        if phase := phase_of(text):
            self._timeline.mark(line, phase)
        if line.headed and len(self._decisions) < MOST_DECISIONS and _CHOICE.search(text):
            said = text[:LONGEST].rstrip()
            ranks: dict[str, None] = {}
            new = line.number, self._timeline.phase(line.rank), ranks
            self._decisions.setdefault(said, new)[2][line.rank] = None

    def _version(self, text: str) -> None:
        for name, pattern in _VERSIONS:
            if name not in self.versions and (found := pattern.search(text)) is not None:
                self.versions[name] = next(x for x in found.groups() if x).rstrip(".")

    def _variable(self, text: str) -> None:
        for pattern in _ENV:
            for found in pattern.finditer(text[:4096]):
                self.env.setdefault(found[1], found[2] or "(set)")

    def _size(self, line: Line) -> None:
        for name, unit, pattern in _SIZES:
            if (found := pattern.search(line.text[:1000])) is None:
                continue
            for key in (name, f"draft {name}"):
                ranks = self._sizes.setdefault(key, (unit, {}))[1]
                if line.rank not in ranks:
                    ranks[line.rank] = float(found[1])
                    break

    @property
    def memory(self) -> dict[str, Reading]:
        """The sizes by name, in the order of the startup."""
        return {
            name: Reading(unit=unit, ranks=ranks)
            for name, (unit, ranks) in self._sizes.items()
            if ranks
        }

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the engine said that it chose, in the order in which it was first said."""
        return tuple(self._each())

    def _each(self) -> Iterator[Decision]:
        for text, (line, phase, ranks) in self._decisions.items():
            yield Decision(
                text=text, line=line, phase=phase, ranks=tuple(sorted(ranks, key=by_number))
            )
