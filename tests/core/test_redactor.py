"""Names of hosts, users, homes and addresses go; what explains a failure stays."""

from __future__ import annotations

import socket
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.log.diagnose import diagnose
from triage.core.redactor import Redactor
from triage.knowledge import load_cases, load_causes, load_flag_table
from triage.knowledge.cases import Case, differences
from triage.render.documents import diagnosis_document

CASES = Path(__file__).parents[2] / "fixtures/cases"


def clean(text: str) -> str:
    return Redactor(names={"joanne": "user"}, paths={"/data/joanne": "/home/user"}).text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu-7:12:13 [0] NCCL INFO x", "host-1:12:13 [0] NCCL INFO x"),
        ("node4.cluster.corp:12:13 [0] NCCL WARN x", "host-1:12:13 [0] NCCL WARN x"),
        ("Jul 01 12:00:00 gpu-7 sglang[12]: boom", "Jul 01 12:00:00 host-1 sglang[12]: boom"),
        ("2026-07-01T12:00:00+0200 gpu-7 kernel: oom", "2026-07-01T12:00:00+0200 host-1 kernel: oom"),
        ("failed to connect to [head.dc1.lan]:29500 (errno: 111)", "failed to connect to [host-1]:29500 (errno: 111)"),
        ("tcp://head:29500 refused", "tcp://host-1:29500 refused"),
        ("dist_init_addr='head:5000', nnodes=2", "dist_init_addr='host-1:5000', nnodes=2"),
        ("--dist-init-addr head:5000 --nnodes 2", "--dist-init-addr host-1:5000 --nnodes 2"),
        ("srun: error: gpu-7: task 3: Killed", "srun: error: host-1: task 3: Killed"),
        ("HOSTNAME=gpu-7 USER=jo", "HOSTNAME=host-1 USER=user"),
        ("lookup of ip-10-0-3-4.ec2.internal failed", "lookup of host-1 failed"),
        ("gpu-7:1:2 [0] NCCL x; peer gpu-7 and gpu-77", "host-1:1:2 [0] NCCL x; peer host-1 and gpu-77"),
        ("tcp://a-1:1 tcp://b-1:1 tcp://a-1:2", "tcp://host-1:1 tcp://host-2:1 tcp://host-1:2"),
        ("/home/jo/models/x and /Users/Jo/y", "/home/user/models/x and /Users/user/y"),
        (r"C:\Users\Jo\x.log", r"C:\Users\user\x.log"),
        ("/data/joanne/logs of joanne's", "/home/user/logs of user's"),
        ("jo@gpu-7:~$ triage", "user@host-1:~$ triage"),
        ("mail jo.li@example.org", "mail user@host-1"),
        ("10.1.2.3 and 10.1.2.4 and 10.1.2.3", "192.0.2.1 and 192.0.2.2 and 192.0.2.1"),
        ("fe80::1:2 hf_AbCdEfGhIjKlMnOpQrStUvWx", "2001:db8::1 hf_REDACTED"),
    ],
)  # fmt: skip
def test_a_name_is_replaced_by_what_it_stands_for(text: str, expected: str) -> None:
    assert clean(text) == expected


@pytest.mark.parametrize(
    "innocent",
    [
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
        "google.protobuf.internal torch._C._internal threading.local self.local",
        "2026-07-01T12:00:00Z Scheduler hit: an exception",
        "2026-07-01T12:00:00Z stdout F [2026-07-01 12:00:00 TP0] Load weight begin.",
        "[rank3]:2026 [localhost]:29500 tcp://127.0.0.1:29500",
        "pip install torch@2.4 git+https://github.com/a/b@v1.2 at::Tensor @property",
        "hostname=hostname, hostname=socket.gethostname()",
        "/root/.cache/huggingface/hub /models/x /opt/venv/lib/python3.11/site-packages",
        "nccl==2.28.3.1, cudnn version 9.10.2.21, driver 580.65.06",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ],
)
def test_what_only_looks_like_a_name_stays(innocent: str) -> None:
    assert clean(innocent) == innocent


def test_a_machines_own_name_that_is_a_word_of_logs_stays() -> None:
    text = "server error: rank 3 of max 8"
    assert Redactor(names={"server": "host", "max": "user"}).text(text) == text


def test_names_learned_from_one_text_are_taken_out_of_the_next() -> None:
    redactor = Redactor()
    assert redactor.text("gpu-7:1:2 [0] NCCL INFO x") == "host-1:1:2 [0] NCCL INFO x"
    assert redactor.document({"gpu-7": ["on gpu-7", 7, None]}) == {"gpu-7": ["on host-1", 7, None]}
    assert redactor.text("10.0.0.9") == redactor.text("10.0.0.9") == "192.0.2.1"


def test_a_document_loses_what_stands_under_a_secrets_name() -> None:
    assert Redactor().document({"env": {"HF_TOKEN": "abc", "HOME": "/home/jo"}}) == {
        "env": {"HF_TOKEN": "REDACTED", "HOME": "/home/user"}
    }


@pytest.mark.parametrize("case", load_cases(CASES), ids=lambda case: case.name)
def test_a_redacted_log_gives_the_same_diagnosis(case: Case) -> None:
    if case.known_miss:
        pytest.skip("the log is not understood without redaction either")
    redactor = Redactor(names={socket.gethostname(): "host"})
    raw = redactor.raw(case.log.read_bytes())
    found = diagnose([raw], load_causes(), table=load_flag_table())
    # Of the expected text, too, names are taken out: what is left of it must be there.
    assert differences(redactor.document(case.expect), diagnosis_document(found)) == ()


PIECES = st.sampled_from(
    ["gpu-7:1:2 [0] ", "gpu-7", "jo@gpu-7:", "/home/", "jo", "Jul 01 12:00:00 ", "x[1]: ", "tcp://",
     "[", "]:1", "10.1.2.3", "fe80::1", "\r\n", "\n", " ", ":", ".", "@", "a-1.local", "USER=", "'",
     "HOSTNAME=", "host-1", "joanne", "/data/joanne", "ON ", " CANCELLED", "é", "\\", "C:\\Users\\"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=14).map("".join))


@given(TEXTS)
def test_line_ends_stay_where_they_are(text: str) -> None:
    assert clean(text).count("\n") == text.count("\n")
    assert clean(text).count("\r") == text.count("\r")


@given(TEXTS)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@given(st.binary(max_size=120))
def test_any_bytes_are_taken(raw: bytes) -> None:
    assert Redactor().raw(raw).count(b"\n") == raw.count(b"\n")


@pytest.mark.parametrize(
    "unit", ["a.", "-", "A_", "2001:", "1.", "a@", "[a", "a-1.", "--a", "x:1:"]
)
def test_a_hostile_line_takes_no_more_time_than_its_length(unit: str) -> None:
    start = process_time()
    Redactor().text(unit * (256_000 // len(unit)))
    assert process_time() - start < 4  # quadratic patterns need minutes
