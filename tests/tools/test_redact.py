from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.redact import redact

PATHS = {
    b"/home/ann/repo": b"/srv/app",
    b"/home/ann/repo/.models": b"/models",
    b"/home/ann": b"/home/user",
}
NAMES = {b"gpu-node-7": b"host", b"ann": b"user"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"token=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345ab", b"token=hf_REDACTED"),
        (b"using ghp_0123456789abcdefghijABCDEFGHIJ", b"using ghp_REDACTED"),
        (b"key sk-proj-0123_456789abcdefABCDEF end", b"key sk-REDACTED end"),
        (b"AKIAIOSFODNN7EXAMPLE", b"AKIAREDACTED"),
        (b"Authorization: Bearer abc.def-ghi", b"Authorization: Bearer REDACTED"),
        (b"'api_key': 'open sesame', 'x': 1", b"'api_key': 'REDACTED', 'x': 1"),
        (b"--api-key hunter22 --port 1", b"--api-key REDACTED --port 1"),
        (b"--admin-api-key=hunter22", b"--admin-api-key=REDACTED"),
        (b"http://joe:hunter22@proxy:80/", b"http://joe:REDACTED@proxy:80/"),
    ],
)
def test_a_secret_is_replaced_and_its_context_kept(raw: bytes, expected: bytes) -> None:
    assert redact(raw, paths={}) == expected


@pytest.mark.parametrize(
    "innocent",
    [
        b"sglang/srt/hf_transformers_utils.py and hf_config",
        b"disk-cache-directory-of-the-server task-queue-worker-0123456789",
        b"no API-key given; the api_key is missing",
        b"'api_key': None, 'admin_api_key': None",
        b"sglang is using nccl==2.28.3.1, cudnn version 9.10.2.21, nvidia-cudnn-cu12 9.10.2.21",
        b"('127.0.0.1', 30000) and 0.0.0.0:30000",
        b"at c10::add(at::Tensor) 0000:1b:00.0 2026-11-29 17:08:41",
        b"elapsed=0.01 s, 999.1.2.3, 1.2.3",
    ],
)
def test_what_only_looks_like_a_secret_or_an_address_stays(innocent: bytes) -> None:
    assert redact(innocent, paths={}) == innocent


def test_the_longest_path_wins_and_only_whole_components_match() -> None:
    raw = b"/home/ann/repo/.models/tiny /home/ann/repo/x.py /home/ann/repository /home/anna"
    assert redact(raw, paths=PATHS) == (
        b"/models/tiny /srv/app/x.py /home/user/repository /home/anna"
    )


def test_a_path_before_a_quote_or_a_line_end_is_replaced() -> None:
    assert redact(b"'/home/ann/repo'\n/home/ann/repo\n", paths=PATHS) == b"'/srv/app'\n/srv/app\n"


def test_a_name_is_replaced_as_a_word_only() -> None:
    raw = b"gpu-node-7:12:13 [0] NCCL INFO ann's banner gpu-node-77"
    assert redact(raw, paths={}, names=NAMES) == (
        b"host:12:13 [0] NCCL INFO user's banner gpu-node-77"
    )


def test_equal_addresses_stay_equal_and_others_differ() -> None:
    raw = b"tcp://10.1.2.3:5000 http://10.1.2.4:1/ addr=10.1.2.3 fe80::1:2%eth0"
    assert redact(raw, paths={}) == (
        b"tcp://192.0.2.1:5000 http://192.0.2.2:1/ addr=192.0.2.1 2001:db8::1%eth0"
    )


PIECES = st.sampled_from(
    [
        b"hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345ab",
        b"/home/ann/repo/.models",
        b"10.1.2.3",
        b"--api-key x1234567",
        b"gpu-node-7",
        b"\r\n",
        b"\n",
        b" ",
        b"\xff\x00",
        b"a",
        b"::",
        b".",
    ]
)
LOGS = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=12).map(b"".join))


@given(LOGS)
def test_line_ends_stay_where_they_are(raw: bytes) -> None:
    assert redact(raw, paths=PATHS, names=NAMES).count(b"\n") == raw.count(b"\n")


@given(LOGS)
def test_redacting_twice_changes_nothing_more(raw: bytes) -> None:
    once = redact(raw, paths=PATHS, names=NAMES)
    assert redact(once, paths=PATHS, names=NAMES) == once
