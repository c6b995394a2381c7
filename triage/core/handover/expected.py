"""What is expected of a proposal: the ways out that reports confirm, and advice that misleads.

In:  a proposal; ways as case.yaml lists them; a cause. Out: whether the one is among the others.
Not: making proposals (propose.py) or reading cases (triage.knowledge.cases).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.core.causes import Cause
from triage.core.config import Change, SetEnv, SetFlag, UnsetFlag
from triage.core.handover.proposals import Basis, Proposal
from triage.core.records import dataclass
from triage.core.regex import regex

ANY = "*"  # a way that names a flag or variable, whatever its value
_DASHED = regex(r"--([a-z][\w-]*)")
_LIST = "Possible solutions:"
# What the engine's list of solutions names whatever the reason of the failure was.
_LISTED = frozenset(
    ("mem-fraction-static", "cuda-graph-max-bs", "cuda-graph-max-bs-decode", "disable-cuda-graph",
     "cuda-graph-backend-decode", "enable-torch-compile")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way out that a report confirms: edits, all of which a proposal must have, or words.

    `set_flags` and `set_env` hold (name, value), the value `*` for any; of `unset` one
    must be dropped; `step` is a regular expression for the sentence of the proposal.
    """

    set_flags: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    set_env: tuple[tuple[str, str], ...] = ()
    step: str = ""


def meets(proposal: Proposal, way: Way) -> bool:
    """Whether the proposal goes this way."""
    done = [("", c.name, _text(c)) for c in proposal.changes if isinstance(c, SetFlag)]
    done += [("env", c.name, c.value) for c in proposal.changes if isinstance(c, SetEnv)]
    wanted = [("", *pair) for pair in way.set_flags] + [("env", *pair) for pair in way.set_env]
    for kind, name, value in wanted:
        if not any((kind, name) == (k, n) and value in (ANY, v) for k, n, v in done):
            return False
    gone = {c.name for c in proposal.changes if isinstance(c, UnsetFlag)}
    if way.unset and not gone & set(way.unset):
        return False
    if way.step:
        return re.search(way.step, proposal.say, re.IGNORECASE) is not None
    return bool(wanted or way.unset)


def met(proposal: Proposal, ways: Sequence[Way]) -> bool:
    """Whether the proposal goes one of the ways."""
    return any(meets(proposal, way) for way in ways)


def misleads(changes: Sequence[Change], basis: Basis, cause: Cause | None) -> bool:
    """Whether the edits are advice that the engine prints, and that does not fit this cause.

    What a report suggests or confirms for the cause fits it, whatever the engine prints.
    """
    if cause is None or basis in (Basis.LAUNCHED, Basis.REPORTED, Basis.SUGGESTED):
        return False
    names = {change.name for change in changes}
    decoys = " ".join(cause.decoys)
    if names & {name.replace("_", "-") for name in _DASHED.findall(decoys)}:
        return True
    return _LIST in decoys and basis is Basis.INFERRED and bool(names & _LISTED)


def _text(change: SetFlag) -> str:
    match change.value:
        case True:
            return "true"
        case False:
            return "false"
        case str(text):
            return text
        case parts:
            return " ".join(parts)
