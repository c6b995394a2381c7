"""Recipes: read, refused with file and line, derived from two commands, written back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.config import (
    Config,
    ServerCommand,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    Value,
)
from triage.core.flags import FlagSpec, FlagTable
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.launch import Patience
from triage.core.trials import CHOICES, Item, Noise, Problem
from triage.errors import UsageError
from triage.recipe import (
    Confirm,
    Range,
    Recipe,
    Repair,
    dump_recipe,
    load_recipe,
    recipe_from_commands,
)
from triage.recipe.levels import chain

REPO = Path(__file__).parents[1]


def spec(name: str, style: str = "value", **rest: object) -> FlagSpec:
    return FlagSpec(name=name, field=name.replace("-", "_"), style=style, **rest)  # type: ignore[arg-type]


TABLE = FlagTable(
    "0.5.23",
    [
        spec("model-path", aliases=("model",)),
        spec("tp-size", aliases=("tensor-parallel-size", "tp"), type="int"),
        spec("ep-size", aliases=("expert-parallel-size", "ep"), type="int"),
        spec("port", type="int"),
        spec("enable-nccl-nvls", "switch"),
        spec("enable-flashinfer-allreduce-fusion", "switch"),
        spec("enable-mixed-chunk", "switch"),
        spec("speculative-algorithm"),
        spec("mem-fraction-static", type="float"),
        spec("cuda-graph-backend-decode"),
        spec("cuda-graph-bs-decode", "list", nargs="+"),
    ],
)
FULL = """\
schema: triage.recipe/1
name: demo
engine: sglang
engine_version: "0.5.23"
launch:
  command: [python, -m, sglang.launch_server]
  env: {HF_HUB_OFFLINE: 1}
  cwd: ../run
  patience: {silent: 10m, weight-load: 1h30m, total: 5400}
baseline:
  flags: {model: /models/m, tensor_parallel_size: 8, --cuda-graph-bs-decode: [1, 2]}
  env: {NCCL_DEBUG: INFO}
wanted:
  - {flag: ep, value: 8, weight: 2}
  - {flag: enable-nccl-nvl, weight: 0.5}
  - {env: NCCL_GRAPH_REGISTER, value: "0"}
  - {flag: ddtree-width, value: 4}
repairs:
  - {flag: cuda-graph-backend-decode, value: disabled, cost: slow, price: 4}
ranges:
  - {flag: mem-fraction-static, from: 0.88, to: 0.70, step: 0.02}
pin: [tp]
requires: [{flag: ep-size, needs: tp-size}]
not_both: [[ep, "env:NCCL_GRAPH_REGISTER"]]
goal: first
noise: {miss: 0.05, transient: 0.1}
budget: {trials: 12, hours: 0.5}
confirm: {requests: 8, concurrency: [1, 64]}
assumptions: [a, {say: b, evidence: c, verified: "yes, trial 2"}]
reported: [r]
worth: [{item: ep-size, say: "no", because: [slow, dear], basis: modelled, revisit: later}]
not_shown: [{claim: fast, why: nobody measured, would_show: a benchmark}]
landscape: land.yaml
speed: 50
"""
SMALL = """\
schema: triage.recipe/1
name: demo
baseline:
  flags: {model-path: /models/m, tp-size: 8}
wanted:
  - {flag: ep-size, value: 8}
  - {flag: enable-nccl-nvls}
"""


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]  # a callable with one text
    def write_one(text: str) -> Path:
        path = tmp_path / "r.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_one


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_recipe(path, TABLE)
    return caught.value.message.removeprefix(str(path))


def test_a_full_recipe_is_read_into_values(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    recipe = load_recipe(write(FULL), TABLE)
    assert recipe == Recipe(
        name="demo",
        problem=Problem(
            name="demo",
            baseline=Config.of(
                {"model-path": "/models/m", "tp-size": "8", "cuda-graph-bs-decode": ("1", "2")},
                {"NCCL_DEBUG": "INFO"},
            ),
            items=(
                Item(key="ep-size", change=SetFlag("ep-size", "8"), weight=2),
                Item(key="enable-nccl-nvls", change=SetFlag("enable-nccl-nvls", True), weight=0.5),
                Item(key="env:NCCL_GRAPH_REGISTER", change=SetEnv("NCCL_GRAPH_REGISTER", "0")),
                Item(key="ddtree-width", change=SetFlag("ddtree-width", "4")),
            ),
            repairs=(
                Item(
                    key="cuda-graph-backend-decode",
                    change=SetFlag("cuda-graph-backend-decode", "disabled"),
                    weight=4,
                ),
                *chain(Range("mem-fraction-static", 0.88, 0.70, 0.02))[0],
            ),
            pinned=("tp-size",),
            requires=(
                ("ep-size", "tp-size"),
                *chain(Range("mem-fraction-static", 0.88, 0.70, 0.02))[1],
            ),
            not_both=(("ep-size", "env:NCCL_GRAPH_REGISTER"),),
            goal="first",
            noise=Noise(0.05, 0.1),
            budget_trials=12,
            budget_s=1800,
        ),
        env=(("HF_HUB_OFFLINE", "1"),),
        cwd=tmp_path.parent / "run",
        patience=Patience(silent_s=600, total_s=5400, phases={"weight-load": 5400}),
        repairs=(Repair(SetFlag("cuda-graph-backend-decode", "disabled"), "slow", 4),),
        ranges=(Range("mem-fraction-static", 0.88, 0.70, 0.02),),
        confirm=Confirm(8, (1, 64), 64),
        assumptions=(
            Assumption(say="a"),
            Assumption(say="b", evidence="c", verified="yes, trial 2"),
        ),
        reported=("r",),
        worth=(
            Worth(
                item="ep-size",
                say="no",
                because=("slow", "dear"),
                basis="modelled",
                revisit="later",
            ),
        ),
        not_shown=(Doubt(claim="fast", why="nobody measured", would_show="a benchmark"),),
        landscape=tmp_path / "land.yaml",
        speed=50,
        notes=("ddtree-width is no flag of sglang 0.5.23; kept as a fork's own",),
    )


def test_a_small_recipe_has_defaults(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    recipe = load_recipe(write(SMALL), TABLE)
    assert recipe.command == ("python", "-m", "sglang.launch_server")
    assert recipe.patience == Patience()
    assert recipe.cwd == tmp_path
    assert recipe.problem.goal == "best"
    assert [item.weight for item in recipe.problem.items] == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "value: 8}",
            "value: 8, wieght: 2}",
            ":6: wanted[0].wieght: unknown key, did you mean weight?",
        ),
        (
            "name: demo",
            "name: demo\nbasline: {}",
            ":3: basline: unknown key, did you mean baseline?",
        ),
        (
            "value: 8}",
            "value: 8, weight: 0}",
            ":6: wanted[0].weight: should be greater than 0, not 0",
        ),
        ("value: 8}", "value: 8, weight: -1}", ":6: wanted[0].weight: should be greater than 0"),
        (
            "flag: ep-size, value: 8",
            "flag: tensor_parallel_size, value: 8",
            ":6: wanted[0]: tp-size 8: the baseline is so already",
        ),
        (
            "enable-nccl-nvls",
            "speculative-algorithm",
            ":7: wanted[1]: speculative-algorithm needs a",
        ),
        (
            "{flag: enable-nccl-nvls}",
            "{flag: ep, value: 4}",
            ":7: wanted[1]: ep-size is wanted twice",
        ),
        (
            "{flag: enable-nccl-nvls}",
            "{unset: tp}\n  - {flag: tp-size, value: 4}",
            ":8: wanted[2]: tp-size 4 contradicts wanted without tp-size: both can never be had",
        ),
        (
            "{flag: enable-nccl-nvls}",
            "{flag: tp-size, value: 4}\n  - {unset: tp-size}",
            ":8: wanted[2]: without tp-size contradicts wanted tp-size 4: both can never be had",
        ),
        ("enable-nccl-nvls", "enable-", ":7: wanted[1]: enable- could mean --enable-"),
        (
            "{flag: enable-nccl-nvls}",
            "{flag: enable-nccl-nvls, value: 3}",
            ":7: wanted[1]: enable-nccl-nvls: a switch takes true or false, not 3",
        ),
        (
            "{flag: enable-nccl-nvls}",
            "{flag: enable-nccl-nvls, value: false}",
            ":7: wanted[1].value: enable-nccl-nvls: leaving a switch out is no change",
        ),
        (
            "{flag: enable-nccl-nvls}",
            "{weight: 1}",
            ":7: wanted[1]: needs one of flag, env and unset",
        ),
        ("{flag: enable-nccl-nvls}", "{env: A}", ":7: wanted[1]: a variable needs a value"),
        (
            "{flag: enable-nccl-nvls}",
            "{env: A, value: true}",
            ":7: wanted[1]: a variable's value is text",
        ),
        ("tp-size: 8", "tp-size: 8, tp: 4", ":4: baseline.flags.tp: the same flag as tp-size"),
        ("schema: triage.recipe/1", "schema: triage.recipe/2", ":1: schema: "),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(write, old: str, new: str, said: str) -> None:  # type: ignore[no-untyped-def]
    assert old in SMALL
    assert refusal(write(SMALL.replace(old, new))).startswith(said)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("pin: [ep]", ":8: pin[0]: ep-size is pinned but also wanted"),
        (
            "  - {unset: tp}\npin: [tp]",
            ":9: pin[0]: tp-size is pinned but also wanted",
        ),
        ("pin: [tp-sise]", ":8: pin[0]: tp-sise is not in the baseline, did you mean tp-size?"),
        (
            "requires: [{flag: tp, needs: ep}]",
            ":8: requires[0].flag: tp-size is not wanted, did you mean ep-size?",
        ),
        (
            "requires:\n  - {flag: ep, needs: speculative-algorithm}",
            ":9: requires[0].needs: speculative-algorithm is neither wanted nor in the baseline",
        ),
        ("not_both: [[ep, tp]]", ":8: not_both[0]: tp-size is not wanted, did you mean ep-size?"),
        ("not_both: [[ep, ep-size]]", ":8: not_both[0]: ep-size is named twice"),
        (
            "launch:\n  patience: {wieght-load: 3m}",
            ":9: launch.patience.wieght-load: no phase of a startup, did you mean weight-load?",
        ),
        (
            "launch:\n  patience: {silent: soon}",
            ":9: launch.patience.silent: 'soon' is not a duration like 90s, 10m or 1h30m",
        ),
        ("goal: fastest", ':8: goal: "fastest" is not allowed'),
        ("budget: {trials: 0}", ":8: budget.trials: should be greater than or equal to 1, not 0"),
        ("speed: -3", ":8: speed: should be greater than 0, not -3"),
    ],
)
def test_parts_that_do_not_fit_are_named_with_their_line(write, more: str, said: str) -> None:  # type: ignore[no-untyped-def]
    assert refusal(write(f"{SMALL}{more}\n")).startswith(said)


def test_a_flag_of_a_fork_is_kept_with_a_note(write) -> None:  # type: ignore[no-untyped-def]
    text = SMALL.replace("enable-nccl-nvls", "enable-nccl-nvsl")
    recipe = load_recipe(write(text), TABLE)
    assert recipe.problem.items[1].change == SetFlag("enable-nccl-nvsl", True)
    assert recipe.notes == (
        "enable-nccl-nvsl is no flag of sglang 0.5.23, did you mean --enable-nccl-nvls?;"
        " kept as a fork's own",
    )


def command(
    flags: dict[str, Value], env: dict[str, str] | None = None, **rest: object
) -> ServerCommand:
    program = ("python", "-m", "sglang.launch_server")
    return ServerCommand("argv", program, Config.of(flags, env), **rest)  # type: ignore[arg-type]


def test_two_commands_give_the_difference_as_items() -> None:
    good = command({"model-path": "m", "tp-size": "8", "port": "1"}, {"A": "1"}, cwd="/srv")
    bad = command(
        {"model-path": "m", "tp-size": "4", "ep-size": "8", "port": "2"}, {"A": "2"}, cwd="/srv"
    )
    recipe = recipe_from_commands(good, bad, "two")
    assert recipe.problem.baseline == good.config
    assert {item.key: item.change for item in recipe.problem.items} == {
        "ep-size": SetFlag("ep-size", "8"),
        "tp-size": SetFlag("tp-size", "4"),
        "env:A": SetEnv("A", "2"),
    }
    assert recipe.cwd == Path("/srv")
    assert recipe.notes == ()


def test_what_only_the_good_command_sets_is_left_out_as_an_item() -> None:
    good = command({"model-path": "m", "enable-mixed-chunk": True}, {"B": "1"})
    bad = command({"model-path": "m", "ep-size": "8"})
    recipe = recipe_from_commands(good, bad, "two")
    assert {item.key: item.change for item in recipe.problem.items} == {
        "ep-size": SetFlag("ep-size", "8"),
        "without:enable-mixed-chunk": UnsetFlag("enable-mixed-chunk"),
        "without:env:B": UnsetEnv("B"),
    }
    assert recipe.problem.config({"ep-size"}).get("enable-mixed-chunk") is True
    assert recipe.problem.config(recipe.problem.keys()) == bad.config


def test_equal_commands_leave_nothing_to_bisect() -> None:
    same = command({"model-path": "m", "port": "1"})
    with pytest.raises(UsageError, match="set the same flags"):
        recipe_from_commands(same, command({"model-path": "m", "port": "2"}), "x")


def test_commands_that_differ_in_more_than_a_search_can_tell_apart_are_refused() -> None:
    good = command({"model-path": "m"})
    for count in (CHOICES, CHOICES + 1):
        bad = command({"model-path": "m", **{f"flag-{i}": "1" for i in range(count)}})
        if count > CHOICES:
            with pytest.raises(UsageError, match=f"differ in {count} flags"):
                recipe_from_commands(good, bad, "x")
        else:
            assert len(recipe_from_commands(good, bad, "x").problem.items) == count


def test_another_program_is_noted() -> None:
    good = command({"model-path": "m"})
    bad = command({"model-path": "m", "ep-size": "8"}, wrapper=("docker", "run", "image"))
    recipe = recipe_from_commands(good, bad, "x")
    assert recipe.command == good.program
    assert recipe.notes == (
        "the two commands start the server differently: the good one's way is used",
    )


def test_the_founding_recipe_asks_for_the_founding_case() -> None:
    from triage.knowledge import load_flag_table

    recipe = load_recipe(REPO / "recipes/kimi-k2.6-b300.yaml", load_flag_table("0.5.23"))
    assert recipe.problem.baseline.flag_values() == {
        "model-path": "/models/Kimi-K2.6",
        "speculative-algorithm": "DDTREE",
        "tp-size": "8",
    }
    assert {item.key: item.weight for item in recipe.problem.items} == {
        "ep-size": 2,
        "enable-nccl-nvls": 3,
        "enable-flashinfer-allreduce-fusion": 1,
    }
    assert recipe.problem.pinned == ("tp-size", "speculative-algorithm")
    assert recipe.notes == ()
    assert recipe.landscape == REPO / "fixtures/landscapes/kimi-k2.6-b300.yaml"
    said = " ".join(a.say for a in recipe.assumptions)
    assert "--enforce-disable-flashinfer-allreduce-fusion" in said
    assert "--flashinfer-allreduce-fusion-backend" in said
    reported = [text for text in recipe.reported if "tok/s" in text or "165 s" in text]
    assert len(reported) == 2
    assert all("as reported by the founding case" in " ".join(text.split()) for text in reported)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
values = st.one_of(st.just(True), texts, st.lists(texts, min_size=2, max_size=3).map(tuple))
forks = st.from_regex(r"zz-[a-z]{1,8}", fullmatch=True)
shares = st.floats(0, 0.9)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    baseline = Config.of(
        {"model-path": draw(texts), "tp-size": "8"}, draw(st.dictionaries(texts, texts, max_size=2))
    )
    names = draw(st.lists(forks, unique=True, max_size=4))
    items: list[Item] = [
        Item(key=name, change=SetFlag(name, draw(values)), weight=draw(st.floats(0.001, 1000)))
        for name in names
    ]
    items.append(Item(key="env:Q", change=SetEnv("Q", draw(texts))))
    items.append(Item(key="without:tp-size", change=UnsetFlag("tp-size")))
    if baseline.env:
        name = baseline.env[0][0]
        items.append(Item(key=f"without:env:{name}", change=UnsetEnv(name)))
    prices = st.floats(0.001, 1000)
    repairs = tuple(
        Repair(SetFlag(name, draw(values)), draw(texts), draw(prices))
        for name in draw(
            st.lists(st.from_regex(r"yy-[a-z]{1,8}", fullmatch=True), unique=True, max_size=2)
        )
    )
    ranges = tuple(
        Range(name, draw(st.sampled_from([0.9, 64.0])), 0.7, draw(st.floats(1.5, 9)), draw(prices))
        for name in draw(st.sampled_from([(), ("xx-number",)]))
    )
    levels, steps = chain(ranges[0]) if ranges else ((), ())
    return Recipe(
        name="r1",
        problem=Problem(
            name="r1",
            baseline=baseline,
            items=tuple(items),
            pinned=draw(st.sampled_from([(), ("model-path",)])),
            repairs=(
                *(Item(key=r.change.name, change=r.change, weight=r.price) for r in repairs),
                *levels,
            ),
            requires=(*((name, "tp-size") for name in names[:1]), *steps),
            not_both=tuple((name, "env:Q") for name in names[1:2]),
            goal=draw(st.sampled_from(["best", "first", "all"])),
            noise=Noise(draw(shares), draw(shares)),
            budget_trials=draw(st.integers(1, 99)),
            budget_s=3600.0 * draw(st.integers(1, 9)),
        ),
        engine=draw(st.sampled_from(["sglang", "replay"])),
        command=tuple(draw(st.lists(texts, min_size=1, max_size=3))),
        cwd=Path("/srv/a b"),
        patience=Patience(silent_s=draw(st.floats(0.1, 1e5)), phases={"weight-load": 12.5}),
        repairs=repairs,
        ranges=ranges,
        confirm=Confirm(
            draw(st.integers(1, 50)),
            draw(st.sampled_from([(), (1,), (1, 64)])),
            draw(st.integers(1, 99)),
            draw(st.booleans()),
        ),
        assumptions=tuple(
            Assumption(say=draw(texts), evidence=draw(texts), verified=draw(texts))
            for _ in range(draw(st.integers(0, 2)))
        ),
        worth=tuple(
            Worth(
                item=draw(texts), say=draw(texts), because=tuple(draw(st.lists(texts, max_size=2)))
            )
            for _ in range(draw(st.integers(0, 1)))
        ),
        not_shown=tuple(
            Doubt(claim=draw(texts), why=draw(texts)) for _ in range(draw(st.integers(0, 1)))
        ),
        landscape=draw(st.sampled_from([None, Path("/x/l.yaml")])),
        speed=draw(st.floats(0.01, 1e6)),
    )


@settings(max_examples=60, deadline=None)
@given(recipe=recipes())
def test_a_written_recipe_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, recipe: Recipe
) -> None:
    from dataclasses import replace

    path = tmp_path_factory.mktemp("r") / "r.yaml"
    path.write_text(dump_recipe(recipe), encoding="utf-8")
    assert replace(load_recipe(path, TABLE), notes=()) == recipe


def test_the_full_recipe_survives_writing(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    recipe = load_recipe(write(FULL), TABLE)
    again = tmp_path / "again.yaml"
    again.write_text(dump_recipe(recipe), encoding="utf-8")
    assert load_recipe(again, TABLE) == recipe


def test_a_log_as_the_bad_command_keeps_the_environment_of_the_good_one() -> None:
    good = command({"model-path": "m"}, {"HF_TOKEN": "x"})
    bad = ServerCommand("server-args", (), Config.of({"model-path": "m", "ep-size": "8"}))
    recipe = recipe_from_commands(good, bad, "x")
    assert [item.key for item in recipe.problem.items] == ["ep-size"]


def test_variables_are_needed_pinned_and_left_out_like_flags(write) -> None:  # type: ignore[no-untyped-def]
    text = SMALL.replace("baseline:", "launch: {env: {MY_L: 1}}\nbaseline:\n  env: {MY_A: 1}")
    more = '  - {unset: "env:MY_L"}\npin: ["env:MY_A"]\n'
    more += 'requires: [{flag: ep, needs: "env:MY_A"}]\n'
    problem = load_recipe(write(text + more), TABLE).problem
    assert problem.pinned == ("env:MY_A",)
    assert problem.requires == (("ep-size", "env:MY_A"),)
    assert problem.allowed({"ep-size"})
    assert problem.items[-1] == Item(key="without:env:MY_L", change=UnsetEnv("MY_L"))
    assert problem.unset_env({"without:env:MY_L"}) == ("MY_L",)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("  - {env: MY_L, value: '1'}", ":10: wanted[2]: MY_L=1: the baseline is so already"),
        ("  - {env: MY_A, value: '2'}", ":10: wanted[2]: MY_A=2: the baseline is so already"),
        ('  - {unset: "env:MY_B"}', ":10: wanted[2]: without MY_B: the baseline is so already"),
        ('pin: ["env:MY_B"]', ":10: pin[0]: env:MY_B is not in the baseline, did you mean env:MY"),
        (
            'requires: [{flag: ep, needs: "env:MY_B"}]',
            ":10: requires[0].needs: env:MY_B is neither wanted nor in the baseline, did you",
        ),
    ],
)
def test_what_every_launch_has_is_no_change(write, more: str, said: str) -> None:  # type: ignore[no-untyped-def]
    env = "launch: {env: {MY_L: 1, MY_A: 1}}\nbaseline:\n  env: {MY_A: 2}"
    path = write(SMALL.replace("baseline:", env) + more)
    with pytest.raises(UsageError) as caught:
        load_recipe(path, TABLE)
    assert caught.value.message.removeprefix(str(path)).startswith(said)
    assert caught.value.hint == f"cat -n {path}"


def test_a_stored_secret_may_hide_another_value_than_that_of_every_launch(write) -> None:  # type: ignore[no-untyped-def]
    text = SMALL.replace("baseline:", "launch: {env: {MY_TOKEN: REDACTED}}\nbaseline:")
    text += "  - {env: MY_TOKEN, value: REDACTED}\n"
    change = load_recipe(write(text), TABLE).problem.items[-1].change
    assert change == SetEnv("MY_TOKEN", "REDACTED")


def test_a_range_is_a_chain_of_levels_that_cost_their_share() -> None:
    items, needs = chain(Range("mem-fraction-static", 0.88, 0.81, 0.03, price=7))
    assert [(i.key, i.change) for i in items] == [
        ("mem-fraction-static=0.85", SetFlag("mem-fraction-static", "0.85")),
        ("mem-fraction-static=0.82", SetFlag("mem-fraction-static", "0.82")),
        ("mem-fraction-static=0.81", SetFlag("mem-fraction-static", "0.81")),
    ]
    assert [round(i.weight, 9) for i in items] == [3, 3, 1]
    assert needs == (
        ("mem-fraction-static=0.82", "mem-fraction-static=0.85"),
        ("mem-fraction-static=0.81", "mem-fraction-static=0.82"),
    )
    up, _ = chain(Range("page-size", 16, 64, 16))
    assert [i.change.value for i in up if isinstance(i.change, SetFlag)] == ["32", "48", "64"]


def test_the_lowest_level_of_a_launch_is_its_value(write) -> None:  # type: ignore[no-untyped-def]
    problem = load_recipe(write(FULL), TABLE).problem
    keys = {"mem-fraction-static=0.86", "mem-fraction-static=0.84"}
    assert problem.config(keys).flag_values()["mem-fraction-static"] == "0.84"
    assert problem.weight(keys) == pytest.approx(-2 / 9)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("repairs: [{flag: ep-size, value: 4, cost: x}]", "ep-size is wanted, so it cannot"),
        ("repairs: [{flag: tp-size, value: 4, cost: x}]\npin: [tp-size]", "tp-size is pinned"),
        ("repairs: [{flag: tp-size, value: 8, cost: x}]", "tp-size 8: the baseline is so already"),
        ("ranges: [{flag: tp-size, from: 8, to: 4, step: 1}]\npin: [tp-size]", "tp-size is pinned"),
        ("ranges: [{flag: tp-size, from: 8, to: 8, step: 1}]", "there is no way to go"),
        ("ranges: [{flag: tp-size, from: 0, to: 1, step: 0.001}]", "has 1000 steps"),
        ("ranges: [{flag: tp-size, from: 8, to: 71, step: 1}]", "choices, levels and repairs"),
    ],
)
def test_repairs_and_ranges_that_cannot_be(write, part: str, said: str) -> None:  # type: ignore[no-untyped-def]
    assert said in refusal(write(f"{SMALL}{part}\n"))
