"""The play of one launch: who does what, and when.

In:  a landscape, an entry of it, and the ranks of the launch.
Out: a sequence of Acts in the order in which they happen, times in seconds at speed 1.
Not: doing any of it (cast.py).

The order is the same in each run: jitter between the ranks is drawn from the
landscape's name, never from a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from statistics import fmean

from triage.replay.landscape import RANK_PHASES, FrameAt, Landscape, LandscapeEntry
from triage.replay.wording import (
    ADVICE,
    CAPTURE_FAILED,
    CAPTURE_STEM,
    DURING,
    SCHEDULER_FAILED,
    phase_lines,
    stem,
)

MAIN = -1
JITTER_S = 0.4


class Do(StrEnum):
    """The kinds of acts."""

    SAY = "say"
    RAISE = "raise"  # a rank says its traceback; the launcher hears of it after the last one
    DIE = "die"  # a rank ends by a signal, a launcher too
    LEAVE = "leave"  # a rank or the launcher exits without a word
    OPEN = "open"  # the launcher opens its HTTP port and sends the warm-up
    SERVE = "serve"
    STAND = "stand"  # nothing ever happens again


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that rank `who` (or MAIN) does `at` seconds after the start."""

    at: float
    who: int
    do: Do
    text: str = ""


@dataclass(frozen=True, slots=True)
class Rank:
    """A scheduler's place: its number and the tag that its lines carry, as SGLang prints it."""

    number: int
    tag: str


def ranks_of(tp_size: int, pp_size: int, ep_size: int) -> tuple[Rank, ...]:
    """All ranks of a launch; each part of a tag is there only if its width is above 1."""
    found: list[Rank] = []
    for pp in range(pp_size):
        for tp in range(tp_size):
            parts = [f"PP{pp}"] if pp_size > 1 else []
            parts += [f"TP{tp}"] if tp_size > 1 else []
            parts += [f"EP{tp * ep_size // tp_size}"] if ep_size > 1 else []
            found.append(Rank(len(found), " ".join(parts)))
    return tuple(found)


def write_script(
    landscape: Landscape, entry: LandscapeEntry, ranks: tuple[Rank, ...]
) -> tuple[Act, ...]:
    """All acts up to the ending, in order.

    Raises:
        ValueError: the entry names a rank that this launch does not have.
    """
    ends = entry.ends != "starts"
    acts = _launcher_acts(entry)
    if ends and entry.in_main:
        return (*acts, *_ending(landscape, entry, [Rank(MAIN, "")], acts[-1].at + 0.1))
    hit = [rank for rank in ranks if _is_hit(rank, entry.ranks)]
    if ends and not hit:
        raise ValueError(f"the entry's ranks {', '.join(entry.ranks)} are not in this launch")
    seconds = dict(landscape.seconds)
    if ends:
        seconds.setdefault(entry.phase, 1.0)
    clock = seconds.get("process-spawn", 0.0)
    for phase in RANK_PHASES:
        if phase not in seconds:
            continue
        last = ends and phase == entry.phase
        if phase == "warmup-request":
            acts += [*_open(seconds, clock), *_prefill(clock + 0.1)]
        acts += _phase_acts(landscape, phase, clock, seconds[phase], ranks, cut=last)
        clock += seconds[phase] + 2 * JITTER_S
        if last:
            return (*acts, *_ending(landscape, entry, hit, clock))
    if "warmup-request" not in seconds:
        acts += _open(seconds, clock)
    return (*acts, Act(clock, MAIN, Do.SERVE))


def mean_seconds(landscape: Landscape) -> tuple[float | None, float | None]:
    """Mean seconds, at speed 1, of the launches that start and of those that end; None: none do.

    How long a silent one lasts is not in the landscape: whoever waits for it has the patience.
    """
    ranks = ranks_of(1, 1, 1)
    took: dict[bool, list[float]] = {True: [], False: []}
    for entry in landscape.entries:
        if entry.ends != "hang":
            try:
                last = write_script(landscape, entry, ranks)[-1]
            except ValueError:  # of a rank that only a larger launch has
                continue
            took[entry.ends == "starts"].append(last.at)
    starts, ends = (fmean(took[how]) if took[how] else None for how in (True, False))
    return starts, ends


def _launcher_acts(entry: LandscapeEntry) -> list[Act]:
    if entry.in_main and entry.phase == "arg-validation":
        return [Act(0.0, MAIN, Do.SAY, "Attention backend not explicitly specified.")]
    acts = [Act(0.0, MAIN, Do.SAY, "server_args={server_args}")]
    if not (entry.in_main and entry.phase == "tokenizer-processor"):
        say = "Using default HuggingFace chat template with detected content format: string"
        acts.append(Act(0.2, MAIN, Do.SAY, say))
    return acts


def _open(seconds: dict[str, float], clock: float) -> list[Act]:
    load, pool = seconds.get("weight-load", 0.0), seconds.get("kv-pool-init", 0.0)
    decode, prefill = seconds.get("graph-capture", 0.0), seconds.get("prefill-graph-capture", 0.0)
    ranks = clock - seconds.get("process-spawn", 0.0)
    say = (
        f"Engine startup timings (s): load_weight={load:.2f}, kv_cache_allocation={pool:.2f},"
        f" scheduler_e2e={ranks:.2f}, cuda_graph={{prefill={prefill:.2f}, decode={decode:.2f}}},"
        f" tokenizer_e2e={clock:.2f}"
    )
    return [Act(clock, MAIN, Do.SAY, say), Act(clock, MAIN, Do.OPEN)]


def _prefill(at: float) -> list[Act]:
    say = "Prefill batch, #new-seq: 1, #new-token: 8, #cached-token: 0, token usage: 0.00"
    return [Act(at, 0, Do.SAY, f"{say}, #running-req: 0, #queue-req: 0")]


def _phase_acts(
    landscape: Landscape,
    phase: str,
    start: float,
    seconds: float,
    ranks: tuple[Rank, ...],
    *,
    cut: bool,
) -> list[Act]:
    acts = []
    for rank in ranks:
        late = _jitter(landscape.name, phase, rank.number)
        for said in phase_lines(phase, landscape.model, seconds):
            if said.first_rank_only and rank.number:
                continue
            # A phase that ends the launch shows that it began, and nothing of its work.
            if cut and said.share > 0:
                continue
            acts.append(Act(start + late + said.share * seconds, rank.number, Do.SAY, said.text))
    return sorted(acts, key=lambda act: act.at)


def _ending(
    landscape: Landscape, entry: LandscapeEntry, hit: list[Rank], clock: float
) -> tuple[Act, ...]:
    hit = sorted(hit, key=lambda r: _jitter(landscape.name, entry.phase, r.number))
    before = [
        Act(clock + 0.01 * index, rank.number, Do.SAY, _fill(line, rank, len(hit)))
        for line in entry.before
        for index, rank in enumerate(hit)
    ]
    at = clock + 0.2
    match entry.ends:
        case "exception":
            text = "\n".join(_traceback(landscape, entry))
            return (*before, *(Act(at, rank.number, Do.RAISE, text) for rank in hit))
        case "signal":
            return (*before, Act(at, hit[0].number, Do.DIE, entry.signal))
        case "exit":
            return (*before, Act(at, hit[0].number, Do.LEAVE, str(entry.code)))
        case _:
            return (*before, Act(at, hit[0].number, Do.STAND))


def _traceback(landscape: Landscape, entry: LandscapeEntry) -> list[str]:
    header = "Traceback (most recent call last):"
    first = header if entry.in_main else SCHEDULER_FAILED + header
    last = f"{entry.exception}: {entry.message}" if entry.message else entry.exception
    if not entry.wrapped:
        inner = (*stem(entry.phase), *entry.frames)
        return [first, *_frames(landscape.root, inner), last, ""]
    # The capture runner's own frame is the outermost one of the chained exception.
    inner = (*stem(entry.phase)[len(CAPTURE_STEM) :], *entry.frames)
    outer = (*CAPTURE_STEM, CAPTURE_FAILED)
    return [
        first,
        *_frames(landscape.root, inner),
        last,
        "",
        DURING,
        "",
        header,
        *_frames(landscape.root, outer),
        f"Exception: Capture cuda graph failed: {entry.message}",
        *ADVICE,
        "",
    ]


def _frames(root: str, frames: tuple[FrameAt, ...]) -> list[str]:
    lines = []
    for frame in frames:
        file = frame.file if frame.file.startswith("/") else f"{root}/{frame.file}"
        lines.append(f'  File "{file}", line {frame.line}, in {frame.function}')
        lines += [f"    {frame.text}"] if frame.text else []
    return lines


def _is_hit(rank: Rank, named: tuple[str, ...]) -> bool:
    return any(name in ("all", rank.tag) or name in rank.tag.split() for name in named)


def _fill(line: str, rank: Rank, ranks: int) -> str:
    return line.replace("{rank}", str(rank.number)).replace("{ranks}", str(ranks))


def _jitter(name: str, phase: str, rank: int) -> float:
    drawn = sha256(f"{name}/{phase}/{rank}".encode()).digest()[:4]
    return int.from_bytes(drawn, "big") / 2**32 * JITTER_S
