"""The answer to "why did this launch fail?", as a value.

In:  nothing. Out: Diagnosis and its parts, field for field the document
`triage.diagnosis/1`.
Not: finding the answer (log/diagnose.py) or printing it (triage.render).
"""

from __future__ import annotations

from triage.core.config import Change, Config
from triage.core.records import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The line that the diagnosis rests on.

    `line` counts physical lines (ended by LF) from 1, `offset` bytes from 0 in
    the raw file. `rank` is the tag as printed, "main" without one.
    """

    line: int
    offset: int
    rank: str
    time: str | None  # as printed, ISO 8601; None if the line has none
    text: str  # cleaned: wrappers and colour codes stripped, at most 4 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One entry of a Python traceback."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exc:
    """The exception of the root: the first of its chain, frames outermost first."""

    exception: str  # qualified type name as printed
    message: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoy:
    """A line that misleads: advice or a consequence that looks like the reason."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A flag that the evidence points at. Searches try suspects first."""

    flag: str
    value: str | bool | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A remedy of the cause, filled in for this launch."""

    say: str
    changes: tuple[Change, ...]
    disposition: str
    cost: str
    evidence: str
    needs: tuple[str, ...] = ()  # preconditions, as the knowledge states them
    span: tuple[str, ...] = ()  # flag, start, end and step of a search for a value
    probe: bool = False  # finds out more, and is no remedy
    weight: float = 0.0  # what it gives up beside the settings that it drops
    open: bool = False  # a value that it sets is not known from this log


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One landmark that a rank passed; `seconds` since the first dated line, or None."""

    rank: str
    phase: str
    line: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another cause that would explain the log less well."""

    cause: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A line that the ranking looked at, and what it was taken for."""

    line: int
    rank: str
    what: str  # the id of a cause, else the start of the line


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One step of the ranking: the candidates first, then what each step left out, then the root.

    `lines` are the first of `count` lines.
    """

    step: str
    lines: tuple[Weighed, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What happened in one launch, each claim with its line.

    `outcome` is failed, healthy, hung, interrupted or empty. `cause` is the id
    of a knowledge file or None; a failure without one has a `fingerprint`.
    `signature` names the failure for a search: the cause, else the fingerprint.
    """

    source: str
    outcome: str
    phase: str = "unknown"
    cause: str | None = None
    title: str = ""
    confidence: str = "low"
    fingerprint: str | None = None
    fingerprint_of: str = ""  # the text that was hashed, so that a person can check it
    ranks: tuple[str, ...] = ()
    ranks_total: int = 0
    root: Root | None = None
    traceback: Exc | None = None
    cascade: tuple[int, ...] = ()
    teardown: tuple[int, ...] = ()
    decoys: tuple[Decoy, ...] = ()
    engine: str = "unknown"
    engine_version: str | None = None
    simulated: bool = False  # the replay engine printed this log
    provenance: str = ""  # its entry's: recorded or assumed; "" for a real engine
    refused: str = ""  # why the replay engine had no answer; the trial is then unresolved
    config: Config = field(default_factory=Config)
    effective: tuple[tuple[str, str], ...] = ()  # values of the engine's own dump that differ
    suspects: tuple[Suspect, ...] = ()
    remedies: tuple[Advice, ...] = ()
    timeline: tuple[Step, ...] = ()
    also: tuple[Alternative, ...] = ()
    starts: int = 1  # starts of the engine in the log, from the one that counts on
    standstill: tuple[str, ...] = ()  # where the processes of a silent launch stood
    by_stacks: bool = False  # the cause is named by where the processes stood
    general: bool = False  # the cause says only that the program refused something
    outside: tuple[str, ...] = ()  # what the kernel and the ends of the processes add
    came_up: int | None = None  # line by which a later one of them was ready
    explain: tuple[Explained, ...] = ()  # how the root was chosen among the candidates

    @property
    def says_why(self) -> bool:
        """Whether its root says why; a line that only tells who died has no fingerprint."""
        return self.root is not None and self.fingerprint is not None

    @property
    def signature(self) -> str:
        """What makes two failures the same: the cause, else the fingerprint, else "none".

        A hang that is named by its stacks goes by its fingerprint: where the processes stood
        at one moment is a reason, and may differ the next time. A general cause covers
        refusals of many kinds, so that they too are told apart by their fingerprints.
        """
        cause = None if self.by_stacks or self.general else self.cause
        return cause or self.fingerprint or "none"
