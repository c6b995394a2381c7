"""An investigation whose log attacks every page that quotes it; shared by tests of pages."""

from __future__ import annotations

from triage.core.causes import Cause, Origin
from triage.core.config import Config, SetFlag
from triage.core.diagnosis import Diagnosis, Exc, Frame, Root, Step
from triage.core.handover.confirmation import Confirmation, Exchange
from triage.core.handover.investigation import Investigation, Launch
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.search.recommend import recommend
from triage.core.trials import Entry, Item, Problem, Seen

HOSTILE = (
    "</code></pre><script>window.hacked=1</script>"
    "<img src=x onerror=window.hacked=1><style>*{display:none}</style>"
    "\" onmouseover='window.hacked=1' ]]>&lt; {{ 7*7 }} {% raw %}\x1b[31m\u202e"
    "https://evil.example/?q=1 javascript:window.hacked=1"
)
RANKS = tuple(f"TP{n}" for n in range(8))
PHASES = (
    ("dist-init", 4.0),
    ("weight-load", 20.0),
    ("kv-pool-init", 185.0),
    ("graph-capture", 190),
)


def timeline() -> tuple[Step, ...]:
    main = Step(rank="main", phase="config-load", line=1, seconds=0.0)
    return (
        main,
        *(
            Step(rank=rank, phase=phase, line=9, seconds=second + n % 3)
            for phase, second in PHASES
            for n, rank in enumerate(RANKS)
        ),
    )


FAILED = Diagnosis(
    source=f"trials/002/{HOSTILE}.log",
    outcome="failed",
    phase="graph-capture",
    cause="boom",
    title=f"It goes {HOSTILE}",
    confidence="high",
    ranks=("TP3",),
    ranks_total=8,
    root=Root(line=44, offset=900, rank="TP3", time=None, text=HOSTILE),
    traceback=Exc(
        exception=f"Type{HOSTILE}",
        message=HOSTILE,
        frames=(Frame(file=f"{HOSTILE}.py", line=7, function=HOSTILE),),
    ),
    timeline=timeline(),
)
CAME_UP = Diagnosis(source="trials/003/server.log", outcome="healthy", phase="serving",
                    timeline=(*timeline(), Step(rank="main", phase="serving", line=99, seconds=240.0)))  # fmt: skip
PROBLEM = Problem(
    name="pair",
    baseline=Config.of({"model-path": "/models/x", "tp-size": "8"}),
    items=(
        Item(key="ep-size", change=SetFlag("ep-size", "4"), weight=1),
        Item(key="note", change=SetFlag("note", HOSTILE), weight=1),
        Item(key="enable-nccl-nvls", change=SetFlag("enable-nccl-nvls", True), weight=2),
    ),
)


def entry(number: int, *items: str, **more: object) -> Entry:
    values = {"seen": Seen.STARTS, "phase": "serving", "seconds": 20.0, **more}
    config = PROBLEM.config(items)
    return Entry(number=number, items=frozenset(items), config=config, **values)  # type: ignore[arg-type]


BOOM = {"seen": Seen.FAILS, "signature": "boom", "cause": "boom", "title": HOSTILE,
        "phase": "kv-pool-init", "seconds": 12.1}  # fmt: skip
HUSH = {**BOOM, "signature": "hush", "cause": "hush", "phase": "graph-capture", "searching": "boom"}
JOURNAL = (
    entry(1),
    entry(2, "ep-size", "note", "enable-nccl-nvls", **BOOM),
    entry(3, "enable-nccl-nvls", "note", searching="boom"),
    entry(4, "ep-size", **HUSH),
    entry(5, "ep-size", "enable-nccl-nvls", **{**BOOM, "searching": "boom"}),
    entry(6, "note", seen=Seen.UNRESOLVED, reason=f"port {HOSTILE}", searching="boom"),
    entry(7, "ep-size", "note", **{**HUSH, "provenance": "assumed"}),
)
CAUSES = (
    Cause(
        id="boom",
        title="It goes boom",
        means=HOSTILE,
        origins=(
            Origin(
                say="A kernel",
                basis="report",
                look=HOSTILE,
                sources=("https://github.com/sgl-project/sglang/issues/31740",),
            ),
        ),
        discriminator="one launch without graphs.",
        escalate=HOSTILE,
    ),
)
CONFIRMED = Confirmation(
    config=Config(),
    ready_s=33.0,
    exchanges=(Exchange(prompt="Hello", answers=(HOSTILE, HOSTILE)),),
    folder="confirmation/001",
    items=frozenset({"enable-nccl-nvls", "note"}),
)


def hostile() -> Investigation:
    """An investigation in which every text that can come from a log or a command is hostile."""
    return Investigation(
        problem=PROBLEM,
        journal=JOURNAL,
        recommendation=recommend(PROBLEM, JOURNAL, CAUSES),
        diagnosis=FAILED,
        confirmation=CONFIRMED,
        causes=CAUSES,
        base_command=f"serve --tp-size 8 --note '{HOSTILE}'",
        old_command=f"serve --tp-size 8 --ep-size 4 --enable-nccl-nvls --note '{HOSTILE}'",
        new_command=f"serve --tp-size 8 --enable-nccl-nvls --note '{HOSTILE}'",
        session="my session",
        assumptions=(Assumption(say=HOSTILE, evidence=HOSTILE),),
        reported=(HOSTILE,),
        worth=(Worth(item="ep-size", say=HOSTILE, because=(HOSTILE,), basis="modelled"),),
        doubts=(Doubt(claim=HOSTILE, why=HOSTILE, would_show="a benchmark"),),
        context=((43, "before"), (44, HOSTILE), (45, "x" * 3000)),
        launches=(
            Launch(what=f"trial 2, {HOSTILE}", diagnosis=FAILED, ended_s=193.0),
            Launch(what="trial 3", diagnosis=CAME_UP),
        ),
        environment=(("machine", HOSTILE), ("variables", "A=1")),
    )
