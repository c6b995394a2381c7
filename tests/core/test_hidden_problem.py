"""A problem with its secrets hidden is still the same problem."""

from __future__ import annotations

from triage.core.config import Config, SetEnv, SetFlag
from triage.core.hide import hide_literals, hide_problem, is_hidden, secrets_of
from triage.core.redact import MARKER
from triage.core.search.recommend import recommend
from triage.core.trials import Entry, Item, Problem, Seen

PROBLEM = Problem(
    name="x",
    baseline=Config.of({"api-key": "good", "tp-size": "8"}, {"HF_TOKEN": "goodtoken"}),
    items=(
        Item(key="env:HF_TOKEN", change=SetEnv("HF_TOKEN", "badtoken")),
        Item(key="api-key", change=SetFlag("api-key", "bad")),
        Item(key="tp-size", change=SetFlag("tp-size", "4")),
    ),
)


def test_two_secrets_of_one_name_stay_two() -> None:
    hidden = hide_problem(PROBLEM)
    assert hidden.baseline == Config.of({"api-key": MARKER, "tp-size": "8"}, {"HF_TOKEN": MARKER})
    for item in PROBLEM.items:
        assert hidden.config({item.key}) != hidden.baseline
    assert is_hidden(str(hidden.config({"api-key"}).get("api-key")))
    assert hidden.config({"tp-size"}).get("tp-size") == "4"


def test_what_a_journal_shows_does_not_change_when_it_is_hidden() -> None:
    journal = (
        Entry(number=1, items=frozenset(), seen=Seen.STARTS),
        Entry(number=2, items=PROBLEM.keys(), seen=Seen.FAILS, signature="s"),
        Entry(number=3, items=frozenset({"env:HF_TOKEN"}), seen=Seen.FAILS, signature="s"),
        Entry(number=4, items=frozenset({"api-key"}), seen=Seen.STARTS),
        Entry(number=5, items=frozenset({"tp-size"}), seen=Seen.STARTS),
        Entry(number=6, items=frozenset({"api-key", "tp-size"}), seen=Seen.STARTS),
    )
    real, hidden = recommend(PROBLEM, journal), recommend(hide_problem(PROBLEM), journal)
    assert hidden.items == real.items == {"api-key", "tp-size"}
    assert hidden.sets == real.sets
    assert hidden.reason == real.reason == "found"


def test_a_known_secret_is_hidden_wherever_it_stands_as_a_word() -> None:
    secrets = secrets_of(PROBLEM, {"DB_PASSWORD": "two words", "MODE": "good"})
    assert secrets == ("goodtoken", "two words", "badtoken", "good", "bad")
    text = 'serve --key badtoken --x=good # two words, goodness and "bad"'
    assert hide_literals(text, secrets) == (
        f'serve --key {MARKER} --x={MARKER} # {MARKER}, goodness and "bad"'
    )
