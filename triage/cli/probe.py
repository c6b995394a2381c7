"""`triage probe NAME`: a short experiment that tells causes apart."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from triage.cli import console


def _complete(_ctx: click.Context, _param: click.Parameter, part: str) -> list[CompletionItem]:
    from triage.core.probes.catalogue import PROBES

    return [CompletionItem(p.name, help=p.question) for p in PROBES if p.name.startswith(part)]


@click.command(name="probe")
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--list", "listed", is_flag=True, help="Show the probes, cheapest first.")
@click.option(
    "--for",
    "subject",
    type=click.Path(path_type=Path),
    help="A session or log: run what would discriminate its causes.",
)
@click.option("--python", default="", help="The engine's Python; it needs torch, not triage.")
@click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "cpu"]),
    default="auto",
    help="Where to run; auto: a GPU if there is one.",
)
@click.option("--model-config", type=click.Path(path_type=Path), help="config.json, for shapes.")
@click.option(
    "--limit", type=click.FloatRange(0.1, 3600), default=20.0, help="Seconds of an experiment."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=JSON", help="Set an argument.")
@console.output_options
def command(
    name: str | None, *, listed: bool, subject: Path | None, python: str, device: str,
    model_config: Path | None, limit: float, settings: tuple[str, ...],
    as_json: bool, color: str, exit_zero: bool,
) -> int:  # fmt: skip
    """Run the probe NAME: experiments of seconds, each in a process of its own.

    A probe that crashes, hangs or is killed is a result. With --for, the probes
    that the causes of a failure name are run, and its diagnosis is revised.
    """
    from triage.errors import UsageError
    from triage.render.probe_text import catalogue_text, result_text, revision_text
    from triage.session.probe import Asked, probe, probe_for

    if sum((listed, subject is not None, name is not None)) != 1:
        raise UsageError("one of NAME, --list and --for is wanted", hint="triage probe --list")
    if listed:
        if as_json:
            raise UsageError("the list is shown as text only", hint="triage probe --list")
        console.answer(catalogue_text())
        return 0
    asked = Asked(
        python=python, device=device, limit_s=limit, model_config=model_config, settings=settings
    )
    from triage.render.probe_document import probe_document, probes_document

    if subject is not None:
        revision, results = probe_for(subject, asked, console.talk)
        if as_json:
            console.document(probes_document(revision, results))
        else:
            text = revision_text(revision, results)
            console.answer(text, "strong", on=console.coloured(color))
        return console.code(0, exit_zero=exit_zero)
    result = probe(name or "", asked, console.talk)
    if as_json:
        console.document(probe_document(result))
    else:
        console.answer(result_text(result), "strong", on=console.coloured(color))
    return console.code(0, exit_zero=exit_zero)
