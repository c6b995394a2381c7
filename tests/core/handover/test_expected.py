"""Ways out that a case accepts, against a proposal."""

from __future__ import annotations

import pytest

from triage.core.config import Change, SetEnv, SetFlag, UnsetFlag
from triage.core.handover.expected import Way, meets
from triage.core.handover.proposals import Basis, Kind, Proposal


@pytest.mark.parametrize(
    ("way", "meant"),
    [
        (Way(set_flags=(("a", "1"),)), True),
        (Way(set_flags=(("a", "2"),)), False),
        (Way(set_flags=(("a", "*"), ("b", "true"))), True),
        (Way(set_flags=(("c", "*"),)), False),
        (Way(unset=("x", "y")), True),
        (Way(unset=("y",)), False),
        (Way(set_env=(("E", "*"),)), True),
        (Way(set_env=(("E", "0"),)), False),
        (Way(step="UPGRADE|newer"), True),
        (Way(step="reboot"), False),
        (Way(step="upgrade", unset=("y",)), False),
        (Way(), False),
    ],
)
def test_a_way_is_met_by_all_its_edits_and_its_words(way: Way, meant: bool) -> None:
    changes: tuple[Change, ...] = (
        SetFlag("a", "1"), SetFlag("b", True), UnsetFlag("x"), SetEnv("E", "1")
    )  # fmt: skip
    proposal = Proposal(say="Upgrade it", kind=Kind.REPLACE, basis=Basis.REPORTED, changes=changes)
    assert meets(proposal, way) is meant
