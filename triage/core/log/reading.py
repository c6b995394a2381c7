"""What a text says by itself, whoever printed it and whatever came before.

In:  the text of a line, and the literals in it. Out: Reading values.
Not: what that means where the line stands (gather.py).

Ranks say the same, and so do launches: nine of ten lines repeat a text that was read before.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from triage.core.log import endings, landmarks
from triage.core.log.endings import Ending, ending
from triage.core.log.nested import REQUESTS
from triage.core.log.signatures import Matcher
from triage.core.log.tracebacks import unwrapped
from triage.core.records import dataclass
from triage.core.regex import regex

_SHORT = 1000  # characters of a text that is remembered
_REMEMBERED = 4096

# A line that blames a kernel: it names one, and something went wrong.
_KERNEL = regex(
    r"trtllm|deep_?gemm|custom[ _-]all[ _-]?reduce|nvls|illegal memory access|cutlass|marlin"
    r"|flashinfer::|fused_moe|multicast",
    re.IGNORECASE,
)
_TROUBLE = regex(
    r"error|fail|illegal|abort|assert|exception|\bWARN\b|timed? ?out|invalid|fault",
    re.IGNORECASE,
)
_TROUBLED = regex(_TROUBLE.pattern.encode(), re.IGNORECASE)
KERNELS = ("rtllm", "eep_gemm", "eepGEMM", "ll_reduce", "ll-reduce", "ll reduce", "NVLS", "nvls",
           "llegal memory", "utlass", "arlin", "ulticast")  # fmt: skip
WHAT, SIZES, REPLAY = "what():", "tensor_parallel_size", "triage.replay: "
_EVENTS = (*landmarks.READY, WHAT, SIZES)
_NAMES = ("sglang", "vLLM", "version")

Found = dict[int, dict[str, str]]  # index of a cause -> what its pattern captured


@dataclass(slots=True)
class Reading:
    """What one text says.

    `phase` is that of a landmark, "" if it is none; `found` are the causes that it may show,
    `every` these and those that are none, known once they are asked for; `supported` the causes
    that it bears out. `kernel` says that it names a kernel, `only_kernel` that nothing else in
    it is looked for, `blames` that something went wrong there. `matches` says that there is any
    of this, `doubts` that it may refute a cause; `event` that it is more: a landmark, an ending,
    a size, a message of C++; `names` that it may name an engine, `replay` that the simulated one
    speaks of itself.
    """

    phase: str
    ending: Ending | None
    found: Found
    supported: tuple[int, ...]
    kernel: bool
    only_kernel: bool
    blames: bool
    matches: bool
    doubts: bool
    event: bool
    names: bool
    replay: bool
    every: Found | None = None


_WORDS = Reading(
    phase="", ending=None, found={}, supported=(), kernel=False, only_kernel=False, blames=False,
    matches=False, doubts=False, event=False, names=False, replay=False, every={},
)  # fmt: skip


class Reader:
    """Reads texts, and remembers the short ones.

    Args:
        matcher: The causes' patterns.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._of_endings = matcher.numbers(endings.LITERALS)
        self._of_kernels = matcher.numbers(KERNELS)
        self._known: dict[str | tuple[str, frozenset[int]], Reading] = {}

    def read(self, text: str, seen: Collection[int], *, whole: bool) -> Reading:
        """What the text says.

        Args:
            text: A cleaned line.
            seen: Numbers of the literals in its raw line.
            whole: Whether these are all that the text has: no part of it was left out.
        """
        key = text if whole else (text, frozenset(seen))
        known = self._known.get(key)
        if known is None:
            known = self._read(text, seen)
            if len(text) <= _SHORT:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[key] = known
        return known

    def _read(self, text: str, seen: Collection[int]) -> Reading:
        if text.startswith(REQUESTS):
            return _WORDS  # of a client, who may ask what an error means
        here = self.matcher.present(text, seen) if seen else frozenset()
        inner = unwrapped(text)
        found = dict(self.matcher.match(inner, seen)) if inner else {}
        matches, supported = self.matcher.tried(text, here)
        found |= dict(matches)
        phase = landmarks.phase_of(text)
        kind = None if self._of_endings.isdisjoint(here) else ending(text)
        kernel = not self._of_kernels.isdisjoint(here)
        return Reading(
            phase=phase,
            ending=kind,
            found=found,
            supported=supported,
            kernel=kernel,
            only_kernel=kernel and self._of_kernels.issuperset(here),
            blames=kernel and _blames_kernel(text),
            matches=bool(found or supported or kernel),
            doubts=self.matcher.doubts(text),
            event=bool(phase) or kind is not None or any(event in text for event in _EVENTS),
            names=any(name in text for name in _NAMES),
            replay=REPLAY in text,
        )

    def every(self, said: Reading, text: str) -> Found:
        """What the text may show, and what says that it is harmless."""
        if said.every is None:
            said.every = said.found | dict(self.matcher.benign(text))
        return said.every

    def only_a_name(self, raw: bytes, seen: Collection[int]) -> bool:
        """Whether a line names a kernel and no trouble, as hundreds do in a healthy start."""
        return self._of_kernels.issuperset(seen) and _TROUBLED.search(raw) is None


@lru_cache(maxsize=4)
def reader_of(matcher: Matcher) -> Reader:
    """The reader with this matcher; a process may read many logs."""
    return Reader(matcher)


def _blames_kernel(text: str) -> bool:
    # A model of another architecture that misses its kernels' package is no trouble.
    if text.startswith("Ignore import error"):
        return False
    return _KERNEL.search(text) is not None and _TROUBLE.search(text) is not None
