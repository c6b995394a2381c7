"""Bad input gets one sentence and the next command to type, never a traceback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Run, is_an_error
from small_disk import small_disk

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "recipes/kimi-k2.6-b300.yaml"


def test_a_recipe_with_an_unknown_key_is_told_file_line_and_suggestion(
    triage: Run, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        KIMI.read_text().replace(
            "  - {flag: enable-nccl-nvls, weight: 3}", "  - {flag: enable-nccl-nvls, wieght: 3}"
        )
    )
    done = triage("bisect", recipe)
    line = 1 + recipe.read_text().splitlines().index("  - {flag: enable-nccl-nvls, wieght: 3}")
    is_an_error(done, 2, rf"mine\.yaml:{line}: wanted\[1\]\.wieght: .*did you mean weight\?")
    assert not (tmp_path / ".triage").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", r"r\.yaml"),
        ("schema: triage.recipe/1\n  name: [", r"r\.yaml:\d+"),
        ("\x00\x01", r"r\.yaml"),
        ("schema: triage.recipe/2\nname: x\n", r"r\.yaml:1: schema"),
        ("a: &a [*a]\n", r"r\.yaml"),
    ],
)
def test_a_recipe_that_is_none_is_named(
    triage: Run, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "r.yaml").write_text(content)
    is_an_error(triage("bisect", "r.yaml"), 2, says)


@pytest.mark.parametrize(
    "words", [("--hours", "nan"), ("--hours", "inf"), ("--speed", "nan"), ("--trials", "10001")]
)
def test_what_no_recipe_may_say_is_no_budget_and_no_speed(
    triage: Run, tmp_path: Path, words: tuple[str, str]
) -> None:
    is_an_error(triage("bisect", KIMI, *words), 2, rf"'{words[0]}': .* is not ")
    assert not (tmp_path / ".triage").exists()


def test_a_recipe_that_does_not_exist(triage: Run) -> None:
    is_an_error(triage("bisect", "nowhere.yaml"), 2, r"nowhere\.yaml")


def test_an_empty_log_has_nothing_to_examine(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    done = triage("classify", "empty.log")
    assert done.returncode == 3
    assert done.stderr.strip().startswith("try: ")


def test_a_binary_file_is_no_log(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(os.urandom(300_000))
    done = triage("classify", "model.bin")
    assert done.returncode == 3
    assert len(done.stdout) < 2000
    assert all(c.isprintable() or c == "\n" for c in done.stdout)


def test_a_log_that_does_not_exist(triage: Run) -> None:
    is_an_error(triage("classify", "nowhere.log"), 2, r"^nowhere\.log does not exist$")


def test_no_log_at_all_on_a_terminal_is_a_usage_error(tmp_path: Path) -> None:
    import pty

    parent, child = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "triage", "classify"], stdin=child, capture_output=True,
        text=True, check=False, timeout=30, cwd=tmp_path,
    )  # fmt: skip
    os.close(parent)
    os.close(child)
    is_an_error(done, 2, r"^no log was given$")


def test_no_permission_to_read_a_log(tmp_path: Path) -> None:
    log = tmp_path / "secret.log"
    log.write_text("x\n")
    log.chmod(0)
    done = without_rights("classify", str(log), cwd=tmp_path)
    is_an_error(done, 4, r"cannot read .*secret\.log: Permission denied")


def test_no_permission_to_keep_a_session(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    done = without_rights("bisect", str(KIMI), "--engine", "replay", cwd=tmp_path)
    is_an_error(done, 4, r"cannot write \.triage")


def test_a_busy_port_is_named_with_its_holder(triage: Run, tmp_path: Path) -> None:
    with listener() as port:
        done = triage(
            "run",
            "--",
            "python",
            "-m",
            "sglang.launch_server",
            "--model-path",
            "x",
            "--port",
            str(port),
        )
        is_an_error(done, 4, rf"[Pp]ort {port} is already taken by process {os.getpid()} \(")


def test_a_program_that_does_not_exist(triage: Run) -> None:
    done = triage("run", "--", "no-such-program-x", "--model-path", "x")
    assert done.returncode in {2, 4}
    assert "no-such-program-x" in done.stderr
    assert "try: " in done.stderr


def test_run_without_a_command(triage: Run) -> None:
    is_an_error(triage("run"), 2, r"^no command was given$")


def test_a_session_that_is_none(triage: Run, tmp_path: Path) -> None:
    is_an_error(triage("recommend", tmp_path), 3, r"holds no session")
    is_an_error(triage("confirm"), 3, r"there is no session under \.triage/")
    is_an_error(triage("runbook"), 3, r"there is no session under \.triage/")


def test_a_cause_that_does_not_exist_suggests_the_nearest(triage: Run) -> None:
    done = triage("explain", "checkpoint-corupt")
    is_an_error(done, 2, r"there is no cause 'checkpoint-corupt'")
    assert done.stderr.endswith("  try: triage explain checkpoint-corrupt\n")


def test_good_without_bad(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "good.sh").write_text("python -m sglang.launch_server --model-path /m\n")
    is_an_error(
        triage("bisect", "--good", "good.sh"), 2, r"a command that works and one that does not"
    )


def test_two_equal_commands(triage: Run, tmp_path: Path) -> None:
    for name in ("good.sh", "bad.sh"):
        (tmp_path / name).write_text("python -m sglang.launch_server --model-path /m\n")
    is_an_error(triage("bisect", "--good", "good.sh", "--bad", "bad.sh"), 2, r"set the same")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("$M", r"^bad\.sh: --model-path holds \$M, and what that stands for is not known here$"),
        ("/m --tp $(count)", r"^bad\.sh: --tp-size holds \$\(count\), "),
        ("/m ${ARGS[@]}", r"^bad\.sh: the command holds \$\{ARGS\[@\]\}, "),
    ],
)
def test_what_only_a_shell_knows_is_not_launched(
    triage: Run, tmp_path: Path, line: str, says: str
) -> None:
    (tmp_path / "good.sh").write_text("python -m sglang.launch_server --model-path /m --tp 1\n")
    (tmp_path / "bad.sh").write_text(
        f"M=/m; if x; then M=/n; fi\npython -m sglang.launch_server --model-path {line}\n"
    )
    done = triage("bisect", "--good", "good.sh", "--bad", "bad.sh")
    is_an_error(done, 2, says)
    assert "  try: grep -nF " in done.stderr
    assert not (tmp_path / ".triage").exists()


def test_a_port_that_only_a_shell_knows_is_no_matter(triage: Run, tmp_path: Path) -> None:
    for name, more in (("good.sh", ""), ("bad.sh", " --enable-metrics")):
        (tmp_path / name).write_text(f"sglang serve /m --port $PORT_{more}\n")
    done = triage("bisect", "--good", "good.sh", "--bad", "bad.sh", "--dry-run")
    assert done.returncode == 0, done.stderr


def test_a_container_is_launched_as_one_unless_it_is_simulated(triage: Run, tmp_path: Path) -> None:
    for name, more in (("good.sh", ""), ("bad.sh", " --ep-size 8")):
        (tmp_path / name).write_text(f"docker run --rm img sglang serve /m --tp 8{more}\n")
    both = ("bisect", "--good", "good.sh", "--bad", "bad.sh", "--dry-run")
    assert "docker run --rm img sglang serve" in triage(*both).stdout
    is_an_error(triage(*both, "--target", "process"), 2, r"^the command that works starts a cont")
    landscape = ROOT / "fixtures/landscapes/kimi-k2.6-b300.yaml"
    done = triage(*both, "--engine", "replay", "--landscape", landscape)
    assert done.returncode == 0, done.stderr


def test_flags_without_a_program_come_with_a_way_out(triage: Run, tmp_path: Path) -> None:
    for name, more in (("good.sh", ""), ("bad.sh", " --ep-size 8")):
        (tmp_path / name).write_text(f"--model-path /m --tp 8{more}\n")
    both = ("bisect", "--good", "good.sh", "--bad", "bad.sh", "--dry-run")
    done = triage(*both)
    is_an_error(done, 2, r"^good\.sh sets flags but names no program to launch$")
    hint = done.stderr.rpartition("  try: ")[2]
    subprocess.run(hint, shell=True, check=True, cwd=tmp_path)
    assert triage(*both).returncode == 0, "of the bad one only the flags are needed"


@pytest.mark.parametrize("words", [["config"], ["bisect"], ["bisect", "--bad", "b", "--good"]])
def test_a_pipe_is_not_waited_for(triage: Run, tmp_path: Path, words: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    is_an_error(triage(*words, "pipe", timeout=20), 2, r"^pipe: no regular file$")


def test_config_reads_standard_input(triage: Run) -> None:
    for name in ("-", "/dev/stdin"):
        done = triage("config", name, stdin=b"sglang serve /m --ep-size 8\n")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "shell: sglang serve\n  --ep-size 8\n  --model-path /m\n"
    is_an_error(triage("config", "-"), 3, r"^-: the command is empty$")


def test_keys_of_a_recipe_without_effect_are_told(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "schema: triage.recipe/1\nname: x\nengine_version: '0.4.9'\nbaseline: {flags: {model: /m}}\n"
        "wanted: [{flag: ep, value: 8}]\ngoal: all\nnoise: {miss: 0.1}\n"
        "confirm: {requests: 8, concurrency: [4]}\nranges: [{flag: tp, from: 8, to: 1, step: 1}]\n"
        "repairs: [{flag: cuda-graph-backend-decode, value: disabled, cost: speed}]\n"
    )
    done = triage("bisect", "r.yaml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "note: engine_version 0.4.9: flags are read with the table of sglang 0.5.23",
    ]


def test_a_full_disk_loses_no_verdict(triage: Run, tmp_path: Path) -> None:
    """The session lies on a file system of 96 KiB that fills up in the middle.

    Where none can be mounted, a file may grow to 24 KiB, less than the second log.
    """
    small = tmp_path / "small"
    small.mkdir()
    with small_disk(small, size=96 << 10, largest_file=24 << 10) as says:
        done = triage(
            "bisect", KIMI, "--engine", "replay", "--speed", "1000", "--session", small / "s"
        )
        assert done.returncode == 4, done.stderr
        assert says in done.stderr
        assert "try: " in done.stderr
        journal = (small / "s" / "journal.jsonl").read_text()
        assert journal.count("\n") >= 1


@contextmanager
def listener() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


# Root is not bound by the modes of files as long as it has these two capabilities:
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH are bits 1 and 2. Giving them up needs no right.
GIVE_UP = """
import ctypes, runpy, sys
libc, head, data = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)()
if libc.capget(head, data):
    sys.exit("no capget")
for at in range(3):
    data[at] &= ~0b110
if libc.capset(head, data):
    sys.exit("no capset")
runpy.run_module("triage", run_name="__main__", alter_sys=True)
"""


def without_rights(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run triage bound by the modes of files, as everybody but root is anyway."""
    start = ["-c", GIVE_UP] if os.geteuid() == 0 else ["-m", "triage"]
    done = subprocess.run(
        [sys.executable, *start, *words],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.stderr in ("no capget\n", "no capset\n"):
        pytest.skip("root cannot give up capabilities here, so modes of files do not bind it")
    return done


def test_a_reader_that_goes_away_ends_the_answer_and_not_the_work(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = [sys.executable, "-m", "triage"]
    listing = subprocess.run(
        [*run, "causes", "list"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    assert (listing.returncode, listing.stderr) == (141, b"")
    search = subprocess.run(
        [*run, "bisect", str(KIMI), "--engine", "replay", "--speed", "1000", "--session", "s"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=writer, check=False,
    )  # fmt: skip
    os.close(writer)
    assert search.returncode == 0
    assert json.loads((tmp_path / "s/recommendation.json").read_text())["reason"] == "found"
