"""Values that a remedy computes from the launch: `{gcd heads tp-size}`, `{up value divisor}`.

In:  a text with placeholders, the captures of the match, the flags of the launch.
Out: the text with the values in, or None if one cannot be had.
Not: choosing remedies (suspects.py).

A placeholder is the name of a capture, or a function with its arguments: captures, flags
(dashed names) or numbers. A function that finds no fitting value gives none, so a remedy
never holds a number that breaks the rule that the message states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triage.core.config import Value
from triage.core.regex import regex

_PLACEHOLDER = regex(r"\{([a-z]\w*(?: [\w.|-]+)*)\}", needs=("{",))
_NUMBER = regex(r"-?\d+(?:\.\d+)?")
_PORTS = 65535


def filled(text: str, captures: Mapping[str, str], flags: Mapping[str, Value]) -> str | None:
    """The text with its placeholders replaced; None if a value is not known or does not exist."""
    parts: list[str] = []
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        value = _value(match[1], captures, flags)
        if value is None:
            return None
        parts += [text[at : match.start()], value]
        at = match.end()
    return "".join([*parts, text[at:]])


def in_words(text: str) -> str:
    """The text with its placeholders as a reader understands them, where nothing fills them."""

    def said(match: object) -> str:
        words = str(match).split()
        if len(words) == 1:
            return f"<{words[0]}>"
        how = FUNCTIONS[words[0]].says if words[0] in FUNCTIONS else words[0]
        return "<" + how.format(*(w.partition("|")[0] for w in words[1:]), *["?"] * 4) + ">"

    parts: list[str] = []
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        parts += [text[at : match.start()], said(match[1])]
        at = match.end()
    return "".join([*parts, text[at:]])


def placeholder_faults(text: str, captures: frozenset[str]) -> tuple[str, ...]:
    """What is wrong with the placeholders of a text: unknown captures, functions, arguments."""
    faults: list[str] = []
    for match in _PLACEHOLDER.finditer(text):
        name, *arguments = match[1].split()
        if not arguments:
            if name not in captures:
                faults.append(f"no pattern captures {{{name}}}")
        elif name not in FUNCTIONS:
            faults.append(f"there is no function {name}")
        elif not FUNCTIONS[name].least <= len(arguments) <= FUNCTIONS[name].most:
            faults.append(f"{name} takes {FUNCTIONS[name].least} arguments or more")
    return tuple(faults)


def _value(words: str, captures: Mapping[str, str], flags: Mapping[str, Value]) -> str | None:
    name, *arguments = words.split()
    if not arguments:
        return captures.get(name)
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    if name == "flag":
        value = flags.get(arguments[0])
        return value if isinstance(value, str) else None
    if name == "first":
        several = captures.get(arguments[0], flags.get(arguments[0], ""))
        found = _ITEM.search(several) if isinstance(several, str) else None
        return found[0] if found and found[0] != several else None
    if name == "round":  # two captures that name flags: a multiple of the second
        owner, step = (captures.get(word, "").replace("_", "-") for word in arguments)
        arguments = [owner or "?", step or "?"]
    numbers = [_number(word, captures, flags) for word in arguments]
    if any(number is None for number in numbers):
        return None
    result = function.make(*(number for number in numbers if number is not None))
    return None if result is None else f"{round(result, 4):g}" if result % 1 else str(int(result))


_ITEM = regex(r"[\w.\-]+")


def _number(word: str, captures: Mapping[str, str], flags: Mapping[str, Value]) -> float | None:
    """The argument's number; `name|8` is 8 where neither a capture nor a flag is known."""
    name, _, usual = word.partition("|")
    value = captures.get(name, flags.get(name, usual or name))
    text = value if isinstance(value, str) else ""
    return float(text) if _NUMBER.fullmatch(text) else None


class _Function:
    """A function of placeholders: what it computes, how many arguments, and how people say it."""

    def __init__(self, make: Callable[..., float | None], least: int, most: int, says: str) -> None:
        self.make, self.least, self.most, self.says = make, least, most, says


def _floor(value: float) -> int:
    """The largest whole number that is not above the value."""
    return int(value // 1)


def _ceil(value: float) -> int:
    """The least whole number that is not below the value."""
    return -int(-value // 1)


def _gcd(*numbers: float) -> float | None:
    """The largest width that divides all; none where the last, the flag's own, divides already."""
    from math import gcd  # noqa: PLC0415  the rest needs no C library, which takes a while to load

    found = gcd(*(int(n) for n in numbers))
    return found if 0 < found < numbers[-1] else None


def _shard(width: float, size: float, block: float) -> float | None:
    """The largest smaller width at which a rank's share is a multiple of the block."""
    total, block = int(width * size), int(block)
    fits = (w for w in range(int(width) - 1, 0, -1) if int(width) % w == 0)
    return next((w for w in fits if block and total // w % block == 0), None)


def _fits(width: float, whole: float, block: float) -> float | None:
    """The largest smaller width that cuts the whole into multiples of the block."""
    fits = (w for w in range(int(width) - 1, 0, -1) if int(width) % w == 0)
    whole, block = int(whole), int(block)
    return next((w for w in fits if block and whole % w == 0 and whole // w % block == 0), None)


def _power(value: float) -> float | None:
    """The largest power of two below the value."""
    found = 1
    while found * 2 < value:
        found *= 2
    return found if value > 1 else None


def _above(value: float, new: float) -> float | None:
    return new if new > value else None


def _below(value: float, new: float) -> float | None:
    return new if new < value else None


def _ratio(value: float, part: float, whole: float) -> float | None:
    """The value in the ratio of part to whole, a tenth less, to a decimal."""
    return _floor(9 * value * part / whole) / 10 or None if whole > part > 0 else None


def _part(value: float, count: float) -> float | None:
    return value // count or None if count > 1 else None


def _scale(value: float, part: float, whole: float) -> float | None:
    """The value in the ratio of part to whole, a tenth less."""
    return _floor(0.9 * value * part / whole) or None if whole > part > 0 else None


def _up(value: float, step: float) -> float | None:
    return _ceil(value / step) * step if step else None


def _down(value: float, step: float) -> float | None:
    return _floor(value / step) * step or None if step else None


def _less(value: float, by: float, least: float = 0.0) -> float | None:
    lower = round(value - by, 4)
    return lower if lower > 0 and lower >= least else None


def _half(value: float, least: float = 1.0) -> float | None:
    lower = value // 2
    return lower if lower >= least else None


def _share(part: float, whole: float) -> float | None:
    """The part as a fraction, rounded down to hundredths, with two hundredths to spare."""
    found = _floor(100 * part / whole) / 100 - 0.02 if whole else 0.0
    return round(found, 2) if found > 0 else None


def _another_port(port: float) -> float | None:
    return port + 100 if port + 100 <= _PORTS else port - 100


def _spare(experts: float, ranks: float) -> float | None:
    """How many more experts make them a multiple of the ranks."""
    return (-experts) % ranks or None if ranks else None


def _sum(*numbers: float) -> float:
    return sum(numbers)


def _product(*numbers: float) -> float:
    result = 1.0
    for number in numbers:
        result *= number
    return result


FUNCTIONS: dict[str, _Function] = {
    "flag": _Function(_sum, 1, 1, "the value of --{0}"),
    "first": _Function(_sum, 1, 1, "the first of {0}"),
    "gcd": _Function(_gcd, 2, 4, "the largest number that divides {0} and {1}"),
    "shard": _Function(
        _shard, 3, 3, "the largest smaller {0} that makes the share, now {1}, a multiple of {2}"
    ),
    "fits": _Function(_fits, 3, 3, "the largest smaller {0} that cuts {1} into multiples of {2}"),
    "power": _Function(_power, 1, 1, "the largest power of two below {0}"),
    "above": _Function(_above, 2, 2, "{1}, if that is more than {0}"),
    "below": _Function(_below, 2, 2, "{1}, if that is less than {0}"),
    "part": _Function(_part, 2, 2, "{0} divided by {1}"),
    "scale": _Function(_scale, 3, 3, "{0} times {1} / {2}, a tenth less"),
    "ratio": _Function(_ratio, 3, 3, "{0} times {1} / {2}, a tenth less"),
    "round": _Function(_up, 2, 2, "a multiple of {1}"),
    "up": _Function(_up, 2, 2, "{0} rounded up to a multiple of {1}"),
    "down": _Function(_down, 2, 2, "{0} rounded down to a multiple of {1}"),
    "less": _Function(_less, 2, 3, "{0} less {1}"),
    "half": _Function(_half, 1, 2, "half of {0}"),
    "share": _Function(_share, 2, 2, "the share of {0} in {1}"),
    "port": _Function(_another_port, 1, 1, "another port than {0}"),
    "spare": _Function(_spare, 2, 2, "what {0} lacks to a multiple of {1}"),
    "sum": _Function(_sum, 2, 4, "{0} plus {1}"),
    "product": _Function(_product, 2, 4, "{0} times {1}"),
    "least": _Function(min, 2, 4, "the smaller of {0} and {1}"),
    "most": _Function(max, 2, 4, "the larger of {0} and {1}"),
}
