"""What a diagnosis points at: which flags it makes likelier, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from triage.core.config import Config, SetFlag
from triage.core.search.candidates import candidates_of
from triage.core.search.evidence import evidence_of
from triage.core.search.journal import read_journal
from triage.core.search.likelihood import Likelihoods, likelihoods
from triage.core.trials import Entry, Item, Problem, Seen

PROBLEM = Problem(
    name="p",
    baseline=Config.of({"m": "x"}),
    items=tuple(Item(key=n, change=SetFlag(n, True)) for n in "abcde"),
)


def after(*lists: tuple[str, ...]) -> Likelihoods:
    """All that is wanted failed once for each list, pointing at the flags of the list."""
    journal = [
        Entry(number=i, items=PROBLEM.keys(), seen=Seen.FAILS, signature="x", suspects=said)
        for i, said in enumerate(lists, 1)
    ]
    known = read_journal(PROBLEM, journal)
    return likelihoods(evidence_of(known, known.entries))


def alone(found: Likelihoods, flag: str) -> float:
    (prior,) = found.priors
    at = found.candidates.masks == np.uint64(found.evidence.space.mask({flag}))
    return float(prior[at].sum())


@pytest.mark.parametrize("said", [("a",), ("a", "b"), ("a", "b", "c", "d", "e")])
def test_a_list_of_suspects_says_which_flags_and_not_how_many(said: tuple[str, ...]) -> None:
    found = after(said)
    (prior,) = found.priors
    plain = candidates_of(found.evidence.space)
    assert np.allclose(
        np.bincount(plain.count, weights=prior), np.bincount(plain.count, weights=plain.prior)
    )


def test_the_first_suspect_counts_most_and_each_more_than_no_suspect() -> None:
    found = after(("c", "a", "e"))
    ranked = sorted("abcde", key=lambda flag: -alone(found, flag))
    assert ranked[:3] == ["c", "a", "e"]
    assert alone(found, "e") > alone(found, "b") > 0


def test_of_several_diagnoses_of_one_failure_the_best_place_counts() -> None:
    found = after(("c", "a"), ("a", "d"))
    assert found.evidence.suspects == ((0, 2, 3),)
    assert alone(found, "a") >= alone(found, "c") > alone(found, "d") > alone(found, "b")
