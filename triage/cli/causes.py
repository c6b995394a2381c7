"""`triage causes`: what the knowledge base holds, and whether it holds together."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.group(name="causes", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """List and check the knowledge base."""
    return int(ctx.invoke(list_causes)) if ctx.invoked_subcommand is None else 0


@command.command(name="list")
@console.output_options
def list_causes(*, as_json: bool = False, color: str = "auto", exit_zero: bool = False) -> int:
    """List every cause: its id and its title."""
    from triage.core.causes import Role
    from triage.session.logs import causes

    known = sorted(causes(), key=lambda c: (c.role is not Role.ROOT, c.id))
    if as_json:
        rows = [{"id": c.id, "role": c.role.value, "title": c.title} for c in known]
        console.document({"schema": "triage.causes/1", "causes": rows})
        return 0
    width = max(len(c.id) for c in known)
    for cause in known:
        note = "" if cause.role is Role.ROOT else f"[{cause.role.value}] "
        console.answer(f"{cause.id:<{width}}  {note}{cause.title}")
    return console.code(0, exit_zero=exit_zero)


@command.command(name="check")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@console.output_options
def check(folder: Path | None, *, as_json: bool, color: str, exit_zero: bool) -> int:
    """Check the cause files of FOLDER, or triage's own."""
    from triage import knowledge

    folder = folder or Path(knowledge.__file__).parent / "causes"
    found = knowledge.check_causes(folder)
    if as_json:
        console.document({"schema": "triage.check/1", "folder": str(folder), "found": list(found)})
    else:
        on = console.coloured(color)
        for line in found:
            console.answer(line, "error", on=on)
        if not found:
            console.answer(f"{len(knowledge.load_causes_from(folder))} causes, nothing to report")
    return console.code(14 if found else 0, exit_zero=exit_zero)
