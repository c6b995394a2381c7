"""Which rank crashed, where the line of the crash bears no rank's name."""

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge.stored import load_causes
from triage.render.text import diagnosis_text

ARGS = "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 4}\n"
BEGIN = "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(4))
SEGV = "Fatal Python error: Segmentation fault\n"
QUIT = "[2026-07-01 12:00:09] Received sigquit from a child process. It usually means the child\n"
DIED = (
    "[2026-07-01 12:00:08] Subprocess scheduler_{} (pid={}) crashed with exit code {}. Triggering\n"
)
NCCL = "".join(f"n0:410{n}:7 [{n}] NCCL WARN Call to ibv_modify_qp skipped\n" for n in range(4))


def found(*lines: str) -> Diagnosis:
    return diagnose([(ARGS + BEGIN + "".join(lines)).encode()], load_causes())


def test_the_launcher_tells_which_rank_ended_by_the_signal() -> None:
    assert found(SEGV, DIED.format(3, 4103, -11), QUIT).ranks == ("TP3",)
    assert found("terminate called without an active exception\n", DIED.format(1, 7, -6)).ranks == (
        "TP1",
    )


def test_another_signal_is_another_processs_end() -> None:
    d = found(SEGV, DIED.format(3, 4103, -9), QUIT)
    assert d.ranks == ("main",)
    assert "no line says which of 4 ranks" in diagnosis_text(d)


@pytest.mark.parametrize(
    "line",
    [
        "[ 812.551902] sglang::schedul[4102]: segfault at 10 ip 00007f11c0de sp 00007ff0 error 4 in a.so\n",
        "[n0:4102 :0:4102] Caught signal 11 (Segmentation fault: address not mapped to object at 0x10)\n",
    ],
)  # fmt: skip
def test_a_process_number_is_that_of_the_rank_with_it(line: str) -> None:
    assert found(NCCL, line, QUIT).ranks == ("TP2",)
    assert found(line, DIED.format(1, 4102, -9), QUIT).ranks == ("TP1",)
    assert found(line, QUIT).ranks == ("main",)
