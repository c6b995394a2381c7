"""A configuration is resolved in the engine's own Python: its verdict, and what may go wrong."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from traces import Descendants, alive, children_of

from triage.launch import inside
from triage.launch.resolver import INSIDE, Resolver, resolution_of

pytestmark = pytest.mark.real
STAND_IN = Path(__file__).with_name("stand_in")
ENV = (("PYTHONPATH", str(STAND_IN)),)


@pytest.fixture(scope="module")
def engine() -> Iterator[Resolver]:
    """One stand-in, imported once, as in use; what a question breaks shows in the next one."""
    with Descendants() as descendants, Resolver([sys.executable], env=ENV, each_s=4) as resolver:
        yield resolver
        resolver.close()
    assert descendants.count > 5
    assert descendants.left() == []


def asked(*words: str) -> list[str]:
    return ["--model-path", "/m", *words]


def test_what_the_engine_accepts_has_its_resolved_values(engine: Resolver) -> None:
    found = engine.resolve(asked("--page-size", "16"))
    assert (found.verdict, found.basis, found.version) == ("accepted", "engine", "9.8.7")
    assert found.resolved["page_size"] == 64
    assert found.reason == ""
    assert 0 < found.seconds < 20


def test_a_check_that_fails_is_told_with_its_place(engine: Resolver) -> None:
    found = engine.resolve(asked("--chunked-prefill-size", "100", "--page-size", "16"))
    assert (found.verdict, found.exit_code, found.phase) == ("rejected", 1, "arg-validation")
    assert found.exception == "AssertionError"
    assert found.message == "chunk must be divisible by page_size"
    assert found.where is not None
    assert found.where.function == "resolve"
    assert found.where.file.endswith("sglang/srt/server_args.py")
    assert "inside.py" not in found.log
    assert found.log.splitlines()[-1] == "AssertionError: chunk must be divisible by page_size"


def test_what_argparse_refuses_has_its_message_and_its_code(engine: Resolver) -> None:
    found = engine.resolve(asked("--policy", "c"))
    assert (found.verdict, found.exit_code, found.phase) == ("rejected", 2, "arg-parse")
    assert found.exception == ""
    assert found.message.startswith("sglang serve: error: argument --policy: invalid choice: 'c'")
    assert found.log.startswith("usage: sglang serve")


def test_a_process_title_folder_and_path_are_those_of_a_launch(engine: Resolver) -> None:
    found = engine.resolve(asked("--deed", "where"))
    assert found.resolved["cwd"] == str(Path.cwd())
    path = found.resolved["path"]
    assert isinstance(path, list)
    assert path[0] == ""  # as with python -m; our folder would hide modules of the engine's
    assert str(INSIDE.parent) not in path
    argv = found.resolved["argv"]
    assert isinstance(argv, list)
    assert argv[1:] == asked("--deed", "where")


def test_variables_that_the_engine_sets_are_told(engine: Resolver) -> None:
    found = engine.resolve(asked("--deed", "env:NCCL_NVLS_ENABLE"))
    assert found.env == {"NCCL_NVLS_ENABLE": "1"}
    again = engine.resolve(asked())
    assert again.env == {}, "a fork leaves nothing to the next one"


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("hang", "no answer within 4 s"),
        ("die", "the resolution ended with code 3"),
        ("return", "without starting a process"),
        ("exit:", ""),
    ],
)
def test_what_gives_no_verdict_is_unknown_and_says_why(
    engine: Resolver, deed: str, why: str
) -> None:
    began = time.monotonic()
    found = engine.resolve(asked("--deed", deed))
    if deed == "exit:":
        assert (found.verdict, found.exit_code) == ("rejected", 1)
    else:
        assert found.verdict == "unknown"
        assert why in found.reason
    assert time.monotonic() - began < 20
    assert engine.resolve(asked()).verdict == "accepted"


def test_an_engine_that_says_much_is_cut_and_keeps_its_last_word(engine: Resolver) -> None:
    found = engine.resolve(asked("--deed", "chatter"))
    assert found.verdict == "rejected"
    assert len(found.log) < 300_000
    assert found.log.startswith("chatter")
    assert found.log.rstrip().endswith("ValueError: too much said")


def test_an_answer_that_is_too_long_ends_the_engine_and_not_us() -> None:
    with Resolver([sys.executable], env=ENV, each_s=5) as resolver:
        found = resolver.resolve(asked("--deed", "huge"))
        assert found.verdict == "unknown"
        assert resolver.resolve(asked()).verdict == "accepted", "it is started anew, once"


def test_an_orphan_of_a_resolution_is_ended_with_the_engine(engine: Resolver) -> None:
    """That nothing is left is what the fixture asserts in the end."""
    assert engine.resolve(asked("--deed", "orphan")).verdict == "accepted"


def test_a_killed_engine_is_started_once_more_and_then_given_up() -> None:
    with Resolver([sys.executable], env=ENV, each_s=3) as resolver:
        for _ in range(2):
            found = resolver.resolve(asked("--deed", "kill-parent"))
            assert found.verdict == "unknown"
            assert "ended or fell silent" in found.reason
        assert resolver.why
        assert resolver.resolve(asked()).reason == resolver.why


@pytest.mark.parametrize(
    ("variable", "why", "missing"),
    [
        ("STAND_IN_IMPORT", "RuntimeError: boom", False),
        ("STAND_IN_MISSING", "ModuleNotFoundError: No module named 'sglang'", True),
        ("STAND_IN_DIES", "it dies of its import", False),
    ],
)
def test_an_engine_that_cannot_be_imported_is_no_error(
    variable: str, why: str, missing: bool
) -> None:
    with Resolver([sys.executable], env=(*ENV, (variable, "boom"))) as resolver:
        found = resolver.resolve(asked())
    assert (found.verdict, found.reason, resolver.missing) == ("unknown", why, missing)


def test_an_older_engine_without_run_server_is_asked_too() -> None:
    with Resolver([sys.executable], env=(*ENV, ("STAND_IN_OLD", "1"))) as resolver:
        found = resolver.resolve(asked("--page-size", "16"))
    assert (found.verdict, found.resolved.get("page_size")) == ("accepted", 64)


def test_a_python_that_does_not_exist_is_no_error() -> None:
    with Resolver(["/nonexistent/python"]) as resolver:
        found = resolver.resolve(asked())
    assert found.verdict == "unknown"
    assert "/nonexistent/python" in found.reason


def test_triage_killed_leaves_no_engine(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom triage.launch.resolver import Resolver\n"
        f"r = Resolver([sys.executable], env={ENV!r}, each_s=100)\n"
        "assert r.ready()\nprint('ready', flush=True)\n"
        "r.resolve(['--model-path', '/m', '--deed', 'hang'])\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert ours.stdout is not None
    assert ours.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    below = children_of(ours.pid)
    assert len(below) >= 3  # guard, engine, fork
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    ours.stdout.close()
    deadline = time.monotonic() + 5
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(below) == []


def test_the_flags_of_the_engine_are_read(engine: Resolver) -> None:
    rows, why = engine.flag_rows()
    assert why == ""
    by_name = {row["name"]: row for row in rows}
    assert by_name["model-path"] == {
        "name": "model-path", "aliases": ["model"], "required": True, "group": "cli",
    }  # fmt: skip
    assert by_name["page-size"] == {
        "name": "page-size", "type": "int", "default": 1, "group": "cli",
    }  # fmt: skip
    assert by_name["policy"]["choices"] == ["a", "b"]
    assert by_name["spec"]["negative"] == ["no-spec"]
    assert by_name["old"]["replaced_by"] == "--policy"
    assert by_name["older"]["replaced_by"] == "--chunked-prefill-size"
    assert (by_name["names"]["style"], by_name["note"]["style"]) == ("list", "optional-value")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"verdict": "maybe"},
        {"verdict": ["accepted"]},
        {"verdict": "accepted", "cuda": True},
        {"verdict": "accepted", "resolved": [1], "env": "x", "seconds": "soon", "frames": 3},
        {"verdict": "rejected", "frames": [[1, 2], ["a", 1, "b"], None], "exit_code": True},
    ],
)
def test_an_answer_of_another_shape_is_taken_as_far_as_it_goes(answer: dict[str, object]) -> None:
    found = resolution_of(answer)
    if answer.get("verdict") == "accepted" and "cuda" not in answer:
        assert (found.verdict, found.resolved, found.env, found.seconds) == ("accepted", {}, {}, 0)
    elif answer.get("verdict") == "rejected":
        assert [f.file for f in found.frames] == ["a"]
        assert found.exit_code is None
    else:
        assert found.verdict == "unknown"
        assert found.reason


def test_the_engines_side_uses_the_standard_library_only() -> None:
    tree = ast.parse(INSIDE.read_text())
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in names} - {"sglang"} <= sys.stdlib_module_names


class Driver:
    """NVML as far as it is used: two devices of different kinds."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return (10, 3) if handle == 1 else (9, 0)

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"NVIDIA B300" if handle == 1 else b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> object:  # noqa: N802
        return type("Memory", (), {"free": 5 + handle, "total": 9 + handle})()


def test_questions_about_a_device_never_initialise_cuda() -> None:
    class Cuda:
        """`torch.cuda` as far as it is used: everything in it would initialise CUDA."""

        initialised = False

        @staticmethod
        def _get_nvml_device_index(index: int) -> int:
            return 1 - index  # as with CUDA_VISIBLE_DEVICES=1,0

        @classmethod
        def _lazy_init(cls) -> None:
            cls.initialised = True

    cuda = Cuda
    inside.answer_from_nvml(cuda, Driver())
    assert cuda.get_device_capability() == (10, 3)  # type: ignore[attr-defined]
    assert cuda.get_device_capability(1) == (9, 0)  # type: ignore[attr-defined]
    assert cuda.get_device_name("cuda:1") == "NVIDIA H200"  # type: ignore[attr-defined]
    assert cuda.mem_get_info(0) == (6, 10)  # type: ignore[attr-defined]
    assert cuda.get_device_properties(0).total_memory == 10  # type: ignore[attr-defined]
    with pytest.raises(inside.NeedsCuda, match="multi_processor_count"):
        cuda.get_device_properties(0).multi_processor_count  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(inside.NeedsCuda):
        cuda._lazy_init()
    assert not cuda.initialised


def test_a_socket_on_which_nobody_listens_is_no_error() -> None:
    """As when the engine dies just before it is asked; the socket on our side is closed, too."""
    engine = ["sh", "-c", 'touch "$TMPDIR/resolve"; sleep 60']
    with Resolver(engine) as resolver:
        found = resolver.resolve(asked())
    assert found.verdict == "unknown"
    assert "refused" in found.reason
