"""Whether what is dropped is worth another try: the advice, and the recipe's own judgement.

In:  an Investigation, with or without an Advice. Out: the blocks of the section.
Not: the arithmetic of gains (triage.core.advice).
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.core.advice.decide import percent_range
from triage.core.advice.values import Advice, Option, Status
from triage.core.handover.document import Block, Bullets, Figure, Paragraph, Table
from triage.core.handover.investigation import Investigation
from triage.core.wording import listed

# A launch that came up is no proof that it works; only a confirmation is.
_SHOWED = {Status.WORKS: "it starts", Status.FAILS: "it fails", Status.UNTRIED: "nothing yet"}


def worth(found: Investigation) -> Iterable[Block]:
    """The recipe's judgement first, then options with gain, chance and hours, and the decision."""
    for one in found.worth:
        yield Paragraph(one.say)
        if one.because:
            yield Bullets(one.because)
        tail = [f"Basis: {one.basis}."] if one.basis else []
        tail += [f"What would change this: {one.revisit}."] if one.revisit else []
        if tail:
            yield Paragraph(" ".join(tail))
    if found.advice is not None:
        yield from _advised(found.advice)


def _advised(advice: Advice) -> Iterable[Block]:
    decision = advice.decision
    served = listed([f"{c:,}" for c in advice.situation.served])
    yield Paragraph(f"The advice for {served} sequences at once: {decision.say}.")
    yield Table(
        ("option", "launches showed", "gain", "chance", "hours", "expected an hour", "risk"),
        tuple(_row(option) for option in advice.options),
    )
    reasons = [f"Not {what}: {why}." for what, why in decision.stop]
    guesses = [
        f"{o.title}: {percent_range(o.hypothesis.low, o.hypothesis.high)} {o.hypothesis.say}; "
        f"what would show it: {o.hypothesis.shown_by}."
        for o in advice.options
        if o.hypothesis is not None
    ]
    if reasons or guesses:
        yield Bullets((*reasons, *guesses))
    if decision.next:
        title = next((o.title for o in advice.options if o.key == decision.next), decision.next)
        yield Paragraph(f"Next: {title}, with at most {decision.launches} launches.")
    if decision.changed_by:
        yield Paragraph("This would change it:")
        yield Bullets(decision.changed_by)
    if any(curve.points for curve in advice.curves):
        yield _figure(advice)
    yield Paragraph("What the model takes for granted:")
    yield Bullets(advice.assumptions)


def _row(option: Option) -> tuple[str, ...]:
    known = option.low is not None and option.high is not None
    return (
        option.title,
        _SHOWED[option.status] if option.wanted else "not tried",
        percent_range(option.low or 0.0, option.high or 0.0) if known else "not modelled",
        f"{option.chance.share:.0%}",
        f"{option.chance.hours:.1f}",
        f"{option.gain_per_hour:.1%}",
        option.risk,
    )


def _figure(advice: Advice) -> Figure:
    counts = sorted({c for curve in advice.curves for c, _ in curve.points})
    rows = tuple(
        (
            curve.name,
            *(f"{dict(curve.points)[c]:,.0f}" if c in dict(curve.points) else "" for c in counts),
        )
        for curve in advice.curves
    )
    about = advice.situation
    return Figure(
        caption=f"Output tokens a second over sequences at once: {about.model.name} on "
        f"{about.node.count}x {about.node.gpu.name}, without speculation; modelled from published "
        "constants, nothing was launched for it. Crosses are reported figures.",
        alt="Lines of modelled throughput of "
        f"{listed([curve.name for curve in advice.curves])} over the number of sequences.",
        chart=advice,
        table=Table(("layout", *(f"{c:,}" for c in counts)), rows),
    )
