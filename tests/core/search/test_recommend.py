"""The proposal closest to what was wanted, and the honesty of what is said about it."""

from __future__ import annotations

from triage.core.causes import Cause, Remedy
from triage.core.config import Config, SetEnv, SetFlag, UnsetFlag
from triage.core.search.claims import Claim, Kind
from triage.core.search.recommend import Choice, Recommendation, Started, recommend
from triage.core.trials import Entry, Item, Moved, Problem, Seen

EP, NVLS, FUSION = "ep-size", "enable-nccl-nvls", "enable-flashinfer-allreduce-fusion"


def keys(*names: str) -> frozenset[str]:
    return frozenset(names)


def starts(number: int, *names: str, provenance: str = "recorded") -> Entry:
    return Entry(
        number=number,
        items=keys(*names),
        seen=Seen.STARTS,
        provenance=provenance,
        simulated=provenance != "launched",
    )


def fails(number: int, cause: str, *names: str, provenance: str = "recorded") -> Entry:
    return Entry(
        number=number,
        items=keys(*names),
        seen=Seen.FAILS,
        signature=cause,
        cause=cause,
        title=cause.upper(),
        provenance=provenance,
        simulated=provenance != "launched",
    )


PROBLEM = Problem(
    name="founding",
    baseline=Config.of({"tp-size": "8", "speculative-algorithm": "DDTREE"}),
    items=(
        Item(key=EP, change=SetFlag(EP, "8"), weight=2),
        Item(key=NVLS, change=SetFlag(NVLS, True), weight=3),
        Item(key=FUSION, change=SetFlag(FUSION, True), weight=1),
    ),
)
JOURNAL = [
    starts(1),
    fails(2, "cublas", EP, NVLS, FUSION),
    starts(3, NVLS),
    fails(4, "nonetype", EP),
    fails(5, "hang", FUSION, provenance="assumed"),
    fails(6, "cublas", EP, NVLS),
]


def says(found: Recommendation, kind: Kind) -> list[str]:
    return [claim.say for claim in found.claims if claim.kind is kind]


def test_founding_case_keeps_nvls_and_the_baseline_and_drops_ep_and_fusion() -> None:
    found = recommend(PROBLEM, JOURNAL)
    assert found.reason == "found"
    assert found.config == Config.of(
        {"tp-size": "8", "speculative-algorithm": "DDTREE", NVLS: True}
    )
    assert [(c.key, c.value) for c in found.keep] == [
        ("speculative-algorithm", "DDTREE"),
        ("tp-size", "8"),
        (NVLS, True),
    ]
    assert [(c.key, c.value) for c in found.drop] == [(EP, "8"), (FUSION, True)]
    assert (found.change, found.add) == ((), ())
    assert (found.weight_kept, found.weight_wanted, found.proof) == (3, 6, 3)
    assert found.say == (
        "Proposed: keep enable-nccl-nvls; drop ep-size 8 and enable-flashinfer-allreduce-fusion "
        "(3 of 6 by weight). It started in trial 3."
    )
    assert found.alternatives == (Started(items=keys(), weight=0, entry=1),)
    assert [s.items for s in found.sets] == [keys(EP), keys(FUSION), keys(EP, NVLS)]
    assert found.simulated


def test_each_dropped_flag_names_its_failing_sets() -> None:
    ep, fusion = recommend(PROBLEM, JOURNAL).drop
    assert ep.why == (
        "in the failing set {ep-size}: NONETYPE (trial 4); "
        "in the failing set {ep-size, enable-nccl-nvls}: CUBLAS (trial 6)"
    )
    assert fusion.why == (
        "in the failing set {enable-flashinfer-allreduce-fusion}: HANG (trial 5, assumed)"
    )


def test_claims_keep_what_is_shown_implied_and_assumed_apart() -> None:
    found = recommend(PROBLEM, JOURNAL)
    assert says(found, Kind.SHOWN) == [
        "{enable-nccl-nvls} on the baseline started (trial 3).",
        "{ep-size} fails: NONETYPE (trial 4); without it the failure does not show.",
        "{ep-size, enable-nccl-nvls} fails: CUBLAS (trial 6); with any one item less the "
        "failure does not show.",
    ]
    assert says(found, Kind.IMPLIED) == [
        "Every heavier combination that the rules allow holds a set that failed, so none of them starts, if adding a "
        "flag never repairs a failure."
    ]
    assert says(found, Kind.ASSUMED) == [
        "{enable-flashinfer-allreduce-fusion} fails: HANG (trial 5); without it the failure "
        "does not show.",
        "Only assumed answers speak against {enable-nccl-nvls, "
        "enable-flashinfer-allreduce-fusion}, which would keep 4 instead of 3; a real launch of "
        "it would show whether it starts.",
    ]
    assert says(found, Kind.NOT_SHOWN) == [
        "Not launched: {enable-nccl-nvls, enable-flashinfer-allreduce-fusion}, "
        "{ep-size, enable-flashinfer-allreduce-fusion}.",
        "Every answer above was simulated; a launch on the machine itself would show it.",
    ]


def test_no_claim_of_a_recommendation_says_works() -> None:
    found = recommend(PROBLEM, JOURNAL)
    text = " ".join([found.say, *(c.say for c in found.claims), *(c.why for c in found.keep)])
    assert "works" not in text


def test_the_price_comes_from_a_remedy_of_the_cause_and_says_so() -> None:
    cause = Cause(
        id="nonetype",
        title="t",
        remedies=(
            Remedy(say="other", set_flags=((EP, "4"),), cost="not this one"),
            Remedy(say="drop it", unset=(EP,), cost="0 to 10 % of decode", evidence="modelled"),
        ),
    )
    ep, fusion = recommend(PROBLEM, JOURNAL, [cause]).drop
    assert ep.price == "0 to 10 % of decode (nonetype: modelled; not measured here)"
    assert fusion.price == "not known: no launch here measured what it brings"


def test_a_baseline_that_fails_gives_no_proposal() -> None:
    found = recommend(PROBLEM, [fails(1, "x")])
    assert found.config is None
    assert found.reason == "baseline-fails"
    assert found.say == (
        "No configuration is proposed. The baseline itself fails (x): the fault is not in what "
        "was added to it."
    )
    assert (found.keep, found.drop, found.proof) == ((), (), None)


def test_an_empty_journal_gives_no_proposal() -> None:
    found = recommend(PROBLEM, [])
    assert (found.config, found.reason) == (None, "unfinished")
    assert found.say == "No configuration is proposed. The search has not ended."


def test_an_unfinished_search_proposes_the_best_so_far_and_says_so() -> None:
    found = recommend(PROBLEM, JOURNAL[:3])
    assert found.reason == "unfinished"
    assert found.items == keys(NVLS)
    assert found.say.endswith("Best seen so far: The search has not ended.")
    assert says(found, Kind.IMPLIED) == []
    assert found.drop[0].why == (
        "in the failing set {ep-size, enable-nccl-nvls, enable-flashinfer-allreduce-fusion}: "
        "CUBLAS (trial 2)"
    )


def test_what_is_wanted_is_kept_whole_if_it_starts() -> None:
    found = recommend(PROBLEM, [starts(1), starts(2, EP, NVLS, FUSION)])
    assert found.items == keys(EP, NVLS, FUSION)
    assert (found.drop, found.proof, found.weight_kept) == ((), 2, 6)


def test_an_unresolved_subset_is_named_and_never_proposed() -> None:
    problem = Problem(
        name="t",
        baseline=Config(),
        items=tuple(Item(key=k, change=SetFlag(k, True)) for k in ("a", "b")),
        retries=0,
    )
    lost = Entry(number=2, items=keys("a", "b"), seen=Seen.UNRESOLVED, reason="port busy")
    journal = [starts(1), lost, starts(3, "a"), starts(4, "b")]
    found = recommend(problem, journal)
    assert found.reason == "stuck"
    assert found.items == keys("a")
    assert found.drop[0].why == "a launch with it stayed unresolved"
    assert "{a, b} stayed unresolved; another launch would show it." in says(found, Kind.NOT_SHOWN)


def test_a_launch_that_contradicts_the_reasoning_is_said() -> None:
    problem = Problem(
        name="t",
        baseline=Config(),
        items=tuple(Item(key=k, change=SetFlag(k, True)) for k in ("a", "b", "c")),
    )
    journal = [
        starts(1, provenance="launched"),
        fails(2, "x", "a", "b", "c", provenance="launched"),
        fails(3, "x", "a", provenance="launched"),
        starts(4, "a", "b", provenance="launched"),
    ]
    found = recommend(problem, journal)
    assert found.items == keys("a", "b")
    assert (
        Claim(
            kind=Kind.SHOWN,
            say="Here adding a flag did repair a failure: {a, b} started (trial 4) though {a} "
            "fails (trial 3); so what was not launched may start after all.",
        )
        in found.claims
    )
    assert not found.simulated


def test_a_flag_that_the_baseline_has_is_changed_back() -> None:
    problem = Problem(
        name="t",
        baseline=Config.of({"tp-size": "8"}, {"NCCL_X": "0"}),
        items=(
            Item(key="tp-size", change=SetFlag("tp-size", "4")),
            Item(key="env:NCCL_X", change=SetEnv("NCCL_X", "1"), weight=2),
        ),
    )
    journal = [
        starts(1),
        fails(2, "x", "tp-size", "env:NCCL_X"),
        starts(3, "env:NCCL_X"),
        fails(4, "x", "tp-size"),
    ]
    found = recommend(problem, journal)
    assert found.change == (
        Choice(
            key="tp-size",
            value="8",
            why="back to the baseline's value from tp-size 4: in the failing set {tp-size}: X "
            "(trial 4)",
            price="not known: no launch here measured what it brings",
        ),
    )
    assert [(c.key, c.value) for c in found.keep] == [("env:NCCL_X", "1")]
    assert found.config == Config.of({"tp-size": "8"}, {"NCCL_X": "1"})


def test_of_two_that_exclude_each_other_the_dropped_one_says_so() -> None:
    problem = Problem(
        name="t",
        baseline=Config(),
        items=(
            Item(key="a", change=SetFlag("a", True)),
            Item(key="b", change=SetFlag("b", True), weight=2),
        ),
        not_both=(("a", "b"),),
    )
    found = recommend(problem, [starts(1), starts(2, "b")])
    assert [(c.key, c.why) for c in found.drop] == [
        ("a", "not both a and b, which is kept, as a rule says")
    ]


def test_an_idle_item_is_kept() -> None:
    problem = Problem(
        name="t",
        baseline=Config.of({"tp-size": "8"}),
        items=(
            Item(key="tp-size", change=SetFlag("tp-size", "8")),
            Item(key="a", change=SetFlag("a", True)),
        ),
    )
    found = recommend(problem, [starts(1), fails(2, "x", "a")])
    assert found.items == keys("tp-size")
    assert [c.key for c in found.drop] == ["a"]


def test_a_flag_that_cannot_be_left_out_is_added_back() -> None:
    problem = Problem(
        name="x",
        baseline=Config.of({"model-path": "/m", "disable-cuda-graph": True}),
        items=(Item(key="without:disable-cuda-graph", change=UnsetFlag("disable-cuda-graph")),),
    )
    wanted = problem.keys()
    journal = (
        Entry(number=1, items=frozenset(), seen=Seen.STARTS),
        Entry(number=2, items=wanted, seen=Seen.FAILS, signature="a", cause="a"),
    )
    found = recommend(problem, journal)
    assert found.config == problem.baseline
    assert [(c.key, c.value) for c in found.add] == [("disable-cuda-graph", True)]
    assert found.drop == found.change == ()
    assert [set(s.items) for s in found.sets] == [{"without:disable-cuda-graph"}]


def test_a_flag_that_may_go_is_kept_away() -> None:
    problem = Problem(
        name="x",
        baseline=Config.of({"model-path": "/m", "old": "1"}),
        items=(
            Item(key="without:old", change=UnsetFlag("old")),
            Item(key="new", change=SetFlag("new", "2")),
        ),
    )
    journal = (
        Entry(number=1, items=frozenset(), seen=Seen.STARTS),
        Entry(number=2, items=problem.keys(), seen=Seen.FAILS, signature="a", cause="a"),
        Entry(number=3, items=frozenset({"without:old"}), seen=Seen.STARTS),
        Entry(number=4, items=frozenset({"new"}), seen=Seen.FAILS, signature="a", cause="a"),
    )
    found = recommend(problem, journal)
    assert found.config == Config.of({"model-path": "/m"})
    assert ("without:old", True) in [(c.key, c.value) for c in found.keep]
    assert [c.key for c in found.drop] == ["new"]


def test_a_trial_in_which_the_engine_moved_more_is_said_to_be_about_all_of_it() -> None:
    problem = Problem(
        name="x", baseline=Config.of(), items=(Item(key="a", change=SetFlag("a", "1")),)
    )
    journal = (
        Entry(number=1, items=frozenset(), seen=Seen.STARTS),
        Entry(
            number=2, items=frozenset({"a"}), seen=Seen.FAILS, signature="s",
            moved=(
                Moved(name="ep-size", before=None, after="8", against=1, by=("a",)),
                Moved(name="page-size", before="1", after="64", against=1, by=("a",)),
            ),
        ),
    )  # fmt: skip
    said = [c.say for c in recommend(problem, journal).claims if c.kind is Kind.NOT_SHOWN]
    assert said == [
        "Trial 2 is confounded: ep-size its default -> 8 with a; page-size 1 -> 64 with a. Its "
        "verdict is about all of it; with pin: [{flag: ep-size, value: 8}, {flag: page-size, "
        "value: 64}] in the recipe every launch has it."
    ]
