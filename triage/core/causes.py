"""The shape of one knowledge file: a cause of failed startups.

In:  nothing. Out: Cause, Remedy, Culprits.
Not: reading YAML (triage.knowledge) or matching (log/signatures.py).
"""

from __future__ import annotations

from enum import StrEnum

from triage.core.records import dataclass, field


class Role(StrEnum):
    """What a matching line says about the failure."""

    ROOT = "root"  # can be the reason of the failure
    CONFIRM = "confirm"  # supports a root that it names
    CASCADE = "cascade"  # a consequence on this or another rank
    TEARDOWN = "teardown"  # noise of the shutdown itself
    ADVICE = "advice"  # printed advice; never evidence, often a decoy
    BENIGN = "benign"  # occurs in healthy launches too


class Severity(StrEnum):
    """Whether a live launch may be stopped at such a line."""

    FATAL = "fatal"
    SUSPECT = "suspect"
    INFO = "info"


class Disposition(StrEnum):
    """What a remedy costs: nothing, something in the answer, or a person's hand."""

    SAFE = "safe"  # same results, same capacity
    LOSSY = "lossy"  # gives up context, speed, accuracy or capacity
    MANUAL = "manual"  # a person must act outside the configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A general way out of a cause.

    `set_flags` and `set_env` may hold placeholders that the captures of the match
    and the launch's flags fill (log/compute.py); `unset` and `unset_env` name what to
    drop. `needs` are preconditions (handover/needs.py). `span` are the flag, first and last
    value and the step of a search for a value that works. A `probe` finds out more and is
    no remedy.
    """

    say: str
    set_flags: tuple[tuple[str, str | bool], ...] = ()
    unset: tuple[str, ...] = ()
    set_env: tuple[tuple[str, str], ...] = ()
    unset_env: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    span: tuple[str, ...] = ()  # flag, start, end, step; start may hold a placeholder
    probe: bool = False
    weight: float = 0.0  # what it gives up beside the settings that it drops; 1 is a setting
    disposition: Disposition = Disposition.MANUAL
    cost: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One thing that is known, or thought, to bring a cause about.

    `basis` says how it is known: report, code or hypothesis. `look` says what would
    show that it is this one.
    """

    say: str
    basis: str
    look: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A named reason why a server does not start, or a named kind of noise.

    A pattern matches one cleaned line. `frames`, if given, must be found (any of
    them) in the file and function names of the traceback that the line ends or
    belongs to; `phases`, if given, limit where the cause may be the root.
    `context`, if given, must be found (any pattern) in some line before the match,
    of any rank and uncut: what a hang was doing says more than where it stopped.
    `absent` patterns must not occur after the match on any rank (a request that
    is never scheduled). `yields_to` names causes that win over this one
    wherever both match; `explains` names causes that are consequences of this
    one. A `general` cause says only that the program itself refused something: every other
    that names the same exception wins. `hang` causes apply only if the log has no
    exception. A `transient` cause is the machine's, not the configuration's: a trial
    that shows it proves nothing.
    `origins` are what may bring it about, the likeliest first; `discriminator` is the one
    test that tells most of them apart; `escalate` says when to go to whom.
    """

    id: str
    title: str
    role: Role = Role.ROOT
    severity: Severity = Severity.SUSPECT
    phases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    hang: bool = False
    transient: bool = False
    yields_to: tuple[str, ...] = ()
    yields_to_kernels: bool = False
    general: bool = False
    explains: tuple[str, ...] = ()
    culprit_flags: tuple[str, ...] = ()
    culprit_env: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    means: str = ""
    confused_with: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()  # names of the probes that tell it from its look-alikes
    decoys: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    origins: tuple[Origin, ...] = ()
    discriminator: str = ""
    escalate: str = ""
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=())
