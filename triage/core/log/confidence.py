"""How sure a diagnosis is, and which of two causes on one line fits better.

In:  candidates. Out: "high", "medium" or "low"; weights.
Not: choosing the root line (cascade.py).

High is kept for a cause whose pattern says much, or whose demands beside the pattern were
seen to hold. An accident of Python's own (a missing key, a bare assertion) says little
whatever it stands in, so that such a pattern needs frames or a line before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]

from triage.core.causes import Cause, Severity
from triage.core.log.candidates import Candidate
from triage.core.regex import compiled, regex
from triage.core.typed import Any

_SAYS_MUCH = 24  # literal characters of a pattern that hardly match by accident
_SAYS_LITTLE = 10
# Texts that Python and CUDA print for faults of many kinds.
_ACCIDENT = regex(
    r"^(?:[\w.]+\.)?(?:AssertionError\b(?:$|: ?$)|KeyError: |IndexError: |AttributeError: "
    r"|TypeError: |NameError: |UnboundLocalError: |StopIteration|RecursionError|ZeroDivisionError"
    r"|JSONDecodeError: |UnicodeDecodeError: |NotImplementedError|EOFError|TimeoutError"
    r"|ValueError: (?:too many|not enough) values to unpack|ValueError: invalid literal for"
    r"|ConnectionError|ConnectionRefusedError|BrokenPipeError"
    r"|FileNotFoundError: |PermissionError: |OSError: \[Errno )"
    r"|CUDA error: (?:invalid argument|unspecified launch failure|unknown error)"
    r"|^\S*CalledProcessError|^(?:RuntimeError|Exception|ValueError|OSError): ?$",
    needs=(
        "AssertionError",
        "KeyError: ",
        "IndexError: ",
        "AttributeError: ",
        "TypeError: ",
        "NameError: ",
        "UnboundLocalError: ",
        "StopIteration",
        "RecursionError",
        "ZeroDivisionError",
        "JSONDecodeError: ",
        "UnicodeDecodeError: ",
        "NotImplementedError",
        "EOFError",
        "TimeoutError",
        "ValueError:",
        "ConnectionError",
        "ConnectionRefusedError",
        "BrokenPipeError",
        "FileNotFoundError: ",
        "PermissionError: ",
        "OSError:",
        "CUDA error: ",
        "CalledProcessError",
        "RuntimeError:",
        "Exception:",
    ),
)


def confidence_of(root: Candidate | None, others: Sequence[Candidate], *, echoed: bool) -> str:
    """How sure the finding is.

    Args:
        root: The root, with its cause.
        others: Causes that would explain the log less well.
        echoed: The root was taken because nothing else was left.
    """
    if root is None:
        return "low"
    cause = root.cause
    if cause is None:
        return "low" if echoed or root.strength or root.unfinished else "medium"
    if cause.general:
        return "medium" if root.place == 0 and not echoed else "low"
    fatal = root.strength == 0 and (root.tb is not None or cause.severity is Severity.FATAL)
    rivals = any(c.line == root.line for c in others)
    doubtful = root.unproven or echoed or root.echo or root.place > 0 or rivals
    unplaced = bool(cause.phases) and root.phase == "unknown"
    doubtful = doubtful or unplaced or not fatal
    return "high" if not doubtful and _is_telling(root, cause) else "medium"


def _is_telling(root: Candidate, cause: Cause) -> bool:
    demands = bool(cause.frames) or bool(cause.context)
    size = weight(cause, root.text)
    if _ACCIDENT.search(root.text):
        much = size >= _SAYS_MUCH and "'NoneType'" not in root.text  # of which nobody knows whose
        return demands and (root.specific > 1 or much)
    seen = root.specific >= demands + bool(cause.phases)
    return size >= _SAYS_MUCH or (seen and root.specific > 0 and size >= _SAYS_LITTLE)


def says_much(c: Candidate) -> bool:
    """Whether the text alone makes the cause likely."""
    if c.cause is None or _ACCIDENT.search(c.text):
        return False
    return weight(c.cause, c.text) >= _SAYS_MUCH


def weight(cause: Cause, text: str) -> int:
    """Literal characters in the pattern of the cause that says most of those that match."""
    found = (_literal(pattern) for pattern in cause.patterns if compiled(pattern).search(text))
    return max(found, default=0)


@lru_cache(maxsize=512)
def _literal(pattern: str) -> int:
    return _of_sequence(_parser.parse(pattern))


def _of_sequence(items: Any) -> int:
    return sum(_of_item(op, arg) for op, arg in items)


def _of_item(op: Any, arg: Any) -> int:
    if op is _constants.LITERAL:
        return 1
    if op is _constants.SUBPATTERN:
        return _of_sequence(arg[-1])
    if op is _constants.BRANCH:
        return min(_of_sequence(branch) for branch in arg[1])
    if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
        return int(arg[0] > 0) * _of_sequence(arg[2])
    return 0
