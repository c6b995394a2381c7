"""Whether the server itself shows that a line did it no harm: it came up, or answered, after it.

In:  candidates and the evidence. Out: yes or no; the deaths that are the server's.
Not: what a rank shows by its own landmarks (landmarks.py), or choosing a root (cascade.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.log.candidates import Candidate
from triage.core.log.endings import BIND, FATAL_HEADS, Ending
from triage.core.log.evidence import Generation, source_of
from triage.core.log.lines import Line
from triage.core.log.no_start import is_no_start
from triage.core.regex import regex

_ENGINES = ("sglang", "vllm")
# What `docker compose` says of a container, be it the engine's or not.
_EXITED = regex(r"^(\S+) exited with code \d", needs=(" exited with code ",))


def is_cleared(c: Candidate, generation: Generation) -> bool:
    """Whether a server that was ready later shows that the line did no harm.

    What ended a process is cleared only by its own source, and not if that died between:
    then it was another start that came up.
    """
    if generation.bind or BIND in c.text:
        return False
    if c.strength > 0:
        return c.line < generation.ready
    own = generation.readies.get(c.source, 0)
    deaths = (line for line, _ in generation.of(Ending.DEATH) if c.line < line.number < own)
    return c.line < own and all(source_of(line.wrapper) != c.source for line in deaths)


def is_other(c: Candidate, generation: Generation) -> bool:
    """Whether a program beside a server that is up said it.

    A source without a landmark may be an engine that did not come so far: then its code stands
    in the exception, or its command line was refused.
    """
    if not generation.up or not generation.is_other(c.source) or is_no_start(c.text):
        return False
    frames = [frame for tb in c.tb.chain() for frame in tb.frames] if c.tb else []
    return not any(name in frame.file for frame in frames for name in _ENGINES)


def answered(left: Sequence[Candidate], generation: Generation) -> list[Candidate]:
    """Those after which a server that was up answered, as it would not if it had failed.

    What it once survived for long it survives again. The engine itself says by the head of an
    exception that a process ends with it: if batches go on, they are another server's.
    """
    up, answers = generation.up, generation.answers
    later = [c for c in left if 0 < up < c.line and not _is_engines(c)]
    if not later:
        return []
    of = {c.source: generation.server(c.source) for c in later}
    again = {c.text for c in later if answers.survived(c.line, of[c.source])}
    died = max((line.number for line in deaths_of(generation)), default=0)
    return [
        c
        for c in later
        if answers.survived(c.line, of[c.source])
        or (c.line > died and (answers.answered(c.line, of[c.source]) or c.text in again))
    ]


def deaths_of(generation: Generation) -> list[Line]:
    """The lines by which processes of the server died; not those that it survived for long.

    Nobody but the engine prints the head of its lines, and of its container a runtime tells.
    """
    deaths = [line for line, _ in generation.of(Ending.DEATH)]
    if not generation.up:
        return deaths
    return [line for line in deaths if line.number < generation.up or _is_own(line, generation)]


def _is_own(line: Line, generation: Generation) -> bool:
    """Whether a death in the log of a server that is up is that of one of its processes."""
    if (found := _EXITED.match(line.text)) is not None:
        name, known = found[1], generation.engines - {""}
        if name in generation.spans:
            return not generation.is_other(name)
        # Older versions of Compose name the project as well.
        if known and not any(name.endswith(engine) for engine in known):
            return False
    server = generation.server(line.wrapper)
    return line.headed or not generation.answers.survived(line.number, server)


def _is_engines(c: Candidate) -> bool:
    return c.tb is not None and any(FATAL_HEADS.search(tb.header) for tb in c.tb.chain())
