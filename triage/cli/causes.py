"""`triage causes`: what the knowledge base holds, whether it holds together, what it lacks."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console
from triage.cli.reports import knowledge_option


@click.group(name="causes", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """List, check and audit the knowledge base; draft a cause from a log."""
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


@command.command(name="new")
@click.option("--from", "log", required=True, metavar="LOG", help="The log of the failure.")
@click.option("--id", "id_", default="", metavar="ID", help="The cause's id, in kebab-case.")
@click.option(
    "--out",
    "folder",
    default=Path("triage-knowledge"),
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write [./triage-knowledge].",
)
@knowledge_option
@console.output_options
def new(
    log: str,
    *,
    id_: str,
    folder: Path,
    knowledge: tuple[Path, ...],
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Draft a cause and its case from a log that no cause explains.

    The draft holds what the log shows: a pattern, an example, the phase. What it
    means and what helps is marked TODO. Nothing is overwritten.
    """
    from triage.errors import hint
    from triage.knowledge.check import check_todo
    from triage.knowledge.loader import load_cause_file
    from triage.session import draft
    from triage.session.knowledge import causes

    ours = (folder,) if folder.is_dir() and any(folder.glob("*.yaml")) else ()
    made = draft.draft(log, causes((*knowledge, *ours)), id_=id_)
    cause, case = draft.write(made, folder)
    left = tuple(check_todo(load_cause_file(cause)))
    if as_json:
        console.document({
            "schema": "triage.draft/1",
            "id": made.id,
            "cause_file": str(cause),
            "case": str(case),
            "wins": made.winner == made.id,
            "left": list(left),
        })  # fmt: skip
        return console.code(0, exit_zero=exit_zero)
    on = console.coloured(color)
    console.answer(f"{cause}\n{case}/", "strong", on=on)
    if made.winner == made.id:
        console.answer(f"the draft explains the log; {len(left)} keys are still to do")
    else:
        other = made.winner or "no cause"
        console.answer(f"with the draft the log shows {other}: make the pattern fit, or yield less")
    console.answer(f"next: {hint('triage', 'causes', 'check', folder)}")
    return console.code(0, exit_zero=exit_zero)


@command.command(name="audit")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option(
    "--benign",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Healthy logs, besides the healthy cases; may be repeated.",
)
@knowledge_option
@console.output_options
def audit(
    folder: Path | None,
    *,
    benign: tuple[Path, ...],
    knowledge: tuple[Path, ...],
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Judge the knowledge base by the recorded cases in DIR, or by triage's own.

    Reported are causes that are taken for another, that no case shows, whose
    pattern another cause shadows, look-alikes without a case, and plain texts
    of patterns that are frequent in healthy logs.
    """
    from triage.render.audit_text import audit_document, audit_text
    from triage.session.audit import audited, own_cases
    from triage.session.check import place
    from triage.session.knowledge import causes
    from triage.session.reports import redactor

    folder = folder or own_cases()
    made = audited(causes(knowledge), folder, benign, console.progress())
    if as_json:
        console.document(audit_document(made, redactor().text(place(str(folder)))))
    else:
        style = "error" if made.entries else "good"
        console.answer(redactor().text(audit_text(made)), style, on=console.coloured(color))
    return console.code(14 if made.entries else 0, exit_zero=exit_zero)
