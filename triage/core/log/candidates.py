"""The lines that could be the reason of a failure, with what speaks for each.

In:  a Generation and the causes. Out: Candidate values.
Not: choosing among them (cascade.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.core.causes import Cause, Role, Severity
from triage.core.log.endings import (
    BIND,
    FATAL_HEADS,
    STOPPED_BY,
    Ending,
    ending,
    is_communication,
    is_communicator,
    is_load_barrier,
    is_native,
)
from triage.core.log.evidence import Generation, Hit, source_of
from triage.core.log.fingerprint import fingerprint
from triage.core.log.frames import place, proven_phase
from triage.core.log.lines import Line
from triage.core.log.no_start import is_container, is_no_program, is_refused
from triage.core.log.tracebacks import Traceback, is_uncaught, unwrapped, wraps_capture
from triage.core.records import dataclass, field
from triage.core.regex import finds

# Exceptions that programs use to find their way: what is raised while one of
# them is handled says what was really missed.
_SIGNPOSTS = frozenset(
    ("KeyError", "IndexError", "AttributeError", "StopIteration", "EOFError", "LookupError",
     "NotImplementedError", "CancelledError", "JSONDecodeError", "ModuleNotFoundError",
     "ImportError", "FileNotFoundError", "Empty")
)  # fmt: skip
_COMMAND = "CalledProcessError"
_DELIBERATE = ("raise ", "assert ")  # a check of the program, not an accident in a library below it
_CLOSE = 60  # lines between a library's complaint and the exception that passes it on
_NEAR = 200  # lines between a line without a landmark and an exception that tells its phase


@dataclass(slots=True, eq=False)
class Candidate:
    """A line that could be the reason.

    `strength` is 0 if the process certainly ended with it, 1 if that is likely, 2 if
    it was only logged. `passed` says that the rank went on afterwards. `noise` marks
    what is never a reason; `echo` what shows that another rank is lost, or late;
    `trouble` a library's complaint that need not be fatal; `abort` the end of a process
    in native code, whose reason may stand above it. `chain` is the line of the newest
    exception of a chain (0: none), and `place` the position among its exceptions, in
    order of preference. `specific` counts what the cause demanded beside the pattern.
    `source` is the wrapper's name of the stream, `said` what a second line adds;
    `unproven` a cause whose demand may have been met in a head that is cut off.
    """

    line: int
    offset: int
    rank: str
    time: str | None
    text: str
    phase: str
    strength: int
    cause: Cause | None = None
    captures: dict[str, str] = field(default_factory=dict)
    tb: Traceback | None = None
    passed: bool = False
    noise: bool = False
    echo: bool = False
    trouble: bool = False
    abort: bool = False
    chain: int = 0
    place: int = 0
    specific: int = 0
    source: str = ""
    said: str = ""
    unproven: bool = False

    def fingerprint(self) -> tuple[str, str]:
        """The name that the failure has without a cause, and its pre-image."""
        if self.tb is None or not self.tb.exception:
            return fingerprint("", f"{self.text} {self.said}".strip())
        message = unwrapped(self.text) or self.tb.message or self.tb.code
        return fingerprint(self.tb.exception, message, self.tb.frames)

    @property
    def signature(self) -> str:
        """What two candidates share if they are the same failure."""
        return self.cause.id if self.cause and self.named else self.fingerprint()[0]

    @property
    def named(self) -> bool:
        """Whether its cause says more than that the program refused something."""
        return self.cause is not None and not self.cause.general

    @property
    def unfinished(self) -> bool:
        """Whether it is a traceback of which the exception itself is not in the log."""
        return self.tb is not None and not self.tb.exception

    @property
    def communication(self) -> bool:
        """Whether the line could come from another rank's fault."""
        return is_communication(self.text)


def candidates(generation: Generation, causes: Sequence[Cause]) -> list[Candidate]:
    """All candidates, in file order; those of noise are marked, not left out."""
    found: list[Candidate] = []
    linked = {id(tb.previous) for tb in generation.tracebacks if tb.previous is not None}
    for tb in generation.tracebacks:
        if id(tb) not in linked:
            found += _of_chain(tb, generation, causes)
    found += _of_hits(generation, causes)
    found += _of_endings(generation)
    found.sort(key=lambda candidate: candidate.line)
    return found


def eligible(
    cause: Cause, phases: set[str], *, line: int, frames: str, supported: int | None
) -> bool:
    """Whether what the cause demands beside its pattern holds at this line.

    `phases` are those that frames and landmarks name; `supported` is the first line
    that bore out the cause's context.
    """
    if cause.phases and "unknown" not in phases and not phases & set(cause.phases):
        return False
    if cause.context and (supported is None or supported > line):
        return False
    return not cause.frames or any(finds(pattern, frames) for pattern in cause.frames)


def chosen(tb: Traceback) -> Traceback:
    """The exception of a chain that names the reason; `tb` is the newest.

    An exception that was raised *from* another only wraps it. One that was raised
    while another was handled replaces it if the other was a signpost (a key that was
    not there) and the raise was deliberate; otherwise it is an accident on the way out.
    That a command ended badly says nothing; who ran it adds what the command printed.
    """
    members = list(tb.chain())[::-1]
    best = members[0]
    for member in members[1:]:
        signpost = best.exception.rpartition(".")[2] in _SIGNPOSTS
        replaced = member.relation == "context" and member.code.startswith("raise")
        told = member.relation == "cause" and best.exception.endswith(_COMMAND) and member.more
        if ((replaced and signpost) or told) and not wraps_capture(member.text):
            best = member
    return best


def _of_chain(
    tb: Traceback, generation: Generation, causes: Sequence[Cause]
) -> Iterator[Candidate]:
    members = list(tb.chain())[::-1]
    if tb.exception.rpartition(".")[2] in STOPPED_BY:
        return
    best = chosen(tb)
    preferred = [best, *(member for member in members if member is not best)]
    frames = _places(members)
    roles = {
        causes[index].role
        for member in members
        for index, line, _ in member.matched
        if line <= member.line and (member.head != line or member.head == member.line)
    }
    base = _strength(tb, members)
    noise = ending(f"{tb.exception}: {tb.message}") is Ending.DEATH
    noise |= Role.BENIGN in roles or Role.TEARDOWN in roles
    named = False
    for number, member in enumerate(preferred):
        phases = {_phase(member, members, generation, None), generation.phases.get(id(member), "")}
        phases = phases - {"", "unknown"} or {"unknown"}
        echo = ending(member.text) is Ending.SURVIVOR or Role.CASCADE in roles
        for index, _, captures in member.matched:
            cause = causes[index]
            if cause.role is not Role.ROOT or cause.hang:
                continue
            supported = generation.supports(index, cause.context)
            unproven = _unproven(cause, supported, generation)
            if unproven:
                supported = member.line
            where = _places([member]) if cause.general else frames
            if not eligible(cause, phases, line=member.line, frames=where, supported=supported):
                continue
            if cause.general and not _says_itself(cause, member):
                continue
            named |= not unproven
            yield _of_traceback(
                member, members, generation, base, cause=cause, captures=captures,
                noise=noise, echo=echo, chain=tb.line, place=number,
                specific=_specific(cause, phases), unproven=unproven,
            )  # fmt: skip
    if not named:
        echo = ending(best.text) is Ending.SURVIVOR or Role.CASCADE in roles
        yield _of_traceback(best, members, generation, base, noise=noise, echo=echo, chain=tb.line)


def _unproven(cause: Cause, supported: int | None, generation: Generation) -> bool:
    """Whether the cause demands a line that may have stood in the head that is cut off."""
    return bool(cause.context) and supported is None and not generation.dump


def _places(members: Sequence[Traceback]) -> str:
    return "\n".join(place(frame) for member in members for frame in member.frames)


def _says_itself(cause: Cause, member: Traceback) -> bool:
    """Whether a text that many faults could have is a refusal by the program itself.

    Code below a Python frame raises the same types; only a check has them in its own code. A
    name that is not there, or a line that the cause demands beside it, says enough.
    """
    if cause.context or member.exception in _SIGNPOSTS - {"NotImplementedError"}:
        return True
    return member.code.startswith(_DELIBERATE)


def _specific(cause: Cause, phases: set[str]) -> int:
    """How much the cause demanded beside its pattern; of an unknown phase nothing was seen."""
    of_phase = bool(cause.phases) and "unknown" not in phases
    return bool(cause.frames) + of_phase + bool(cause.context)


def _strength(tb: Traceback, members: Sequence[Traceback]) -> int:
    headers = [member.header for member in members if member.header]
    if any(FATAL_HEADS.search(header) for header in headers):
        return 0
    if is_uncaught(members[-1]) and not headers:
        return 0
    return 1 if tb.headless or not tb.line else 2


def _of_traceback(
    tb: Traceback,
    members: Sequence[Traceback],
    generation: Generation,
    strength: int,
    *,
    cause: Cause | None = None,
    captures: dict[str, str] | None = None,
    noise: bool = False,
    echo: bool = False,
    chain: int = 0,
    place: int = 0,
    specific: int = 0,
    unproven: bool = False,
) -> Candidate:
    timeline = generation.timeline
    passed = strength > 0 and timeline.passed(tb.rank, tb.line, tagged=not _untagged(tb.rank))
    return Candidate(
        line=tb.line, offset=tb.offset, rank=tb.rank, time=tb.time, text=tb.text, tb=tb,
        phase=_phase(tb, members, generation, cause), strength=strength, cause=cause,
        captures=captures or {}, passed=passed, noise=noise, echo=echo, chain=chain, place=place,
        specific=specific, source=source_of(tb.wrapper), unproven=unproven,
    )  # fmt: skip


def _untagged(rank: str) -> bool:
    return rank == "main"


def _phase(
    tb: Traceback, members: Sequence[Traceback], generation: Generation, cause: Cause | None
) -> str:
    """Frames over landmarks, unless the cause knows only the landmark's phase.

    The outermost frames are in the chain's newest exception.
    """
    if is_load_barrier(tb.text):
        return "weight-load"  # the barrier stands behind the load, in a frame of its own
    by_frames = _proven(tb) or _proven(members[-1])
    if tb.headless and _captured(members):  # the frames that say so may be cut off
        by_frames = _proven(members[-1]) or by_frames
    by_landmark = generation.phases.get(id(tb), "unknown")
    if not by_frames and by_landmark == "unknown":  # the head of the log was cut off
        by_landmark = _captured(members) or by_landmark
    if not by_frames and by_landmark == "unknown" and _missed_import(tb):
        return "import"
    if by_landmark == "arg-parse":  # a refused command line has no traceback
        by_landmark = "arg-validation"
    if cause and cause.phases and by_frames not in cause.phases and by_landmark in cause.phases:
        return by_landmark
    if by_frames == "warmup-request" and 0 < generation.ready < tb.line:
        return "serving"
    return by_frames or by_landmark


def _proven(tb: Traceback) -> str:
    if tb.proven is None:
        tb.proven = proven_phase(tb.frames)
    return tb.proven


def _missed_import(tb: Traceback) -> bool:
    """Whether an import failed before any landmark, called by a program that just began.

    So says the exception alone, too, as a line that is no traceback's (_of_line).
    """
    begins = not tb.frames or tb.frames[0].function in ("<module>", "_run_module_as_main")
    return begins and tb.exception in ("ImportError", "ModuleNotFoundError")


def _captured(members: Sequence[Traceback]) -> str:
    """The phase that the capture wrapper around an exception names."""
    for member in members:
        if unwrapped(member.text):
            return "prefill-graph-capture" if "prefill" in member.text else "graph-capture"
    return ""


def _of_hits(generation: Generation, causes: Sequence[Cause]) -> Iterator[Candidate]:
    for hit in generation.all_hits():
        cause = causes[hit.cause]
        if cause.role is not Role.ROOT or cause.hang or cause.severity is Severity.INFO:
            continue
        line = generation.head_of_stack(hit.line)
        frames = generation.dump_at(line.number)
        phase = _of_hit(hit, generation)
        phases = {phase, _of_line(line.text, hit.phase)} - {"unknown"} or {"unknown"}
        supported = generation.supports(hit.cause, cause.context)
        places = "\n".join(map(place, frames))
        if not eligible(cause, phases, line=line.number, frames=places, supported=supported):
            continue
        kind = ending(line.text)
        ended = kind in (Ending.FATAL, Ending.ABORT)
        timeline = generation.timeline
        yield Candidate(
            line=line.number, offset=line.offset, rank=line.rank, time=line.time, text=line.text,
            phase=phase, strength=0 if cause.severity is Severity.FATAL or ended else 1,
            cause=cause, captures=hit.captures, specific=_specific(cause, phases),
            passed=kind is not Ending.FATAL
            and timeline.passed(
                line.rank, line.number, tagged=line.headed, native=is_native(line.text)
            ),
            noise=kind in (Ending.DEATH, Ending.ADVICE), echo=kind is Ending.SURVIVOR,
            source=source_of(line.wrapper),
        )  # fmt: skip


def _of_hit(hit: Hit, generation: Generation) -> str:
    """The phase of a line: its own words, a stack, landmarks, else the exceptions below it."""
    told = _of_line(hit.line.text, hit.phase)
    if told != hit.phase:
        return told
    proven = proven_phase(generation.dump_at(generation.head_of_stack(hit.line).number))
    if not proven and is_native(hit.line.text):  # a landmark is another rank's, perhaps
        close = (tb for tb in generation.tracebacks if 0 < tb.head - hit.line.number <= _CLOSE)
        proven = next((phase for tb in close if (phase := _proven(tb))), "")
    if proven or told != "unknown":
        return proven or told
    near = [tb for tb in generation.tracebacks if abs(tb.head - hit.line.number) <= _NEAR]
    near.sort(key=lambda tb: tb.head < hit.line.number)  # what stands below it follows from it
    phases = (_phase(tb, list(tb.chain())[::-1], generation, None) for tb in near)
    return next((phase for phase in phases if phase != "unknown"), told)


def _of_endings(generation: Generation) -> Iterator[Candidate]:
    for kind in (Ending.FATAL, Ending.ABORT, Ending.TROUBLE, Ending.SURVIVOR):
        for line, phase in generation.of(kind):
            yield _of_ending(kind, line, phase, generation)


def _of_ending(kind: Ending, line: Line, phase: str, generation: Generation) -> Candidate:
    certain = kind in (Ending.FATAL, Ending.ABORT)
    frames = generation.dump_at(line.number) if kind is Ending.ABORT else []
    return Candidate(
        line=line.number, offset=line.offset, rank=line.rank, time=line.time, text=line.text,
        phase=proven_phase(frames) or _of_line(line.text, phase), strength=0 if certain else 2,
        passed=not certain
        and generation.timeline.passed(
                line.rank, line.number, tagged=line.headed, native=is_native(line.text)
            ),
        abort=kind is Ending.ABORT, trouble=kind is Ending.TROUBLE, echo=kind is Ending.SURVIVOR,
        source=source_of(line.wrapper),
        said=generation.said_after(line) if kind is Ending.ABORT else "",
    )  # fmt: skip


def _of_line(text: str, phase: str) -> str:
    """The phase of a line that tells it itself."""
    if is_refused(text):
        return "arg-parse"
    if is_no_program(text):
        return "import"
    if is_container(text):
        return "container"
    if phase in ("unknown", "device-init", "process-spawn") and is_communicator(text):
        return "dist-init"
    if phase == "unknown" and "ImportError: " in text:
        return "import"
    return "warmup-request" if BIND in text else phase
