"""Fit the model of a step to published figures, check it on others, and write the table.

In:  fixtures/physics/points.yaml, or another file of that form; triage/knowledge/hardware.yaml.
Out: the table of docs/physics.md between its marks; with a file, the table on stdout.
Not: the model (triage.core.physics). Constants are not written: the fit is printed.

    .venv/bin/python tools/fit_physics.py              write the table, print the fit
    .venv/bin/python tools/fit_physics.py POINTS.yaml  print the errors of other points
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from triage.core.physics.layout import Layout, Load
from triage.core.physics.node import Node
from triage.core.physics.step import step
from triage.core.physics.throughput import speculation_gain
from triage.knowledge.physics import gpu_part, model_named, node_of
from triage.yamlfile import plain_yaml

ROOT = Path(__file__).parents[1]
POINTS = ROOT / "fixtures/physics/points.yaml"
PAGE = ROOT / "docs/physics.md"
BEGIN, END = "<!-- points: written by tools/fit_physics.py -->", "<!-- end of points -->"
# Ten points say little of Hopper: free, its share exceeds 1. It is held at its other formats'.
HELD = {"expert_share_H200": 0.65}
PREFILLS = ("user_tokens_per_s", "total_tokens_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One published figure, and what the model says."""

    id: str
    fitted: bool
    what: str
    engine: str
    concurrency: float
    quantity: str
    measured: float
    predicted: float
    source: str
    why: str

    @property
    def error(self) -> float:
        """Predicted speed over measured, less one: 0.05 is 5 % too fast."""
        slower = self.quantity == "seconds_per_token"
        ratio = self.measured / self.predicted if slower else self.predicted / self.measured
        return ratio - 1


def read_points(path: Path = POINTS) -> tuple[Point, ...]:
    """The points of a file, each with the model's answer."""
    return tuple(_point(one) for one in plain_yaml(path)["points"])


def _situation(one: dict[str, Any]) -> tuple[Any, Node, Layout, Load]:
    named = model_named(one["model"])
    gpu = gpu_part(one["gpu"])
    if named is None or gpu is None:
        raise SystemExit(f"{one['id']}: model {one['model']} or GPU {one['gpu']} is unknown")
    model = named[0].model(named[1])
    layout = Layout(tensor_parallel=one["gpus"], expert_ranks=one.get("expert_ranks", 1))
    load = Load(
        concurrency=_concurrency(one),
        input_tokens=one["input_tokens"],
        output_tokens=one["output_tokens"],
        verify_tokens=one.get("verify_tokens", 1),
        prefill=one["quantity"] in PREFILLS,
    )
    return model, node_of(gpu, one["gpus"], model.expert_format), layout, load


def _concurrency(one: dict[str, Any]) -> float:
    """As published, or what the rates of a GPU and of a user leave: input counts at the GPU."""
    if "concurrency" in one:
        return float(one["concurrency"])
    per_gpu = one["concurrency_from"]["gpu_tokens_per_s"]
    output = one["output_tokens"] / (one["input_tokens"] + one["output_tokens"])
    return float(per_gpu * one["gpus"] * output / one["value"])


def _point(one: dict[str, Any]) -> Point:
    load = _situation(one)[3]
    return Point(
        id=one["id"],
        fitted=one.get("fitted", False),
        what=f"{one['model']}, {one['gpus']}x {one['gpu']},"
        f" {one['input_tokens'] // 1024}k/{one['output_tokens'] // 1024}k",
        engine=one["engine"],
        concurrency=load.concurrency,
        quantity=one["quantity"],
        measured=one["value"],
        predicted=_predicted(one),
        source=one["source"],
        why=one.get("why", ""),
    )


def _predicted(one: dict[str, Any]) -> float:
    model, node, layout, load = _situation(one)
    made = step(model, node, layout, load)
    accepted = one.get("accepted_tokens", 1.0)
    match one["quantity"]:
        case "user_tokens_per_s":
            return float(accepted / made.seconds)
        case "total_tokens_per_s":
            return float(accepted * load.concurrency / made.seconds)
        case "seconds_per_token":
            return float(made.seconds / accepted)
        case "speculation_gain":
            return speculation_gain(model, node, layout, load, accepted)
        case _:
            raise SystemExit(f"{one['id']}: there is no quantity {one['quantity']}")


def held_out(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points that no constant was fitted to."""
    return tuple(p for p in points if not p.fitted)


def mean_error(points: tuple[Point, ...]) -> float:
    """Mean of the absolute errors."""
    return float(np.mean([abs(p.error) for p in points]))


def rms(points: tuple[Point, ...]) -> float:
    """Root of the mean square of the errors."""
    return float(np.sqrt(np.mean([p.error**2 for p in points])))


def fit(held: dict[str, float], path: Path = POINTS) -> dict[str, float]:
    """Constants that fit the fitted points best, and the rms of their relative errors.

    A step is linear in the cost of a layer and in the inverse of the other constants, so
    least squares over relative errors have one solution. Keys: layer_s, and for each GPU
    expert_share_<gpu> and prefill_share_<gpu>; those of `held` keep their value.
    """
    ones = [one for one in plain_yaml(path)["points"] if one.get("fitted")]
    gpus = list(dict.fromkeys(one["gpu"] for one in ones))
    names = ["layer_s"]
    for gpu in gpus:
        names += [f"expert_share_{gpu}", f"prefill_share_{gpu}"]
    rows, rest = [], []
    for one in ones:
        model, node, layout, load = _situation(one)
        made, seconds = step(model, node, layout, load), 1 / one["value"]
        row = dict.fromkeys(names, 0.0)
        row["layer_s"] = model.layers
        row[f"expert_share_{one['gpu']}"] = made.expert_bytes / node.gpu.hbm_bytes_per_s
        prompts = made.prefill_s * node.reach.prefill_share
        row[f"prefill_share_{one['gpu']}"] = prompts
        others = made.seconds - made.layers_s - made.experts_s - made.prefill_s
        rows.append([row[name] / seconds for name in names])
        rest.append(1 - others / seconds)
    weights, wanted = np.array(rows), np.array(rest)
    known = {name: _linear(name, value) for name, value in held.items()}
    free = [index for index, name in enumerate(names) if name not in known]
    for name, value in known.items():
        wanted = wanted - weights[:, names.index(name)] * value
    found, _, _, _ = np.linalg.lstsq(weights[:, free], wanted, rcond=None)
    left = weights[:, free] @ found - wanted
    made_of = dict(held)
    made_of.update(
        (names[i], _linear(names[i], float(v))) for i, v in zip(free, found, strict=True)
    )
    return {name: made_of[name] for name in names} | {"rms": float(np.sqrt(np.mean(left**2)))}


def _linear(name: str, value: float) -> float:
    """The constant as it enters a step, and back: all but the cost of a layer divide."""
    return value if name == "layer_s" else 1 / value


_UNITS = {
    "user_tokens_per_s": "tok/s of a user",
    "total_tokens_per_s": "tok/s in all",
    "seconds_per_token": "ms a token",
    "speculation_gain": "gain of speculation",
}


def table(points: tuple[Point, ...]) -> str:
    """The points as a table, and their errors in a sentence."""
    lines = [
        "| point | engine | sequences | quantity | measured | predicted | error | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p in points:
        scale = 1000 if p.quantity == "seconds_per_token" else 1
        link = f"<{p.source}>" if p.source.startswith("http") else p.source
        lines.append(
            f"| {p.what}{' (fitted)' if p.fitted else ''} | {p.engine} | {p.concurrency:.3g}"
            f" | {_UNITS[p.quantity]} | {p.measured * scale:.4g} | {p.predicted * scale:.4g}"
            f" | {p.error:+.1%} | {link} |"
        )
    out = held_out(points)
    fitted = tuple(p for p in points if p.fitted)
    lines.append("")
    if fitted:
        lines.append(f"Fitted: {len(fitted)} points, rms of the errors {rms(fitted):.1%}.")
    worst = sorted(out, key=lambda p: -abs(p.error))
    lines.append(
        f"Held out: {len(out)} points, mean of the absolute errors {mean_error(out):.1%},"
        f" worst {worst[0].error:+.1%}."
    )
    lines += [f"\n- {p.what}, {p.engine}, {p.error:+.1%}: {p.why}" for p in worst if p.why]
    return "\n".join(lines)


def page(text: str, points: tuple[Point, ...]) -> str:
    """The page with its table written again."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{table(points)}\n\n{END}", text)


def main(words: list[str]) -> None:
    """Print the errors of other points, or write the table and print the fit."""
    if words:
        for word in words:
            print(table(tuple(replace(p, fitted=False) for p in read_points(Path(word)))))
        return
    points = read_points()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), points), encoding="utf-8")
    for title, held in (("all constants free", {}), ("as hardware.yaml has it", HELD)):
        print(title)
        for name, value in fit(held).items():
            print(f"  {name:34} {value:.4g}")
    print(f"{PAGE}: {len(points)} points, held out {mean_error(held_out(points)):.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
