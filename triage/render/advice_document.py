"""An advice as the document `triage.advice/1`.

In:  Advice. Out: a JSON object.
Not: its schema (tools/schemas/advice.py) or printing (triage.cli).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from triage.core.advice.values import Advice, Curve, Option, Situation


def advice_document(advice: Advice) -> dict[str, Any]:
    """The whole advice; shares are 0.06 for 6 %, ratios 1.0 for the same."""
    decision = advice.decision
    return {
        "schema": "triage.advice/1",
        "name": advice.situation.name,
        "simulated": advice.simulated,
        "decision": decision.kind,
        "say": decision.say,
        "keep": list(decision.keep),
        "stop": [{"what": what, "why": why} for what, why in decision.stop],
        "not_judged": list(decision.not_judged),
        "next": decision.next or None,
        "launches": decision.launches,
        "changed_by": list(decision.changed_by),
        "situation": _situation(advice.situation),
        "layout": {
            **asdict(advice.layout),
            "reduce": advice.layout.reduce.value,
        },
        "baseline": [
            {
                "concurrency": one.concurrency,
                "step_s": one.step_s,
                "tokens_per_s": one.tokens_per_s,
                "user_tokens_per_s": one.tokens_per_s / one.concurrency,
                "regime": one.regime,
                "hbm_share": one.hbm_share,
                "terms_s": dict(one.terms_s),
                "fits": one.fits,
            }
            for one in advice.baseline
        ],
        "options": [_option(one) for one in advice.options],
        "measured": [
            {
                "concurrency": one.reported.concurrency,
                "tokens_per_s": one.reported.tokens_per_s,
                "source": one.reported.source,
                "without": list(one.reported.without),
                "speculation": one.speculation,
                "modelled_tokens_per_s": one.modelled_tokens_per_s,
                "ratio": one.ratio,
                "accepted_tokens": [
                    {"verify_tokens": tokens, "accepted_tokens": accepted}
                    for tokens, accepted in one.accepted
                ],
                "slow": one.slow,
                "say": one.say,
            }
            for one in advice.comparisons
        ],
        "hbm_bound": {
            "shown": advice.bandwidth.shown,
            "low": advice.bandwidth.low,
            "high": advice.bandwidth.high,
            "say": advice.bandwidth.say,
            "shown_by": advice.bandwidth.shown_by,
        },
        "curves": [_curve(one) for one in advice.curves],
        "assumptions": list(advice.assumptions),
        "not_modelled": list(advice.not_modelled),
        "constants": [asdict(one) for one in advice.situation.constants],
    }


def _situation(about: Situation) -> dict[str, Any]:
    return {
        "model": about.model.name,
        "model_source": about.model_source,
        "gpu": about.node.gpu.name,
        "gpus": about.node.count,
        "gpu_source": about.node_source,
        "served": list(about.served),
        "input_tokens": about.input_tokens,
        "output_tokens": about.output_tokens,
        "speculation": about.speculation,
        "verify_tokens": about.verify_tokens,
    }


def _option(one: Option) -> dict[str, Any]:
    return {
        "key": one.key,
        "title": one.title,
        "wanted": one.wanted,
        "status": one.status.value,
        "gains": [asdict(gain) for gain in one.gains],
        "low": one.low,
        "high": one.high,
        "hypothesis": asdict(one.hypothesis) if one.hypothesis else None,
        "chance": one.chance.share,
        "chance_why": one.chance.why,
        "hours": one.chance.hours,
        "gain_per_hour": one.gain_per_hour,
        "risk": one.risk,
        "assumptions": list(one.assumptions),
    }


def _curve(one: Curve) -> dict[str, Any]:
    return {
        "name": one.name,
        "points": [
            {"concurrency": concurrency, "tokens_per_s": value} for concurrency, value in one.points
        ],
    }
