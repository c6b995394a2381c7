"""`triage plan`: the launches that a search would make next, and why; nothing is launched."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.command(name="plan")
@click.argument("session", required=False, type=click.Path(path_type=Path))
@click.option(
    "--depth", type=click.IntRange(1, 5), default=1, help="Show what follows each answer, so deep."
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 4),
    default=1,
    help="Launches that could be made at the same time.",
)
@console.output_options
def command(
    session: Path | None, *, depth: int, nodes: int, as_json: bool, color: str, exit_zero: bool
) -> int:
    """Show what the search of SESSION would launch next, and why.

    Nothing is launched and nothing is written. Without SESSION the newest one is taken.
    """
    from dataclasses import replace

    from triage.core.search.pace import filled, outlook, pace_of
    from triage.core.search.plan import next_trials
    from triage.core.search.tree import decision_lines
    from triage.core.trials import Done
    from triage.render.plan_document import plan_document, plan_text
    from triage.session.pace import known_before
    from triage.session.stored import reopen
    from triage.store import newest_session

    del color
    path = session or newest_session()
    _, journal, search = reopen(path)
    problem = search.recipe.problem  # as stored, so without secrets
    made = journal.entries
    step = next_trials(problem, made, nodes)
    ended = step if isinstance(step, Done) else None
    if ended is not None and ended.reason == "budget":
        problem = replace(
            problem, budget_trials=len(made) + max(depth, nodes), budget_s=float("inf")
        )
        step = next_trials(problem, made, nodes)
    trials = () if isinstance(step, Done) else step
    pace = filled(pace_of(made, "as in this search so far"), known_before(search, path))
    ahead, source = outlook(problem, made, pace, nodes), pace.say()
    if as_json:
        console.document(
            plan_document(path, problem, made, trials, ended=ended, ahead=ahead, source=source)
        )
    else:
        console.answer(plan_text(problem, made, trials, ended=ended, ahead=ahead, source=source))
        if depth > 1:
            console.answer("\n".join(decision_lines(problem, depth, made)))
    return console.code(0, exit_zero=exit_zero)
