"""Reads the interesting lines of a log into evidence.

In:  raw lines from a scanner (scan.py). Out: Gatherer with its Generations.
Not: weighing (cascade.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from triage.core.causes import Role
from triage.core.log import endings, landmarks, partial, restarts
from triage.core.log.answers import TEXTS
from triage.core.log.endings import FATAL_HEADS, STOPPED_BY, Ending, ending
from triage.core.log.evidence import Generation, Hit, source_of
from triage.core.log.finder import LONG, WINDOWS, Compile, Plain
from triage.core.log.framing import learned
from triage.core.log.lines import Line, as_printed, parts, peel
from triage.core.log.nested import HEAD, NUMBERS
from triage.core.log.partial import Joined
from triage.core.log.ranks import members
from triage.core.log.reading import KERNELS, SIZES, WHAT, Found, Reading, reader_of
from triage.core.log.repeats import repeats_of
from triage.core.log.restarts import is_again, launch_name
from triage.core.log.scan import Scanner
from triage.core.log.signatures import Matcher
from triage.core.log.tracebacks import (
    CAUSE,
    CONTEXT,
    DUMPED,
    Traceback,
    Tracebacks,
    is_uncaught,
)
from triage.core.regex import regex
from triage.core.server_args import START

_STREAMS = 4096
_WAITING = ("process-spawn", "config-load", "unknown")  # where the main process stands meanwhile
_BEFORE_DUMP = 160  # characters of another logger's head: time, pod, level, place in the code
_MANY = 3  # lines within one, from which on it may be a traceback
_LOOKS = 256  # such lines that are looked through once more
_JUDGED = 4  # late beginnings that are looked at
_MATCHED = 64  # matches kept of one traceback

_WHAT = regex(r"\s*what\(\): +(.*)")
_SIZES = regex(r"\b((?:tensor|pipeline|data)_parallel_size)['\"]?[=:] ?(\d{1,4})\b")
_REPLAY = regex(r"triage\.replay: (?:landscape \S+: entry (?P<entry>\w+)|refused: (?P<no>.*))")
_GENERAL = (HEAD, DUMPED, CAUSE, CONTEXT, "what():", ", line ", "Error", "Exception", "Interrupt",
            "hit an exception", "triage.replay", "graph failed", "server version",
            "Process Spawn", "tensor_parallel_size")  # fmt: skip
# Beside the causes' own: landmarks, endings, exceptions, kernels.
FIXED = (
    landmarks.LITERALS
    | endings.LITERALS
    | restarts.LITERALS
    | partial.LITERALS
    | frozenset(_GENERAL)
    | frozenset(KERNELS)
    | {NUMBERS}
)
_READY, _DUMP = landmarks.READY[0].encode(), landmarks.DUMP.encode()
_VERSIONED = "vLLM API server version"
_VLLM, _NUMBERS = _VERSIONED.encode(), NUMBERS.encode()
_ENGINES = (b"sglang", b"vLLM")
_HUNGER = 2000  # lines without anything of interest after which a traceback is given up


class Gatherer:
    """A sink of interesting lines.

    Args:
        matcher: The causes' patterns.
        failed: Says whether a generation failed; after one that did, nothing more is read.
        foreign: What an unknown program put in front of every line.
    """

    def __init__(
        self,
        matcher: Matcher,
        failed: Callable[[Generation], bool],
        foreign: re.Pattern[str] | None = None,
    ) -> None:
        self.hungry = False
        self._foreign = foreign
        own = landmarks.FREQUENT_RAW
        self.frequent: Sequence[bytes] = tuple(dict.fromkeys((*own, *matcher.frequent)))
        self._in_start = self.frequent
        self.awaited: Sequence[bytes] = landmarks.SERVES
        self.generation = Generation()
        self.engine = "unknown"
        self.version: str | None = None
        self.simulated = False
        self.provenance = ""
        self.refused = ""
        self.first_time: str | None = None
        self.over = False  # a generation failed: the rest of the log is about restarts
        self.starts = 1  # of the generation that counts, and later ones
        self.came_up = 0  # line by which a later start was ready
        self._gone: set[str] = set()  # sources that failed and started again
        self._matcher = matcher
        self._failed = failed
        self._tracebacks = Tracebacks()
        self._taken = 0  # finished tracebacks that the generation has
        self._reader = reader_of(matcher)
        self._repeats = repeats_of(self._reader)
        self._open: dict[int, tuple[bytes, ...]] = {}  # causes that can be refuted yet
        self._listens = True  # whether answers of the server are looked for
        self._begun = False  # a later start whose arguments come yet
        self._judged = 0  # starts that were asked whether they had failed
        self._looked = 0  # lines that were looked through once more
        self._fed = 0  # the last line that was of interest, or part of a traceback

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> bool:
        """One physical line; True if the rest of the log is about restarts."""
        if self.over:
            self._later(raw, number)
            return True
        said: Reading | None
        known = None if hits or self._foreign else self._repeats.get(raw, offset, number)
        if known is not None:
            line, said = known
        elif (text := None if hits else as_printed(raw)) is not None:
            line = peel(text, offset, number, self._foreign)
            said = self._read(line, seen, whole=True)
            if said is not None and self._foreign is None:
                self._repeats.add(raw, line, said)
        else:
            self._parts(raw, offset, number, hits, seen)
            return self.over
        lone = said is not None and said.only_kernel and not self.hungry
        if lone and self._reader.only_a_name(raw, seen):
            return False
        if seen:
            self._fed = number
        self._line(line, said)
        self.hungry = self._tracebacks.hungry and number - self._fed < _HUNGER
        return self.over

    def _parts(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        """A physical line that is long, redrawn or in a record."""
        if not self.hungry and seen and self._reader.only_a_name(raw, seen):
            return
        if seen:
            self._fed = number
        # A part has all literals of its text unless something was taken out of it, or looked past.
        whole = len(raw) <= LONG and not hits and b"\x1b" not in raw and raw[:1] != b"{"
        lines: Iterable[Line] = parts(raw, offset, number, hits, self._foreign)
        if seen and _NUMBERS in raw:
            lines = tuple(lines)  # the literals are none of the raw line's
            seen = self._matcher.within("\n".join(line.text for line in lines))
        elif seen and b"\\" in raw and (len(hits) == WINDOWS or b"\\'" in raw):
            lines, seen = self._of_all(lines, seen)
        for line in lines:
            self._line(line, self._read(line, seen, whole=whole))
            if self.over:
                return
        self.hungry = self._tracebacks.hungry and number - self._fed < _HUNGER

    def _of_all(
        self, lines: Iterable[Line], seen: Collection[int]
    ) -> tuple[Sequence[Line], Collection[int]]:
        """The lines of a long or quoted one, with all literals that are in any of them.

        A scan looks at the raw line, where a quote is escaped, and at some windows of it. The
        first of such lines are looked through once more; thousands would take too long.
        """
        found = tuple(lines)
        if len(found) < _MANY or self._looked >= _LOOKS:
            return found, seen
        self._looked += 1
        return found, self._matcher.within("\n".join(line.text for line in found))

    def _read(self, line: Line, seen: Collection[int], *, whole: bool) -> Reading | None:
        """What the line says; None of resolved arguments, which are long and come once."""
        at = line.text.find(landmarks.DUMP, 0, _BEFORE_DUMP)
        if at == 0 or (at > 0 and START.match(line.text, at)):
            return None
        return self._reader.read(line.text, seen, whole=whole)

    def _later(self, raw: bytes, number: int) -> None:
        """A line of a later start: only how many there are, and whether one came up."""
        if _READY in raw:
            self.came_up = self.came_up or number
        elif _DUMP in raw[:400] or _VLLM in raw:
            self.starts += not self._begun
            self._begun = False

    def close(self) -> None:
        """The log has ended: tracebacks that were cut off count too."""
        self._collect()
        for tb in self._tracebacks.close():
            if not self.over:
                tb.line, tb.text = tb.head, f"{tb.header} {HEAD}".strip()
                if tb.headless:  # its first line is a frame: nothing is cited that is not there
                    frame = tb.frames[0]
                    tb.text = f'File "{frame.file}", line {frame.line}, in {frame.function}'
                self._add(tb)

    def _line(self, line: Line, said: Reading | None) -> None:
        """One visible part of a line, and what its text says; None of resolved arguments."""
        text, generation = line.text, self.generation
        if self._gone and source_of(line.wrapper) in self._gone:
            self._later(text.encode("utf-8", "replace"), line.number)
            return
        if line.simulated:
            self.simulated = True
        if self.first_time is None:
            self.first_time = line.time
        if said is None:
            self._engine(text)
            generation.seen(line)
            self._dump(line._replace(text=text[text.index(landmarks.DUMP) :]))
            return
        if said.replay and (found := _REPLAY.search(text)) is not None:
            self.provenance = found["entry"] or self.provenance
            self.refused = found["no"] or self.refused
            return
        if said.names and (self.version is None or self.engine != "sglang"):
            self._engine(text)
        generation.seen(line)
        tb = self._tracebacks.feed(line)
        if self._listens or len(self._tracebacks.finished) > self._taken:
            self._collect()
            self._hear(line)
        if tb is None:
            if said.event or generation.told_to_end or generation.broken:
                self._record(line, said)
        else:
            self._fed = line.number
            if tb.native:
                tb = None  # its frames are no message of an exception
        inside = tb is not None and said.every != {}
        if (said.matches or inside or (said.doubts and self._open)) and not self.over:
            self._match(line, said, tb)

    def _engine(self, text: str) -> None:
        if self.engine != "sglang" and "sglang" in text:
            self.engine = "sglang"
        elif self.engine == "unknown" and "vLLM" in text:
            self.engine = "vllm"
        if self.version is None and ("version" in text or "sglang:v" in text):
            self.version = landmarks.version_of(text)

    def _dump(self, line: Line) -> None:
        """The resolved arguments: a second dump of the same launch is a restart."""
        name = launch_name(line)
        source = source_of(line.wrapper)
        over = source in self.generation.broken or (self.generation.told_to_end and not source)
        if name in self.generation.streams or over or self._begins_late(line):
            self._restart(line)
            if self.over or source_of(line.wrapper) in self._gone:
                return
        generation = self.generation
        self.engine = "sglang"
        generation.streams.add(name)
        # The names of engines have been read by now, where they tell a version.
        self._in_start = tuple(text for text in self._in_start if text not in _ENGINES)
        self.frequent = self._in_start
        generation.add_dump(line)
        generation.engines.add(source)
        generation.timeline.mark(line, "config-load")
        generation.serves = 0  # what served before was an earlier start
        self._listen()

    def _begins_late(self, line: Line) -> bool:
        """Whether the line begins a start in a source of which one, that failed, began above."""
        if self._judged >= _JUDGED or not restarts.is_late(self.generation, line):
            return False
        self._judged += 1
        return self._failed(self.generation)

    def _restart(self, line: Line) -> None:
        """The engine starts again: if it had failed, that failure is the answer.

        Where several sources share a log, the others go on.
        """
        alone = len(self.generation.spans) < 2  # noqa: PLR2004
        if self._failed(self.generation):
            self.starts += 1
            self._gone.add(source_of(line.wrapper))
            if alone:
                self.over = True
                self._tracebacks = Tracebacks()  # nothing more is read
                self.frequent, self.awaited = (), (_READY, _DUMP, _VLLM)
            return
        if not alone and source_of(line.wrapper) not in self.generation.broken:
            return
        self.generation = Generation()
        self._tracebacks = Tracebacks()
        self._taken = 0
        self._open.clear()
        self._listen()
        self.frequent = self._in_start

    def _record(self, line: Line, said: Reading) -> None:
        """A line outside of tracebacks: a landmark, an ending, a kernel in trouble."""
        generation, text, phase = self.generation, line.text, said.phase
        ended = generation.told_to_end or generation.broken
        again = ended and is_again(generation, line, phase)
        if again or (phase == "arg-parse" and self._begins_late(line)):
            self._restart(line)
            if self.over or source_of(line.wrapper) in self._gone:
                self._begun = _VERSIONED not in text
                return
            generation = self.generation
        if not said.event:
            return
        if phase:
            self._landmark(line, phase)
        if WHAT in text and (what := _WHAT.match(text)) is not None:
            key = f"{line.wrapper} {line.rank}"
            if key not in generation.what and len(generation.what) < _STREAMS:
                generation.what[key] = (line.number, what[1])
        if SIZES in text and not generation.sizes:
            generation.sizes = {name: int(size) for name, size in _SIZES.findall(text)}
        if landmarks.READY[0] in text or (self.engine == "vllm" and landmarks.READY[1] in text):
            self._ready(line)
        kind = said.ending
        if kind is not None:
            if kind is Ending.FATAL and endings.BIND in text:
                generation.bind = generation.bind or line.number
            generation.add_ending(kind, line, self._phase(line))
            if kind in (Ending.DEATH, Ending.FATAL, Ending.ABORT):
                self._ask(line.wrapper)

    def _landmark(self, line: Line, phase: str) -> None:
        """A line that opens this phase."""
        generation, text = self.generation, line.text
        generation.timeline.mark(line, phase)
        generation.engines.add(source_of(line.wrapper))
        generation.joined = line.number if text.startswith(landmarks.JOINED) else generation.joined
        if self.engine == "unknown":
            self.engine = "sglang"
        if self._listens:
            self._listen()
        if not generation.serves and landmarks.is_beside_others(text):
            begun = generation.streams or generation.timeline.steps[0].phase != phase
            generation.serves = 0 if begun else line.number

    def _ready(self, line: Line) -> None:
        """The line by which the server says that it is up."""
        generation, source = self.generation, source_of(line.wrapper)
        generation.ready = generation.readies[source] = line.number
        generation.engines.add(source)
        # A server that came up does not hang in its start.
        self._settle(*[index for index in self._open if self._matcher.causes[index].hang])
        wanted = (*landmarks.FREQUENT_RAW, *self._matcher.frequent_once_up())
        self.frequent = tuple(text for text in self._in_start if text in wanted)

    def _match(self, line: Line, said: Reading, tb: Traceback | None) -> None:
        generation, text = self.generation, line.text
        if tb is not None and 0 < tb.line < line.number and ending(tb.text) is Ending.DEATH:
            tb = None  # not the message of "a child died", but what stands below it
        found: Found = said.found
        if found or said.kernel or tb is not None:
            found = self._reader.every(said, text)
        for index, captures in found.items():
            if tb is None:
                generation.add_hit(Hit(index, line, captures, self._phase(line)))
                self._await(index)
                self._ask(line.wrapper)
            elif len(tb.matched) < _MATCHED:
                tb.matched.append((index, line.number, captures))
        if tb is not None and tb.line == line.number and not tb.message and tb.code:
            self._match_code(tb)
        if said.blames and (tb is None or tb.line == line.number):
            harmless = any(self._matcher.causes[index].role is Role.BENIGN for index in found)
            if not harmless:
                generation.add_kernel(line._replace(rank=tb.rank) if tb else line)
        if said.doubts and self._open:
            for index in [index for index in self._open if self._matcher.refutes(text, index)]:
                generation.forget(index)
                self._settle(index)
        for index in said.supported:
            generation.supported.setdefault(index, line.number)

    def _match_code(self, tb: Traceback) -> None:
        """Of an exception without a message its source line is tried as a whole.

        Newer Pythons print a statement with all its lines, of which none says enough alone.
        """
        code = tb.code.replace("( ", "(").replace(" )", ")")
        bare = code.replace("assert (", "assert ", 1)
        known = {index for index, _, _ in tb.matched}
        for text in dict.fromkeys((code, bare)):
            for index, captures in self._matcher.match(text):
                if index not in known:
                    known.add(index)
                    tb.matched.append((index, tb.line, captures))

    def _await(self, index: int) -> None:
        """A cause was found: from here on, what refutes it is looked for."""
        if index in self._open or not (texts := self._matcher.refuting(index)):
            return
        if not (self.generation.ready and self._matcher.causes[index].hang):
            self._open[index] = texts
            self._listen()

    def _settle(self, *causes: int) -> None:
        """These causes need not be refuted any more."""
        for index in causes:
            del self._open[index]
        self._listen()

    def _listen(self) -> None:
        """Ask for the lines that refute a cause, or show that the server goes on to answer."""
        answers, start = self.generation.answers.wanted, self.generation.lacks_start
        self._listens = answers or start
        refuting = tuple(text for some in self._open.values() for text in some)
        more = (*landmarks.SERVES * start, *TEXTS * answers)
        self.awaited = (*refuting, *dict.fromkeys(more))

    def _hear(self, line: Line) -> None:
        """A line that may be an answer of the server."""
        if not self._listens:
            return
        generation, source = self.generation, source_of(line.wrapper)
        begins = generation.lacks_start and landmarks.is_of_service(line.text)
        if begins:
            generation.serves = line.number
            generation.engines.add(source)
            self.engine = "sglang" if line.text.startswith("Decode") else "vllm"
        if generation.answers.tell(line, source) or begins:
            self._listen()

    def _ask(self, wrapper: str) -> None:
        """A line came that is a failure unless the server, once it is up, goes on to answer."""
        if self.generation.up:
            self.generation.answers.ask(self.generation.server(wrapper))
            if not self._listens:
                self._listen()

    def _phase(self, line: Line) -> str:
        known = line.rank in self.generation.timeline.phases
        own = line.headed and known and not endings.is_kernel(line.text)
        tagged = own or not self.generation.tags
        return self.generation.timeline.phase(line.rank, tagged=tagged)

    def _collect(self) -> None:
        finished = self._tracebacks.finished
        while self._taken < len(finished):
            self._add(finished[self._taken])
            self._taken += 1
        if self._taken > 1024:  # noqa: PLR2004  the generation keeps what it needs
            del finished[:]
            self._taken = 0

    def _add(self, tb: Traceback) -> None:
        generation = self.generation
        if tb.native:
            generation.add_stack(tb)
            return
        # Old engines label the lines of a worker, but not its exception.
        labelled = tb.rank != "main" or not generation.tags or bool(members(generation.tags))
        phase = generation.timeline.phase(tb.rank, tagged=labelled)
        if tb.rank == "main" and labelled and phase in _WAITING:
            phase = generation.timeline.furthest()  # the main process waits for its children
        generation.add_traceback(tb, phase)
        self._ask(tb.wrapper)
        generation.woven = self._tracebacks.woven
        if ending(tb.text) is Ending.DEATH:
            line = Line(tb.offset, tb.line, tb.time, tb.rank, tb.text, tb.wrapper,
                        simulated=self.simulated, headed=False)  # fmt: skip
            generation.add_ending(Ending.DEATH, line, phase)
        if self.engine != "sglang" and any("sglang" in frame.file for frame in tb.frames):
            self.engine = "sglang"
        if tb.exception.rpartition(".")[2] in STOPPED_BY:
            generation.stop = generation.stop or tb.line
        elif (is_uncaught(tb) and not tb.header) or FATAL_HEADS.search(tb.header):
            generation.broken.add(source_of(tb.wrapper))


def read(
    chunks: Iterable[bytes],
    matcher: Matcher,
    failed: Callable[[Generation], bool],
    *,
    finder: Compile = Plain,
) -> tuple[Gatherer, int]:
    """The evidence of a whole log, and the number of its bytes."""
    foreign, chunks = learned(chunks)
    gatherer = Gatherer(matcher, failed, foreign)
    found = finder(matcher.literals)
    joined = Joined(gatherer)
    scanner = Scanner(found, joined, every_line=matcher.every_line)
    for chunk in chunks:
        scanner.feed(chunk)
    scanner.close()
    joined.close()
    gatherer.close()
    gatherer.generation.end = scanner.lines
    return gatherer, scanner.offset
