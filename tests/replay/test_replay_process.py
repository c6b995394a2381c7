"""The simulated engine as a real process: each ending, serving, and what is left of it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real
REPO = Path(__file__).parents[2]
KIMI = REPO / "fixtures/landscapes/kimi-k2.6-b300.yaml"
TWO = REPO / "fixtures/landscapes/two-flags.yaml"
BASE = ("--model-path", "/models/Kimi-K2.6", "--tp-size", "8", "--speculative-algorithm", "DDTREE")
LIMIT_S = 30


class Launch:
    """One simulated launch in a session of its own; its lines are read as they come."""

    def __init__(self, landscape: Path, *words: str, speed: str = "100000") -> None:
        command = [sys.executable, "-m", "triage.replay", "--landscape", str(landscape)]
        self.process = subprocess.Popen(
            [*command, "--speed", speed, "--", *words],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=REPO,
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def end(self) -> int:
        code = self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        return code

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.text, f"{words!r} in\n{self.text}")

    def pids(self) -> list[int]:
        """All processes of the launch's session that are no zombies."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(after_name[3]) == self.process.pid and after_name[0] != "Z":
                found.append(int(entry.name))
        return found

    def ask(self, port: int, path: str, body: object = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}",
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


def wait_until(test: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not test():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.01)


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def start() -> Iterator[Callable[..., Launch]]:
    """Start launches; whatever is left of them at the end of the test is killed."""
    launches: list[Launch] = []

    def start_one(landscape: Path, *words: str, speed: str = "100000") -> Launch:
        launches.append(Launch(landscape, *words, speed=speed))
        return launches[-1]

    yield start_one
    for launch in launches:
        for pid in launch.pids():
            os.kill(pid, signal.SIGKILL)
        launch.end()
        assert launch.process.stderr
        launch.process.stderr.close()


Start = Callable[..., Launch]


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(ending: Ending, tp_size: int = 2) -> Path:
        path = tmp_path / "landscape.yaml"
        write_landscape(path, {frozenset(): ending}, tp_size=tp_size)
        return path

    return write


def messages(launch: Launch) -> list[str]:
    """The lines without the mark, their times and process numbers."""
    lines = [re.sub(r"^simulated \| (\[[\d-]+ [\d:]+)?", "", line) for line in launch.lines]
    return [re.sub(r"pid=\d+|process \[\d+\]|127\.0\.0\.1:\d+", "", line) for line in lines]


def test_an_exception_on_all_ranks_ends_with_the_launcher_killing_itself(start: Start) -> None:
    launch = start(KIMI, *BASE, "--ep-size", "8")
    assert launch.end() == -signal.SIGKILL
    failures = [line for line in launch.lines if "Scheduler hit an exception" in line]
    assert sorted(re.findall(r" (TP\d EP\d)\]", "\n".join(failures))) == [
        f"TP{n} EP{n}" for n in range(8)
    ]
    assert launch.text.count("AttributeError: 'NoneType' object has no attribute 'copy_'") == 8
    assert "Capture cuda graph failed" not in launch.text
    assert launch.lines[-2].endswith(
        "Received sigquit from a child process. It usually means the child failed."
    )
    assert launch.pids() == []


def test_only_the_named_ranks_fail(start: Start, table: Callable[..., Path]) -> None:
    ending = Ending(
        ends="exception", phase="weight-load", ranks=("TP1",), exception="KeyError", message="'w'"
    )
    launch = start(table(ending), "--tp-size", "2")
    assert launch.end() == -signal.SIGKILL
    assert launch.text.count("Scheduler hit an exception") == 1
    assert "TP1] Scheduler hit an exception" in launch.text
    assert "KeyError: 'w'" in launch.text
    assert "Load weight end" not in launch.text


def test_a_wrapped_exception_chains_the_advice_of_the_capture(
    start: Start, table: Callable[..., Path]
) -> None:
    ending = Ending(
        ends="exception",
        phase="graph-capture",
        exception="RuntimeError",
        message="boom",
        wrapped=True,
    )
    launch = start(table(ending, tp_size=1))
    assert launch.end() == -signal.SIGKILL
    order = [
        "RuntimeError: boom",
        "During handling of the above exception",
        "Exception: Capture cuda graph failed: boom",
        "Possible solutions:",
        "Received sigquit",
    ]
    places = [launch.text.index(words) for words in order]
    assert places == sorted(places)


def test_a_rank_killed_by_a_signal_says_nothing_and_the_launcher_exits_with_1(
    start: Start, table: Callable[..., Path]
) -> None:
    ending = Ending(ends="signal", phase="weight-load", ranks=("TP1",), signal="SIGSEGV")
    launch = start(table(ending), "--tp-size", "2")
    assert launch.end() == 1
    assert "Rank 1 scheduler died during initialization (exit code: -11)" in launch.text
    assert "Scheduler hit an exception" not in launch.text
    assert launch.pids() == []


def test_a_rank_that_leaves_silently_is_reported_with_its_code(
    start: Start, table: Callable[..., Path]
) -> None:
    ending = Ending(ends="exit", phase="kv-pool-init", ranks=("TP0",), code=7)
    launch = start(table(ending), "--tp-size", "2")
    assert launch.end() == 1
    assert "Rank 0 scheduler died during initialization (exit code: 7)" in launch.text


def test_the_launcher_can_fail_before_any_rank_exists(
    start: Start, table: Callable[..., Path]
) -> None:
    ending = Ending(
        ends="exception",
        phase="arg-validation",
        ranks=("main",),
        exception="ValueError",
        message="these do not go together",
    )
    launch = start(table(ending), "--tp-size", "2")
    assert launch.end() == 1
    assert launch.lines[-1] == "simulated | ValueError: these do not go together"
    assert "server_args=" not in launch.text
    assert "TP0" not in launch.text


def test_the_launcher_can_leave_silently(start: Start, table: Callable[..., Path]) -> None:
    launch = start(table(Ending(ends="exit", phase="process-spawn", ranks=("main",), code=5)))
    # tp-size is fixed to 2 in this landscape, so this one is refused.
    assert launch.end() == 65
    launch = start(
        table(Ending(ends="exit", phase="process-spawn", ranks=("main",), code=5)), "--tp-size", "2"
    )
    assert launch.end() == 5
    assert "Traceback" not in launch.text


def test_a_hang_keeps_all_processes_and_opens_no_port(start: Start) -> None:
    port = unused_port()
    launch = start(KIMI, *BASE, "--enable-flashinfer-allreduce-fusion", "--port", str(port))
    wait_until(lambda: launch.text.count("[SymmDeviceMemory]") == 8, "the rendezvous lines")
    time.sleep(0.2)
    assert launch.process.poll() is None
    assert len(launch.pids()) == 10  # launcher, eight ranks, detokenizer
    assert "CUDA graph end" not in launch.text
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port)) != 0
    launch.process.terminate()
    assert launch.end() == -signal.SIGTERM
    wait_until(lambda: launch.pids() == [], "an empty session")


def test_an_orphan_outlives_the_launch(start: Start, table: Callable[..., Path]) -> None:
    ending = Ending(
        ends="exception", phase="dist-init", exception="RuntimeError", message="no", orphan=True
    )
    launch = start(table(ending), "--tp-size", "2")
    launch.wait_for("orphan pid=")
    found = re.search(r"orphan pid=(\d+)", launch.text)
    assert found
    pid = int(found[1])
    assert launch.process.wait(30) == -signal.SIGKILL
    os.kill(pid, 0)  # it lives
    assert os.getsid(pid) != launch.process.pid
    os.kill(pid, signal.SIGKILL)


def test_killing_the_launcher_takes_all_ranks_along(start: Start) -> None:
    launch = start(KIMI, *BASE, speed="10")
    launch.wait_for("Init parallel begin.")
    assert len(launch.pids()) == 10
    launch.process.kill()
    assert launch.end() == -signal.SIGKILL
    killed = time.monotonic()
    wait_until(lambda: launch.pids() == [], "an empty session")
    assert time.monotonic() - killed < 10


def test_a_rank_killed_from_outside_during_the_start_is_noticed(start: Start) -> None:
    launch = start(KIMI, *BASE, speed="10")
    launch.wait_for("Init parallel begin.")
    victim = sorted(launch.pids())[3]  # launcher, TP0, TP1, TP2
    os.kill(victim, signal.SIGKILL)
    assert launch.end() == 1
    assert "Rank 2 scheduler died during initialization (exit code: -9)" in launch.text


def test_no_entry_is_refused_with_the_keys(start: Start) -> None:
    launch = start(KIMI, *BASE, "--ep-size", "4")
    assert launch.end() == 65
    assert launch.lines == ["simulated | triage.replay: refused: no entry for ep-size=4"]


def test_a_flag_whose_effect_is_unknown_is_refused(start: Start) -> None:
    launch = start(KIMI, *BASE, "--enable-nccl-nvls", "--enable-symm-mem")
    assert launch.end() == 65
    assert launch.lines == [
        "simulated | triage.replay: refused: no entry for enable-nccl-nvls, enable-symm-mem=True"
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nosuch"], "sglang serve: error: unrecognized arguments: --nosuch"),
        (["--e"], "sglang serve: error: ambiguous option: --e could match"),
        (["--port", "x"], "sglang serve: error: argument --port: invalid int value: 'x'"),
    ],
)
def test_a_wrong_command_line_ends_as_argparse_does(
    start: Start, words: list[str], message: str
) -> None:
    launch = start(KIMI, *BASE, *words)
    assert launch.end() == 2
    assert launch.lines[0].startswith("simulated | usage: sglang serve")
    assert message in launch.lines[-1]


def test_every_line_is_marked_and_the_entry_is_named_first(start: Start) -> None:
    launch = start(TWO, "--tp", "2", "--schedule-policy", "lpm", "--enable-mixed-chunk")
    assert launch.end() == -signal.SIGKILL
    assert launch.lines[0] == (
        "simulated | triage.replay: landscape two-flags: entry assumed: "
        "enable-mixed-chunk, schedule-policy"
    )
    assert len(launch.lines) > 40
    assert [line for line in launch.lines if not line.startswith("simulated | ")] == []


def test_two_launches_say_the_same_in_the_same_order(start: Start) -> None:
    words = (*BASE, "--ep-size", "8", "--enable-nccl-nvls")
    first, second = start(KIMI, *words), start(KIMI, *words)
    assert first.end() == second.end() == -signal.SIGKILL
    assert len(messages(first)) > 300
    assert messages(first) == messages(second)


def test_ranks_do_not_always_speak_in_the_same_order(start: Start) -> None:
    launch = start(KIMI, *BASE, "--ep-size", "8")
    launch.end()
    orders = {
        landmark: tuple(re.findall(rf"TP(\d) EP\d\] {landmark}", launch.text))
        for landmark in ("Init parallel begin", "Load weight begin", "KV Cache is allocated")
    }
    assert len(set(orders.values())) == 3
    assert {tuple(sorted(order)) for order in orders.values()} == {tuple("01234567")}


def test_no_line_reports_throughput(start: Start) -> None:
    port = str(unused_port())
    launch = start(KIMI, *BASE, "--enable-nccl-nvls", "--port", port)
    launch.wait_for("fired up")
    launch.process.terminate()
    launch.end()
    assert not re.search(r"(?i)throughput|tok/s|token/s|it/s|GB/s", launch.text)


@pytest.fixture
def port() -> int:
    return unused_port()


@pytest.fixture
def up(start: Start, port: int) -> Launch:
    launch = start(TWO, "--model-path", "/models/m", "--tp-size", "2", "--port", str(port))
    launch.wait_for("The server is fired up and ready to roll!")
    return launch


def test_temperature_0_gives_the_same_answer_twice(up: Launch, port: int) -> None:
    body = {"text": "Hello", "sampling_params": {"temperature": 0, "max_new_tokens": 6}}
    status, first = up.ask(port, "/generate", body)
    assert status == 200
    assert len(first["output_ids"]) == 6
    assert len(first["text"].split()) == 6
    assert first["simulated"] is True
    assert up.ask(port, "/generate", body) == (200, first)
    other = up.ask(port, "/generate", {**body, "text": "Good bye"})[1]
    assert other["text"] != first["text"]


def test_a_temperature_above_0_draws(up: Launch, port: int) -> None:
    body = {"text": "Hello", "sampling_params": {"temperature": 1, "max_new_tokens": 16}}
    assert up.ask(port, "/generate", body)[1]["text"] != up.ask(port, "/generate", body)[1]["text"]


def test_a_list_of_prompts_gets_a_list_of_answers(up: Launch, port: int) -> None:
    body = {"text": ["a", "b"], "sampling_params": {"temperature": 0, "max_new_tokens": 2}}
    status, answers = up.ask(port, "/generate", body)
    assert (status, len(answers)) == (200, 2)
    assert [answer["simulated"] for answer in answers] == [True, True]


def test_completions_repeat_too(up: Launch, port: int) -> None:
    body = {"prompt": "Hello", "temperature": 0, "max_tokens": 3}
    status, first = up.ask(port, "/v1/completions", body)
    assert status == 200
    assert len(first["choices"][0]["text"].split()) == 3
    assert up.ask(port, "/v1/completions", body) == (200, first)


def test_the_server_says_what_it_runs_and_that_it_is_simulated(up: Launch, port: int) -> None:
    assert up.ask(port, "/health") == (200, {"simulated": True})
    assert up.ask(port, "/health_generate") == (200, {"simulated": True})
    info = up.ask(port, "/model_info")[1]
    assert info == {"model_path": "/models/m", "is_generation": True, "simulated": True}
    server = up.ask(port, "/server_info")[1]
    assert (server["tp_size"], server["schedule_policy"]) == (2, "fcfs")
    assert server["enable_mixed_chunk"] is False
    assert up.ask(port, "/nosuch")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        [1],
        {},
        {"text": "x", "stream": True},
        {"text": "x", "sampling_params": 3},
        {"text": "x", "sampling_params": {"max_new_tokens": -1}},
        {"text": "x", "sampling_params": {"max_new_tokens": 10**9}},
        {"text": "x", "sampling_params": {"temperature": "warm"}},
    ],
)
def test_a_bad_request_is_answered_400_and_the_server_stays(
    up: Launch, port: int, body: object
) -> None:
    assert up.ask(port, "/generate", body)[0] == 400
    assert up.ask(port, "/health")[0] == 200


def test_sigterm_ends_it_gracefully_and_leaves_no_process(up: Launch) -> None:
    assert len(up.pids()) == 4
    up.process.terminate()
    assert up.end() == 0
    assert "Draining requests and shutting down" in up.text
    assert up.pids() == []


def test_a_rank_that_dies_while_serving_takes_the_server_down(up: Launch) -> None:
    victim = sorted(up.pids())[2]  # launcher, TP0, TP1
    os.kill(victim, signal.SIGKILL)
    assert up.end() == -signal.SIGKILL
    assert f"Subprocess scheduler_1 (pid={victim}) crashed with exit code -9" in up.text
    assert up.pids() == []


def test_killing_the_server_takes_all_processes_along(up: Launch) -> None:
    up.process.kill()
    killed = time.monotonic()
    wait_until(lambda: up.pids() == [], "an empty session")
    assert time.monotonic() - killed < 10


def test_health_is_503_until_the_warm_up_is_answered(
    start: Start, tmp_path: Path, port: int
) -> None:
    path = tmp_path / "cold.yaml"
    write_landscape(path, {frozenset(): Ending(ends="hang", phase="warmup-request")})
    launch = start(path, "--port", str(port))
    launch.wait_for("Prefill batch")
    assert launch.ask(port, "/health")[0] == 503
    assert launch.ask(port, "/health_generate")[0] == 503
    assert launch.ask(port, "/model_info")[0] == 200
    assert "ready to roll" not in launch.text


def test_an_exception_in_the_warm_up_comes_after_the_port_opened(
    start: Start, tmp_path: Path, port: int
) -> None:
    path = tmp_path / "first.yaml"
    ending = Ending(
        ends="exception", phase="warmup-request", exception="RuntimeError", message="kernel"
    )
    write_landscape(path, {frozenset(): ending})
    launch = start(path, "--port", str(port))
    assert launch.end() == -signal.SIGKILL
    assert launch.text.index("Uvicorn running on") < launch.text.index("RuntimeError: kernel")
    assert "SIGQUIT received." in launch.text


def test_a_busy_port_is_noticed_only_after_the_load(start: Start, port: int) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
        launch = start(TWO, "--tp-size", "2", "--port", str(port))
        assert launch.end() == 3
    assert launch.text.index("Load weight end") < launch.text.index("[Errno 98]")
    assert launch.pids() == []
