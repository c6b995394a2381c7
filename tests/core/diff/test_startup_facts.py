"""What the startup part of a log says: sizes, decisions, versions, variables."""

from __future__ import annotations

from triage.core.diff.startup import MOST_DECISIONS, Startup
from triage.core.log.lines import clean

LOG = """\
/opt/venv/lib/python3.12/site-packages/x.py:3: UserWarning: old
[2026-03-21 03:31:55] INFO server_args.py:2233: Attention backend not specified. Use fa3 backend by default.
[2026-03-21 03:31:56] server_args={'model_path': '/m', 'tp_size': 2}
node1:77:77 [0] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.
[2026-03-21 03:32:00 TP0] sglang is using nccl==2.27.5
[2026-03-21 03:32:01 TP0] Load weight begin. avail mem=78.10 GB
[2026-03-21 03:32:01 TP1] Load weight begin. avail mem=70.00 GB
[2026-03-21 03:33:00 TP0] Load weight end. elapsed=59 s, type=LlamaForCausalLM, avail mem=60.00 GB, mem usage=18.10 GB.
[2026-03-21 03:33:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, K size: 1.50 GB, V size: 1.50 GB
[2026-03-21 03:33:01 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4000, K size: 1.50 GB, V size: 1.50 GB
[2026-03-21 03:33:02 TP0] Load weight begin. avail mem=50.00 GB
[2026-03-21 03:33:03 TP0] max_total_num_tokens=4096, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=48, context_len=512, available_gpu_mem=9 GB
[2026-03-21 03:33:04] The server is fired up and ready to roll!
[2026-03-21 03:33:05] Using something after the start
"""


def read(text: str) -> Startup:
    startup = Startup()
    for number, raw in enumerate(text.encode().split(b"\n"), 1):
        for line in clean(raw, 0, number):
            startup.take(line)
    return startup


def test_sizes_are_read_by_rank_and_those_of_the_draft_apart() -> None:
    memory = read(LOG).memory
    assert memory["free before weights"].ranks == {"TP0": 78.1, "TP1": 70.0}
    assert memory["draft free before weights"].ranks == {"TP0": 50.0}
    assert (memory["KV pool tokens"].low, memory["KV pool tokens"].high) == (4000, 4096)
    assert memory["weights"].ranks == {"TP0": 18.1}
    assert memory["max_running_requests"].ranks == {"TP0": 48}


def test_versions_variables_and_the_dump_are_read() -> None:
    found = read(LOG)
    assert found.versions == {"python": "3.12", "nccl": "2.27.5"}
    assert found.env == {"NCCL_NVLS_ENABLE": "0"}
    assert found.dump is not None
    assert found.dump.values["tp_size"] == 2


def test_decisions_have_their_line_phase_and_ranks_and_end_with_the_startup() -> None:
    said = {d.text.split(".")[0]: d for d in read(LOG).decisions}
    assert said["Attention backend not specified"].line == 2
    assert said["sglang is using nccl==2"].ranks == ("TP0",)
    assert said["Attention backend not specified"].phase == "arg-validation"
    assert said["sglang is using nccl==2"].phase == "config-load"
    assert not any("after the start" in text for text in said)


def test_a_second_start_is_not_mixed_in() -> None:
    again = LOG.replace("The server is fired up and ready to roll!", "gone") + LOG.replace(
        "4096", "7"
    )
    assert read(again).memory["KV pool tokens"].high == 4096


def test_a_log_of_decisions_without_end_is_bounded() -> None:
    lines = (f"[2026-03-21 03:31:56] Using {n} of them\n" for n in range(3 * MOST_DECISIONS))
    assert len(read("".join(lines)).decisions) == MOST_DECISIONS
