"""`triage cluster`: group the failures that no cause explains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import click

from triage.cli import console
from triage.cli.reports import knowledge_option


@click.command(name="cluster")
@click.argument("logs", nargs=-1, required=True, metavar="DIR|LOG...")
@click.option(
    "--level",
    type=click.Choice(["near", "frame", "default", "exact"]),
    default="near",
    help="How alike the failures of a group are (near: 7 of 10 words).",
)
@knowledge_option
@console.output_options
def command(
    logs: tuple[str, ...],
    *,
    level: str,
    knowledge: tuple[Path, ...],
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Group the failures in these logs that no cause explains.

    Failures with the same fingerprint are one group, and so are those whose
    exceptions have the same type and almost the same message.
    """
    from triage.core.log.cluster import cluster
    from triage.render.cluster_text import clusters_document, clusters_text
    from triage.session.check import place, watched
    from triage.session.knowledge import causes
    from triage.session.logs import classify, log_sources
    from triage.session.reports import redactor

    known = causes(knowledge)
    sources = log_sources(logs)
    found = (classify(source, known=known) for source in sources)
    told = watched(found, len(sources), "logs", console.progress())
    diagnoses = [replace(d, source=place(d.source)) for d in told]
    groups = cluster(diagnoses, level)
    if as_json:
        document = redactor().document(clusters_document(groups, len(sources), level))
        console.document(cast("dict[str, object]", document))
    else:
        console.answer(redactor().text(clusters_text(groups, len(sources))), "strong",
                       on=console.coloured(color))  # fmt: skip
    return console.code(0, exit_zero=exit_zero)
