"""Lines come out of every wrapper clean, and never lose their place in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.log.finder import Plain, literals_of
from triage.core.log.lines import Line, clean
from triage.core.log.literals import cover
from triage.core.log.scan import LONGEST, Scanner

RECORD = "[2026-07-01 12:00:00 TP4 EP4] Init parallel begin."


def one(text: str | bytes, number: int = 1) -> Line:
    raw = text.encode() if isinstance(text, str) else text
    (line,) = clean(raw, 0, number)
    return line


class Lines:
    """A sink that keeps what it is given."""

    frequent: tuple[bytes, ...] = ()
    awaited: tuple[bytes, ...] = ()

    def __init__(self, *, hungry: bool = False) -> None:
        self.hungry = hungry
        self.taken: list[tuple[bytes, int, int]] = []

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        self.taken.append((raw, offset, number))


def scan(chunks: Sequence[bytes], *needles: str, every_line: bool = False) -> Lines:
    sink = Lines()
    scanner = Scanner(Plain(literals_of(needles)), sink, every_line=every_line)
    for chunk in chunks:
        scanner.feed(chunk)
    scanner.close()
    return sink


def test_a_record_gives_time_rank_and_text() -> None:
    line = one(RECORD)
    assert line.time == "2026-07-01T12:00:00"
    assert line.rank == "TP4 EP4"
    assert line.text == "Init parallel begin."
    assert line.headed


@pytest.mark.parametrize(
    ("tag", "rank"),
    [
        (" DP2 TP2 EP2", "DP2 TP2 EP2"),
        (" PP0 TP1", "PP0 TP1"),
        (" DP13 TP13", "DP13 TP13"),
        (" DP0 PP1 ATTN_CP0 MOE_DP1 TP3 EP3", "DP0 PP1 ATTN_CP0 MOE_DP1 TP3 EP3"),
        ("", "main"),
    ],
)
def test_rank_tags_stay_as_printed(tag: str, rank: str) -> None:
    assert one(f"[2026-07-01 12:00:00{tag}] x").rank == rank


def test_an_old_record_has_a_time_without_a_date() -> None:
    line = one("[23:17:01 TP7] Load weight begin.")
    assert (line.time, line.rank, line.text) == ("23:17:01", "TP7", "Load weight begin.")


def test_an_old_gpu_tag_is_a_rank() -> None:
    assert one("[gpu_id=3] Init nccl begin.").rank == "gpu_id=3"


@pytest.mark.parametrize(
    ("prefix", "wrapper"),
    [
        ("sglang-1  | ", "sglang-1"),
        ("[sglang]     | ", "sglang"),
        ("2025-11-10T09:50:25.135404509Z ", ""),
        ("2026-11-29T20:00:00.123456789Z stdout F ", ""),
        ("2026-11-29T20:00:00.1+00:00 stderr P ", ""),
        ("Nov 29 20:00:00 node7 sglang[812]: ", ""),
        ("2026-11-29T20:00:00+0000 node7 sglang[812]: ", ""),
        ("(SGLangEngine pid=4711) ", "SGLangEngine pid=4711"),
        ("(WorkerDict pid=4711, ip=10.0.0.3) ", "WorkerDict pid=4711"),
        ("0: ", "0"),
        ("[1,3]<stdout>:", "1,3"),
        ("[pod/sglang-0/server] ", "pod/sglang-0/server"),
        ("2025-03-07 23:50:27,531 - __main__ - INFO - ", ""),
        ("\x1b[32msglang-1  |\x1b[0m ", "sglang-1"),
        ("sglang-1  | 2025-11-10T09:50:25Z ", "sglang-1"),
    ],
)
def test_wrappers_are_stripped(prefix: str, wrapper: str) -> None:
    line = one(prefix + RECORD)
    assert line.text == "Init parallel begin."
    assert line.rank == "TP4 EP4"
    assert line.wrapper == wrapper
    assert not line.simulated


def test_the_replay_engines_prefix_is_no_wrapper_but_a_mark() -> None:
    line = one(f"simulated | {RECORD}")
    assert line.simulated
    assert line.wrapper == ""
    assert line.text == "Init parallel begin."


def test_docker_json_gives_its_log_and_time() -> None:
    line = one('{"log":"ValueError: \\"a\\" \\u003c 3\\n","stream":"stderr",'
               '"time":"2026-11-29T20:00:00.5Z"}')  # fmt: skip
    assert line.text == 'ValueError: "a" < 3'
    assert line.time == "2026-11-29T20:00:00.5Z"


def test_torn_docker_json_stays_as_it_is() -> None:
    assert one('{"log":"ValueError: x').text == '{"log":"ValueError: x'


def test_code_under_a_wrapper_keeps_its_indentation() -> None:
    assert one('sglang-1  |   File "a.py", line 1, in f').text == '  File "a.py", line 1, in f'


def test_vllm_workers_are_ranks_and_their_error_lines_no_heads() -> None:
    line = one("(Worker_TP1 pid=9) ERROR 07-01 12:00:00 [multiproc_executor.py:511]   File x")
    assert (line.rank, line.text, line.headed) == ("Worker_TP1", "  File x", False)


def test_nccl_names_a_device_and_torch_a_rank() -> None:
    assert one("node7:812:944 [3] NCCL WARN Cuda failure 401").rank == "gpu3"
    assert one("[E1129 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog").rank == "rank5"
    assert one("[rank3]: Traceback (most recent call last):").rank == "rank3"


def test_each_part_of_a_redrawn_line_is_visible() -> None:
    raw = b"\rLoading: 0%\rLoading: 50%\r[2026-07-01 12:00:00 TP0] Scheduler hit an exception"
    texts = [line.text for line in clean(raw, 0, 1)]
    assert texts == ["Loading: 0%", "Loading: 50%", "Scheduler hit an exception"]


def test_a_record_behind_an_unfinished_bar_is_a_line_of_its_own() -> None:
    raw = b"shards: 0% Completed | 0/1 [00:00<?, ?it/s][2026-07-01 12:00:00 TP3] ValueError"
    bar, record = clean(raw, 0, 7)
    assert bar.text == "shards: 0% Completed | 0/1 [00:00<?, ?it/s]"
    assert (record.text, record.rank, record.number) == ("ValueError", "TP3", 7)


def test_a_long_line_is_cut_around_what_was_seen() -> None:
    raw = b"x" * 50_000 + b"RuntimeError: boom" + b"y" * 50_000
    pieces = list(clean(raw, 0, 1, hits=[50_018]))
    assert [len(piece.text) for piece in pieces] == [4096, 4096]
    assert "RuntimeError: boom" in pieces[1].text


def test_the_dump_of_the_arguments_is_never_cut() -> None:
    raw = b"[2026-07-01 12:00:00] server_args={" + b"'a': 1, " * 8000
    assert len(one(raw).text) == len(raw) - len("[2026-07-01 12:00:00] ")


def test_broken_utf8_and_binary_survive() -> None:
    assert one(b"\xff\xfe\x00 RuntimeError: \xe2\x82").text.startswith("\ufffd\ufffd\x00 Runtime")


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_bytes_make_lines(raw: bytes) -> None:
    for line in clean(raw.replace(b"\n", b" "), 3, 9):
        assert (line.offset, line.number) == (3, 9)


@given(
    st.lists(st.sampled_from([b"", b"a", b"needle", b"xneedle\r", b"\xff", b"a b"]), max_size=12),
    st.lists(st.integers(1, 9), max_size=20),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_slices_join_to_the_file_however_it_is_cut(
    lines: list[bytes], cuts: list[int], ended: bool
) -> None:
    raw = b"\n".join(lines) + (b"\n" if ended else b"")
    chunks, rest = [], raw
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]
    whole = scan([raw], every_line=True).taken
    assert b"\n".join(line for line, _, _ in whole) == raw.removesuffix(b"\n")
    assert all(raw[offset : offset + len(line)] == line for line, offset, _ in whole)
    assert [number for _, _, number in whole] == list(range(1, len(whole) + 1))
    assert scan([*chunks, rest], every_line=True).taken == whole
    marked = [entry for entry in whole if b"needle" in entry[0]]
    assert scan([*chunks, rest], "needle").taken == marked


def test_a_hungry_sink_gets_the_lines_that_follow() -> None:
    class Hungry(Lines):
        def take(
            self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
        ) -> None:
            super().take(raw, offset, number, hits, seen)
            self.hungry = raw != b"stop"

    sink = Hungry()
    Scanner(Plain(literals_of(["go"])), sink).feed(b"a\ngo\nb\nstop\nc\ngo\n")
    assert [raw for raw, _, _ in sink.taken] == [b"go", b"b", b"stop", b"go"]


def test_a_line_without_end_is_looked_at_once_and_counted_in_full() -> None:
    long = b"needle" + b"x" * (2 * LONGEST)
    sink = scan([long, b"y" * 100, b"\nneedle\n"], "needle")
    (first, _, _), (second, offset, number) = sink.taken
    assert len(first) == LONGEST
    assert (second, offset, number) == (b"needle", len(long) + 101, 2)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"CUDA out of memory", {"CUDA out of memory"}),
        (r"(?:foo|bar) \d+ (?:alpha|beta)s", {" alphas", " betas"}),
        (
            r"CUDA [Ee]rror:? 802",
            {"CUDA Error 802", "CUDA error 802", "CUDA Error: 802", "CUDA error: 802"},
        ),
        (r"(very )?long enough \d", {"long enough "}),
        (r"[a-z]x(ab|[cd]e)y{1,2}z", {"xab", "xce", "xde"}),
        (r"a\d+b", None),
        (r"(?i)hello world", None),
        (r"(optional words)? needed", {" needed"}),
        (r"(once more)+", {"once more"}),
        (r'said "quoted words" and more', {"quoted words"}),
        (r"\[Errno 98\]", {"[Errno 98]"}),
    ],
)
def test_the_literals_that_a_pattern_needs(pattern: str, literals: set[str] | None) -> None:
    assert cover(pattern) == literals


def test_triggers_leave_out_what_a_shorter_one_implies() -> None:
    found = literals_of(["RuntimeError", "Error", "NVLS"])
    assert found.implied == ((1, (0,)),)


def test_a_worker_of_vllm_names_its_rank() -> None:
    (line,) = clean(b"(VllmWorker rank=5 pid=2573) ERROR 07-01 19:03:19 [x.py:492] boom", 0, 1)
    assert (line.rank, line.text) == ("TP5", "boom")


def test_a_long_redrawn_line_is_not_cut_within_one_of_its_states() -> None:
    states = "".join(f"\rFetching files: {n:3d}%|  | {n}/200 [00:01<00:09]" for n in range(200))
    raw = f"{states}\r[2026-07-01 12:00:00 TP4] Load weight end.".encode()
    hits = (len(raw) - 5,)
    found = [line.text for line in clean(raw, 0, 1, hits)]
    assert found[-1] == "Load weight end."
    assert all(text.startswith("Fetching files: ") and text.endswith("]") for text in found[:-1])


def test_behind_a_wrapper_a_carriage_return_makes_no_empty_line() -> None:
    (line,) = clean(b"sglang-1  | \rFetching files: 100%|##| 4/4 [00:01<00:00]", 0, 1)
    assert line.text.startswith("Fetching files")
    assert line.wrapper == "sglang-1"


def test_a_worker_of_ray_is_no_rank_and_its_library_names_the_device() -> None:
    assert one(f"(Worker pid=7) {RECORD}").rank == "TP4 EP4"
    assert one("(Worker pid=7) [2026-07-01 12:00:00] server_args=").rank == "main"
    assert one("(Worker pid=7) Traceback (most recent call last):").rank == "main"
    assert one("(Worker pid=7) node:13:92 [7] socket.c:485 NCCL WARN refused").rank == "gpu7"
    assert one("(Worker_TP1 pid=7) INFO 07-01 12:00:00 [a.py:1] x").rank == "Worker_TP1"
