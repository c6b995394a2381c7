"""How long a launch of this recipe takes, before there was any: who knows?

In:  a Search, earlier sessions of this folder. Out: Pace.
Not: the arithmetic, or the search's own launches (triage.core.search.pace).

In this order: earlier searches of the same model, what the recipe says (`launch: {takes: ...}`),
what the landscape plays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from triage.core.search.pace import Pace, filled, pace_of
from triage.core.trials import Entry
from triage.errors import TriageError
from triage.store import Journal, sessions

if TYPE_CHECKING:
    from triage.session.search import Search

_SESSIONS = 20  # the newest
_ASK_S = 20.0
_PLAYED = 100.0  # played faster, a launch takes what its processes need, whatever is played


def known_before(search: Search, besides: Path | None = None) -> Pace:
    """What is known before the first launch of this search, whose own session is no earlier one."""
    found = _earlier(search, besides)
    recipe = search.recipe
    if recipe.takes != (None, None):
        found = filled(found, Pace(*recipe.takes, "as the recipe says"))
    if search.replay is not None and search.replay.speed <= _PLAYED:
        found = filled(found, _played(search))
    return found


def _earlier(search: Search, besides: Path | None) -> Pace:
    """The means over earlier searches of the same model, engine and target in this folder."""
    replay = search.replay
    want = None
    if replay is not None:
        want = {"landscape": str(replay.landscape.absolute()), "speed": replay.speed}
    model = search.recipe.problem.baseline.get("model-path")
    entries: list[Entry] = []
    held = 0
    for session in list(reversed(sessions()))[:_SESSIONS]:
        own = besides is not None and session.path.absolute() == besides.absolute()
        if session.single or own or session.facts["replay"] != want:
            continue
        with suppress(TriageError, OSError):
            told = Journal(session.path / "journal.jsonl").entries
            same = [e for e in told if e.config.get("model-path") == model]
            entries += same
            held += bool(same)
    full = [e for e in entries if e.launched and e.rung == "full"]
    launches = f"{len(full)} launch{'' if len(full) == 1 else 'es'}"
    where = f"{held} earlier session{'' if held == 1 else 's'}"
    return pace_of(entries, f"mean of {launches} of this model in {where}")


def _played(search: Search) -> Pace:
    """What the simulated engine says of its landscape; only it reads one."""
    assert search.replay is not None  # noqa: S101  the caller looked
    words = [sys.executable, "-m", "triage.replay", "--seconds", "--landscape",
             str(search.replay.landscape), "--speed", f"{search.replay.speed:g}"]  # fmt: skip
    try:
        done = subprocess.run(words, capture_output=True, timeout=_ASK_S, check=False)
        told = json.loads(done.stdout)
        return Pace(told["starts"], told["fails"], "as the landscape plays it")
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
        return Pace()
