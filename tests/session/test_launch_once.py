"""One configuration launched for real: what it inherits, how long it may take, what it proves."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from triage.core.config import Config, SetEnv, SetFlag, UnsetEnv
from triage.core.launch import Crashed, Patience
from triage.core.trials import Item, Problem, Seen
from triage.recipe import Recipe
from triage.session.search import Search, Talk, bisect
from triage.session.stored import open_session
from triage.session.trial import Setup, launch_once

pytestmark = pytest.mark.real
PROBLEM = Problem(
    name="p",
    baseline=Config.of({}, {"OURS": "1", "BOTH": "1"}),
    items=(
        Item(key="without:env:OURS", change=UnsetEnv("OURS")),
        Item(key="without:env:BOTH", change=UnsetEnv("BOTH")),
        Item(key="env:BOTH", change=SetEnv("BOTH", "2")),
        Item(key="x", change=SetFlag("x", "1")),
    ),
)


def setup(tmp_path: Path, code: str, env: dict[str, str] | None = None) -> Setup:
    return Setup(
        program=(sys.executable, "-c", code),
        env=tuple((env or {}).items()),
        cwd=tmp_path,
        patience=Patience(silent_s=20, total_s=30),
        engine="sglang",
    )


def test_a_variable_is_unset_by_the_items_that_leave_it_out() -> None:
    assert PROBLEM.unset_env(()) == ()
    assert PROBLEM.unset_env({"x", "without:env:OURS"}) == ("OURS",)
    assert PROBLEM.unset_env({"without:env:BOTH", "env:BOTH"}) == ()


def test_a_trial_without_a_variable_does_not_get_it_from_the_users_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OURS", "BOTH", "OTHER"):
        monkeypatch.setenv(name, "shell")
    code = "import os; print([os.environ.get(n) for n in ('OURS', 'BOTH', 'OTHER')])"
    every = setup(tmp_path, code, {"OURS": "recipe"})
    items = {"without:env:OURS"}
    folder = tmp_path / "trial"
    launch_once(every, PROBLEM.config(items), folder, unset=PROBLEM.unset_env(items))
    assert (folder / "server.log").read_text() == "[None, '1', 'shell']\n"
    launch_once(every, PROBLEM.config(()), folder, unset=PROBLEM.unset_env(()))
    assert (folder / "server.log").read_text() == "['1', '1', 'shell']\n"


def test_a_server_that_ends_silently_fails_and_one_that_was_killed_proves_nothing(
    tmp_path: Path,
) -> None:
    code = "import os, sys; os.kill(os.getpid(), {}) if {} else sys.exit(3)"
    seen = {}
    for name, number in (("exit", 0), ("abort", 6), ("kill", 9)):
        result = launch_once(
            setup(tmp_path, code.format(number, number)), Config.of({}), tmp_path / name
        )
        seen[name] = (result.seen, result.diagnosis.title)
    assert seen == {
        "exit": (Seen.FAILS, "the server ended with exit code 3 and no line says why"),
        "abort": (Seen.FAILS, "the server ended by SIGABRT and no line says why"),
        "kill": (Seen.UNRESOLVED, "the server ended by SIGKILL and no line says why"),
    }


def test_an_interpreter_without_the_engine_is_named(tmp_path: Path) -> None:
    here = setup(tmp_path, "")
    nothing = Setup(
        program=(sys.executable, "-m", "sglang.launch_server"), env=(), cwd=tmp_path,
        patience=here.patience, engine="sglang",
    )  # fmt: skip
    result = launch_once(nothing, Config.of({}), tmp_path / "trial")
    assert isinstance(result.capture.outcome, Crashed)
    assert (result.seen, result.diagnosis.cause) == (Seen.FAILS, "python-module-missing")
    assert result.diagnosis.phase == "import"


def test_a_launch_may_take_what_is_left_of_the_budget(tmp_path: Path) -> None:
    whole = setup(tmp_path, "")
    assert whole.within(100.0) == whole
    assert whole.within(7.5).patience == Patience(silent_s=20, total_s=7.5)
    assert whole.within(-3.0).patience.total_s == 1.0


def test_a_launch_that_would_outlast_the_budget_is_cut_at_its_end(tmp_path: Path) -> None:
    recipe = Recipe(
        name="slow",
        problem=Problem(name="slow", baseline=Config(), items=PROBLEM.items[3:], budget_s=1.5),
        engine="sglang",
        engine_version="0.5.23",
        command=(sys.executable, "-c", "import time; time.sleep(60)"),
        cwd=tmp_path,
        patience=Patience(silent_s=30, total_s=60),
    )
    search = Search(recipe=recipe)
    session, journal = open_session(search, tmp_path / "session", fresh=True)
    quiet = Talk(starting=lambda *_: None, finished=lambda _: None, event=lambda _: None)
    began = time.monotonic()
    done, _ = bisect(search, session, journal, quiet)
    assert 1.5 <= time.monotonic() - began < 15
    assert done.reason == "budget"
    assert journal.entries == [], "what the budget ended is no answer"
