"""A diagnosis as text, in the order in which a tired person reads.

In:  a Diagnosis. Out: lines of at most 80 columns where the words allow it, no colour.
Not: JSON (documents.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.core.config import Change, SetEnv, SetFlag, UnsetEnv, UnsetFlag, words
from triage.core.config import Flag as ConfigFlag
from triage.core.diagnosis import Advice, Diagnosis, Explained, Root
from triage.core.log.authors import signal_of
from triage.core.phases import order
from triage.core.regex import regex

WIDTH = 80
_LABEL = 9  # columns of the words that begin a line
_LINES = 8  # line numbers named of a sort
_REMEDIES = 3
_BLANKS = str.maketrans("\n\x0b\x0c\r", "    ")
_PLAIN = str.maketrans("", "", "_-+=:,./@%")  # what no shell obeys, beside letters and digits
_UNPRINTABLE = regex(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def diagnosis_text(diagnosis: Diagnosis, *, explain: bool = False) -> str:
    """The answer: what, where, why, what to ignore, what to do.

    Args:
        diagnosis: What was found.
        explain: Add each step of the ranking, what the fingerprint was made of, and how far
            each rank came.
    """
    d = diagnosis
    lines = _wrap(_headline(d), "", "  ")
    if d.title and (d.cause or (d.outcome == "failed" and d.says_why)):
        lines += _wrapped(_sentence(d.title), "  ")
    if d.simulated:
        lines += _wrapped("This log is simulated; nothing of it ran on a GPU.", "  ")
    if d.refused:
        lines += _labelled("refused", d.refused)
    lines += _root(d)
    lines += _because(d)
    lines += _reached(d)
    for sentence in d.standstill:
        lines += _labelled("stacks", sentence)
    for sentence in d.outside:
        lines += _labelled("outside", _shown(sentence, 240))
    for decoy in d.decoys[:3]:
        lines += _labelled("ignore", f"line {decoy.line}: {decoy.why}")
    lines += _consequences(d)
    lines += _restarts(d)
    for suspect in d.suspects[:5]:
        value = "" if suspect.value in (True, None) else f" {_shown(str(suspect.value))}"
        lines += _labelled("suspect", f"--{suspect.flag}{value}: {suspect.why}")
    for advice in d.remedies[:_REMEDIES]:
        lines += _advice(advice)
    if d.also:
        lines += _labelled("or", ", ".join(f"{a.cause} ({a.confidence})" for a in d.also[:3]))
    if explain:
        lines += _explained(d)
    lines += _next(d)
    return "\n".join(lines)


def _headline(d: Diagnosis) -> str:
    where = "" if d.phase == "unknown" else f" in {d.phase}"
    match d.outcome:
        case "healthy":
            return f"healthy: {d.title or 'the server was ready'}"
        case "empty":
            return "empty: no line of an engine"
        case "interrupted":
            return f"interrupted{where}: {_shown(d.title, 240) or 'somebody stopped the launch'}"
        case _:
            pass
    if d.cause:
        word = ", hung" if d.outcome == "hung" else ""
        return f"{d.cause}  ({d.confidence} confidence{word})"
    if d.outcome == "hung":
        return f"{d.title or 'hung'}{where}  ({d.confidence} confidence)"
    if not d.says_why:
        mark = f"  ({d.fingerprint})" if d.fingerprint else ""
        return f"failed{where}: {_shown(d.title, 480) or 'no line says why'}{mark}"
    return f"unknown failure{where}  ({d.fingerprint})"


def _root(d: Diagnosis) -> Iterator[str]:
    if d.root is None:
        return
    nobody = d.ranks == ("main",) and d.ranks_total > 1 and signal_of(d.root.text) > 0
    who = f"no line says which of {d.ranks_total} ranks" if nobody else _ranks(d)
    place = f"line {d.root.line}  {who}  {d.phase}"
    yield from _labelled("root", place)
    yield from _labelled("", _shown(d.root.text, 480))
    code = d.traceback
    if code is not None and code.message and _bare(d.root, code.exception):
        yield from _labelled("", _shown(code.message.split("\n")[0], 240))
    if code is not None and code.frames:
        inner = code.frames[-1]
        file = inner.file.rpartition("/site-packages/")[2].rpartition("/dist-packages/")[2]
        yield from _labelled("at", _shown(f"{file}:{inner.line} in {inner.function}", 240))


def _bare(root: Root, exception: str) -> bool:
    return root.text.strip() == exception


def _ranks(d: Diagnosis) -> str:
    if d.ranks == ("all",):
        return f"all {d.ranks_total} ranks"
    shown = ", ".join(d.ranks[:4]) + (" ..." if len(d.ranks) > 4 else "")  # noqa: PLR2004
    return f"{shown} of {d.ranks_total} ranks" if d.ranks_total > 1 else shown or "main"


def _because(d: Diagnosis) -> Iterator[str]:
    if d.outcome == "failed" and d.root is None and d.cascade:
        yield from _labelled(
            "because", f"only line {d.cascade[0]} tells of the end; the kernel log may tell more"
        )


def _reached(d: Diagnosis) -> Iterator[str]:
    """How far each rank came, where some came less far than others."""
    if d.outcome != "hung":
        return
    last = {step.rank: step.phase for step in d.timeline if step.rank != "main"}
    phases = {phase: [r for r, p in last.items() if p == phase] for phase in last.values()}
    if len(phases) > 1:
        for phase, ranks in sorted(phases.items(), key=lambda item: order(item[0])):
            more = f" and {len(ranks) - 4} more" if len(ranks) > 4 else ""  # noqa: PLR2004
            yield from _labelled("reached", f"{phase}: {', '.join(ranks[:4])}{more}")


def _consequences(d: Diagnosis) -> Iterator[str]:
    parts: list[str] = []
    if d.cascade and d.root is not None:
        parts.append(f"line {_numbers(d.cascade)} ({_count(len(d.cascade), 'consequence')})")
    if d.teardown:
        parts.append(f"{_count(len(d.teardown), 'line')} of teardown")
    if parts:
        yield from _labelled("explains", ", ".join(parts))


def _restarts(d: Diagnosis) -> Iterator[str]:
    if d.starts > 1:
        end = f"a later one came up, line {d.came_up}" if d.came_up else "none that came up"
        after = _count(d.starts - 1, "start")
        yield from _labelled("later", f"{after} more in this log, {end}; this is the first failure")


def _advice(advice: Advice) -> Iterator[str]:
    cost = f" Cost: {advice.cost}." if advice.cost and advice.cost != "none" else ""
    evidence = f" [{advice.disposition}, {advice.evidence or 'no source'}]"
    yield from _labelled("try", advice.say + _stop(advice.say) + cost + evidence)
    for change in advice.changes:
        yield " " * (_LABEL + 4) + _change(change)
    if needs := [need for need in advice.needs if _is_fact(need)]:
        yield " " * (_LABEL + 4) + f"only where {' and '.join(needs)}"


def _is_fact(need: str) -> bool:
    """Whether a precondition is about the machine or the engine, which a log may not tell."""
    return not need.startswith(("--", "no --", "message "))


def _change(change: Change) -> str:
    match change:
        case SetFlag(name, value):
            return " ".join(map(_quoted, words(ConfigFlag(name, value))))
        case UnsetFlag(name):
            return f"without --{name}"
        case SetEnv(name, text):
            return f"{name}={_quoted(text)}"
        case UnsetEnv(name):
            return f"without {name}"


def _quoted(word: str) -> str:
    """The word as a shell needs it."""
    if word.isascii() and word.translate(_PLAIN).isalnum():
        return word
    from shlex import quote

    return quote(word)


def _explained(d: Diagnosis) -> Iterator[str]:
    for ranked in d.explain:
        yield from _labelled("ranked", _step(ranked))
        for seen in ranked.lines:
            yield from _labelled("", f"line {seen.line}  {seen.rank}  {_shown(seen.what, 52)}")
    if d.fingerprint:
        yield from _labelled("print", f"{d.fingerprint} of: {_shown(d.fingerprint_of, 400)}")
    for step in d.timeline[:40]:
        after = "" if step.seconds is None else f"  after {step.seconds:g} s"
        yield from _labelled("passed", f"line {step.line}  {step.rank}  {step.phase}{after}")


def _step(step: Explained) -> str:
    """The headline of a step; the lines that it is about stand below."""
    if step.step in ("root", "candidates"):
        number = f" ({step.count})" if step.step == "candidates" else ""
        return f"{step.step}{number}:"
    more = (
        f" ({step.count}, the first {len(step.lines)} are)" if step.count > len(step.lines) else ""
    )
    return f"left out, {step.step}{more}:" if step.lines else step.step


def _next(d: Diagnosis) -> Iterator[str]:
    """The command to type next: it depends on how much is known."""
    if d.cause:
        yield f"next: triage explain {d.cause}"
    elif d.outcome == "failed" and d.fingerprint is None:
        yield "next: dmesg -T | grep -i -e oom -e killed -e segfault"
    elif d.outcome in {"failed", "hung"}:
        yield "next: triage bisect --good COMMAND_THAT_WORKS --bad COMMAND_THAT_FAILED"


def _labelled(label: str, text: str) -> list[str]:
    first = f"  {label:<{_LABEL}}"
    rest = " " * len(first)
    return _wrap(text, first, rest) or [first.rstrip()]


def _wrap(text: str, first: str, rest: str) -> list[str]:
    """The words in lines of at most WIDTH columns, as `textwrap` does it, which cuts none.

    That module takes longer to import than an answer has to be written.
    """
    lines: list[str] = []
    line, begun, gap = first, False, -1
    for word in text.expandtabs().translate(_BLANKS).split(" "):
        gap += 1
        if not word:
            continue
        if begun and len(line) + gap + len(word) > WIDTH:
            lines.append(line)
            line, gap = rest, 0
        line += " " * gap + word
        begun, gap = True, 0
    return [*lines, line] if begun else lines


def _wrapped(text: str, indent: str) -> list[str]:
    return _wrap(text, indent, indent)


def _shown(text: str, most: int = 120) -> str:
    """Text of a log, safe for a terminal: no control or direction characters, cut."""
    text = text if text.isprintable() else _UNPRINTABLE.sub(" ", text)
    return text if len(text) <= most else text[: most - 4] + " ..."


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_LINES])) + (" ..." if len(lines) > _LINES else "")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _sentence(text: str) -> str:
    """The text as a sentence; a first word that is spelled with capitals (cuBLAS) stays."""
    word = text.split(" ", 1)[0]
    first = text[:1] if word != word.lower() else text[:1].upper()
    return first + text[1:] + _stop(text)


def _stop(text: str) -> str:
    return "" if text.endswith((".", "!", "?")) else "."
