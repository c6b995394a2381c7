"""Groups of failures that no cause explains, so that the largest gets its cause first.

In:  diagnoses. Out: Groups, the largest first; the order of the diagnoses changes nothing.
Not: classifying logs, or drafting a cause (triage.session.draft).

Two failures are near if their exceptions have the same type and seven of ten words of their
masked messages are the same. Groups have no identity of their own: a group is named after the
fingerprint that most of its members share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from triage.core.diagnosis import Diagnosis
from triage.core.log.fingerprint import Levels, levels, masked
from triage.core.records import dataclass

NEAR = 0.7  # of the words of the longer message
_WORDS = 100  # of a message that are compared
LEVELS = ("near", "frame", "default", "exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One log of a group; `similarity` to the group's example, 1 if their fingerprints agree.

    `fingerprint` is "" where the end says nothing about the configuration.
    """

    source: str
    line: int  # of the root, 0 where there is none
    phase: str
    fingerprint: str
    exact: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Failures that are alike; `example` is the member that stands for them, by its source."""

    fingerprint: str
    frame: str
    outcome: str
    text: str  # the example's root line, or how it ended
    example: str
    line: int
    members: tuple[Member, ...]

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in which the members failed, the most frequent first."""
        counts = Counter(member.phase for member in self.members)
        return tuple(sorted(counts, key=lambda phase: (-counts[phase], phase)))


@dataclass(frozen=True, slots=True)
class _Failure:
    """A diagnosis with what it is compared by."""

    diagnosis: Diagnosis
    levels: Levels
    kind: str  # exception type, or how it ended
    words: Counter[str]

    def key(self, level: str) -> str:
        return {"frame": self.levels.frame, "exact": self.levels.exact}.get(
            level, self.levels.default
        )

    def similarity(self, other: _Failure) -> float:
        if self.levels.default == other.levels.default:
            return 1.0
        longest = max(self.words.total(), other.words.total())
        return (self.words & other.words).total() / longest if longest else 0.0


def unexplained(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Those that failed or hung without a named cause."""
    return tuple(d for d in diagnoses if d.outcome in ("failed", "hung") and d.cause is None)


def cluster(diagnoses: Sequence[Diagnosis], level: str = "near") -> tuple[Group, ...]:
    """The unexplained among the diagnoses, in groups.

    Args:
        diagnoses: Of logs with different sources.
        level: `frame`, `default` or `exact` groups by that fingerprint alone; `near` joins
            groups of the default fingerprint whose messages are alike.
    """
    failures = [_failure(d) for d in unexplained(diagnoses)]
    alike: dict[str, list[_Failure]] = {}
    for failure in sorted(failures, key=lambda f: f.diagnosis.source):
        alike.setdefault(failure.key(level), []).append(failure)
    groups: list[list[_Failure]] = []
    for _, members in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        home = next((g for g in groups if level == "near" and _near(g[0], members[0])), None)
        if home is None:
            groups.append(members)
        else:
            home.extend(members)
    made = [_group(members) for members in groups]
    return tuple(sorted(made, key=lambda g: (-len(g.members), g.fingerprint)))


def _near(one: _Failure, other: _Failure) -> bool:
    return one.kind == other.kind and one.similarity(other) >= NEAR


def _failure(d: Diagnosis) -> _Failure:
    exc, text = d.traceback, _text(d)
    if exc is not None and exc.exception:
        kind, found = exc.exception, levels(exc.exception, exc.message, exc.frames)
    else:
        kind, found = d.outcome, levels("", text)
    if d.fingerprint:
        frame = found.frame if found.frame != found.default else d.fingerprint
        found = Levels(frame=frame, default=d.fingerprint, exact=found.exact)
    words = re.findall(r"<\w+>|\w+", masked(text))[:_WORDS]
    return _Failure(diagnosis=d, levels=found, kind=kind, words=Counter(words))


def _text(d: Diagnosis) -> str:
    """What the failure says: a hang says only where it stands."""
    if d.outcome == "hung":
        return d.fingerprint_of or f"hung in {d.phase}"
    return d.root.text if d.root else (d.title or f"failed in {d.phase}")


def _group(members: list[_Failure]) -> Group:
    example = members[0]
    d = example.diagnosis
    return Group(
        fingerprint=d.fingerprint or "",
        frame=example.levels.frame if d.fingerprint else "",
        outcome=d.outcome,
        text=_text(d),
        example=d.source,
        line=d.root.line if d.root else 0,
        members=tuple(
            Member(
                source=one.diagnosis.source,
                line=one.diagnosis.root.line if one.diagnosis.root else 0,
                phase=one.diagnosis.phase,
                fingerprint=one.diagnosis.fingerprint or "",
                exact=one.levels.exact,
                similarity=round(one.similarity(example), 3),
            )
            for one in sorted(members, key=lambda f: f.diagnosis.source)
        ),
    )
