"""The part of a runbook that says what a confirmation looked at, and what a load brought.

In:  a Confirmation. Out: blocks without markup.
Not: whether it works (confirmation.py), or what is to be changed (actions.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.core.handover.confirmation import Confirmation
from triage.core.handover.document import Block, Paragraph, Table
from triage.core.handover.load import Level
from triage.core.units import format_seconds


def checked(shown: Confirmation) -> Iterable[Block]:
    """When and with what it ran, each start, each check, the load, and the GPUs meanwhile."""
    if shown.date:
        with_what = ", ".join(f"{name} {version}" for name, version in shown.versions)
        yield Paragraph(
            f"Launched {shown.date}{f' with {with_what}' if with_what else ''}; "
            f"{shown.count} starts came up and answered."
        )
    if len(shown.starts) > 1:
        yield Table(
            ("start", "ready", "why it does not count", "files"),
            tuple(
                (
                    str(number),
                    "never" if start.ready_s is None else f"after {format_seconds(start.ready_s)}",
                    start.reason,
                    start.folder,
                )
                for number, start in enumerate(shown.starts, start=1)
            ),
        )
    if shown.checks:
        yield Table(
            ("check", "result", "what was seen"),
            tuple((c.name, c.result.value, c.say) for c in shown.checks),
        )
    if shown.levels:
        yield Paragraph(
            "Under load (times between two parts of an answer; a part may hold several tokens):"
        )
        yield Table(
            ("at once", "answered", "failed", "tokens/s", "TTFT p50/p99 s", "ITL p50/p99 ms"),
            tuple(map(_level, shown.levels)),
        )
    if shown.gpus is not None:
        yield Paragraph(f"The bottleneck under this load: {shown.gpus.bottleneck}.")
        if shown.gpus.readings:
            yield Table(
                ("regime", "answer", "why"),
                tuple((r.regime, r.answer.value, r.why) for r in shown.gpus.readings),
            )


def measured(shown: Confirmation | None) -> str:
    """The concurrencies whose speed this confirmation measured: "1, 64"; "" if none."""
    if shown is None or not shown.confirmed:
        return ""
    return ", ".join(
        str(level.concurrency) for level in shown.levels if level.tokens_per_s is not None
    )


def _level(level: Level) -> tuple[str, ...]:
    speed = "not measured" if level.tokens_per_s is None else f"{level.tokens_per_s:.1f}"
    return (
        str(level.concurrency),
        f"{level.answered} of {level.requests}",
        str(level.failed),
        speed,
        _pair(level.ttft_p50, level.ttft_p99, 1, 3),
        _pair(level.itl_p50, level.itl_p99, 1000, 1),
    )


def _pair(low: float | None, high: float | None, scale: int, digits: int) -> str:
    if low is None or high is None:
        return "not measured"
    return f"{low * scale:.{digits}f} / {high * scale:.{digits}f}"
