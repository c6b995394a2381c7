"""Faults in series: one failure that hides another, and what is known to bring each about.

In:  an Investigation. Out: the blocks of the section.
Not: finding the sets (triage.core.search) or what a cause is (triage/knowledge/causes).

Two minimal failing sets lie in series if the one lies inside the other and shows another
failure in a later phase: with both sets at once the launch ends before it can get there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.core.handover.document import Block, Paragraph, Table
from triage.core.handover.investigation import Investigation
from triage.core.phases import order
from triage.core.trials import FailingSet
from triage.core.wording import braces


def in_series(sets: Sequence[FailingSet]) -> tuple[tuple[FailingSet, FailingSet], ...]:
    """Pairs (earlier, later): the earlier failure hides the later one wherever both are."""
    return tuple(
        (outer, inner)
        for outer in sets
        for inner in sets
        if inner.items < outer.items
        and inner.signature != outer.signature
        and order(outer.phase) <= order(inner.phase)
    )


def faults(found: Investigation) -> Iterable[Block]:
    """Which failures lie in series; of each failure what is known to cause it, and the test."""
    sets = found.recommendation.sets
    for outer, inner in in_series(sets):
        both, less = braces(outer.items, found.problem), braces(inner.items, found.problem)
        yield Paragraph(
            f"Two faults in series: {both} fails in {outer.phase} ({outer.signature}), before it "
            f"can reach {inner.phase}, where {less} alone fails ({inner.signature}). A cure of "
            "the first would most likely bring the second to light, so each needs one of its own."
        )
    by_id = {cause.id: cause for cause in found.causes}
    ids = [s.cause for s in sets] + ([found.diagnosis.cause] if found.diagnosis else [])
    for name in dict.fromkeys(ids):
        cause = by_id.get(name or "")
        if cause is None or not cause.origins:
            continue
        yield Paragraph(f"What is known to bring {cause.id} about:")
        yield Table(
            ("what", "how it is known", "how to tell"),
            tuple((o.say, ", ".join((o.basis, *o.sources)), o.look) for o in cause.origins),
        )
        if cause.discriminator:
            yield Paragraph(f"The one test that would discriminate: {cause.discriminator}")
