"""`triage confirm` on the simulated engine: what it lets pass, and each reason to refuse."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from inside import inside

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real


@pytest.fixture
def triage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    return inside(capsys)


# Patience shrinks with the speed, and the processes of a busy machine do not.
FAST = ("--speed", "1000", "--patience", "10h")
COMMAND = "python -m sglang.launch_server --model-path /m --port 31000"


def served(
    folder: Path, *, model: dict[str, Any] | None = None, flags: str = "", **serves: object
) -> tuple[Path, Path]:
    """A command file, and a landscape in which it starts and serves like this."""
    landscape = folder / "l.yaml"
    write_landscape(landscape, {frozenset(): Ending(ends="starts")}, seconds={"scheduler-init": 1})
    document = json.loads(landscape.read_text())
    document["entries"][0]["serves"] = serves
    document["model"] = {"kv_tokens": 4096, "context": 512} | (model or {})
    document["flags"].append({"flag": "speculative-algorithm", "neutral": True})
    landscape.write_text(json.dumps(document))
    (folder / "cmd.sh").write_text(f"{COMMAND} {flags}\n")
    return folder / "cmd.sh", landscape


def checks(document: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["result"] for check in document["checks"]}


def test_a_command_is_confirmed_with_load_and_repeated_starts(triage: Run, tmp_path: Path) -> None:
    command, landscape = served(tmp_path, accept_length=2.4, flags="--speculative-algorithm EAGLE")
    done = triage(
        "confirm", command, "--landscape", landscape, *FAST, "--concurrency", "1,16",
        "--repeat", "2", "--session", "s", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown == json.loads((tmp_path / "s/confirmation.json").read_text())
    assert shown["confirmed"]
    assert shown["count"] == {"up": 2, "starts": 2}
    assert checks(shown) == {
        "ready": "passed", "answers": "passed", "text": "passed", "accept-length": "passed",
        "kv-pool": "passed", "config": "passed", "load": "passed", "stop": "passed",
    }  # fmt: skip
    assert [(lv["concurrency"], lv["answered"]) for lv in shown["load"]] == [(1, 8), (16, 16)]
    assert {lv["tokens_per_s"] for lv in shown["load"]} == {None}, "nothing simulated is measured"
    assert shown["gpus"] is None
    assert shown["command"].endswith(" -- --model-path /m --speculative-algorithm EAGLE")
    assert "note: the launch listens on a port of its own" in done.stderr
    assert (tmp_path / "s/confirmation/002/server.log").exists()


@pytest.mark.parametrize(
    ("serves", "check", "says"),
    [
        ({"answers": "garbage"}, "text", r"is token 0 \('!'\) 24 times: garbage, not text"),
        ({"answers": "noise"}, "text", r"\d+ % of the characters .* garbage"),
        ({"answers": "empty"}, "answers|text", r"do not agree|is empty"),
        ({"answers": "changing"}, "answers", r"the two answers at temperature 0 do not agree"),
        (
            {"accept_length": 1.0}, "accept-length",
            r"speculation \(EAGLE\) accepts no draft token: accept length 1\.00",
        ),
    ],
)  # fmt: skip
def test_a_server_that_only_seems_to_work_is_refused(
    triage: Run, tmp_path: Path, serves: dict[str, Any], check: str, says: str
) -> None:
    flags = "--speculative-algorithm EAGLE" if "accept_length" in serves else ""
    command, landscape = served(tmp_path, flags=flags, **serves)
    done = triage("confirm", command, "--landscape", landscape, *FAST, "--session", "s")
    assert done.returncode == 12, done.stderr
    assert done.stdout.startswith("simulated: not confirmed: ")
    assert re.search(says, " ".join(done.stdout.split())), done.stdout
    document = json.loads((tmp_path / "s/confirmation.json").read_text())
    failed = {name for name, result in checks(document).items() if result == "failed"}
    assert failed
    assert all(re.fullmatch(check, name) for name in failed)
    assert "works" not in done.stdout


def test_green_health_while_generation_fails_is_refused(triage: Run, tmp_path: Path) -> None:
    command, landscape = served(tmp_path, answers="error")
    done = triage("confirm", command, "--landscape", landscape, *FAST, "--session", "s")
    assert done.returncode == 12, done.stderr
    said = " ".join(done.stdout.split())
    assert "not confirmed: the launch failed: it answers no generation: HTTP 500" in said
    log = (tmp_path / "s/confirmation/001/server.log").read_text()
    assert "The server is fired up and ready to roll!" in log


def test_a_pool_smaller_than_the_context_is_refused(triage: Run, tmp_path: Path) -> None:
    command, landscape = served(tmp_path, model={"kv_tokens": 300})
    done = triage("confirm", command, "--landscape", landscape, *FAST)
    assert done.returncode == 12
    said = " ".join(done.stdout.split())
    assert "the KV pool of 300 tokens is smaller than the context of 512" in said


def test_an_error_under_load_is_refused_and_named(triage: Run, tmp_path: Path) -> None:
    command, landscape = served(tmp_path, fails_after=20)
    done = triage("confirm", command, "--landscape", landscape, *FAST, "--concurrency", "1,32")
    assert done.returncode == 12, done.stdout
    said = " ".join(done.stdout.split())
    assert re.search(r"not confirmed: at 32 requests at once \d+ of 32 failed: HTTP 503", said)


def test_a_recipe_says_what_load_its_confirmation_puts(triage: Run, tmp_path: Path) -> None:
    _, landscape = served(tmp_path)
    (tmp_path / "r.yaml").write_text(
        "schema: triage.recipe/1\nname: test\nengine: replay\nspeed: 1000\n"
        "launch: {patience: {silent: 10h, total: 100h}}\n"
        f"landscape: {landscape}\nbaseline: {{flags: {{model-path: /m}}}}\n"
        "confirm: {requests: 3, concurrency: [1, 4], tokens: 5}\n"
    )
    done = triage("confirm", "r.yaml", "--json")
    assert done.returncode == 0, done.stderr
    load = json.loads(done.stdout)["load"]
    assert [(lv["answered"], lv["tokens"]) for lv in load] == [(3, 15), (4, 20)]
    assert "the whole wanted configuration is confirmed" in done.stderr


def test_a_foreign_listener_on_the_port_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody takes the port while the server loads, and says yes to everything."""
    from triage.session.candidate import command_session, named
    from triage.session.confirm import Wish, prove

    monkeypatch.chdir(tmp_path)
    command, landscape = served(tmp_path)
    found = named(command, landscape=landscape, speed=5.0)
    assert found.candidate is not None
    with yes_sayer(tmp_path / "s") as (starting, asked):
        shown = prove(
            command_session(found, tmp_path / "s"), found.candidate, Wish(repeat=1), starting
        )
    assert not shown.confirmed
    assert shown.starts[0].cause == "http-port-in-use"
    assert shown.reason.startswith("the launch failed this time (http-port-in-use: ")
    assert shown.exchanges == ()
    assert "/generate" not in asked, "what we want to know of our server we ask no other"


@contextmanager
def yes_sayer(session: Path) -> Iterator[tuple[Any, list[str]]]:
    """What begins to listen on the launch's port as soon as the launch has begun."""
    asked: list[str] = []
    servers: list[HTTPServer] = []

    class Yes(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'{"text": "yes"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    def starting(_: str) -> None:
        log = session / "confirmation/001/server.log"
        found = re.search(r"'port': (\d+)", log.read_text()) if log.exists() else None
        if found and not servers:
            servers.append(HTTPServer(("127.0.0.1", int(found[1])), Yes))
            threading.Thread(target=servers[0].serve_forever, daemon=True).start()

    try:
        yield starting, asked
        assert servers, "it was never started"
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def test_bad_words(triage: Run, tmp_path: Path) -> None:
    command, landscape = served(tmp_path)
    is_an_error(triage("confirm", command, "--concurrency", "1,x"), 2, r"no list of numbers")
    is_an_error(triage("confirm", command, "--concurrency", "0"), 2, r"each level is 1 to 4096")
    is_an_error(triage("confirm", command, "--load-time", "soon"), 2, r"is not a duration")
    is_an_error(triage("confirm", "nowhere.sh"), 2, r"nowhere\.sh")
    done = triage("confirm", command, "--landscape", landscape, "--dry-run")
    assert done.stdout.endswith(" --speed 60 -- --model-path /m\n")
    assert not (tmp_path / ".triage").exists()


def test_a_single_launch_can_be_confirmed_by_its_folder(triage: Run, tmp_path: Path) -> None:
    _, landscape = served(tmp_path)
    engine = [
        sys.executable,
        "-m",
        "triage.replay",
        "--landscape",
        str(landscape),
        "--speed",
        "1000",
    ]
    done = triage("run", "--session", "once", "--", *engine, "--", "--model-path", "/m")
    assert done.returncode == 0, done.stderr
    done = triage("confirm", "once", "--session", "s")
    assert done.returncode == 0, (done.stdout, done.stderr)
