"""An advice as plain text for a terminal of 80 columns.

In:  Advice. Out: lines without colour and without a newline at the end.
Not: printing (triage.cli), the picture (advice_figure.py).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from triage.core.advice.decide import percent_range
from triage.core.advice.values import Advice, Curve, Option
from triage.core.wording import listed
from triage.render.markdown import visible

WIDTH = 80
_BARS = "▁▂▃▄▅▆▇█"
_NAME = 29  # columns of an option's name


def advice_text(advice: Advice) -> str:
    """Decision, options, figures, throughput, assumptions."""
    parts = [
        *_decision(advice),
        "",
        *_options(advice),
        "",
        *_gains(advice),
        "",
        *_figures(advice),
        "",
        *_baseline(advice),
        "",
        *_curves(advice.curves),
        "",
        *_assumptions(advice),
    ]
    return "\n".join(parts)


def _decision(advice: Advice) -> Iterable[str]:
    decision = advice.decision
    mark = "simulated launches: " if advice.simulated else ""
    yield _wrapped(f"{mark}{decision.say}", "  ")
    for one in advice.comparisons:
        if one.slow:
            yield _wrapped(f"  first {_sequences(one.reported.concurrency)}: {one.say}", "      ")
    for title, why in decision.stop:
        yield _wrapped(f"  not {title}: {why}", "      ")
    if decision.next:
        chosen = next(o for o in advice.options if o.key == decision.next)
        risk = f"; risk: {chosen.risk}" if chosen.risk else ""
        yield _wrapped(
            f"  next {chosen.title}: at most {decision.launches} launches{risk}", "      "
        )
    if decision.not_judged:
        names = listed(decision.not_judged)
        yield _wrapped(f"  not judged: {names}: what they bring is not modelled", "      ")
    yield "  this would change it"
    for said in decision.changed_by:
        yield _wrapped(f"    - {said}", "      ")


def _options(advice: Advice) -> Iterable[str]:
    served = listed([f"{c:,}" for c in advice.situation.served])
    many = "sequence" if served == "1" else "sequences"
    yield f"options, gain over the baseline at {served} {many}, modelled"
    yield f"  {'':{_NAME}}{'gain':>14}{'chance':>9}{'hours':>8}{'an hour':>10}"
    for option in advice.options:
        said = _gain(option)
        if option.hypothesis is not None:
            said += "*"
        lead = f"  {_cut(option.title, _NAME - 1):{_NAME}}"
        yield (
            f"{lead}{said:>14}{option.chance.share * 100:>7.0f} % {option.chance.hours:>7.1f}"
            f"{option.gain_per_hour * 100:>8.1f} % {option.status.value if option.wanted else ''}"
        ).rstrip()
    for option in advice.options:
        if option.hypothesis is not None:
            h = option.hypothesis
            yield _wrapped(
                f"  * {option.title}: {percent_range(h.low, h.high)} {h.say}: not shown;"
                f" {h.shown_by} would show it",
                "    ",
            )
    for option in advice.options:
        yield _wrapped(f"  {option.title}: chance: {option.chance.why}", "    ")


def _gain(option: Option) -> str:
    if option.low is None or option.high is None:
        return "not modelled"
    return percent_range(option.low, option.high)


def _gains(advice: Advice) -> Iterable[str]:
    """Relative throughput at each shown concurrency, as many a table as lines allow."""
    shown = advice.situation.shown
    yield "throughput relative to the baseline, and what then limits a step"
    for some in _in_rows(shown, 3):
        yield f"  {'':{_NAME}}" + "".join(f"{f'C={c}':>15}" for c in some)
        for option in advice.options:
            if not option.gains:
                continue
            lead = f"  {_cut(option.title, _NAME - 1):{_NAME}}"
            at = {g.concurrency: g for g in option.gains}
            yield lead + "".join(f"{_span(at[c].low, at[c].high):>15}" for c in some)
            yield f"  {'':{_NAME}}" + "".join(f"{at[c].regime:>15}" for c in some)


def _span(low: float, high: float) -> str:
    first, last = f"{low:.2f}", f"{high:.2f}"
    return first if first == last else f"{first}-{last}"


def _figures(advice: Advice) -> Iterable[str]:
    yield "measured against modelled"
    for one in advice.comparisons:
        speculation = "with speculation" if one.speculation else "without speculation"
        r = one.reported
        yield _wrapped(
            f"  {_sequences(r.concurrency)}, {r.tokens_per_s:,.0f} tok/s {speculation}"
            f" ({r.source}): {one.say}",
            "    ",
        )
    if not advice.comparisons:
        yield "  no figure is given (--measured 64=3795)"
    claim = advice.bandwidth
    yield _wrapped(f'  "bound by HBM bandwidth": {claim.say}', "    ")
    if not claim.shown:
        yield _wrapped(f"    {claim.shown_by} would show it; utilisation and power do not", "    ")


def _baseline(advice: Advice) -> Iterable[str]:
    yield "the baseline without speculation, modelled"
    yield f"  {'sequences':>10}{'step':>12}{'tokens/s':>12}{'HBM':>8}  limit"
    for one in advice.baseline:
        room = "" if one.fits else "; does not fit in memory"
        yield (
            f"  {one.concurrency:>10,}{one.step_s * 1000:>9.1f} ms{one.tokens_per_s:>12,.0f}"
            f"{one.hbm_share * 100:>6.0f} %  {one.regime}{room}"
        )


def _curves(curves: Sequence[Curve]) -> Iterable[str]:
    """A bar for each concurrency; all layouts on one scale, by its logarithm."""
    from math import log

    values = [value for curve in curves for _, value in curve.points]
    if not values:
        yield "throughput over concurrency: the load fits into no layout's memory"
        return
    counts = [c for c, _ in max((curve.points for curve in curves), key=len)]
    low, high = log(min(values)), log(max(values))
    yield _wrapped(
        f"throughput without speculation at {counts[0]:,} to {counts[-1]:,} sequences, a bar"
        f" each, logarithmic: {min(values):,.0f} to {max(values):,.0f} tok/s",
        "  ",
    )
    for curve in curves:
        bars = "".join(
            _BARS[round((log(value) - low) / ((high - low) or 1) * (len(_BARS) - 1))]
            for _, value in curve.points
        )
        last = f"{curve.points[-1][1]:,.0f}" if curve.points else "does not fit"
        yield f"  {curve.name:24} {bars} {last}"


def _assumptions(advice: Advice) -> Iterable[str]:
    yield "assumptions"
    every = (*advice.assumptions, *(a for o in advice.options for a in o.assumptions))
    for one in dict.fromkeys(every):
        yield _wrapped(f"  - {one}", "    ")
    if advice.not_modelled:
        yield _wrapped(f"  - not modelled: {listed(advice.not_modelled)}", "    ")
    yield _wrapped("  - constants with their sources: --json, and docs/physics.md", "    ")


def _sequences(count: int) -> str:
    return f"{count:,} sequence{'' if count == 1 else 's'}"


def _in_rows(values: Sequence[int], most: int) -> Iterable[Sequence[int]]:
    for start in range(0, len(values), most):
        yield values[start : start + most]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _wrapped(text: str, later: str) -> str:
    line = visible(" ".join(text.splitlines())).rstrip()
    return textwrap.fill(
        line, WIDTH, subsequent_indent=later, break_on_hyphens=False, drop_whitespace=True
    )
