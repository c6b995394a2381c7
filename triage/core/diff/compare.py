"""Compare two launches, part by part.

In:  two Sides, the Rules, the flag table. Out: Diff.
Not: whose doing a moved field is (attribute.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Literal, TypeVar, cast

from triage.core.diff.attribute import attributed
from triage.core.diff.difference import (
    DecisionChange,
    Diff,
    EnvChange,
    FieldChange,
    Part,
    PhaseChange,
    SizeChange,
    Suppressed,
    TypedChange,
    VersionChange,
)
from triage.core.diff.rules import Rules
from triage.core.diff.side import Decision, Side
from triage.core.flags import FlagTable
from triage.core.phases import PHASES, order
from triage.core.records import dataclass
from triage.core.redact import MARKER, SECRET_NAME
from triage.core.wording import ENV, settings

T = TypeVar("T")

ABSENT = "(no such field)"
_PLACED = ("host", "port")
# Phases that a log shows only where something warns or fails in them.
_UNMARKED = frozenset({"container", "import", "arg-parse", "arg-validation", "unknown"})
_ANOTHER_RELEASE = 20  # fields that only one side has; a fork adds fewer


def compare(good: Side, bad: Side, rules: Rules, table: FlagTable) -> Diff:
    """Everything that differs; what says nothing is in `suppressed`, each with its reason."""
    one = _Comparison(good, bad, rules, table)
    user = tuple(one.user())
    resolved = tuple(one.resolved(user))
    return Diff(
        good=good,
        bad=bad,
        user=user,
        resolved=resolved,
        env=tuple(one.env(user, resolved)),
        versions=tuple(one.versions()),
        timeline=tuple(one.timeline()),
        memory=tuple(one.memory()),
        decisions=tuple(one.decisions()),
        suppressed=tuple(one.out),
        notes=tuple(_notes(good, bad)),
    )


def differing_fields(
    good: Mapping[str, object], bad: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Field -> both values, where they differ; by name, a field that one side lacks as ABSENT."""
    names = sorted(good.keys() | bad.keys())
    both = ((name, good.get(name, ABSENT), bad.get(name, ABSENT)) for name in names)
    return {
        name: (a, b)
        for name, a, b in both
        if a != b or isinstance(a, bool) is not isinstance(b, bool)  # True == 1 in Python
    }


def veiled(name: str, good: T, bad: T) -> tuple[T, T]:
    """Two values without what is secret by its name; two secrets stay two."""
    if not SECRET_NAME.search(name.rpartition(".")[2]):
        return good, bad
    marks = (MARKER, MARKER if good is None or good == bad else f"{MARKER}-2")
    hidden = [
        mark if isinstance(value, str) and value else value
        for mark, value in zip(marks, (good, bad), strict=True)
    ]
    return cast("tuple[T, T]", tuple(hidden))


@dataclass(slots=True)
class _Comparison:
    """Two sides being compared; `out` collects what is left out."""

    good: Side
    bad: Side
    rules: Rules
    table: FlagTable
    out: list[Suppressed] = field(default_factory=list)

    def leave_out(self, part: Part, name: str, values: tuple[object, object], why: str) -> None:
        """A difference that says nothing."""
        good, bad = veiled(name, *values)
        self.out.append(Suppressed(part=part, name=name, good=good, bad=bad, reason=why))

    def user(self) -> Iterator[TypedChange]:
        """Flags and variables that were set differently."""
        if self.good.typed is None or self.bad.typed is None:
            return
        before, after = dict(settings(self.good.typed)), dict(settings(self.bad.typed))
        for key in sorted(before.keys() | after.keys(), key=lambda k: (k.startswith(ENV), k)):
            a, b = before.get(key), after.get(key)
            if a == b:
                continue
            if key in _PLACED:
                self.leave_out("user", key, (a, b), self.rules.reason("resolved", key))
            else:
                good, bad = veiled(key.removeprefix(ENV), a, b)
                yield TypedChange(key=key, good=good, bad=bad)

    def resolved(self, user: Iterable[TypedChange]) -> Iterator[FieldChange]:
        """Fields of the engine's own arguments that differ, what was set before what moved."""
        if self.good.resolved is None or self.bad.resolved is None:
            return
        typed = None
        if self.good.typed is not None and self.bad.typed is not None:
            specs = (self.table.specs.get(change.key) for change in user)
            typed = {spec.field for spec in specs if spec is not None}
        changed = self._changed(self.good.resolved, self.bad.resolved, typed or set())
        for name, told in attributed(changed, typed, self.rules, self.table).items():
            spec = self.table.by_field(name)
            before, after = veiled(name, *changed[name])
            yield FieldChange(
                field=name,
                flag=spec.name if spec else "",
                good=before,
                bad=after,
                kind=told.kind,
                by=told.by,
                where=told.where,
                also=told.also,
                why=told.why,
                sure=typed is not None,
            )

    def _changed(
        self, good: Mapping[str, object], bad: Mapping[str, object], typed: set[str]
    ) -> dict[str, tuple[object, object]]:
        """The fields that differ, less those that are left out."""
        differing = differing_fields(good, bad)
        lone = [name for name, values in differing.items() if ABSENT in values]
        foreign = frozenset(lone if len(lone) > _ANOTHER_RELEASE else ())
        changed = {}
        for name, values in differing.items():
            why = self.rules.reason("resolved", name, good, bad)
            follower = self.rules.follower(name)
            if not why and follower is not None and follower.hidden and name not in typed:
                why = follower.reason if any(x in differing for x in follower.leaders) else ""
            if name in foreign:
                why = "a field of one of the two releases only"
            if why:
                self.leave_out("resolved", name, values, why)
            else:
                changed[name] = values
        return changed

    def env(
        self, user: Iterable[TypedChange], resolved: Iterable[FieldChange]
    ) -> Iterator[EnvChange]:
        """Variables: those that were told, then those that the engine sets without a word."""
        told = {change.key.removeprefix(ENV) for change in user if change.key.startswith(ENV)}
        good, bad = self.good, self.bad
        complete = good.complete_env and bad.complete_env
        for name in sorted((good.env.keys() | bad.env.keys()) - told):
            before, after = good.env.get(name), bad.env.get(name)
            if before == after:
                continue
            told.add(name)
            if why := self.rules.reason("env", name):
                self.leave_out("env", name, (before, after), why)
            else:
                good_, bad_ = veiled(name, before, after)
                yield EnvChange(
                    name=name, good=good_, bad=bad_, told="command" if complete else "log"
                )
        if good.made is not None and bad.made is not None:
            yield from self._made(good.made, bad.made, told)
            return
        moved = {change.field for change in resolved}
        for rule in self.rules.env if good.resolved and bad.resolved else ():
            own = any(rule.name in side.env for side in (good, bad))
            before, after = (rule.value(side.resolved or {}) for side in (good, bad))
            if before == after or rule.name in told or (own and not rule.wins):
                continue
            yield EnvChange(
                name=rule.name,
                good=before or None,
                bad=after or None,
                told="rule",
                by=tuple(name for name in rule.fields if name in moved),
                where=rule.where,
            )

    def _made(
        self, good: Mapping[str, str], bad: Mapping[str, str], told: set[str]
    ) -> Iterator[EnvChange]:
        """Variables that the engine set, as it says itself."""
        for name in sorted((good.keys() | bad.keys()) - told):
            before, after = good.get(name), bad.get(name)
            if before == after:
                continue
            if why := self.rules.reason("env", name):
                self.leave_out("env", name, (before, after), why)
            else:
                before, after = veiled(name, before, after)
                yield EnvChange(name=name, good=before, bad=after, told="engine")

    def versions(self) -> Iterator[VersionChange]:
        """Packages of which both sides tell a version, and not the same."""
        before = {"sglang": self.good.engine_version} | dict(self.good.versions)
        after = {"sglang": self.bad.engine_version} | dict(self.bad.versions)
        for name in sorted(before.keys() & after.keys()):
            a, b = before[name], after[name]
            if a is not None and b is not None and a != b:
                yield VersionChange(name=name, good=a, bad=b)

    def timeline(self) -> Iterator[PhaseChange]:
        """Phases that one side did not reach, and those that took much longer."""
        good, bad = self.good.seconds, self.bad.seconds
        before, after = _lasted(good), _lasted(bad)
        tolerance = self.rules.tolerance
        if "command" in (self.good.kind, self.bad.kind):
            return
        for phase in sorted((good.keys() | bad.keys()) - _UNMARKED, key=order):
            a, b = before.get(phase), after.get(phase)
            if phase not in bad:
                yield PhaseChange(phase=phase, kind="good-only", good=a, bad=None)
            elif phase not in good:
                yield PhaseChange(phase=phase, kind="bad-only", good=None, bad=b)
            elif a is not None and b is not None:
                low, high = sorted((a, b))
                if high - low >= tolerance.seconds and high >= tolerance.times * low:
                    yield PhaseChange(phase=phase, kind="slower", good=a, bad=b)

    def memory(self) -> Iterator[SizeChange]:
        """Sizes that both sides printed; what only one came to is said by the timeline."""
        for name, before in self.good.memory.items():
            after = self.bad.memory.get(name)
            if after is None or (before.low, before.high) == (after.low, after.high):
                continue
            a, b = (before.low, before.high), (after.low, after.high)
            why = self.rules.reason("memory", name)
            if not why and before.unit == "GB" and self._near(a, b):
                why = "within what readings of the same launch differ by"
            if why:
                self.leave_out("memory", name, (a, b), why)
            else:
                yield SizeChange(name=name, unit=before.unit, good=a, bad=b)

    def _near(self, a: tuple[float, float], b: tuple[float, float]) -> bool:
        tolerance = self.rules.tolerance
        return all(
            abs(x - y) < max(tolerance.gigabytes, tolerance.share * max(abs(x), abs(y)))
            for x, y in zip(a, b, strict=True)
        )

    def decisions(self) -> Iterator[DecisionChange]:
        """The lines that only one side has; not those that the other ended too early to say."""
        before, after = self._said(self.good), self._said(self.bad)
        lone: list[tuple[str, Decision, Literal["good", "bad"]]] = [
            *((text, one, "good") for text, one in before.items() if text not in after),
            *((text, one, "bad") for text, one in after.items() if text not in before),
        ]
        passed = {"good": _passed(self.bad), "bad": _passed(self.good)}
        for text, one, name in lone:
            why = self.rules.reason("decisions", one.text)
            if not why and one.phase not in passed[name]:
                why = "the other launch did not come past that point"
            if why:
                here = (one.text, None) if name == "good" else (None, one.text)
                self.leave_out("decisions", text, here, why)
            else:
                yield DecisionChange(text=one.text, side=name, line=one.line)

    def _said(self, side: Side) -> dict[str, Decision]:
        """The lines by what stays the same in them, of equal ones the first."""
        said: dict[str, Decision] = {}
        for one in side.decisions:
            text = one.text
            for mask in self.rules.masked:
                text = mask.pattern.sub(mask.put, text)
            said.setdefault(text, one)
        return said


def _lasted(reached: Mapping[str, float | None]) -> dict[str, float]:
    """Seconds from a phase to the next one that was reached; of the last one nothing is known."""
    dated = [(phase, at) for phase, at in reached.items() if at is not None]
    dated.sort(key=lambda one: (one[1], order(one[0])))
    return {phase: following - at for (phase, at), (_, following) in pairwise(dated)}


def _passed(side: Side) -> frozenset[str]:
    """The phases that a launch left behind; where it ended, what it would have said is open."""
    if side.kind == "command":
        return _UNMARKED | {"config-load"}
    if side.outcome == "healthy":
        return frozenset((*PHASES, *side.seconds))
    furthest = max(side.seconds, key=order, default="unknown")
    begun = _UNMARKED if side.seconds.keys() - _UNMARKED else frozenset()
    return begun | frozenset(side.seconds.keys() - {furthest, side.phase})


def _notes(good: Side, bad: Side) -> Iterator[tuple[Part, str]]:
    """What could not be compared."""
    if good.typed is None or bad.typed is None:
        yield "user", "a log does not tell what was typed"
    for name, side in (("good", good), ("bad", bad)):
        if side.resolved is None:
            yield "resolved", f"{name}: {side.unresolved}"
    if "command" in (good.kind, bad.kind):
        for part in ("versions", "timeline", "memory"):
            yield part, "a command was not launched"
