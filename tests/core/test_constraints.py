"""Rules of the knowledge base: when they hold, when they are silent, and that they fit the table."""

from __future__ import annotations

import pytest

from triage.core.config import Config, Value
from triage.core.constraints import Condition, Rule, broken, judged
from triage.core.flags import Known
from triage.knowledge import load_flag_table
from triage.knowledge.rules import load_rules

TABLE = load_flag_table()
RULES = load_rules("0.5.23")


def rule(*when: Condition) -> Rule:
    return Rule(id="r", when=when, exception="ValueError", message="no")


@pytest.mark.parametrize(
    ("condition", "flags", "holds"),
    [
        (Condition(flag="page-size", given=True), {"page-size": "1"}, True),
        (Condition(flag="page-size", given=True), {}, False),
        (Condition(flag="enable-torch-compile", given=False), {}, True),
        (Condition(flag="enable-torch-compile", given=False), {"enable-torch-compile": True}, False),
        (Condition(flag="schedule-policy", equals=("fcfs",)), {}, True),  # the default
        (Condition(flag="schedule-policy", other_than=("fcfs",)), {"schedule-policy": "lpm"}, True),
        (Condition(flag="page-size", over=0), {}, False),  # depends on the machine: silent
        (Condition(flag="page-size", over=0), {"page-size": "16"}, True),
        (Condition(flag="page-size", under=1), {"page-size": "0"}, True),
        (Condition(flag="page-size", over=0), {"page-size": "many"}, False),
        (Condition(flag="chunked-prefill-size", not_multiple_of="page-size"),
         {"chunked-prefill-size": "100", "page-size": "16"}, True),
        (Condition(flag="chunked-prefill-size", not_multiple_of="page-size"),
         {"chunked-prefill-size": "96", "page-size": "16"}, False),
        (Condition(flag="chunked-prefill-size", not_multiple_of="page-size"),
         {"chunked-prefill-size": "100"}, False),
        (Condition(flag="served-model-name", holds=":"), {"served-model-name": "a:b"}, True),
        (Condition(flag="no-such-flag", over=0), {}, False),
    ],
)  # fmt: skip
def test_a_condition_holds_only_where_its_value_is_known(
    condition: Condition, flags: dict[str, Value], holds: bool
) -> None:
    assert bool(broken(Config.of(flags), (rule(condition),), TABLE)) is holds


def test_every_rule_refuses_its_example_and_not_its_counterexample() -> None:
    assert len(RULES) >= 30
    assert len({rule.id for rule in RULES}) == len(RULES)
    for one in RULES:
        assert one in broken(one.refused, RULES, TABLE), one.id
        assert broken(one.accepted, RULES, TABLE) == (), one.id


def test_the_flags_and_choices_of_the_rules_exist() -> None:
    for one in RULES:
        for condition in one.when:
            found = TABLE.lookup(condition.flag)
            assert isinstance(found, Known), (one.id, condition.flag)
            assert found.spec.name == condition.flag, one.id
            for word in (*(condition.equals or ()), *(condition.other_than or ())):
                assert not found.spec.choices or word in map(str, found.spec.choices), one.id


def test_what_the_knowledge_refuses_says_so_and_names_its_rules() -> None:
    found = judged(
        Config.of({"model-path": "/m", "page-size": "16", "chunked-prefill-size": "100"}),
        RULES, TABLE, "0.5.23",
    )  # fmt: skip
    assert (found.verdict, found.basis, found.rules) == (
        "rejected", "knowledge", ("chunk-of-whole-pages",),
    )  # fmt: skip
    assert found.exception == "AssertionError"


@pytest.mark.parametrize(
    ("flags", "say"),
    [
        ({"model-path": "/m", "schedule-policy": "nonsense"}, "not a choice"),
        ({"model-path": "/m", "cuda-graph-max-bs": "8"}, "could mean"),
    ],
)
def test_words_that_the_parser_refuses_are_refused_by_the_table(
    flags: dict[str, Value], say: str
) -> None:
    found = judged(Config.of(flags), RULES, TABLE, "0.5.23")
    assert (found.verdict, found.exit_code, found.phase) == ("rejected", 2, "arg-parse")
    assert say in found.message
    assert judged(Config.of(flags), (), TABLE, "9.9.9").verdict == "unknown"


def test_silence_is_no_acceptance() -> None:
    found = judged(Config.of({"model-path": "/m"}), RULES, TABLE, "0.5.23")
    assert found.verdict == "unknown"
    assert "no proof" in found.reason


def test_a_version_without_rules_has_none() -> None:
    assert load_rules("0.4.1") == ()
