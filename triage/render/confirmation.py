"""A confirmation as JSON document and as text.

In:  a Confirmation. Out: `triage.confirmation/1`, read back too; lines for a terminal.
Not: the runbook's words about it (triage.core.handover.actions).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from triage.core.gpu_symptoms import Answer, GpuReport, Reading
from triage.core.handover.confirmation import Check, Confirmation, Exchange, Result, Start
from triage.core.handover.load import Level
from triage.core.units import format_seconds
from triage.render.documents import Json, config_document, config_of
from triage.render.markdown import visible

WIDTH = 80


def confirmation_document(shown: Confirmation) -> dict[str, Json]:
    """`triage.confirmation/1`: the starts of one configuration, and every check of them.

    `ready_s` is null if it never answered.
    """
    return {
        "schema": "triage.confirmation/1",
        "confirmed": shown.confirmed,
        "flaky": shown.flaky,
        "reason": shown.reason,
        "date": shown.date,
        "versions": dict[str, Json](shown.versions),
        "count": {"up": shown.up, "starts": len(shown.starts)},
        "items": list[Json](sorted(shown.items)),
        "config": config_document(shown.config),
        "command": shown.command,
        "ready_s": shown.ready_s,
        "temperature": 0,
        "exchanges": [
            {"prompt": e.prompt, "answers": list(e.answers), "agree": e.agree}
            for e in shown.exchanges
        ],
        "agree": shown.agree,
        "checks": [{"name": c.name, "result": c.result.value, "say": c.say} for c in shown.checks],
        "starts": [
            {"trial": s.folder, "ready_s": s.ready_s, "reason": s.reason, "cause": s.cause}
            for s in shown.starts
        ],
        "load": [_level(level) for level in shown.levels],
        "gpus": None if shown.gpus is None else _gpus(shown.gpus),
        "trial": shown.folder,
        "simulated": shown.simulated,
        "provenance": shown.provenance,
    }


def _level(level: Level) -> dict[str, Json]:
    return {
        "concurrency": level.concurrency,
        "requests": level.requests,
        "answered": level.answered,
        "cut": level.cut,
        "seconds": level.seconds,
        "tokens": level.tokens,
        "errors": [{"text": text, "count": count} for text, count in level.errors],
        "tokens_per_s": level.tokens_per_s,
        "ttft_p50": level.ttft_p50,
        "ttft_p99": level.ttft_p99,
        "itl_p50": level.itl_p50,
        "itl_p99": level.itl_p99,
        "client_share": level.client_share,
    }


def _gpus(report: GpuReport) -> dict[str, Json]:
    return {
        "gpus": list[Json](report.gpus),
        "samples": report.samples,
        "seconds": report.seconds,
        "missing": report.missing,
        "share": report.share,
        "bottleneck": report.bottleneck,
        "readings": [
            {"regime": r.regime, "answer": r.answer.value, "why": r.why, "needs": r.needs}
            for r in report.readings
        ],
    }


def confirmation_of(document: Mapping[str, Any]) -> Confirmation:
    """The confirmation that a document holds; the inverse of `confirmation_document`.

    Raises:
        KeyError, TypeError, ValueError: it is not such a document.
    """
    ready_s = document["ready_s"]
    return Confirmation(
        config=config_of(document["config"]),
        ready_s=None if ready_s is None else float(ready_s),
        exchanges=tuple(
            Exchange(prompt=e["prompt"], answers=(e["answers"][0], e["answers"][1]))
            for e in document["exchanges"]
        ),
        folder=document["trial"],
        simulated=bool(document["simulated"]),
        provenance=document["provenance"],
        reason=document["reason"],
        items=frozenset(document["items"]),
        checks=tuple(
            Check(name=c["name"], result=Result(c["result"]), say=c["say"])
            for c in document.get("checks", ())
        ),
        starts=tuple(
            Start(folder=s["trial"], ready_s=s["ready_s"], reason=s["reason"], cause=s["cause"])
            for s in document.get("starts", ())
        ),
        levels=tuple(_level_of(level) for level in document.get("load", ())),
        gpus=_gpus_of(document.get("gpus")),
        date=document.get("date", ""),
        versions=tuple(document.get("versions", {}).items()),
        command=document.get("command", ""),
    )


def _level_of(document: Mapping[str, Any]) -> Level:
    errors = tuple((e["text"], e["count"]) for e in document["errors"])
    return Level(**{**document, "errors": errors})


def _gpus_of(document: Mapping[str, Any] | None) -> GpuReport | None:
    if document is None:
        return None
    return GpuReport(
        gpus=tuple(document["gpus"]),
        samples=document["samples"],
        seconds=document["seconds"],
        missing=document["missing"],
        share=document["share"],
        readings=tuple(
            Reading(regime=r["regime"], answer=Answer(r["answer"]), why=r["why"], needs=r["needs"])
            for r in document["readings"]
        ),
    )


def confirmation_text(shown: Confirmation) -> str:
    """Whether the configuration works, by which starts and checks; "works" only if it is shown."""
    lines = [_headline(shown)]
    lines += [_check(check) for check in shown.checks]
    if len(shown.starts) > 1:
        lines += [_start(number, start) for number, start in enumerate(shown.starts, start=1)]
    if shown.confirmed:
        lines += [_said(exchange) for exchange in shown.exchanges]
    if shown.levels:
        lines += ["", *_levels(shown.levels)]
    if shown.gpus is not None:
        lines += ["", *_readings(shown.gpus)]
    return "\n".join(lines)


def _headline(shown: Confirmation) -> str:
    mark = "simulated: " if shown.simulated else ""
    if not shown.confirmed:
        reason = shown.reason or "the two answers at temperature 0 do not agree"
        word = "flaky" if shown.flaky else "not confirmed"
        return _wrapped(f"{mark}{word}: {reason.removeprefix('flaky: ')}", "  ")
    word = "confirmed" if shown.simulated else "works"
    starts = "simulated starts" if shown.simulated else "starts"
    ready = format_seconds(shown.ready_s or 0.0)
    basis = [f"{name} {version}" for name, version in shown.versions]
    about = ", ".join([*([shown.date] if shown.date else []), *basis])
    return _wrapped(
        f"{mark}{word}: {shown.count} {starts}, ready after {ready}"
        f"{f' ({about})' if about else ''}",
        "  ",
    )


def _check(check: Check) -> str:
    words = {
        Result.PASSED: "ok",
        Result.FAILED: "FAILED",
        Result.NOTED: "note",
        Result.CANNOT_TELL: "cannot tell",
    }
    return _wrapped(f"  {words[check.result]:11s}  {check.name}: {check.say}", " " * 15)


def _start(number: int, start: Start) -> str:
    if start.up:
        return f"  start {number}: up after {format_seconds(start.ready_s or 0.0)}"
    return _wrapped(f"  start {number}: {start.reason} ({start.folder})", "    ")


def _said(exchange: Exchange) -> str:
    text = _line(f"  {exchange.prompt!r} -> {exchange.answers[0]!r}")
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 2]}.."


def _levels(levels: Iterable[Level]) -> list[str]:
    """The figures of the load as a table; a dash where nothing was measured."""
    head = ("at once", "answered", "failed", "cut", "tok/s", "TTFT p50/p99 s", "ITL p50/p99 ms")
    rows = [
        (
            str(lv.concurrency),
            f"{lv.answered}/{lv.requests}",
            str(lv.failed),
            str(lv.cut),
            "-" if lv.tokens_per_s is None else f"{lv.tokens_per_s:.1f}",
            _pair(lv.ttft_p50, lv.ttft_p99, 1, 3),
            _pair(lv.itl_p50, lv.itl_p99, 1000, 1),
        )
        for lv in levels
    ]
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (head, *rows)
    ]


def _pair(low: float | None, high: float | None, scale: int, digits: int) -> str:
    if low is None or high is None:
        return "-"
    return f"{low * scale:.{digits}f}/{high * scale:.{digits}f}"


def _readings(report: GpuReport) -> list[str]:
    lines = [_wrapped(f"  bottleneck: {report.bottleneck}", "    ")]
    lines += [
        _wrapped(f"    {r.regime}: {r.answer.value} ({r.why})", "      ") for r in report.readings
    ]
    return lines


def _line(text: str) -> str:
    return visible(" ".join(text.splitlines())).rstrip()


def _wrapped(text: str, later: str) -> str:
    return textwrap.fill(
        _line(text),
        WIDTH,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
