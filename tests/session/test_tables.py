"""The flag table of the engine that is installed, or that of triage, and what is said of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from triage.core.flags import Known, Unknown
from triage.errors import HostError, UsageError
from triage.session.logs import flag_table
from triage.session.tables import engine_table, generate

STAND_IN = Path(__file__).parents[1] / "launch/stand_in"
PROGRAM = (sys.executable, "-m", "sglang.launch_server")
ENV = (("PYTHONPATH", str(STAND_IN)),)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.real
def test_an_unknown_engine_is_asked_once_for_its_own_table(cache: Path) -> None:
    said: list[str] = []
    table, notes = engine_table(PROGRAM, ENV, say=said.append)
    assert (table.version, set(table.specs) >= {"page-size", "deed"}) == ("9.8.7", True)
    assert len(said) == 1
    assert "gave of itself" in notes[0]
    again, _ = engine_table(PROGRAM, ENV, say=said.append)
    assert len(said) == 1, "it is kept, and read from there"
    assert again.specs == table.specs
    assert isinstance(again.lookup("--nsa-prefill-backend"), Unknown)


@pytest.mark.real
def test_an_engine_that_gives_no_table_is_read_with_ours_and_that_is_said() -> None:
    table, notes = engine_table(PROGRAM, (*ENV, ("STAND_IN_IMPORT", "boom")))
    assert table is flag_table()
    assert len(notes) == 1
    assert "RuntimeError: boom" in notes[0]
    assert "that of sglang 0.5.23" in notes[0]


def test_a_version_with_a_table_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/bin/false")
    (tmp_path / "lib/python3.11/site-packages/sglang-0.5.23.dist-info").mkdir(parents=True)
    table, notes = engine_table((str(tmp_path / "bin/python"), "-m", "sglang.launch_server"))
    assert (table.version, notes) == ("0.5.23", ())


def test_a_command_that_hides_its_python_is_read_with_ours() -> None:
    assert engine_table(("./serve.sh",)) == (flag_table(), ())


@pytest.mark.real
def test_a_table_is_generated_from_an_installed_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    version, rows, date = generate(Path(sys.executable))
    assert version == "9.8.7"
    assert "page-size" in {row["name"] for row in rows}
    assert date.startswith("20")
    monkeypatch.setenv("STAND_IN_MISSING", "1")
    with pytest.raises(HostError, match="has no SGLang"):
        generate(Path(sys.executable))
    with pytest.raises(UsageError, match="does not exist"):
        generate(Path("/nonexistent/python"))


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("--nsa-prefill-backend", "now --dsa-prefill-backend"),
        ("--enable-deepep-moe", "now --moe-a2a-backend deepep"),
        ("--torchao-config", "nothing took its place"),
        ("--enable-mixd-chunk", "is it --enable-mixed-chunk?"),
    ],
)
def test_a_flag_of_another_release_has_its_successor(old: str, now: str) -> None:
    found = flag_table().lookup(old)
    assert isinstance(found, Unknown)
    assert now in found.hint()
    assert any(now in note for note in flag_table().parse([old, "x"]).notes)


def test_an_old_flag_that_became_ambiguous_has_its_successor_too() -> None:
    (problem,) = flag_table().parse(["--cuda-graph-max-bs", "8"]).problems
    assert problem.kind == "ambiguous"
    assert problem.text.endswith("now --cuda-graph-max-bs-decode")


def test_what_took_the_place_of_an_old_flag_exists() -> None:
    table = flag_table()
    for old, now in table.successors.items():
        assert f"--{old}" not in table._options, old
        for word in now.replace(",", " ").split():
            if word.startswith("--"):
                assert isinstance(table.lookup(word), Known), (old, word)
        match now.split():
            case [flag, value] if not value.startswith("-"):
                found = table.lookup(flag)
                assert isinstance(found, Known)
                assert not found.spec.choices or value in found.spec.choices, (old, value)
            case _:
                assert now.startswith("--") or not now
