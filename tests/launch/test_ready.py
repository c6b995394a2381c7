"""What counts as ready, and what happens from then on."""

from __future__ import annotations

import http.server
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from launch_bench import Bench

from triage.core.launch import Crashed, Hung, Interrupted, Patience, Ready
from triage.launch import Server

pytestmark = pytest.mark.real
SHORT = Patience(silent_s=1.5, total_s=20)


def test_a_server_that_answers_is_ready(bench: Bench) -> None:
    capture = bench.launch("say:phase serving", "serve", "say:READY", "hang")
    assert capture.outcome == Ready(answer="The capital of France is / 8")
    assert capture.phase == "serving"
    assert capture.log == str(bench.folder / "server.log")
    assert len(capture.pids) == 1


def test_a_server_without_a_ready_line_is_ready_by_its_health(bench: Bench) -> None:
    capture = bench.launch("serve", "hang")
    assert capture.outcome == Ready(answer="The capital of France is / 8")


def test_an_openai_like_server_is_asked_for_a_completion(bench: Bench) -> None:
    capture = bench.launch("serve:only_openai=1", "say:READY", "hang")
    assert capture.outcome == Ready(answer="tiny: The capital of France is")


def test_the_caller_works_with_the_ready_server(bench: Bench) -> None:
    answers: list[str] = []

    def confirm(server: Server) -> None:
        answers.append(server.generate("two", 2))
        answers.append(server.url)
        answers.extend(str(pid) for pid in server.pids())

    capture = bench.launch("serve", "say:READY", "hang", while_ready=confirm)
    assert isinstance(capture.outcome, Ready)
    assert answers == [
        "two / 2",
        f"http://127.0.0.1:{bench.port}",
        str(capture.pids[0]),
    ]


def test_an_error_of_the_caller_is_raised_once_the_server_is_ended(bench: Bench) -> None:
    def confirm(_: Server) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        bench.launch("serve", "say:READY", "hang", while_ready=confirm)
    assert json.loads((bench.folder / "exit.json").read_text())["how"] == "failed"


def test_the_ready_line_alone_is_not_ready(bench: Bench) -> None:
    capture = bench.launch("say:READY", "hang", patience=SHORT)
    assert isinstance(capture.outcome, Hung)


def test_an_open_port_and_health_alone_are_not_ready(bench: Bench) -> None:
    capture = bench.launch("serve:generate=0", "say:READY", "hang", patience=SHORT)
    assert isinstance(capture.outcome, Hung)


def test_an_unhealthy_server_without_a_ready_line_is_not_asked_to_generate(bench: Bench) -> None:
    patience = Patience(silent_s=3.5, total_s=20)
    capture = bench.launch("serve:health=503", "hang", patience=patience)
    assert isinstance(capture.outcome, Hung)


def test_a_server_that_answers_only_errors_has_failed(bench: Bench) -> None:
    capture = bench.launch("serve:generate=500", "say:READY", "hang")
    reason = "it answers no generation: HTTP 500: {'text': 'The capital of France is / 8'}"
    assert capture.outcome == Crashed(exit_code=None, reason=reason)
    assert reason in bench.events


def test_what_a_failing_server_answers_cannot_act_and_holds_no_secret(bench: Bench) -> None:
    capture = bench.launch(
        "answer:500,no \x1b[2J\nhf_abcdefghijklmnopqrstuv or my-own-key", "say:READY", "hang",
        "--api-key", "my-own-key",
    )  # fmt: skip
    reason = "it answers no generation: HTTP 500: no \ufffd[2J hf_REDACTED or REDACTED"
    assert capture.outcome == Crashed(exit_code=None, reason=reason)
    assert reason in bench.events


def test_a_foreign_listener_that_says_yes_to_everything_is_not_our_server(bench: Bench) -> None:
    called: list[Server] = []
    with yes_sayer(bench.port) as start:
        bench.watcher.hook = start
        capture = bench.launch(
            "say:UP",
            "sleep:0.3",
            "say:READY",
            "hang",
            patience=Patience(silent_s=4.0, total_s=40),
            while_ready=called.append,
        )
    assert isinstance(capture.outcome, Hung)
    assert called == []


@contextmanager
def yes_sayer(port: int) -> Iterator[Callable[[bytes], None]]:
    """A server of this process that answers 200; it starts at the first call."""

    class Yes(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"text": "yes"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    servers: list[http.server.HTTPServer] = []

    def start(_: bytes) -> None:
        if not servers:
            servers.append(http.server.HTTPServer(("127.0.0.1", port), Yes))
            threading.Thread(target=servers[0].serve_forever, daemon=True).start()

    try:
        yield start
        assert servers, "it was never started"
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def test_a_ready_server_gets_sigterm_on_its_main_process_only(bench: Bench) -> None:
    capture = bench.launch("child", "sleep:0.2", "polite", "serve", "say:READY", "hang")
    assert isinstance(capture.outcome, Ready)
    assert "main got SIGTERM" in bench.log()
    assert "child up" in bench.log()
    assert "child got SIGTERM" not in bench.log()
    assert json.loads((bench.folder / "exit.json").read_text())["exit_code"] == 0


def test_a_ready_server_that_ignores_sigterm_is_killed_after_the_grace(bench: Bench) -> None:
    capture = bench.launch("stubborn", "serve", "say:READY", "hang", stop_grace_s=0.5)
    assert isinstance(capture.outcome, Ready)
    assert json.loads((bench.folder / "exit.json").read_text())["exit_code"] == -9


def test_a_server_that_dies_while_the_caller_works_has_crashed(bench: Bench) -> None:
    def confirm(server: Server) -> None:
        os.kill(server.pids()[0], signal.SIGKILL)
        while True:
            server.generate("on", 1)

    capture = bench.launch("serve", "say:READY", "hang", while_ready=confirm)
    assert capture.outcome == Crashed(exit_code=-9)


def test_a_server_that_falls_silent_while_the_caller_works_hangs(bench: Bench) -> None:
    def confirm(server: Server) -> None:
        os.kill(server.pids()[0], signal.SIGSTOP)
        server.timeout_s = 0.5
        server.generate("on", 1)

    capture = bench.launch("serve", "say:READY", "hang", while_ready=confirm)
    assert isinstance(capture.outcome, Hung)
    assert capture.outcome.limit == "answer"


def test_a_server_that_somebody_else_ended_was_interrupted(bench: Bench) -> None:
    def confirm(server: Server) -> None:
        os.kill(server.pids()[0], signal.SIGTERM)
        while True:
            server.generate("on", 1)

    capture = bench.launch("serve", "say:READY", "hang", while_ready=confirm)
    assert capture.outcome == Interrupted(by="SIGTERM from outside")
