"""The journal as arrays: what was launched, and which failure each launch showed.

In:  a Known (the journal, read for one problem). Out: Evidence.
Not: what it means for a cause (likelihood.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triage.core.phases import order
from triage.core.search.bound import Bar, minimal
from triage.core.search.candidates import Ints, Masks
from triage.core.search.journal import Known, signature
from triage.core.search.repairs import Conflict, conflicts, unsteady
from triage.core.search.space import Space, space_of
from triage.core.search.subsets import heaviest
from triage.core.trials import Entry, Noise, Seen

STARTED = -1
USUAL = Noise(miss=0.05, transient=0.10)  # once a configuration gave two answers
UNKNOWN = order("unknown")
CHECKED = order("arg-validation")  # the last phase that the engine passes before any process


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """L answers about masks of one space, in launch order, repetitions included.

    `failure` (L,): place of the failure in `names`, STARTED where there was none.
    `phase` (L,): place of the phase in a startup; of a start, or where the phase is not
    known, -1. `phases`: by failure, the latest phase that it was seen in, -1 unknown.
    `first`: the failure of all that is wanted, which is `top`; -1 if it was not launched, or
    starts. `suspects`: by
    failure the bits at which its diagnoses point, the strongest reason first. `passed`: masks that
    the engine accepts before it starts a process, without a launch.
    """

    space: Space
    noise: Noise
    masks: Masks
    failure: Ints
    phase: Ints
    names: tuple[str, ...]
    phases: tuple[int, ...]
    first: int
    top: int
    suspects: tuple[tuple[int, ...], ...]
    conflicts: tuple[Conflict, ...] = ()
    passed: tuple[int, ...] = ()

    def without(self, d: int) -> tuple[int, ...]:
        """Masks that do not show the failure, though not launched: the engine accepts them."""
        return self.passed if 0 <= self.phases[d] <= CHECKED else ()

    @property
    def unless(self) -> tuple[int, ...]:
        """By failure: bits of which one repairs it, as far as contradictions show; mostly 0."""
        by_name = {conflict.failure: conflict.repairs for conflict in self.conflicts}
        return tuple(by_name.get(name, 0) for name in self.names)

    @property
    def bars(self) -> list[Bar]:
        """The smallest masks that failed, with what repairs them."""
        plain: list[int] = []
        found: list[Bar] = []
        unless = self.unless
        for mask, failure in zip(self.masks.tolist(), self.failure.tolist(), strict=True):
            if failure != STARTED:
                if unless[failure] and not mask & unless[failure]:
                    found.append(Bar(mask, unless[failure]))
                else:
                    plain.append(mask)
        return [*(Bar(mask) for mask in minimal(plain)), *dict.fromkeys(found)]

    @property
    def started(self) -> list[int]:
        """Masks that started at least once, each once."""
        return list(dict.fromkeys(self.masks[self.failure == STARTED].tolist()))

    @property
    def failed(self) -> list[int]:
        """Masks that failed at least once, each once."""
        return list(dict.fromkeys(self.masks[self.failure != STARTED].tolist()))

    @property
    def asked(self) -> frozenset[int]:
        """All masks with an answer."""
        return frozenset(self.masks.tolist())


def evidence_of(known: Known, entries: Sequence[Entry]) -> Evidence:
    """The resolved entries as arrays; `entries` are those that belong to the problem."""
    space = space_of(known.problem)
    answers: dict[int, list[str | None]] = {}
    told = [e for e in entries if e.seen is not Seen.UNRESOLVED]
    failures = [signature(e) if e.seen is Seen.FAILS else None for e in told]
    masks = [space.mask(e.items) for e in told]
    phase = [_phase(e) for e in told]
    for mask, failure in zip(masks, failures, strict=True):
        answers.setdefault(mask, []).append(failure)
    noise = known.problem.noise
    if not noise and unsteady(answers):
        noise = USUAL
    found = () if noise else conflicts(space, answers)
    # A cause has one phase, the machine strikes in any: where it may, a name is one failure
    # in each phase.
    apart = [p if noise.transient else -1 for p in phase]
    shown = [None if f is None else (f, p) for f, p in zip(failures, apart, strict=True)]
    kinds = list(dict.fromkeys(kind for kind in shown if kind is not None))
    top = heaviest(known.problem)
    wanted = space.mask(top) if top is not None else 0
    first = next((f for m, f in zip(masks, shown, strict=True) if m == wanted and f), None)
    places = {key: j for j, key in enumerate(space.keys)}
    suspects: list[tuple[int, ...]] = []
    for kind in kinds:
        said = [e.suspects for e, f in zip(told, shown, strict=True) if f == kind]
        suspects.append(_ranked([[places[s] for s in one if s in places] for one in said]))
    return Evidence(
        space=space,
        noise=noise,
        masks=np.array(masks, dtype=np.uint64),
        failure=np.array([STARTED if f is None else kinds.index(f) for f in shown], dtype=np.int64),
        phase=np.array(phase, dtype=np.int64),
        names=tuple(name for name, _ in kinds),
        phases=tuple(
            max(p for p, f in zip(phase, shown, strict=True) if f == kind) for kind in kinds
        ),
        first=-1 if first is None else kinds.index(first),
        top=wanted,
        suspects=tuple(suspects),
        conflicts=found,
        passed=tuple(space.mask(keys) for keys in known.passed) if not noise else (),
    )


def _ranked(said: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """All that the diagnoses of one failure point at, in the order of the best place of each."""
    place: dict[int, int] = {}
    for one in said:
        for at, j in enumerate(dict.fromkeys(one)):
            place[j] = min(at, place.get(j, at))
    return tuple(sorted(place, key=lambda j: (place[j], j)))


def _phase(entry: Entry) -> int:
    place = order(entry.phase)
    return -1 if entry.seen is Seen.STARTS or place >= UNKNOWN else place
