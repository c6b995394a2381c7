"""The form that a user's own logger gives to the engine's records."""

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.core.log.framing import prefix_of
from triage.core.log.live import Live
from triage.knowledge.stored import load_causes

STEPS = (
    "Init torch distributed begin.",
    "Init torch distributed ends. mem usage=1.20 GB",
    "Load weight begin. avail mem=138.03 GB",
    "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=54.29 GB.",
    "KV Cache is allocated. #tokens: 400000, KV size: 27 GB",
)
FORMS = {
    "level-behind-the-time": "[2026-07-01 12:00:{s:02}][{level}]: TP{rank} {text}",
    "level-in-front": "[{level}] 2026-07-01 12:00:{s:02} [TP{rank}] {text}",
    "dashes": "2026-07-01 12:00:{s:02},123 - {level} - TP{rank} - {text}",
    "collector-and-name": "2026-07-01T12:00:{s:02}.123Z {level} node sglang[412] (TP{rank}) {text}",
    "place": "2026-07-01T12:00:{s:02}.123456Z  {level} runner.step_{s}: TP{rank} {text}",
    "glog": "{level[0]}0701 12:00:{s:02}.123456 TP{rank} scheduler.py:{s}] {text}",
}
RECORDS = FORMS | {  # its tracebacks stand within a record
    "json": '{{"ts":"2026-07-01T12:00:{s:02}Z","level":"{level}","msg":"[TP{rank}] {text}"}}',
}
TRACEBACK = (
    '  File "/opt/sglang/srt/managers/scheduler.py", line 30, in run_scheduler_process',
    "    scheduler = Scheduler(",
    '  File "/opt/sglang/srt/model_executor/model_runner.py", line 90, in init_memory_pool',
    "    self.pool = MLATokenToKVPool(",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.",
    "",
)


def read(raw: bytes) -> Diagnosis:
    return diagnose([raw], load_causes())


def log(form: str, *, upto: int = 5, behind: int = -1, fails: int = -1) -> bytes:
    """Lines of four ranks; `behind` never gets beyond its second step, `fails` ends."""
    lines = []
    for step, text in enumerate(STEPS[:upto]):
        lines += [
            form.format(s=step, level="INFO", rank=rank, text=text)
            for rank in range(4)
            if rank != behind or step < 2
        ]
    if fails >= 0:
        said = "Scheduler hit an exception: Traceback (most recent call last):"
        lines += [form.format(s=9, level="ERROR", rank=fails, text=said), *TRACEBACK]
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_rank_of_a_failure_is_read_from_the_users_own_form(form: str) -> None:
    found = read(log(form, fails=3))
    assert (found.ranks, found.ranks_total) == (("TP3",), 4)
    assert found.root is not None
    assert found.root.text.startswith("torch.OutOfMemoryError")


@pytest.mark.parametrize("form", RECORDS.values(), ids=RECORDS)
def test_a_rank_that_stays_behind_is_named_in_the_users_own_form(form: str) -> None:
    found = read(log(form, behind=2))
    assert (found.outcome, found.phase, found.ranks) == ("hung", "model-construct", ("TP2",))


def test_of_four_ranks_at_the_same_place_the_last_landmark_counts() -> None:
    found = read(log("[2026-07-01 12:00:{s:02} TP{rank}] {text}"))
    assert (found.outcome, found.ranks) == ("hung", ("all",))
    assert found.root is not None
    assert found.root.text.startswith("KV Cache is allocated")


def test_the_engines_own_form_is_not_learned_whatever_stands_in_front() -> None:
    native = "[2026-07-01 12:00:{s:02} TP{rank}] {text}"
    assert prefix_of(log(native)) is None
    collected = prefix_of(log("pod-1 stdout> " + native))
    assert collected is not None
    assert not collected.groupindex


def test_the_time_of_a_record_is_read_too() -> None:
    found = read(log(FORMS["dashes"], behind=2))
    assert found.root is not None
    assert found.root.time == "2026-07-01T12:00:01,123"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_launch_that_is_watched_is_read_in_the_same_way(form: str) -> None:
    raw = log(form, fails=3)
    live = Live()
    for start in range(0, len(raw), 97):
        live.feed(raw[start : start + 97])
    assert (live.phase, live.fatal_line) == ("kv-pool-init", 21)
    assert live.unheard() == {"TP0", "TP1", "TP2"}


def test_what_a_watcher_learns_late_does_not_move_the_lines() -> None:
    preface = b"starting the container\n" * 40
    live = Live()
    live.feed(preface)
    live.feed(log(FORMS["dashes"], fails=1))
    assert live.fatal_line == 40 + 21
