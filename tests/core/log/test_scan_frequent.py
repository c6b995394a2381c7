"""Lines that a healthy server prints all the time are read only where they say something."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.log.finder import Plain, literals_of
from triage.core.log.gather import FIXED, read
from triage.core.log.scan import ALIKE, ENOUGH, MANY, NEAR, Scanner
from triage.core.log.signatures import matcher_of
from triage.knowledge import load_causes


class Sink:
    """Keeps line numbers; hungry after `open` until `close`; awaits `end` after `wait`."""

    frequent: Sequence[bytes] = (b"often", b"dull")

    def __init__(self) -> None:
        self.hungry = False
        self.awaited: tuple[bytes, ...] = ()
        self.taken: list[tuple[int, int, bytes]] = []

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        self.taken.append((number, offset, raw))
        if b"open" in raw or b"close" in raw:
            self.hungry = b"open" in raw
        if b"wait" in raw:
            self.awaited = (b"end",)
        elif b"end" in raw:
            self.awaited = ()


def scan(raw: bytes, *sizes: int) -> list[tuple[int, int, bytes]]:
    sink = Sink()
    scanner = Scanner(Plain(literals_of(["mark", "open", "wait"])), sink)
    for size in sizes:
        scanner.feed(raw[:size])
        raw = raw[size:]
    scanner.feed(raw)
    scanner.close()
    return sink.taken


def test_a_frequent_line_is_read_near_the_start_and_near_a_mark_only() -> None:
    far = b"x\n" * NEAR
    raw = b"often 1\n" + far + b"often 2\nmark\noften 3\n" + far + b"often 4\n"
    assert [line for _, _, line in scan(raw)] == [b"often 1", b"mark", b"often 3"]


def test_of_many_frequent_lines_the_first_are_read_of_each_sort() -> None:
    taken = scan(b"often\n" * 100 + b"dull\n" * 100)
    assert [line for _, _, line in taken] == [b"often"] * ALIKE + [b"dull"] * ALIKE


def test_of_many_frequent_lines_the_first_are_read_of_each_rank() -> None:
    lines = [b"[2026-07-01 12:00:%02d DP%d TP0] often" % (n // 8, n % 8) for n in range(100)]
    taken = scan(b"".join(line + b"\n" for line in lines))
    assert [line for _, _, line in taken] == lines[:ENOUGH]
    alone = [b"[2026-07-01 12:00:%02d TP0] often" % n for n in range(30)]
    taken = scan(b"".join(line + b"\n" for line in [*alone[:6], lines[0], *alone[6:]]))
    assert [line for _, _, line in taken] == [*alone[:ALIKE], lines[0]]


def test_of_a_sort_that_was_read_often_the_first_of_each_rank_is_read() -> None:
    region = b"mark\n" + b"[12:00:00 TP0] often\n" * 5 + b"[12:00:00 TP1] often\n"
    taken = [line for _, _, line in scan(region * MANY)]
    known = MANY // (ALIKE + 1)
    assert taken[: known * (ALIKE + 2)] == (
        [b"mark", *[b"[12:00:00 TP0] often"] * ALIKE, b"[12:00:00 TP1] often"] * known
    )
    assert taken[-3:] == [b"mark", b"[12:00:00 TP0] often", b"[12:00:00 TP1] often"]


def test_what_only_a_hang_in_the_start_prints_is_read_no_more_once_the_server_is_up() -> None:
    dump = b"[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 2}\n"
    ready = b"[2026-07-01 12:05:00] The server is fired up and ready to roll!\n"

    def frequent(raw: bytes) -> Sequence[bytes]:
        gatherer, _ = read([raw], matcher_of(load_causes(), FIXED), lambda _: False)
        return gatherer.frequent

    assert {b"Prefill batch", b"GET /health"} <= set(frequent(dump))
    assert frequent(dump + ready) == (b"Prefill batch",)
    assert frequent(dump + ready + dump) == frequent(dump)


def test_what_is_awaited_is_taken_from_a_line_of_which_there_were_enough() -> None:
    taken = scan(b"wait\n" + b"often\n" * 9 + b"often, then end\n")
    assert [line for _, _, line in taken][-1] == b"often, then end"


def test_what_is_awaited_is_found_however_far() -> None:
    far = b"x\n" * (2 * NEAR)
    taken = scan(b"end 1\nwait\n" + far + b"end 2\nend 3\n")
    assert [line for _, _, line in taken] == [b"wait", b"end 2"]


def test_what_is_awaited_and_frequent_is_found_however_far() -> None:
    class Both(Sink):
        frequent = (b"end",)

    sink = Both()
    scanner = Scanner(Plain(literals_of(["wait"])), sink)
    scanner.feed(b"wait\n" + b"x\n" * NEAR + b"end\n")
    assert [line for _, _, line in sink.taken] == [b"wait", b"end"]


LINES = st.sampled_from([b"mark", b"often", b"[12:00:00 TP1] often", b"dull often", b"open", b"close", b"wait", b"end",
                         b"x", b"", b"y" * 30_000])  # fmt: skip


@given(st.lists(LINES, max_size=60), st.lists(st.integers(1, 40_000), max_size=12))
@settings(max_examples=150, deadline=None)
def test_places_are_right_and_do_not_depend_on_the_cuts(
    lines: list[bytes], cuts: list[int]
) -> None:
    raw = b"\n".join(lines) + b"\n"
    taken = scan(raw)
    for number, offset, line in taken:
        assert raw[offset : offset + len(line)] == line
        assert raw.count(b"\n", 0, offset) == number - 1
    assert scan(raw, *cuts) == taken
