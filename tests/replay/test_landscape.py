"""Landscapes: what they answer, and what is refused as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.errors import UsageError
from triage.replay.__main__ import main
from triage.replay.arguments import parse_arguments
from triage.replay.landscape import (
    Ending,
    Landscape,
    LandscapeEntry,
    load_landscape,
    write_landscape,
)
from triage.replay.script import Do, ranks_of, write_script

REPO = Path(__file__).parents[2]
KIMI = REPO / "fixtures/landscapes/kimi-k2.6-b300.yaml"
TWO = REPO / "fixtures/landscapes/two-flags.yaml"
BASE = ("--model-path", "/models/Kimi-K2.6", "--tp-size", "8", "--speculative-algorithm", "DDTREE")
EP, NVLS, FUSION = "ep-size", "enable-nccl-nvls", "enable-flashinfer-allreduce-fusion"


@pytest.fixture(scope="module")
def kimi() -> Landscape:
    return load_landscape(KIMI)


def words_of(items: frozenset[str]) -> list[str]:
    words = list(BASE)
    words += ["--ep", "8"] if EP in items else []
    return words + [f"--{item}" for item in sorted(items - {EP})]


SUBSETS = {
    frozenset[str](): ("starts", "", "", "recorded"),
    frozenset({NVLS}): ("starts", "", "", "recorded"),
    frozenset({EP}): ("exception", "graph-capture", "AttributeError", "recorded"),
    frozenset({EP, NVLS}): ("exception", "flashinfer-autotune", "RuntimeError", "recorded"),
    frozenset({EP, NVLS, FUSION}): ("exception", "flashinfer-autotune", "RuntimeError", "recorded"),
    frozenset({FUSION}): ("hang", "graph-capture", "", "assumed"),
    frozenset({NVLS, FUSION}): ("hang", "graph-capture", "", "assumed"),
    frozenset({EP, FUSION}): ("exception", "graph-capture", "AttributeError", "assumed"),
}


@pytest.mark.parametrize("items", SUBSETS, ids=lambda items: "+".join(sorted(items)) or "none")
def test_the_founding_case_has_an_entry_for_each_subset(
    kimi: Landscape, items: frozenset[str]
) -> None:
    entry = kimi.find(parse_arguments(words_of(items), kimi.flags), {})
    assert isinstance(entry, LandscapeEntry)
    assert (entry.ends, entry.phase, entry.exception, entry.provenance) == SUBSETS[items]
    assert set(entry.when) == items


def test_the_founding_case_loads_weights_for_165_s(kimi: Landscape) -> None:
    assert kimi.seconds["weight-load"] == 165
    assert len(kimi.entries) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tp", "4"], "tp-size=4, speculative-algorithm=(not set)"),
        ([*BASE, "--ep-size", "2"], "ep-size=2"),
        ([*BASE, "--cuda-graph-backend-decode", "disabled"], "cuda-graph-backend-decode=disabled"),
        ([*BASE, "--moe-a2a-backend", "deepep"], "moe-a2a-backend=deepep"),
    ],
)
def test_what_no_entry_covers_is_named(kimi: Landscape, words: list[str], said: str) -> None:
    given_ = parse_arguments(["--model", "m", *words], kimi.flags)
    assert kimi.find(given_, {}) == said


def test_defaults_given_explicitly_change_nothing(kimi: Landscape) -> None:
    words = [*BASE, "--ep", "1", "--moe-a2a-backend", "none", "--port", "1234"]
    entry = kimi.find(parse_arguments(words, kimi.flags), {})
    assert isinstance(entry, LandscapeEntry)
    assert entry.when == ()


def test_a_variable_of_the_environment_can_be_an_item(tmp_path: Path) -> None:
    path = tmp_path / "env.yaml"
    item = "env:NCCL_NVLS_ENABLE"
    write_landscape(
        path,
        {
            frozenset(): Ending(ends="starts"),
            frozenset({item}): Ending(ends="hang", phase="dist-init"),
        },
    )
    landscape = load_landscape(path)
    with_it = landscape.find({}, {"NCCL_NVLS_ENABLE": "1"})
    assert isinstance(with_it, LandscapeEntry)
    assert with_it.ends == "hang"
    without = landscape.find({}, {})
    assert isinstance(without, LandscapeEntry)
    assert without.ends == "starts"
    assert landscape.find({}, {"NCCL_NVLS_ENABLE": "2"}) == f"{item}=2"


def test_an_entry_may_hold_for_every_larger_set_after_the_exact_and_the_earlier_ones(
    tmp_path: Path,
) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(
        "schema: triage.landscape/1\nname: x\n"
        "flags: [{flag: a, kind: switch}, {flag: b, kind: switch}, {flag: c, kind: switch}]\n"
        "items: {a: true, b: true, c: true}\n"
        "entries:\n"
        "  - {when: [a, b], more: true, provenance: assumed, source: x, ends: hang, phase: dist-init}\n"
        "  - {when: [a], more: true, provenance: assumed, source: x, ends: hang, phase: weight-load}\n"
        "  - {when: [a, c], provenance: assumed, source: x, ends: starts}\n"
    )
    landscape = load_landscape(path)

    def phase(*items: str) -> str:
        entry = landscape.find(dict.fromkeys(items, True), {})
        assert isinstance(entry, LandscapeEntry), entry
        assert entry.when == tuple(sorted(items))
        return entry.phase

    assert phase("a") == "weight-load"
    assert phase("a", "b") == phase("a", "b", "c") == "dist-init"
    assert phase("a", "c") == ""
    assert landscape.find({"b": True}, {}) == "b"


names = st.sampled_from(["alpha", "beta", "gamma", "delta-2"])
endings = st.one_of(
    st.just(Ending(ends="starts")),
    st.sampled_from(["weight-load", "graph-capture", "scheduler-init"]).map(
        lambda phase: Ending(ends="hang", phase=phase)
    ),
    st.text(max_size=20).map(
        lambda text: Ending(
            ends="exception", phase="weight-load", exception="ValueError", message=text
        )
    ),
)


@given(table=st.dictionaries(st.frozensets(names), endings, max_size=6))
def test_a_written_table_answers_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, table: dict[frozenset[str], Ending]
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.yaml"
    write_landscape(path, table)
    landscape = load_landscape(path)
    for items, ending in table.items():
        entry = landscape.find(dict.fromkeys(items, True), {})
        assert isinstance(entry, LandscapeEntry)
        assert (
            Ending(**entry.model_dump(exclude={"when", "more", "provenance", "source"})) == ending
        )


def test_rank_tags_show_only_what_is_wider_than_one() -> None:
    assert [r.tag for r in ranks_of(1, 1, 1)] == [""]
    assert [r.tag for r in ranks_of(2, 1, 1)] == ["TP0", "TP1"]
    assert [r.tag for r in ranks_of(4, 1, 2)] == ["TP0 EP0", "TP1 EP0", "TP2 EP1", "TP3 EP1"]
    assert [r.tag for r in ranks_of(2, 2, 1)] == ["PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"]


def test_a_script_never_goes_back_in_time_on_a_rank(kimi: Landscape) -> None:
    ranks = ranks_of(8, 1, 8)
    for entry in kimi.entries:
        acts = write_script(kimi, entry, ranks)
        for who in range(-1, 8):
            times = [act.at for act in acts if act.who == who]
            assert times == sorted(times)
        assert (
            acts[-1].do
            == {
                "starts": Do.SERVE,
                "hang": Do.STAND,
                "exception": Do.RAISE,
            }[entry.ends]
        )


HEAD = "schema: triage.landscape/1\nname: x\nflags: [{flag: a, kind: switch}]\nitems: {a: true}\n"
HOSTILE = {
    "nothing": ("", "the file is empty"),
    "no mapping": ("- 1\n", ":1: should be an object, not [1]"),
    "unknown key": (
        HEAD + "entries: []\nentrys: []\n",
        ":6: entrys: unknown key, did you mean entries?",
    ),
    "no entries": (HEAD, "the key entries is missing"),
    "bad phase": (
        HEAD
        + "entries:\n  - {when: [], provenance: assumed, source: s, ends: hang, phase: lunch}\n",
        ":6: entries[0]: phase 'lunch' is none of",
    ),
    "bad provenance": (
        HEAD + "entries:\n  - {when: [], provenance: guessed, source: s, ends: starts}\n",
        ':6: entries[0].provenance: "guessed" is not allowed',
    ),
    "bad signal": (
        HEAD
        + "entries:\n  - {when: [], provenance: assumed, source: s, ends: signal,"
        + " phase: dist-init, signal: SIGX}\n",
        "'SIGX' is no signal",
    ),
    "unknown item": (
        HEAD + "entries:\n  - {when: [b], provenance: assumed, source: s, ends: starts}\n",
        "an entry names b, which is not among the items",
    ),
    "twice": (
        HEAD + "entries:\n" + "  - {when: [a], provenance: assumed, source: s, ends: starts}\n" * 2,
        "more than one entry for a",
    ),
    "alias twice": (
        HEAD.replace("switch}", "switch}, {flag: b, aliases: [a]}") + "entries: []\n",
        "more than one flag a",
    ),
    "an alias of itself": (HEAD + "entries: &a [*a]\n", "an alias that contains itself"),
    "a tag": (HEAD + "entries: !!python/object:os.system []\n", "is not supported"),
    "not text": (b"\xff\xfe\x00", "not UTF-8 text"),
}


@pytest.mark.parametrize(("content", "said"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_landscape_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str | bytes, said: str
) -> None:
    path = tmp_path / "l.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["--landscape", str(path), "--", "--a"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("simulated | triage.replay: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "the server arguments begin after --"),
        (["--"], "usage: python -m triage.replay"),
        (["--landscape", "/nonexistent/x.yaml", "--"], "/nonexistent/x.yaml: no such file"),
        (["--landscape", str(TWO), "--speed", "nan", "--"], "--speed nan: a number above 0"),
        (["--landscape", str(TWO), "--speed", "0", "--"], "--speed 0: a number above 0"),
        (["--fast", "1", "--"], "--fast is no option of the replay engine"),
    ],
)
def test_wrong_options_of_its_own_are_one_sentence(
    capfd: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert main(argv) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert said in err


def test_too_many_ranks_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.yaml"
    write_landscape(path, {frozenset(): Ending(ends="starts")}, tp_size=4096)
    assert main(["--landscape", str(path), "--", "--tp-size", "4096"]) == 65
    assert "1 to 64 ranks" in capfd.readouterr().err


def test_an_ending_and_its_ranks_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not go together"):
        Ending(ends="exit", phase="process-spawn", ranks=("TP0",))
    with pytest.raises(ValueError, match="only graph-capture wraps"):
        Ending(ends="exception", phase="weight-load", exception="E", wrapped=True)
    with pytest.raises(UsageError):
        load_landscape(tmp_path)
