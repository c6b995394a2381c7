"""What others than the log say of a failed launch: the kernel, and how its processes ended.

In:  the log's Diagnosis, the ends of the processes, the kernel's lines, where they stood.
Out: the Diagnosis in their light. Not: collecting them (triage.session.evidence).

A process that the kernel killed for memory writes nothing: all that a log has of it is `exit code
-9`, which anything may send, and the complaints of those that waited for it. So a kill of the first
process to end outranks what they say; the kernel names the process by its number. An error of a
GPU's outranks only what has no cause.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from triage.core.causes import Cause
from triage.core.diagnosis import Alternative, Diagnosis
from triage.core.flags import FlagTable
from triage.core.launch import Exit, Hung
from triage.core.log.diagnose import diagnose
from triage.core.log.fingerprint import fingerprint
from triage.core.log.suspects import advice, suspects

_KILLED = re.compile(r"Killed process (?P<pid>\d+)|\boom-kill:.*\bpid=(?P<other>\d+)")
_FAULT = re.compile(r"\[(?P<pid>\d+)\]: segfault at|traps: \S+\[(?P<other>\d+)\]")
_GPU = re.compile(r"\bS?Xid\b")
_MOST = 6
# Signals that a process brings upon itself, by their numbers on x86-64 and arm64.
_OWN = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 9: "SIGKILL", 15: "SIGTERM"} | _OWN


def with_outside(
    diagnosis: Diagnosis,
    exits: Sequence[Exit],
    kernel: Sequence[str],
    causes: Sequence[Cause],
    *,
    said: Sequence[str] = (),
    table: FlagTable | None = None,
) -> Diagnosis:
    """The diagnosis of a launch with what the kernel and the ends of its processes add.

    Args:
        diagnosis: What the log says.
        exits: How its processes ended, in the order of time.
        kernel: The kernel's lines of that time, as dmesg prints them.
        causes: The knowledge base.
        said: What the service manager, the container engine, the scheduler or the counters of the
            launch's own control group tell of its end.
        table: Flags of the engine's version.
    """
    diagnosis = _named_by_stacks(diagnosis, causes, table)
    ours = {one.pid for one in exits}
    telling = [line for line in kernel if named(line) in ours or (not named(line) and _gpu(line))]
    victims = {named(line) for line in telling if _KILLED.search(line)}
    first = first_end(exits, victims)
    seen = [f"kernel: {line.partition('] ')[2] or line}" for line in telling[:_MOST]]
    if diagnosis.outcome not in ("failed", "hung"):
        return replace(diagnosis, outside=tuple(seen)) if seen else diagnosis
    if first is not None:
        seen.insert(0, end_line(first, exits))
    cause = _cause_of("\n".join(telling), causes, table) if telling else None
    if cause is not None:
        killed = first is not None and first.pid in victims
        diagnosis = replace(diagnosis, outside=tuple(seen))
        return _merged(diagnosis, cause, first if killed else None, table)
    # Whoever ran it knows less: of which process, and when.
    silent = diagnosis.cause is None and diagnosis.outcome == "failed"
    for line in said if silent else ():
        if (cause := _cause_of(line, causes, table)) is not None:
            diagnosis = replace(diagnosis, outside=(*seen, f"told of its end: {line}"))
            return replace(_with_cause(diagnosis, cause, table), confidence="medium")
    return _named_after(replace(diagnosis, outside=tuple(seen)), first)


def _named_by_stacks(
    diagnosis: Diagnosis, causes: Sequence[Cause], table: FlagTable | None
) -> Diagnosis:
    """A hang without a cause, named by where its processes stood."""
    if diagnosis.outcome != "hung" or diagnosis.cause is not None:
        return diagnosis
    for sentence in diagnosis.standstill:
        raw = (sentence + "\n").encode(errors="replace")
        told = diagnose((raw,), causes, outcome=Hung(silent_s=0, limit="silent"), table=table)
        cause = next((one for one in causes if one.id == told.cause), None)
        if cause is not None:
            return replace(
                diagnosis,
                cause=cause.id,
                title=cause.title,
                confidence="medium",
                by_stacks=True,
                suspects=suspects(cause, "", diagnosis.config, {}),
                remedies=told.remedies,
            )
    return diagnosis


def _cause_of(text: str, causes: Sequence[Cause], table: FlagTable | None) -> Cause | None:
    """What these lines by themselves are a sign of."""
    told = diagnose(((text + "\n").encode(errors="replace"),), causes, table=table).cause
    return next((one for one in causes if one.id == told), None)


def first_end(exits: Sequence[Exit], victims: Collection[int] = ()) -> Exit | None:
    """The process whose end began the failure, as far as ends can tell; None if none does.

    A rank before another process of the engine's own, that before a helper that died by a signal:
    helpers that only say no, as compilers that are looked for do, are many. One of the `victims`
    that the kernel killed counts whatever it was, if nothing ended badly before.
    """
    bad = [one for one in exits if one.exit_code not in (0, None) and not one.by_us]
    if bad and bad[0].pid in victims:
        return bad[0]
    for kind in (_is_rank, _is_engines, _is_killed):
        if found := next(filter(kind, bad), None):
            return found
    return None


def _is_rank(one: Exit) -> bool:
    return one.rank != ""


def _is_engines(one: Exit) -> bool:
    return one.name.startswith("sglang::")


def _is_killed(one: Exit) -> bool:
    return one.exit_code is not None and one.exit_code < 0


def end_line(first: Exit, exits: Sequence[Exit]) -> str:
    """Who ended first and how, in a sentence."""
    others = [one for one in exits if one.pid != first.pid and one.seconds is not None]
    after = [
        one.seconds - first.seconds
        for one in others
        if one.seconds is not None and first.seconds is not None and one.seconds >= first.seconds
    ]
    ahead = f", {min(after):.1f} s before any other" if after and min(after) >= 0.05 else ""  # noqa: PLR2004
    when = "" if first.seconds is None else f" after {first.seconds:.1f} s"
    return f"first to end: {who(first)} {how(first.exit_code)}{when}{ahead}"


def who(one: Exit) -> str:
    """A process as people call it."""
    name = one.rank or one.name or "a process"
    return f"{name} (process {one.pid})"


def how(code: int | None) -> str:
    """The end of a process in words."""
    if code is None:
        return "ended"
    if code < 0:
        return f"by {_SIGNALS.get(-code, f'signal {-code}')}"
    return f"with exit code {code}"


def named(line: str) -> int:
    """The process that a line of the kernel's is about, 0 if it names none."""
    match = _KILLED.search(line) or _FAULT.search(line)
    return int(match["pid"] or match["other"]) if match else 0


def _gpu(line: str) -> bool:
    return _GPU.search(line) is not None


def _merged(
    diagnosis: Diagnosis, cause: Cause, victim: Exit | None, table: FlagTable | None
) -> Diagnosis:
    """The log's diagnosis and the kernel's as one; `victim` was killed before any other ended."""
    if diagnosis.cause == cause.id:
        return replace(diagnosis, confidence="high")
    # A reason that the log gives stands, unless it came after the kill.
    reasoned = (
        diagnosis.cause is not None and not diagnosis.by_stacks
    ) or diagnosis.root is not None
    if reasoned and victim is None and diagnosis.outcome == "failed":
        also = Alternative(cause=cause.id, confidence="low")
        return replace(diagnosis, also=(also, *diagnosis.also)[:_MOST])
    before = None if diagnosis.by_stacks else diagnosis.cause
    also_before = () if before is None else (Alternative(cause=before, confidence="low"),)
    return replace(
        _with_cause(diagnosis, cause, table),
        ranks=(victim.rank,) if victim and victim.rank else diagnosis.ranks,
        root=None,
        traceback=None,
        also=(*also_before, *diagnosis.also)[:_MOST],
    )


def _with_cause(diagnosis: Diagnosis, cause: Cause, table: FlagTable | None) -> Diagnosis:
    mark, text = fingerprint(cause.id, "")
    return replace(
        diagnosis,
        outcome="failed",
        by_stacks=False,
        cause=cause.id,
        title=cause.title,
        confidence="high",
        fingerprint=mark,
        fingerprint_of=text,
        suspects=suspects(cause, "", diagnosis.config, {}),
        remedies=advice(cause, {}, "", diagnosis.config, table),
    )


def _named_after(diagnosis: Diagnosis, first: Exit | None) -> Diagnosis:
    """A failure without any reason is named after the process that ended first."""
    silent = diagnosis.cause is None and diagnosis.root is None and diagnosis.outcome == "failed"
    if not silent or first is None or first.exit_code is None or first.exit_code >= 0:
        return diagnosis
    if not first.rank:
        return diagnosis  # the main process: the log's own account of its end is as good
    title = f"{who(first)} ended {how(first.exit_code)} and no line says why"
    mark, text = diagnosis.fingerprint, diagnosis.fingerprint_of
    if mark is None and -first.exit_code in _OWN:
        mark, text = fingerprint(f"a rank ended {how(first.exit_code)} in {diagnosis.phase}", "")
    return replace(
        diagnosis, title=title, ranks=(first.rank,), fingerprint=mark, fingerprint_of=text
    )
