"""A diagnosis as the JSON document `triage.diagnosis/1`.

In:  a Diagnosis. Out: a dict of plain JSON values whose first key is `schema`; the
same diagnosis gives the same bytes.
Not: printing it, or documents of a search (search_documents.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.diagnosis import Advice, Diagnosis, Exc, Root

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Json]:
    """`triage.diagnosis/1`: what others rely on, keys in the order of the contract."""
    d = diagnosis
    return {
        "schema": "triage.diagnosis/1",
        "source": d.source,
        "outcome": d.outcome,
        "phase": d.phase,
        "cause": d.cause,
        "title": d.title,
        "confidence": d.confidence,
        "fingerprint": d.fingerprint,
        "ranks": list[Json](d.ranks),
        "ranks_total": d.ranks_total,
        "root": _root(d.root),
        "traceback": _traceback(d.traceback),
        "cascade": list[Json](d.cascade),
        "teardown": list[Json](d.teardown),
        "decoys": [{"line": decoy.line, "why": decoy.why} for decoy in d.decoys],
        "engine": {"name": d.engine, "version": d.engine_version},
        "config": config_document(d.config),
        "effective": dict[str, Json](d.effective),
        "suspects": [
            {
                "flag": s.flag,
                "value": None if s.value is None else value_document(s.value),
                "why": s.why,
            }
            for s in d.suspects
        ],
        "remedies": [_remedy(advice) for advice in d.remedies],
        "timeline": [
            {"rank": s.rank, "phase": s.phase, "line": s.line, "seconds": s.seconds}
            for s in d.timeline
        ],
        "also": [{"cause": a.cause, "confidence": a.confidence} for a in d.also],
        "starts": d.starts,
        "came_up": d.came_up,
        "standstill": list(d.standstill),
        "outside": list(d.outside),
        "explain": [
            {
                "step": e.step,
                "lines": [{"line": w.line, "rank": w.rank, "what": w.what} for w in e.lines],
                "count": e.count,
            }
            for e in d.explain
        ],
        "fingerprint_of": d.fingerprint_of,
        "simulated": d.simulated,
        "provenance": d.provenance,
        "refused": d.refused,
    }


def config_document(config: Config) -> dict[str, Json]:
    """Flags and environment as two objects; a switch is true, a list flag a list."""
    return {
        "flags": {flag.name: value_document(flag.value) for flag in config.flags},
        "env": dict[str, Json](config.env),
    }


def change_document(change: Change) -> dict[str, Json]:
    """One edit: `{"set": flag, "value": v}`, `{"unset": flag}`, or the same for `env`."""
    match change:
        case SetFlag(name, value):
            return {"set": name, "value": value_document(value)}
        case UnsetFlag(name):
            return {"unset": name}
        case SetEnv(name, text):
            return {"set_env": name, "value": text}
        case UnsetEnv(name):
            return {"unset_env": name}


def value_document(value: Value) -> Json:
    """A flag's value: a switch is true, a list flag a list, and what reads as a number is one.

    Only text that a number is written as becomes one (`8`, `0.1`; not `08`, `1e3`), so
    that `value_of` gives back the same text.
    """
    match value:
        case bool():
            return value
        case str():
            return _number(value)
        case parts:
            return [_number(part) for part in parts]


def _number(text: str) -> Json:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text and abs(number) < 2**53:  # what every JSON reader keeps exact
            return number
    return text


def value_of(value: object) -> Value:
    """The flag's value that a document holds; the inverse of `value_document`.

    Raises:
        TypeError: it is none.
    """
    match value:
        case bool():
            return value
        case str() | int() | float():
            return str(value)
        case list():
            return tuple(str(part) for part in value)
        case _:
            raise TypeError(f"{value!r} is no value of a flag")


def config_of(document: Mapping[str, Any]) -> Config:
    """The config that a document holds; the inverse of `config_document`."""
    flags = {str(name): value_of(value) for name, value in document["flags"].items()}
    return Config.of(flags, dict(document["env"]))


def _root(root: Root | None) -> Json:
    if root is None:
        return None
    return {
        "line": root.line,
        "offset": root.offset,
        "rank": root.rank,
        "time": root.time,
        "text": root.text,
    }


def _traceback(exc: Exc | None) -> Json:
    if exc is None:
        return None
    return {
        "exception": exc.exception,
        "message": exc.message,
        "frames": [{"file": f.file, "line": f.line, "function": f.function} for f in exc.frames],
    }


def _remedy(advice: Advice) -> Json:
    return {
        "say": advice.say,
        "changes": [change_document(change) for change in advice.changes],
        "disposition": advice.disposition,
        "cost": advice.cost,
        "evidence": advice.evidence,
    }
