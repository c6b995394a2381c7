"""What a log shows of one start of the engine: the facts that a diagnosis weighs.

In:  events, from gather.py. Out: Generation and its parts.
Not: reading lines (gather.py) or weighing facts (cascade.py).

Everything is bounded: of many equal events the first and the last are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from triage.core.diagnosis import Frame
from triage.core.log.answers import Answers
from triage.core.log.endings import Ending, is_end
from triage.core.log.landmarks import Timeline
from triage.core.log.lines import Line
from triage.core.log.tracebacks import Traceback
from triage.core.records import dataclass, field
from triage.core.regex import finds, regex
from triage.core.typed import Generic, TypeVar

_KEPT = 24  # events of a sort that are kept from the start; as many from the end
_RANKS = 256  # ranks whose matches of one cause are kept apart
_TRACEBACKS = 256
_STACKS = 32
_LABELS = 4096
_DUMPS = 16  # of resolved arguments: one a node
_NEAR = 12  # lines between "Fatal Python error" and the stack that belongs to it

T = TypeVar("T")
# What names a process of one launch, not where its log comes from.
_PROCESS = regex(
    r"(?:^| )(?:(?:APIServer|ApiServer|EngineCore|Worker|RayWorker|Vllm)\S*|rank\d+)",
    needs=("Server", "EngineCore", "Worker", "Vllm", "rank"),
)
_NCCL = regex(r"[^\s:]+:(\d{1,9}):\d+ \[\d+\] NCCL ", needs=("] NCCL ",))


@lru_cache(maxsize=4096)
def source_of(wrapper: str) -> str:
    """Where lines with this wrapper come from: a node, a container, a task; "" if nobody says."""
    return _PROCESS.sub("", wrapper).strip()


class Few(Generic[T]):
    """The first and the last of many events; `count` counts all."""

    __slots__ = ("count", "first", "last", "limit")

    def __init__(self, limit: int = _KEPT) -> None:
        self.limit = limit
        self.first: list[T] = []
        self.last: list[T] = []
        self.count = 0

    def add(self, item: T) -> None:
        """One more, in order."""
        self.count += 1
        if len(self.first) < self.limit:
            self.first.append(item)
            return
        self.last.append(item)
        if len(self.last) > self.limit:
            del self.last[0]

    def all(self) -> list[T]:
        """What was kept, in order."""
        return self.first + self.last


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Hit:
    """A cause's pattern matched a line outside of any traceback.

    `phase` is the phase that the line's rank was in.
    """

    cause: int
    line: Line
    captures: dict[str, str]
    phase: str


@dataclass(slots=True)
class Generation:
    """One start of the engine within a log; a restarted container logs several.

    `answers` tells whether it went on once it was ready, `engines` the sources with a landmark;
    `endings` holds lines that belong to an ending, with the rank's phase; `kernels`
    lines that blame a kernel; `stacks` what dying interpreters dumped; `supported` the
    first line, other than one of `dumps`, that bears out a cause's context; `ready`, `joined`,
    `serves` and `stop` are line numbers, 0 if never.
    """

    timeline: Timeline = field(default_factory=Timeline)
    tracebacks: list[Traceback] = field(default_factory=list)
    phases: dict[int, str] = field(default_factory=dict)  # id of a traceback -> phase
    hits: dict[tuple[int, str], Few[Hit]] = field(default_factory=dict)
    endings: dict[Ending, Few[tuple[Line, str]]] = field(default_factory=dict)
    kernels: dict[str, Few[Line]] = field(default_factory=dict)
    stacks: list[Traceback] = field(default_factory=list)
    what: dict[str, tuple[int, str]] = field(default_factory=dict)  # stream -> line, what()
    supported: dict[int, int] = field(default_factory=dict)
    dumps: list[tuple[int, str]] = field(default_factory=list)  # line and text of the first
    answers: Answers = field(default_factory=Answers)
    engines: set[str] = field(default_factory=set)
    dump: str = ""
    sizes: dict[str, int] = field(default_factory=dict)  # of the layout, where vLLM prints them
    ready: int = 0
    readies: dict[str, int] = field(default_factory=dict)  # source -> line of its last ready
    joined: int = 0  # line by which a node other than the first says that its ranks are up
    serves: int = 0  # line of a batch beside running requests, in a log that lacks the start
    stop: int = 0
    signalled: int = 0  # first line of a process that was told to end, maybe beside the server
    end: int = 0  # lines of the whole log; 0 while it is read
    bind: int = 0  # line of a failed bind: the ready line after it is not ours
    woven: set[str] = field(default_factory=set)  # ranks whose tracebacks took turns
    tags: set[str] = field(default_factory=set)
    spans: dict[str, list[int]] = field(default_factory=dict)  # source -> first and last line
    streams: set[str] = field(default_factory=set)  # launches whose dump was seen
    broken: set[str] = field(default_factory=set)  # sources of which a process ended
    pids: dict[int, str] = field(default_factory=dict)  # process -> label of its lines
    _asked: dict[tuple[int, int], int | None] = field(default_factory=dict)
    _wrapper: str | None = None  # of the last line
    _span: list[int] = field(default_factory=lambda: [0, 0])  # of its source

    @property
    def told_to_end(self) -> int:
        """The first line by which the server, or a process that may be it, was told to end."""
        return self.stop or self.signalled

    @property
    def up(self) -> int:
        """The line from which on it served, as far as the log shows; 0 if it did not."""
        return 0 if self.bind else self.ready or self.serves

    def server(self, wrapper: str) -> str | None:
        """The source of the line if a server came up there; None if any may be meant."""
        source = source_of(wrapper)
        return source if source in self.readies else None

    @property
    def lacks_start(self) -> bool:
        """Whether all that was read so far could be of a server that is up."""
        if self.serves or self.ready or self.streams:
            return False
        return not self.timeline.steps or self.timeline.steps[0].phase == "warmup-request"

    def is_other(self, source: str) -> bool:
        """Whether what comes from this source is another program's than the engine's."""
        if not source or " pid=" in f" {source}" or source in self.engines:
            return False
        return bool(self.engines - {""})

    def supports(self, cause: int, context: Sequence[str]) -> int | None:
        """The first line that bears out the context of this cause, if any does.

        Resolved arguments are long, and what all causes could want of them is much: they
        are searched only for a cause that asks.
        """
        if not context:
            return None
        key = cause, len(self.dumps)
        if key not in self._asked:
            self._asked[key] = next(
                (number for number, text in self.dumps if any(finds(p, text) for p in context)),
                None,
            )
        found = [n for n in (self._asked[key], self.supported.get(cause)) if n is not None]
        return min(found, default=None)

    def add_dump(self, line: Line) -> None:
        """Resolved arguments."""
        self.dump = self.dump or line.text
        if len(self.dumps) < _DUMPS:
            self.dumps.append((line.number, line.text))

    def seen(self, line: Line) -> None:
        """An interesting line of this rank and source."""
        rank, wrapper = line.rank, line.wrapper
        if rank != "main" and len(self.tags) < _LABELS:
            self.tags.add(rank)
            few = rank.startswith("gpu") and len(self.pids) < _LABELS
            if few and (found := _NCCL.match(line.text)) is not None:
                self.pids[int(found[1])] = rank
        if wrapper != self._wrapper:
            self._wrapper = wrapper
            self._span = self._span_of(source_of(wrapper), line.number)
        self._span[1] = line.number

    def _span_of(self, source: str, number: int) -> list[int]:
        span = self.spans.get(source) or [number, number]
        if len(self.spans) < _LABELS:
            self.spans[source] = span
        return span

    def add_hit(self, hit: Hit) -> None:
        """A match on a line of its own."""
        key = (hit.cause, hit.line.rank)
        if key not in self.hits and len(self.hits) < _RANKS * _RANKS:
            self.hits[key] = Few(limit=4)
        if key in self.hits:
            self.hits[key].add(hit)

    def forget(self, cause: int) -> None:
        """A line came that the cause says never comes: its matches so far count no more."""
        for key in [key for key in self.hits if key[0] == cause]:
            del self.hits[key]

    def add_traceback(self, tb: Traceback, phase: str) -> None:
        """A traceback has reached its exception line."""
        if len(self.tracebacks) >= _TRACEBACKS:
            self.phases.pop(id(self.tracebacks.pop(_TRACEBACKS // 2)), None)
        self.tracebacks.append(tb)
        self.phases[id(tb)] = phase

    def add_stack(self, tb: Traceback) -> None:
        """The stack of a thread that died."""
        if len(self.stacks) < _STACKS:
            self.stacks.append(tb)

    def dump_at(self, line: int) -> list[Frame]:
        """The stack that a dying interpreter printed just below this line, innermost last."""
        near = (tb.frames for tb in self.stacks if 0 <= tb.line - line <= _NEAR)
        return next(near, [])

    def head_of_stack(self, line: Line) -> Line:
        """The line that says that the interpreter dies, if this one is of the stack below it."""
        stack = next((tb for tb in self.stacks if tb.line <= line.number <= tb.last), None)
        if stack is None:
            return line
        above = [
            head
            for head, _ in self.of(Ending.ABORT)
            if 0 <= stack.line - head.number <= _NEAR and head.wrapper == line.wrapper
        ]
        return above[0] if above else line

    def said_after(self, line: Line) -> str:
        """What a C++ exception says on the line below the one that names its type."""
        number, text = self.what.get(f"{line.wrapper} {line.rank}", (0, ""))
        return text if 0 < number - line.number <= _NEAR else ""

    def add_ending(self, kind: Ending, line: Line, phase: str) -> None:
        """A line that belongs to the end of a launch."""
        if kind is Ending.STOP:
            self.stop = self.stop or line.number
        elif kind is Ending.SIGNALLED:
            self.signalled = self.signalled or line.number
        self.endings.setdefault(kind, Few()).add((line, phase))
        if kind in (Ending.DEATH, Ending.FATAL, Ending.ABORT) or is_end(line.text):
            self.broken.add(source_of(line.wrapper))

    def add_kernel(self, line: Line) -> None:
        """A line in which something goes wrong in a named kernel."""
        if len(self.kernels) < _RANKS or line.rank in self.kernels:
            self.kernels.setdefault(line.rank, Few(limit=4)).add(line)

    def of(self, kind: Ending) -> list[tuple[Line, str]]:
        """The lines kept of one sort of ending, with the phase of their rank."""
        few = self.endings.get(kind)
        return few.all() if few else []

    def all_hits(self) -> Iterator[Hit]:
        """All matches kept, by cause and rank."""
        for few in self.hits.values():
            yield from few.all()
