"""The journal survives what happens to files of killed processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.config import Config
from triage.core.trials import Entry, Moved, Seen
from triage.errors import UsageError
from triage.render.search_documents import trial_document
from triage.store import Journal
from triage.store.journal import entry_of

FIRST = Entry(number=1, items=frozenset(), seen=Seen.STARTS, seconds=12.5, provenance="recorded")
SECOND = Entry(
    number=2, items=frozenset({"ep-size", "env:A"}), seen=Seen.FAILS, why="to see", searching=None,
    signature="x-y", cause="x-y", title="t", phase="graph-capture", ranks=("TP0",), seconds=1.0,
    config=Config.of({"ep-size": "8", "list": ("1", "2"), "on": True}, {"A": "ü"}),
    effective={"ep_size": "8"}, moved=(Moved(name="page-size", before=None, after="64", against=1, by=("ep-size",)),), suspects=("ep-size",), log_digest="00",
)  # fmt: skip


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written = Journal(path)
    written.append(FIRST)
    written.append(SECOND)
    assert Journal(path).entries == [FIRST, SECOND]


def test_a_torn_last_line_is_cut_off_and_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).append(FIRST)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"schema": "triage.trial/1", "num')
    journal = Journal(path)
    assert journal.entries == [FIRST]
    assert path.read_bytes() != whole, "reading leaves alone what another triage may be writing"
    journal.append(SECOND)
    assert (tmp_path / "journal.torn").read_bytes() == b'{"schema": "triage.trial/1", "num'
    assert Journal(path).entries == [FIRST, SECOND]


@pytest.mark.parametrize(
    "damage", [b"{}\n", b"null\n", b"[1]\n", b"\xff\xfe\n", b'{"number": 1}\n']
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).append(FIRST)
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(UsageError, match=r"journal\.jsonl:2: "):
        Journal(path)


@given(
    items=st.frozensets(st.text(min_size=1, max_size=8), max_size=3),
    seen=st.sampled_from(list(Seen)),
    text=st.text(max_size=20),
    seconds=st.floats(0, 1e6),
)
def test_every_entry_survives_the_round_trip(
    items: frozenset[str], seen: Seen, text: str, seconds: float
) -> None:
    entry = Entry(number=3, items=items, seen=seen, why=text, reason=text, seconds=seconds)
    assert entry_of(trial_document(entry)) == entry
