"""Logs in which no engine begins, or that lack the start of one that serves."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge import load_causes

AT = "[2026-07-01 12:00:0{}{}] "
ARGS = AT.format(0, "") + "server_args={'model_path': '/models/x', 'tp_size': 2}\n"
DECODE = (
    AT + "Decode batch, #running-req: {}, #token: 90, token usage: 0.31, cuda graph: True, "
    "gen throughput (token/s): 91.2, #queue-req: 0\n"
)
VLLM = (
    "INFO 07-01 12:08:0{} [loggers.py:127] Engine 000: Avg prompt throughput: {} tokens/s, "
    "Avg generation throughput: {} tokens/s, Running: 1 reqs, Waiting: 0 reqs\n"
)
TALK = "Starting the server\nmodel: /models/x\n"


def found(*lines: str) -> Diagnosis:
    return diagnose(["".join(lines).encode()], load_causes())


@pytest.mark.parametrize("wrapper", ["", "server-1  | ", "Jul 01 12:00:01 node0 sglang[41]: "])
@pytest.mark.parametrize(
    ("lines", "engine"),
    [
        (DECODE.format(1, " TP0", 1) + DECODE.format(3, " TP0", 4), "sglang"),
        (VLLM.format(0, "3.4", "5.9") + VLLM.format(9, "0.0", "2.2"), "vllm"),
        (VLLM.format(0, "0.0", "0.0"), "vllm"),
    ],
)
def test_a_log_that_only_tells_how_fast_it_answers_is_of_a_server_that_is_up(
    lines: str, engine: str, wrapper: str
) -> None:
    d = found("".join(wrapper + line for line in lines.splitlines(keepends=True)))
    assert (d.outcome, d.phase, d.cause, d.engine) == ("healthy", "serving", None, engine)


def test_behind_the_start_of_one_it_is_not_yet_up() -> None:
    assert found(ARGS, DECODE.format(1, " TP0", 1)).outcome == "hung"
    assert found(DECODE.format(1, " TP0", 1), ARGS).outcome == "hung"


def test_what_it_dies_of_while_serving_counts() -> None:
    raised = (
        AT.format(5, " TP0") + "Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 9, in run_scheduler_process\n'
        "    scheduler.event_loop_overlap()\nKeyError: 'slot'\n"
    )
    d = found(DECODE.format(1, " TP0", 1), raised)
    assert d.outcome == "failed"
    assert d.root is not None
    assert d.root.text == "KeyError: 'slot'"


@pytest.mark.parametrize(
    "line",
    [
        "exec: sglang: not found",
        "/entrypoint.sh: 12: exec: sglang: not found",
        "/entrypoint.sh: line 12: exec: sglang: not found",
        "/opt/start: line 3: /opt/venv/bin/python: command not found",
        "[FATAL tini (7)] exec sglang failed: No such file or directory",
        "nohup: failed to run command 'sglang': No such file or directory",
        "numactl: execution of `python': No such file or directory",
        "zsh: command not found: vllm",
        "exec /entrypoint.sh: no such file or directory",
    ],
)
def test_a_program_that_is_not_there_is_named(line: str) -> None:
    d = found(TALK, line, "\n")
    assert (d.outcome, d.cause, d.title == "") == ("failed", "program-not-found", False)


@pytest.mark.parametrize(
    "line",
    [
        "/entrypoint.sh: line 12: MODEL: unbound variable",
        "/entrypoint.sh: line 12: syntax error near unexpected token `fi'",
        "/opt/start: line 3: /models/env: No such file or directory",
        "/bin/sh: 1: source: not found",
        "sh: 0: cannot open /run.sh: No such file",
        "bash: /run.sh: No such file or directory",
        "/usr/bin/env: 'bash\\r': No such file or directory",
        "python: No module named sglang.launch_server; 'sglang' is a package and cannot be "
        "directly executed",
        "Error: the model path /models/x does not exist",
        "ERROR: no gpu",
        "error: bad value",
        "fatal: the token file is empty",
        "sgl-router: fatal: cannot open its state",
        "start.sh[41]: FATAL: MODEL is not set",
    ],
)
@pytest.mark.parametrize("before", ["", TALK, ARGS, "docker-1  | "])
def test_a_line_that_is_the_only_sign_is_the_root(line: str, before: str) -> None:
    d = found(before, line, "\n")
    assert (d.outcome, d.cause) == ("failed", None)
    assert d.root is not None
    assert d.root.text == line


@pytest.mark.parametrize(
    "line", ["Error: no cache yet\n", "start.sh: line 3: cd: /x: No such file\n"]
)
def test_a_line_behind_which_the_launch_goes_on_is_none(line: str) -> None:
    begin = AT.format(1, " TP0") + "Init torch distributed begin.\n"
    assert found(ARGS, line, begin).outcome == "hung"
    assert found(ARGS, begin, line, "a line\n" * 9).outcome == "hung"
    assert found(DECODE.format(1, " TP0", 1), line).outcome == "healthy"


def test_an_error_behind_a_stop_is_no_failure() -> None:
    term = AT.format(2, "") + "SIGTERM received. signum=15 frame=None. Draining requests\n"
    assert found(ARGS, term, "Error: interrupted\n").outcome == "interrupted"


def test_an_exception_says_more_than_the_scripts_complaints() -> None:
    raised = (
        "Traceback (most recent call last):\n"
        "  File \"/opt/sglang/launch_server.py\", line 9, in <module>\n    run()\nKeyError: 'x'\n"
    )
    d = found("/entrypoint.sh: line 3: cd: /x: No such file or directory\n", raised)
    assert d.root is not None
    assert d.root.text == "KeyError: 'x'"
