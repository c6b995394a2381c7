"""The result of a probe, whatever happened to it.

In:  the events that it printed, and how its process ended. Out: ProbeResult.
Not: what it means (meaning.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from triage.core.records import dataclass

MARK = b"triage-probe "
TAIL = 2000  # letters of other output that are kept

Fact = str | int | float | bool | None | list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment; `outcome` is passed, failed, crashed, hung or skipped.

    `status` is the name that the failure has: CUBLAS_STATUS_ALLOC_FAILED, SIGSEGV, an
    exception. `given` is what it was asked for, `facts` what it found.
    """

    name: str
    outcome: str
    detail: str = ""
    status: str = ""
    seconds: float = 0.0
    given: Mapping[str, Fact] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a result says about one cause: supports or refutes, and why."""

    cause: str
    effect: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """A probe that came to its end (done), or why it did not.

    `outcome` is done, crashed, hung, killed or unavailable. `rules_out` are flags whose
    remedies cannot help, each with the reason.
    """

    probe: str
    outcome: str
    device: str = ""
    reason: str = ""
    seconds: float = 0.0
    experiments: tuple[Experiment, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    output: str = ""  # the end of what else it printed
    meaning: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    rules_out: tuple[tuple[str, str], ...] = ()

    def at(self, **given: Fact) -> tuple[Experiment, ...]:
        """The experiments that were asked for this."""
        return tuple(
            e for e in self.experiments if all(e.given.get(k) == v for k, v in given.items())
        )

    def one(self, name: str) -> Experiment | None:
        """The experiment of that name."""
        return next((e for e in self.experiments if e.name == name), None)


def result_of(
    probe: str, output: bytes, *, exit_code: int | None, by: str, silent: bool, seconds: float
) -> ProbeResult:
    """The result of a process, before its meaning is known.

    Args:
        probe: Its name.
        output: Everything that it printed, stdout and stderr.
        exit_code: As it ended; negative: the signal; None if nobody knows.
        by: Who took it from us, or "".
        silent: Whether it was ended because no event came for too long.
        seconds: How long it took.
    """
    events, rest = _split(output)
    kinds = [str(e.get("event")) for e in events]
    start: Mapping[str, Any] = next((e for e in events if e.get("event") == "start"), {})
    outcome, reason = _ending(events, kinds, exit_code=exit_code, by=by, silent=silent)
    experiments = tuple(_experiment(e) for e in events if e.get("event") == "experiment")
    if outcome == "done" and experiments and all(e.outcome == "skipped" for e in experiments):
        outcome, reason = "unavailable", experiments[0].detail
    return ProbeResult(
        probe=probe,
        outcome=outcome,
        device=str(start.get("device", "")),
        reason=reason,
        seconds=round(seconds, 3),
        experiments=experiments,
        versions={str(k): str(v) for k, v in dict(start.get("versions", {})).items()},
        output=rest[-TAIL:],
    )


def _ending(
    events: list[Mapping[str, Any]], kinds: list[str], *,
    exit_code: int | None, by: str, silent: bool,
) -> tuple[str, str]:  # fmt: skip
    if "unavailable" in kinds:
        return "unavailable", str(events[kinds.index("unavailable")].get("reason", ""))
    if "end" in kinds and exit_code == 0:
        return "done", ""
    if silent:
        return "hung", "no event for longer than an experiment may take; it was ended"
    if by:
        return "killed", by
    if exit_code is not None and exit_code < 0:
        return "killed", f"ended by signal {-exit_code}"
    return "crashed", f"ended with exit code {exit_code} before its last event"


def _split(output: bytes) -> tuple[list[Mapping[str, Any]], str]:
    """The events of the output, and its other lines; a broken event is another line."""
    events: list[Mapping[str, Any]] = []
    rest = []
    for line in output.splitlines():
        made = _event(line)
        if made is None:
            rest.append(line.decode(errors="replace"))
        else:
            events.append(made)
    return events, "\n".join(rest)


def _event(line: bytes) -> Mapping[str, Any] | None:
    if not line.startswith(MARK):
        return None
    try:
        made = json.loads(line.removeprefix(MARK))
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None


def _experiment(made: Mapping[str, Any]) -> Experiment:
    return Experiment(
        name=str(made.get("name", "")),
        outcome=str(made.get("outcome", "crashed")),
        detail=str(made.get("detail", "")),
        status=str(made.get("status", "")),
        seconds=_number(made.get("seconds")),
        given=_facts(made.get("given")),
        facts=_facts(made.get("facts")),
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _facts(value: object) -> dict[str, Fact]:
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else {}


def failed(experiments: Iterable[Experiment]) -> tuple[Experiment, ...]:
    """Those that ended otherwise than passed or skipped, and were not meant to."""
    return tuple(
        e
        for e in experiments
        if e.outcome not in ("passed", "skipped") and not e.given.get("must_fail")
    )
