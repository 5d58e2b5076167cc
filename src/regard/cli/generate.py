"""`regard generate`: a language model continues a prompt, word by word as it is written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json

if TYPE_CHECKING:
    from regard.tasks.language_modelling.model import LoadedLanguageModel


def generate(
    run: RunFolder,
    prompt: Annotated[str, typer.Argument(help="Text to continue; may be left out.")] = "",
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, help="Most tokens to write.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", min=0, help="Below 1 more cautious; 0 is greedy."),
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Always the most probable token.")
    ] = False,
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, help="Draw among the k most probable tokens.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Draw among the best that hold this mass.")
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option("--min-p", help="Draw among those with this share of the best's probability."),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option("--repetition-penalty", help="Above 1: what was said is less likely."),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", help="End before this string; \\n is a line end. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of what is drawn.")] = 1,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Texts to write.")] = 1,
    cache: Annotated[
        bool, typer.Option(" /--no-cache", help="Read everything again at every token.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Continue a text with a trained language model.

    Example: regard generate runs/book "In a shocking finding," --max-tokens 200
    """
    from regard.tasks.language_modelling.model import load

    if greedy and temperature:
        raise SettingsError("Give either --greedy or --temperature, not both.")
    model = load(run)
    for warning in model.prompt_warnings(prompt):
        typer.echo(f"Note: {warning}", err=True)
    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": 0.0 if greedy else temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "stop": [string.replace("\\n", "\n") for string in stop or []],
        "seed": seed,
        "samples": samples,
        "cache": cache,
    }
    if json:
        print_json([one.to_dict() for one in model.generate(prompt, **options)])
    elif samples == 1:
        _stream(model, prompt, options)
    else:
        for number, one in enumerate(model.generate(prompt, **options), 1):
            typer.echo(f"--- {number} ---\n{prompt}{one.text}")


def _stream(model: LoadedLanguageModel, prompt: str, options: dict[str, Any]) -> None:
    """Write the text as it comes."""
    started = False

    def tell(_: int, part: str) -> None:
        nonlocal started
        sys.stdout.write(part if started else prompt + part)
        sys.stdout.flush()
        started = True

    model.generate(prompt, on_text=tell, **options)
    tell(0, "\n")
