"""A name for a failure that no cause explains, equal for equal failures.

In:  an exception with its frames, or a line. Out: `v1:` and 12 hex digits, and the
text that was hashed, so that a person can see why two failures are the same.
Not: grouping similar but unequal failures (cluster.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from triage.core.diagnosis import Frame
from triage.core.records import dataclass
from triage.core.regex import regex

_SENTENCE = 200  # bytes of the message that count
_FRAMES = 3
# What differs between two launches that fail alike. One pass, first alternative wins.
_MASK = regex(
    r"(?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)"
    r"|(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)"
    r"|(?P<path>(?<![\w.])(?:/[\w.+@\-]+){2,}/?)"
    r"|(?P<quoted>'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`)"
    r"|(?P<hex>\b0x[0-9a-fA-F]+\b|\b(?=[a-f]*\d)[0-9a-f]{7,}\b)"
    r"|(?P<rank>\b(?:TP|PP|DP|EP|[Rr]ank ?)\d+\b)"
    r"|(?P<number>[-+]?\d{1,40}(?:[.,]\d{1,40})*(?:e[-+]?\d+)?"
    r"(?: ?(?:[KMGT]i?B|[KMGT]?B|ms|us|s|%))?\b)"
)
_END = regex(r"(?<=[.!?])\s")  # of a sentence
_SKIPPED = regex(
    r"(?:^|/)(?:torch|multiprocessing|asyncio|concurrent|importlib|runpy|contextlib)[/.]|^<"
    r"|/lib/python3[\d.]*/(?!site-packages|dist-packages)"
)
_PACKAGE = regex(r".*/(?:site-packages|dist-packages|python)/", needs=("-packages/", "/python/"))


@lru_cache(maxsize=512)  # eight ranks say the same
def masked(text: str) -> str:
    """The text with everything that differs between equal failures replaced by its kind."""
    return _MASK.sub(lambda found: f"<{found.lastgroup}>", text)


def fingerprint(exception: str, message: str, frames: Sequence[Frame] = ()) -> tuple[str, str]:
    """The fingerprint of a failure, and the text that was hashed.

    Args:
        exception: The type's qualified name, or "" where there is only a line.
        message: Its first sentence counts, at most 200 bytes, with variable parts masked.
        frames: Outermost first; the three innermost of the engine's own count.
    """
    sentence = message.strip().split("\n", 1)[0]
    sentence = _END.split(sentence, maxsplit=1)[0]
    parts = [exception, masked(sentence[:1000]).encode()[:_SENTENCE].decode("utf-8", "ignore")]
    own = own_frames(frames)
    parts += [_place(frame) for frame in own[-_FRAMES:]]
    text = " | ".join(parts)
    return _digest(text), text


def own_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames that are neither Python's nor PyTorch's, outermost first."""
    return tuple(frame for frame in frames if not _SKIPPED.search(frame.file))


def _place(frame: Frame) -> str:
    module = _PACKAGE.sub("", frame.file).removesuffix(".py").replace("/", ".").strip(".")
    return f"{module}:{frame.function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The same failure, named coarsely, as usual, and exactly; each is `v1:` and 12 hex digits."""

    frame: str  # the exception's type and the innermost frame of the engine's own
    default: str  # what `fingerprint` gives
    exact: str  # the whole message as printed, every frame with its line


def levels(exception: str, message: str, frames: Sequence[Frame] = ()) -> Levels:
    """The three names of a failure; where there is no exception, `frame` is `default`."""
    default = fingerprint(exception, message, frames)[0]
    own = own_frames(frames)
    lines = (f"{frame.file}:{frame.line}:{frame.function}" for frame in frames)
    return Levels(
        frame=_digest(f"{exception} | {_place(own[-1])}") if exception and own else default,
        default=default,
        exact=_digest(" | ".join((exception, message, *lines))),
    )


def _digest(text: str) -> str:
    try:  # as hashlib does, without OpenSSL, which it loads first
        from _blake2 import blake2b  # noqa: PLC0415  most launches do not fail
    except ImportError:
        from hashlib import blake2b  # noqa: PLC0415
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"v1:{digest}"
