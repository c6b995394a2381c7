"""Persevere or pivot: which option is worth the next hours, and what would change that.

In:  Options, the Situation, comparisons with figures. Out: Decision.
Not: the options' gains (options.py).

An attempt is worth its chance times its gain; what is compared is that an hour. What
cannot gain more than a benchmark's noise is left without another launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from triage.core.advice.gains import data_parallel, worth_again
from triage.core.advice.options import harmless
from triage.core.advice.values import (
    BandwidthClaim,
    Comparison,
    Decision,
    Option,
    Rules,
    Situation,
    Status,
)
from triage.core.physics.layout import Layout
from triage.core.physics.regime import HBM_BOUND
from triage.core.trials import Problem
from triage.core.wording import listed, settings, spell_setting

_SPOKEN = frozenset(["tp-size", "pp-size", "dp-size", "ep-size", "enable-dp-attention",
                     "enable-nccl-nvls", "speculative-algorithm", "moe-a2a-backend"])  # fmt: skip


def decide(
    about: Situation, rules: Rules, problem: Problem, layout: Layout, *,
    options: Sequence[Option], figures: Sequence[Comparison], claim: BandwidthClaim,
) -> Decision:  # fmt: skip
    """What to do next."""
    wanted = [option for option in options if option.wanted]
    kept = [option for option in wanted if _keep(option, rules)]
    open_ones = [
        option
        for option in wanted
        if option.status is not Status.WORKS and option.best > rules.noise_share
    ]
    others = [
        option
        for option in options
        if not option.wanted and (option.high or 0.0) > rules.noise_share
    ]
    first = max(open_ones, key=lambda o: o.gain_per_hour, default=None)
    other = max(others, key=lambda o: o.gain_per_hour, default=None)
    on = first is not None and (other is None or first.gain_per_hour >= other.gain_per_hour)
    chosen = first if on else other
    not_judged = tuple(o.title for o in wanted if o.low is None and o not in kept)
    if on:
        kept = [option for option in kept if option is not first]
    elif chosen is None and not_judged:
        on = True
    widths, speculation = _spoken(problem)
    keep = (*widths, *(option.title for option in kept), *speculation)
    stop = tuple(
        (option.title, _why_not(option, rules, other))
        for option in wanted
        if option not in kept and option is not chosen and option.low is not None
    )
    return Decision(
        kind="persevere" if on else "pivot",
        say=_say(keep, [n for n, _ in stop], chosen, not_judged if on and not chosen else ()),
        keep=keep,
        stop=stop,
        not_judged=not_judged,
        next=chosen.key if chosen else "",
        launches=_launches(chosen, rules) if chosen else 0,
        changed_by=_changed_by(
            about, rules, layout, options=options, figures=figures, claim=claim, chosen=chosen
        ),
    )


def _keep(option: Option, rules: Rules) -> bool:
    """What works and does not cost, and what is untried and can only gain."""
    if option.status is Status.WORKS:
        return option.high is None or option.high > -rules.noise_share
    return option.status is Status.UNTRIED and harmless(option, rules)


def _spoken(problem: Problem) -> tuple[list[str], list[str]]:
    """What of the baseline names it: its widths, its speculation."""
    every = [(k, spell_setting(k, v)) for k, v in settings(problem.baseline) if k in _SPOKEN]
    widths = [said for key, said in every if not key.startswith("speculative")]
    return widths, [said for key, said in every if key.startswith("speculative")]


def _why_not(option: Option, rules: Rules, other: Option | None) -> str:
    low, high = option.low or 0.0, option.high or 0.0
    gains = percent_range(low, high)
    if option.best <= rules.noise_share:
        return f"{gains} at best, less than a benchmark shows; no further launch"
    extra = ""
    if option.hypothesis is not None and high <= rules.noise_share:
        h = option.hypothesis
        extra = f"; up to {h.high * 100:+.0f} % only {h.say} (not shown)"
    than = ""
    if other is not None:
        than = (
            f"; {option.gain_per_hour * 100:.1f} % an hour of work,"
            f" {other.gain_per_hour * 100:.1f} % for {other.title}"
        )
    return f"{gains} modelled{extra}{than}"


def percent_range(low: float, high: float) -> str:
    """A range of shares as people say it: "-16 to 0 %", "+1 to +6 %"."""
    first, last = round(low * 100), round(high * 100)
    if first == last:
        return f"{first:+d} %" if first else "0 %"
    return f"{f'{first:+d}' if first else '0'} to {f'{last:+d}' if last else '0'} %"


def _say(
    keep: Sequence[str], stop: Sequence[str], chosen: Option | None, not_judged: Sequence[str]
) -> str:
    kept = f"keep {listed(keep)}" if keep else "keep the baseline"
    if not_judged:
        return f"persevere: launch and measure {listed(not_judged)}, whose gain is not modelled"
    if chosen is not None and chosen.wanted:
        return f"persevere with {chosen.title}; {kept}"
    left = f"; stop work on {listed(stop)}" if stop else ""
    turn = f"; next: {chosen.title}" if chosen else "; nothing else promises a gain"
    return f"pivot: {kept}{left}{turn}"


def _launches(option: Option, rules: Rules) -> int:
    """A time box: launches that the gain over the run pays for, 1 to the most that is sensible.

    An hour of the service's gain and an hour of work count alike.
    """
    pays = option.gain_per_hour * rules.run_hours
    return max(1, min(rules.launches_at_most, floor(pays)))


def _changed_by(
    about: Situation, rules: Rules, layout: Layout, *, options: Sequence[Option],
    figures: Sequence[Comparison], claim: BandwidthClaim, chosen: Option | None,
) -> tuple[str, ...]:  # fmt: skip
    """Evidence that would change the decision, each in a sentence."""
    found = [
        f"{f.reported.concurrency} sequences: {f.say}; a gain of a flag means nothing before"
        for f in figures
        if f.slow
    ]
    for option in options:
        if option.hypothesis is not None:
            found.append(
                f"{option.title}: a measured lift of the expert kernel makes it worth up to"
                f" {option.hypothesis.high * 100:+.0f} % ({option.hypothesis.shown_by})"
            )
        if option.wanted and option.status is Status.FAILS and option.best > rules.noise_share:
            found.append(f"{option.title}: an upstream fix of its failure raises its chance")
    found += _again(about, rules, layout)
    if chosen is not None and chosen.risk:
        found.append(f"{chosen.title}: its risk comes true ({chosen.risk})")
    if not claim.shown:
        found.append(f"a memory-bound step: {claim.shown_by} at {HBM_BOUND * 100:.0f} % or more")
    return tuple(found)


def _again(about: Situation, rules: Rules, layout: Layout) -> list[str]:
    """When expert parallelism with data-parallel attention would be worth its work."""
    gpus = layout.gpus
    splits = about.model.experts and gpus > 1 and about.model.experts % gpus == 0
    if not splits or layout.attention_data_parallel:
        return []
    concurrency, context = worth_again(about, rules, layout, data_parallel(layout))
    at = f"{rules.worth_share * 100:+.0f} % or more"
    when = []
    if concurrency is not None:
        when.append(f"{concurrency:,} sequences at once")
    if context is not None:
        when.append(f"a context of {context:,} tokens at {max(about.served)} sequences")
    if not when:
        return []
    return [
        f"EP{gpus} with DP attention and an all-to-all backend: {at} modelled from"
        f" {' or '.join(when)}; published gains are for more than 8 GPUs"
    ]
