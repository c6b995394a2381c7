"""From a recipe or a session to an advice: model, GPUs, what launches showed, figures.

In:  a recipe file or a session folder, overrides of the command line. Out: Advice.
Not: the arithmetic (triage.core.advice); launching.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triage.core.advice.advise import advise
from triage.core.advice.flags import layout_of, number, speculates, verify_tokens
from triage.core.advice.values import Advice, Chance, Reported, Situation, Status
from triage.core.handover.confirmation import Confirmation
from triage.core.physics.config_json import model_of
from triage.core.physics.model import Model, Widths
from triage.core.search.recommend import Recommendation, recommend
from triage.core.trials import Problem
from triage.errors import HostError, NothingError, TriageError, UsageError, hint
from triage.knowledge.physics import (
    GpuPart,
    alternatives,
    chance_of,
    constants_of,
    gpu_part,
    hardware,
    model_named,
    node_of,
    rules,
)
from triage.recipe import Recipe, load_recipe
from triage.render.confirmation import confirmation_of
from triage.session.handover import CONFIRMATION
from triage.session.logs import causes, flag_table
from triage.session.stored import reopen
from triage.store import SessionFolder, find_session

MOST_GPUS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says beside the recipe; empty or None: what the recipe says."""

    concurrency: tuple[int, ...] = ()
    measured: tuple[tuple[int, float], ...] = ()
    gpu: str = ""
    gpus: int = 0
    model_config: Path | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    verify_tokens: int | None = None


def advise_on(path: Path, asked: Asked) -> Advice:
    """The advice on a recipe, or on a session.

    Raises:
        UsageError: the file is wrong, or model or GPU are unknown.
    """
    if path.is_dir():
        return advise_session(path, asked)
    recipe = load_recipe(path, flag_table())
    found = _session_of(recipe, path)
    if found is not None:
        return advise_session(found, asked)
    return _advise(recipe, asked, None, simulated=False)


def advise_session(path: Path, asked: Asked | None = None) -> Advice:
    """The advice on what a session has launched so far."""
    session, journal, search = reopen(path)
    found = recommend(search.recipe.problem, journal.entries, causes()) if journal.entries else None
    return _advise(
        search.recipe,
        asked or Asked(),
        found,
        simulated=bool(session.facts["simulated"]),
        confirmed=_confirmed(session),
    )


def _confirmed(session: SessionFolder) -> Confirmation | None:
    """What the last confirmation of a session measured, if a real engine was confirmed."""
    stored = session.read(CONFIRMATION)
    if stored is None:
        return None
    try:
        found = confirmation_of(stored)
    except (KeyError, TypeError, ValueError):
        return None  # the command that reads it says what is wrong with it
    return None if found.simulated else found


def _session_of(recipe: Recipe, path: Path) -> Path | None:
    """The newest session of this recipe, whatever engine it launched."""
    from triage.session.prepare import prepare

    try:
        return find_session(prepare(path).digest())
    except TriageError:
        return None


def _advise(
    recipe: Recipe,
    asked: Asked,
    found: Recommendation | None,
    *,
    simulated: bool,
    confirmed: Confirmation | None = None,
) -> Advice:
    problem = recipe.problem
    situation = _situation(recipe, asked, confirmed)
    return advise(situation, rules(), problem, _chances(problem, found), simulated=simulated)


def _chances(problem: Problem, found: Recommendation | None) -> Mapping[str, tuple[Status, Chance]]:
    """What launches showed of each item, and what one more attempt promises."""
    made = {}
    for item in problem.items:
        failing = [s for s in found.sets if item.key in s.items] if found else []
        if found is not None and item.key in found.items:
            made[item.key] = (Status.WORKS, Chance(share=1.0, hours=0.5, why="it starts"))
        elif failing:
            alone = dict.fromkeys(s.cause for s in failing)
            made[item.key] = (Status.FAILS, chance_of(tuple(alone)))
        else:
            made[item.key] = (Status.UNTRIED, chance_of(()))
    return made


def _figures(recipe: Recipe, asked: Asked, confirmed: Confirmation | None) -> tuple[Reported, ...]:
    """Measured throughputs: of the command line, of a confirmation, else of the recipe."""
    found = [
        Reported(concurrency=c, tokens_per_s=value, source="--measured")
        for c, value in asked.measured
    ]
    when = f" of {confirmed.date[:10]}" if confirmed and confirmed.date else ""
    levels = confirmed.levels if confirmed else ()
    found += [
        Reported(
            concurrency=level.concurrency,
            tokens_per_s=level.tokens_per_s,
            source=f"measured by the confirmation{when}",
        )
        for level in levels
        if level.tokens_per_s and level.concurrency not in {one.concurrency for one in found}
    ]
    known = {one.concurrency for one in found}
    return (
        *found,
        *(
            Reported(
                concurrency=one.concurrency,
                tokens_per_s=one.tokens_per_s,
                source=one.source,
                without=one.without,
            )
            for one in recipe.workload.figures
            if one.concurrency not in known
        ),
    )


def _situation(recipe: Recipe, asked: Asked, confirmed: Confirmation | None) -> Situation:
    problem, workload = recipe.problem, recipe.workload
    layout = layout_of(problem.baseline)
    model, model_source = _model(recipe, asked)
    part, gpu_source = _gpu(recipe, asked)
    gpus = asked.gpus or workload.gpus or layout.gpus
    if layout.gpus > gpus or gpus > MOST_GPUS:
        raise UsageError(
            f"the baseline takes {layout.gpus} GPUs, and there are {gpus}",
            hint="triage advise --help  # --gpus N",
        )
    if number(problem.baseline.get("nnodes"), 1) > 1:
        raise UsageError(
            "the baseline spans several nodes; one node is what is modelled",
            hint="triage advise --help",
        )
    served = tuple(sorted(set(recipe.confirm.concurrency or asked.concurrency or (1,))))
    shown = tuple(sorted(set(asked.concurrency))) or served
    node = node_of(part, gpus, model.expert_format)
    told = asked.verify_tokens or verify_tokens(problem.baseline)
    return Situation(
        name=recipe.name,
        model=model,
        node=node,
        model_source=model_source,
        node_source=f"{gpus}x {part.name}, {gpu_source}",
        served=served,
        shown=shown,
        input_tokens=float(asked.input_tokens or workload.input_tokens),
        output_tokens=float(asked.output_tokens or workload.output_tokens),
        speculation=speculates(problem.baseline),
        verify_tokens=told,
        reported=_figures(recipe, asked, confirmed),
        alternatives=alternatives(),
        constants=constants_of(part, model.expert_format),
        nvfp4=_nvfp4(model, part),
    )


def _model(recipe: Recipe, asked: Asked) -> tuple[Model, str]:
    """The model by its own config.json, else by its name."""
    named = str(recipe.problem.baseline.get("model-path") or "")
    files = [asked.model_config] if asked.model_config else []
    if not files and named and (Path(named) / "config.json").is_file():
        files = [Path(named) / "config.json"]
    for file in files:
        return model_from_file(file, named or str(file.parent)), f"{file}"
    found = model_named(named)
    if found is None:
        raise UsageError(
            f"the model {named!r} is unknown, and its config.json is not there",
            hint="triage advise --help  # --model-config FILE",
        )
    part, form = found
    return part.model(form), f"{part.name}, {part.source} ({form.source})"


def model_from_file(file: Path, named: str) -> Model:
    """The model of a config.json.

    Raises:
        UsageError: it cannot be read, or describes no model.
    """
    if file.is_dir():
        file = file / "config.json"
    try:
        config: Any = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file}: no config.json that can be read", hint=hint("ls", "-l", file)
        ) from error
    name = named.rstrip("/").rsplit("/", 1)[-1]
    made = model_of(config, name) if isinstance(config, dict) else "it holds no object"
    if isinstance(made, str):
        raise UsageError(f"{file}: {made}", hint=hint("head", "-c", 900, file))
    return made


def _gpu(recipe: Recipe, asked: Asked) -> tuple[GpuPart, str]:
    """The GPU by name, else that of this machine."""
    named = asked.gpu or recipe.workload.gpu
    where = "--gpu" if asked.gpu else "the recipe's workload"
    if not named:
        named, where = _here(), "this machine"
    part = gpu_part(named) if named else None
    if part is None:
        known = ", ".join(g.name for g in hardware().gpus)
        said = f"the GPU {named!r} is unknown" if named else "the recipe names no GPU"
        raise UsageError(f"{said}; known are {known}", hint="triage advise --help  # --gpu NAME")
    return part, f"from {where}"


def _here() -> str:
    """The first GPU of this machine; "" where there is none, or no driver."""
    from triage.core.machine.facts import Unavailable
    from triage.machine.gpus import gpus

    found = gpus()
    if isinstance(found, Unavailable) or not found.devices:
        return ""
    return found.devices[0].name


def _nvfp4(model: Model, part: GpuPart) -> tuple[Model, float] | None:
    """The model with its experts in NVFP4, where the GPU computes in it and it is no such yet."""
    if not part.fp4_operations_per_s.value or not model.experts:
        return None
    if model.expert_format in ("nvfp4", "mxfp4"):
        return None
    widths = model.widths
    share = hardware().families[part.family].expert_share["nvfp4"].value
    other = replace(
        model,
        expert_format="nvfp4",
        widths=Widths(
            experts=0.5625,
            shared=widths.shared,
            dense=widths.dense,
            attention=widths.attention,
            head=widths.head,
        ),
    )
    return other, share


def parse_concurrency(text: str) -> tuple[int, ...]:
    """Counts of `1,64,1024`.

    Raises:
        UsageError: it is no such list.
    """
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1 or max(found) > 100_000:  # noqa: PLR2004
        raise UsageError(
            f"{text!r} is no list of concurrencies", hint="triage advise RECIPE --concurrency 1,64"
        )
    return found


def parse_measured(texts: Sequence[str]) -> tuple[tuple[int, float], ...]:
    """Pairs of `64=3795`: concurrency, and output tokens a second of all sequences.

    Raises:
        UsageError: one is no such pair.
    """
    found = []
    for text in texts:
        left, _, right = text.partition("=")
        try:
            pair = (int(left), float(right))
        except ValueError:
            pair = (0, 0.0)
        if pair[0] < 1 or not 0 < pair[1] < 1e12:  # noqa: PLR2004
            raise UsageError(
                f"{text!r} is no figure: concurrency=tokens a second is wanted",
                hint="triage advise RECIPE --measured 64=3795",
            )
        found.append(pair)
    return tuple(found)


def write_figure(advice: Advice, path: Path) -> None:
    """Write the picture of an advice.

    Raises:
        HostError: what draws is not installed.
        NothingError: there is no curve to draw.
    """
    from triage.render.advice_figure import INSTALL, can_draw, figure_svg

    if not can_draw():
        raise HostError("nothing that draws is installed", hint=INSTALL)
    made = figure_svg(advice)
    if made is None:
        raise NothingError(
            "the load fits into no layout's memory", hint="triage advise --help  # --gpus N"
        )
    path.write_text(made, encoding="utf-8")
