"""How a check is made: what it found stays, what it lacks is said, and nothing is raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from triage.core.config import Config
from triage.core.doctor.catalogue import CHECKS, told_by
from triage.core.doctor.checks import GROUPS, Check, Hit, check, examine, findings
from triage.core.doctor.facts import NO_COMMAND, Facts, Launch
from triage.core.machine.facts import MissingFactError, Unavailable, known, known_or

LOST = Unavailable("nothing answered")


def made(judge: Any, **changes: Any) -> Check:
    usual = {"group": "host", "severity": "error", "sound": "s", "breaks": "b", "source": "u"}
    found = check("x", **{**usual, **changes})(judge)
    assert isinstance(found, Check)
    return found


def outcome(judge: Any, **changes: Any) -> Any:
    facts: Any = object.__new__(Facts)  # no judge below looks at it
    (one,) = examine(facts, [made(judge, **changes)])
    return one


def test_nothing_found_is_sound() -> None:
    assert outcome(lambda facts: ()).state == "sound"


def test_a_missing_fact_is_told_with_its_reason() -> None:
    one = outcome(lambda facts: known(LOST))
    assert (one.state, one.reason, one.findings) == ("unavailable", "nothing answered", ())


def test_what_needs_a_command_was_not_asked() -> None:
    assert outcome(lambda facts: known(NO_COMMAND)).state == "not-asked"


def test_what_was_found_before_a_fact_was_missing_stays() -> None:
    def judge(facts: object) -> Iterator[Hit]:
        yield Hit("It is broken.", ("seen",), "mend it")
        known(LOST)

    one = outcome(judge, prevents=["port-in-use"])
    assert one.state == "found"
    assert one.reason == "nothing answered"
    assert [(f.say, f.severity, f.prevents) for f in one.findings] == [
        ("It is broken.", "error", ("port-in-use",))
    ]


def test_findings_are_worst_first_and_then_by_group() -> None:
    facts: Any = object.__new__(Facts)
    hits = [("flags", "error"), ("gpus", "note"), ("host", "warning"), ("gpus", "error")]
    checks = [
        made(lambda facts: [Hit("x")], group=group, severity=severity) for group, severity in hits
    ]
    order = [(f.severity, f.group) for f in findings(examine(facts, checks))]
    assert order == [("error", "gpus"), ("error", "flags"), ("warning", "host"), ("note", "gpus")]


def test_facts_that_are_missing_have_what_is_usual() -> None:
    assert known_or(LOST, 7) == 7
    assert known_or(3, 7) == 3
    with pytest.raises(MissingFactError, match="nothing answered"):
        known(LOST)


def test_the_catalogue_is_complete_and_each_check_speaks() -> None:
    names = [one.id for one in CHECKS]
    assert len(names) == len(set(names))
    for one in CHECKS:
        assert one.group in GROUPS
        assert one.sound, one.id
        assert one.breaks, one.id
        assert one.source.startswith("https://"), one.id
        assert one.judge.__doc__, f"{one.id} says what it holds against what"


def test_a_cause_knows_the_checks_that_tell_it() -> None:
    assert told_by("gpu-hardware-ecc") == ("xid", "ecc")
    assert told_by("nonetype-capture-batch-field") == ()


@pytest.mark.parametrize(
    ("flags", "env", "program", "asked"),
    [
        ({"tp-size": "8"}, {}, ("python", "-m", "sglang.launch_server"), (8, True, False)),
        (
            {"tp-size": "8", "dp-size": "8", "enable-dp-attention": True},
            {},
            ("sglang", "serve"),
            (8, True, False),
        ),
        (
            {"tp-size": "16", "nnodes": "2", "enable-nccl-nvls": True},
            {},
            ("sglang",),
            (8, True, True),
        ),
        ({"--tp": "4", "pp-size": "2"}, {"NCCL_NVLS_ENABLE": "1"}, ("sglang",), (8, True, True)),
        ({"tp-size": "2", "device": "cpu"}, {}, ("sglang",), (2, False, False)),
        ({"tp-size": "zwei"}, {"NCCL_NVLS_ENABLE": "0"}, ("other",), (1, False, False)),
        ({}, {}, ("other-engine",), (1, False, True)),
    ],
)
def test_what_a_launch_asks_of_a_node(
    flags: dict[str, Any],
    env: dict[str, str],
    program: tuple[str, ...],
    asked: tuple[int, bool, bool],
) -> None:
    launch = Launch(config=Config.of(flags), env=env, program=program)
    assert (launch.local_ranks, launch.on_gpu, launch.nvls) == asked
