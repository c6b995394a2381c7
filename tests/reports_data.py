"""Results of every sort for the tests of reports, with text that formats would trip over."""

from __future__ import annotations

from triage.core.diagnosis import Advice, Decoy, Diagnosis, Root
from triage.core.results import Difference, Result, Status

NASTY = 'RuntimeError: a<b & "c" ]]> 100%, x:y\x1b[31m\x00 \ud800 ::error::no | `z`'


def failed(text: str = NASTY, *, cause: str | None = "graph-capture-oom") -> Diagnosis:
    return Diagnosis(
        source="logs/a.log",
        outcome="failed",
        phase="graph-capture",
        cause=cause,
        title="Memory ran out, during capture" if cause else "",
        confidence="high",
        fingerprint="v1:0123456789ab",
        ranks=("TP1",),
        ranks_total=8,
        root=Root(line=7, offset=90, rank="TP1", time=None, text=text),
        cascade=(9, 11),
        decoys=(Decoy(line=8, why="advice, that misleads"),),
        remedies=(
            Advice(
                say="Lower it", changes=(), disposition="safe", cost="none", evidence="inferred"
            ),
        ),
    )


def result(name: str, status: Status, **more: object) -> Result:
    values = {"diagnosis": failed(), "expected": "weight-oom", **more}
    return Result(name=name, place=f"logs/{name}/server.log", status=status, **values)  # type: ignore[arg-type]


def every_sort() -> tuple[Result, ...]:
    """One result of each status."""
    differs = (
        Difference(key="cause", say="expected 'weight-oom', found 'graph-capture-oom'", line=7),
        Difference(key="root.line", say="expected 5, found 7", line=5),
    )
    return (
        result("a", Status.DIFFERS, differences=differs),
        result("b", Status.EXPECTED),
        result("c", Status.KNOWN_MISS, differences=differs, note="the head is cut"),
        result("d", Status.MENDED),
        result("e", Status.UNREADABLE, diagnosis=None, note="case.yaml:3: no \x07 YAML & such"),
        result("f", Status.UNCOMPARED),
        result("g", Status.UNCOMPARED, diagnosis=Diagnosis(source="x", outcome="healthy")),
        result("h", Status.UNCOMPARED, diagnosis=Diagnosis(source="x", outcome="interrupted")),
        result("i", Status.UNCOMPARED, diagnosis=Diagnosis(source="x", outcome="empty")),
        result("j", Status.UNCOMPARED, diagnosis=failed(cause=None)),
    )
