"""A log that ends with an error, where nothing else tells of a failure.

In:  complaints that are no certain end, and the evidence. Out: those that are the last words.
Not: a failure of which more is known (cascade.py), or a launch that stands still (hang.py).

A program that says `Error: ...` and nothing more has most likely ended. A launch that stands
still prints something else last, or nothing; one that serves goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.log.candidates import Candidate
from triage.core.log.endings import is_plain
from triage.core.log.evidence import Generation
from triage.core.log.hang import stands_still

_BEHIND = 3  # lines that may follow: an empty one, a hint how to get help, a prompt
_BEFORE_ANY = 8  # where no engine has written a line: what a script does without


def last_words(trouble: Sequence[Candidate], generation: Generation) -> list[Candidate]:
    """The complaints by which the log ends, if they are all that tells of a failure."""
    going_on = generation.up or generation.joined or generation.told_to_end
    if not generation.end or going_on or stands_still(generation):
        return []
    last = generation.timeline.last
    begun = last.line.number if last else 0
    behind = _BEHIND if last or generation.streams else _BEFORE_ANY
    return [
        c
        for c in trouble
        if c.line > begun and generation.end - c.line <= behind and is_plain(c.text)
    ]
