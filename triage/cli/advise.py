"""`triage advise RECIPE`: what each wanted flag could bring at best, and whether to go on."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.command(name="advise")
@click.argument("recipe", required=False, type=click.Path(path_type=Path))
@click.option("--concurrency", default="", metavar="1,64", help="Sequences at once to show.")
@click.option("--measured", multiple=True, metavar="C=TOK_S", help="A measured throughput.")
@click.option("--gpu", default="", help="The GPU, such as B300; else the recipe's or this one's.")
@click.option("--gpus", type=click.IntRange(1, 1024), help="How many.")
@click.option("--model-config", type=click.Path(path_type=Path), help="The model's config.json.")
@click.option("--input-tokens", type=click.IntRange(1), help="Tokens of a prompt.")
@click.option("--output-tokens", type=click.IntRange(1), help="Tokens of an answer.")
@click.option("--verify-tokens", type=click.IntRange(1), help="Tokens that a step verifies.")
@click.option("--figure", type=click.Path(path_type=Path), help="Write the picture, as SVG.")
@console.output_options
def command(
    recipe: Path | None, *, concurrency: str, measured: tuple[str, ...], gpu: str,
    gpus: int | None, model_config: Path | None, input_tokens: int | None,
    output_tokens: int | None, verify_tokens: int | None, figure: Path | None,
    as_json: bool, color: str, exit_zero: bool,
) -> int:  # fmt: skip
    """Tell what the wanted flags of RECIPE could bring, and whether to persevere.

    RECIPE is a recipe file or a session folder; without it the newest session is
    taken. Gains are modelled from published constants and nothing is launched; what
    launches of a session have shown counts.
    """
    from triage.render.advice_document import advice_document
    from triage.render.advice_text import advice_text
    from triage.session.advise import Asked, advise_on, parse_concurrency, parse_measured
    from triage.store import newest_session

    asked = Asked(
        concurrency=parse_concurrency(concurrency) if concurrency else (),
        measured=parse_measured(measured),
        gpu=gpu,
        gpus=gpus or 0,
        model_config=model_config,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        verify_tokens=verify_tokens,
    )
    advice = advise_on(recipe or newest_session(), asked)
    if figure is not None:
        from triage.session.advise import write_figure

        write_figure(advice, figure)
        console.talk(f"figure: {figure}")
    if as_json:
        console.document(advice_document(advice))
    else:
        console.answer(advice_text(advice), "strong", on=console.coloured(color))
    return console.code(0, exit_zero=exit_zero)
