"""Reported figures against the model, and what counted bytes say of the bandwidth.

In:  a Situation with reported figures, the baseline's layout. Out: Comparison, BandwidthClaim.
Not: measuring (triage.launch).
"""

from __future__ import annotations

from triage.core.advice.gains import served_load
from triage.core.advice.values import BandwidthClaim, Comparison, Reported, Rules, Situation
from triage.core.physics.layout import Layout
from triage.core.physics.regime import HBM_BOUND, hbm_share
from triage.core.physics.step import step
from triage.core.physics.throughput import accepted_for

SHOWN_BY = "DRAM_ACTIVE of DCGM, or the DRAM bandwidth of GPM (Hopper and later)"
SPECULATION = "speculative-algorithm"


def comparisons(about: Situation, rules: Rules, layout: Layout) -> tuple[Comparison, ...]:
    """Each reported figure against the model."""
    return tuple(_compare(about, rules, layout, one) for one in about.reported)


def _compare(about: Situation, rules: Rules, layout: Layout, one: Reported) -> Comparison:
    alone = step(about.model, about.node, layout, served_load(about, one.concurrency))
    modelled = one.concurrency / alone.seconds
    ratio = one.tokens_per_s / modelled
    speculates = _speculates(about, one)
    accepted = tuple(
        (tokens, _accepted(about, layout, one, tokens)) for tokens in _trees(about, rules)
    )
    slow = 1 / ratio >= rules.slow_factor
    if slow:
        say = f"{1 / ratio:.1f}x slower than physics: look for queueing first"
    elif speculates:
        least, most = (
            f(a for _, a in accepted) for f in (min, max)
        )  # the acceptance is not known, so the step is not, either
        say = (
            f"{ratio:.2f}x what is modelled without speculation; if a step takes the modelled"
            f" time, {least:.1f} to {most:.1f} tokens of it are accepted"
        )
    else:
        word = "slower" if ratio < 1 else "faster"
        say = f"{abs(1 - 1 / ratio) * 100:.0f} % {word} than modelled"
    return Comparison(
        reported=one,
        speculation=speculates,
        modelled_tokens_per_s=modelled,
        ratio=ratio,
        accepted=accepted if speculates else (),
        say=say,
        slow=slow,
    )


def bandwidth(about: Situation, rules: Rules, layout: Layout) -> BandwidthClaim:
    """Whether bytes over time support that the memory's bandwidth is the limit.

    With speculation the time of a step follows from the throughput and the acceptance;
    the acceptance is that which the least concurrency needs, as it does not depend on it.
    """
    shares = []
    counted = [one for one in about.reported if not _compare(about, rules, layout, one).slow]
    for one in counted:
        if not _speculates(about, one):
            made = step(about.model, about.node, layout, served_load(about, one.concurrency))
            shares.append(hbm_share(made, about.node, one.concurrency / one.tokens_per_s))
            continue
        first = min((r for r in counted if _speculates(about, r)), key=lambda r: r.concurrency)
        for tokens in _trees(about, rules):
            accepted = _accepted(about, layout, first, tokens)
            made = step(
                about.model, about.node, layout, served_load(about, one.concurrency, tokens)
            )
            seconds = accepted * one.concurrency / one.tokens_per_s
            shares.append(hbm_share(made, about.node, seconds))
    by = "by byte count of the reported figures"
    if not shares:
        made_all = [
            step(about.model, about.node, layout, served_load(about, c)) for c in about.served
        ]
        shares = [hbm_share(made, about.node, made.seconds) for made in made_all]
        by = "by byte count, modelled"
    low, high = min(shares), max(shares)
    shown = low >= HBM_BOUND
    if shown:
        say = f"supported: {_percent(low, high)} of the memory's rate {by}"
    else:
        say = f"not shown: {_percent(low, high)} of the memory's rate {by}"
    return BandwidthClaim(shown=shown, low=low, high=high, say=say, shown_by=SHOWN_BY)


def _percent(low: float, high: float) -> str:
    first, last = f"{low * 100:.0f}", f"{high * 100:.0f}"
    return f"{first} %" if first == last else f"{first}-{last} %"


def _speculates(about: Situation, one: Reported) -> bool:
    return about.speculation and SPECULATION not in one.without


def _trees(about: Situation, rules: Rules) -> tuple[int, ...]:
    return rules.tree_tokens if about.verify_tokens is None else (about.verify_tokens,)


def _accepted(about: Situation, layout: Layout, one: Reported, tokens: int) -> float:
    """Accepted tokens a step that the figure needs, if a step takes the modelled time."""
    load = served_load(about, one.concurrency, tokens)
    return accepted_for(step(about.model, about.node, layout, load), load, one.tokens_per_s)
