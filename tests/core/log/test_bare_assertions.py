"""An assertion without a message: its source line in the traceback is the evidence."""

from __future__ import annotations

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge.stored import load_causes

START = (
    "[2026-07-01 12:00:00] server_args=ServerArgs(model_path='x', tp_size=8)\n"
    "[2026-07-01 12:00:01 TP3] Init torch distributed begin.\n"
    "[2026-07-01 12:00:02 TP3] Load weight begin.\n"
    "[2026-07-01 12:00:10 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process\n'
    "    scheduler = Scheduler(\n"
    '  File "/opt/sglang/srt/layers/any.py", line 9, in check\n'
)


def found(code: str) -> Diagnosis:
    return diagnose([f"{START}    {code}\nAssertionError\n".encode()], load_causes())


def test_a_cause_that_is_known_by_its_assertion_is_named_by_the_source_line() -> None:
    causes = [c for c in load_causes() if not (c.frames or c.phases or c.context)]
    known = [(c.id, e.strip()) for c in causes for e in c.examples if "assert " in e[:20]]
    assert len(known) > 10
    assert [(name, code) for name, code in known if found(code).cause != name] == []


def test_of_an_unknown_assertion_the_source_line_and_the_frame_are_told() -> None:
    d = found("assert self.slots == len(self.acme_table)")
    assert (d.outcome, d.cause, d.ranks) == ("failed", None, ("TP3",))
    assert d.traceback is not None
    assert d.traceback.message == "assert self.slots == len(self.acme_table)"
    assert d.traceback.frames[-1].file.endswith("layers/any.py")
    assert d.fingerprint != found("assert self.rows == 4").fingerprint
