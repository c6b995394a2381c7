"""A whole traceback in one line: in a JSON record, quoted, or with its line ends written out."""

from __future__ import annotations

import json

import pytest

from triage.core.log.diagnose import diagnose
from triage.core.log.live import Live
from triage.core.log.nested import unquoted, within
from triage.finder import fast, plain
from triage.knowledge.stored import load_causes

STAMP = "2026-07-01T12:00:00Z"
TRACEBACK = """Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 31, in run_scheduler_process
    scheduler = Scheduler(
  File "/opt/sglang/srt/model_executor/cuda_graph_runner.py", line 49, in capture
    self.run("a")
  File "/opt/sglang/srt/speculative/x.py", line 20, in f
    batch.prepare_for_decode()
AttributeError: 'NoneType' object has no attribute 'prepare_for_decode'
"""
SAID = "Scheduler hit an exception: " + TRACEBACK
RECORD = "[2026-07-01 12:00:00 TP3] "
LOGGER = {"time": STAMP, "level": "ERROR", "message": RECORD + SAID}
FORMS = {
    "a logger's record": json.dumps(LOGGER),
    "a record without spaces": json.dumps(LOGGER, separators=(",", ":")),
    "the exception in a field of its own": json.dumps(
        {"asctime": "2026-07-01 12:00:00,123", "levelname": "ERROR", "lineno": 5,
         "message": RECORD + "Scheduler hit an exception:", "exc_info": TRACEBACK.strip()}
    ),
    "a field within a field": json.dumps(
        {"@timestamp": STAMP, "log.level": "error",
         "message": RECORD + "Scheduler hit an exception:",
         "error": {"type": "AttributeError", "stack_trace": TRACEBACK}}
    ),
    "a record below CRI": f"2026-07-01T12:00:00.123456789Z stderr F {json.dumps(LOGGER)}",
    "a record below Compose": f"sglang-1  | {json.dumps(LOGGER)}",
    "a record in Docker's": json.dumps(
        {"log": json.dumps(LOGGER) + "\n", "stream": "stderr", "time": STAMP}
    ),
    "an export for people": f'            "message": {json.dumps(RECORD + SAID)},',
    "Loki's record": json.dumps(
        {"labels": {"app": "a"}, "line": RECORD + SAID, "timestamp": STAMP}
    ),
    "as Python prints a text": f"{RECORD}It failed: {SAID!r}",
    "as Python prints bytes": f"{RECORD}child died, stderr={SAID.encode()!r}",
    "as Python prints a mapping": f"{RECORD}{ {'error': SAID, 'code': 3} }",
    "written out": RECORD + SAID.replace("\n", "\\n"),
    "a record in a record": json.dumps(
        LOGGER | {"message": f"{RECORD}child said {json.dumps({'detail': SAID})}"}
    ),
    "behind much else": json.dumps(
        LOGGER | {"message": RECORD + ("x" * 80 + "\n") * 300 + SAID}
    ),
}  # fmt: skip
BEFORE = (
    b"[2026-07-01 11:59:00] server_args=ServerArgs(model_path='x', tp_size=8)\n"
    b"[2026-07-01 11:59:10 TP3] Load weight begin. avail mem=1\n"
    b"[2026-07-01 11:59:20 TP3] Capture cuda graph begin. This can take minutes.\n"
)
AFTER = b"[2026-07-01 12:00:02] Received sigquit from a child process.\n"


@pytest.mark.parametrize("finder", [plain, fast])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_exception_in_one_line_is_the_root(form: str, finder: object) -> None:
    raw = BEFORE + form.encode() + b"\n" + AFTER
    found = diagnose([raw], load_causes(), finder=finder)  # type: ignore[arg-type]
    assert (found.cause, found.phase) == ("nonetype-spec-info", "graph-capture")
    assert found.ranks == ("TP3",)
    assert found.root is not None
    assert (found.root.line, found.root.offset) == (4, len(BEFORE))
    assert found.root.text == TRACEBACK.splitlines()[-1]
    assert found.traceback is not None
    assert [frame.line for frame in found.traceback.frames] == [31, 49, 20]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_it_does_not_matter_where_chunks_are_cut(form: str) -> None:
    raw = BEFORE + form.encode() + b"\n" + AFTER
    whole = diagnose([raw], load_causes())
    pieces = [raw[start : start + 61] for start in range(0, len(raw), 61)]
    assert diagnose(pieces, load_causes()) == whole


def test_a_record_that_is_cut_off_still_tells_what_it_has() -> None:
    cut = FORMS["a logger's record"][:-40]
    found = diagnose([BEFORE + cut.encode() + b"\n" + AFTER], load_causes())
    assert found.root is not None
    assert found.root.line == 4
    assert found.root.text.startswith("AttributeError: 'NoneType' object")


def test_literals_are_found_though_the_raw_line_escapes_their_quotes() -> None:
    said = SAID.replace("prepare_for_decode'", "w_kc'").replace(
        "/opt/sglang/srt/speculative/x.py", "/opt/sglang/srt/models/deepseek_v2.py"
    )
    lines = diagnose([BEFORE + (RECORD + said).encode() + AFTER], load_causes())
    quoted = diagnose([BEFORE + f"{RECORD}{said!r}\n".encode() + AFTER], load_causes())
    assert lines.cause is not None
    assert quoted.cause == lines.cause


def test_a_watched_launch_ends_at_such_a_line() -> None:
    live = Live()
    live.feed(BEFORE + FORMS["a logger's record"].encode() + b"\n")
    assert live.fatal_line == 4


def test_the_next_record_of_a_logger_is_no_part_of_a_message() -> None:
    next_one = json.dumps({"time": STAMP, "level": "INFO", "message": "still here"}).encode()
    raw = BEFORE + FORMS["a logger's record"].encode() + b"\n" + next_one + b"\n" + AFTER
    found = diagnose([raw], load_causes())
    assert found.traceback is not None
    assert "still here" not in found.traceback.message


@pytest.mark.parametrize(
    "text",
    [
        "a plain line",
        'a path C:\\new and "quotes"',
        "INFO: request {'prompt': 'line one\\nline two'}",
        '{"not": "a record"}',
        "Traceback (most recent call last):",
        '  File "/opt/sglang/srt/managers/scheduler.py", line 31, in run',
    ],
)
def test_other_lines_are_left_as_they_are(text: str) -> None:
    assert within(text) is None


def test_what_stands_around_a_quote_is_not_part_of_it() -> None:
    text = unquoted(
        "pid=7 err=b'Traceback (most recent call last):\\n  File \"a\", line 1\\nE: x' k=v"
    )
    assert text.splitlines()[-1] == "E: x"
    text = unquoted("it can't go on: Traceback (most recent call last):\\nE: 'x' is not there")
    assert text.splitlines() == [
        "it can't go on: Traceback (most recent call last):",
        "E: 'x' is not there",
    ]


def test_of_endless_lines_the_first_and_the_last_are_kept() -> None:
    text = "Traceback (most recent call last):" + "\\n" * 60_000 + "ValueError: x"
    found = within(text)
    assert found is not None
    assert len(found.lines) < 1000
    assert found.lines[-1] == "ValueError: x"


@pytest.mark.parametrize(
    "request_log",
    [
        f"{RECORD}Receive: obj=GenerateReqInput(text={SAID!r}, image_data=None)",
        f"{RECORD}Finish: obj=GenerateReqInput(text={SAID!r}), out={{'text': 'x'}}",
        f"{RECORD}Received request cmpl-1: prompt: {SAID!r}, params: SamplingParams()",
        f"{RECORD}request: {json.dumps({'messages': [{'role': 'user', 'content': SAID}]})}",
        json.dumps({"timestamp": STAMP, "event": "request.received", "obj": {"text": SAID}}),
    ],
)
def test_what_a_client_asks_is_no_failure_of_the_server(request_log: str) -> None:
    ready = b"[2026-07-01 12:00:00] The server is fired up and ready to roll!\n"
    found = diagnose([BEFORE + ready + request_log.encode() + b"\n"], load_causes())
    assert found.outcome == "healthy"


@pytest.mark.parametrize(
    "names", [("timestamp", "level", "message"), ("Timestamp", "SeverityText", "Body")]
)
def test_a_collector_that_sends_each_line_with_a_level_keeps_tracebacks_whole(
    names: tuple[str, str, str],
) -> None:
    said = (RECORD + SAID).rstrip().splitlines()
    lines = [json.dumps(dict(zip(names, (STAMP, "info", line), strict=True))) for line in said]
    d = diagnose([("\n".join(lines) + "\n").encode()], load_causes())
    assert d.root is not None
    assert "prepare_for_decode" in d.root.text
    assert (d.outcome, d.root.rank) == ("failed", "TP3")


def test_the_line_of_an_exception_alone_ends_no_watched_launch_though_it_has_a_level() -> None:
    live = Live(load_causes())
    record = {"level": "error", "message": "RuntimeError: CUDA error: out of memory"}
    live.feed((json.dumps(record | {"timestamp": STAMP}) + "\n").encode())
    assert live.fatal_line == 0


def test_a_message_that_journald_writes_as_numbers_is_read_as_its_bytes() -> None:
    """It does so with every message that holds a colour or a carriage return."""
    lines = [
        f"\x1b[36m{line}\x1b[0m" if "Error" in line or "TP3" in line else line
        for line in (RECORD + SAID).splitlines()
    ]
    log = "".join(
        json.dumps(
            {"__REALTIME_TIMESTAMP": "1782907200000000", "SYSLOG_IDENTIFIER": "sglang",
             "MESSAGE": list(line.encode()) if "\x1b" in line else line},
            separators=(",", ":"),
        )
        + "\n"
        for line in lines
    )  # fmt: skip
    for finder in (plain, fast):
        found = diagnose([log.encode()], load_causes(), finder=finder)
        assert found.root is not None
        assert found.root.text.startswith("AttributeError: 'NoneType'")
        assert found.root.line == len(lines)
        assert found.ranks == ("TP3",)


@pytest.mark.parametrize("numbers", ["[300]", '["a"]', "[]", "[1.5]", "[null]"])
def test_numbers_that_are_no_bytes_are_no_message(numbers: str) -> None:
    assert within(f'{{"__REALTIME_TIMESTAMP":"1","MESSAGE":{numbers}}}') in (None, ([""], False))
