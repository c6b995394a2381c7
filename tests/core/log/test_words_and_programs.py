"""What a client asked is no evidence; how programs beside the engine end is."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose

AT = "[2026-07-01 12:00:0{}] "
ARGS = AT.format(0) + "server_args={'model_path': '/models/x', 'tp_size': 1}\n"
READY = AT.format(5) + "The server is fired up and ready to roll!\n"
SAID = "Received sigquit from a child process. It usually means the child failed."


def found(text: str) -> Diagnosis:
    return diagnose([text.encode()], ())


@pytest.mark.parametrize(
    "record",
    [
        "Receive: obj=GenerateReqInput(rid='9', text='why? {}', sampling_params={{}})\n",
        "Finish: obj=GenerateReqInput(rid='9'), out={{'text': 'If you see `{}`, look up.'}}\n",
        "Received request cmpl-1: prompt: 'what is {}', params: SamplingParams(n=1)\n",
    ],
)
def test_an_error_in_the_words_of_a_request_ends_no_server(record: str) -> None:
    assert found(ARGS + READY + AT.format(6) + record.format(SAID)).outcome == "healthy"
    assert found(ARGS + READY + AT.format(6) + SAID + "\n").outcome == "failed"


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        ("panic: index out of range [3] with length 3\n\ngoroutine 4 [running]:\n", "panic: index"),
        (
            "sglang::scheduler_TP4: /src/ring.cc:9: void Ring::put(): Assertion `a <= b' failed.\n"
            "Fatal Python error: Aborted\n",
            "Assertion `a <= b'",
        ),
    ],
)
def test_the_line_by_which_a_program_says_why_it_ends_is_the_root(lines: str, root: str) -> None:
    d = found(ARGS + lines)
    assert (d.outcome, d.cause) == ("failed", None)
    assert d.root is not None
    assert root in d.root.text


def test_an_exit_code_alone_tells_a_failure_without_a_root() -> None:
    d = found(ARGS + "command terminated with exit code 77\n")
    assert (d.outcome, d.cause, d.root) == ("failed", None, None)
