"""`regard export`: a run in the form of another toolkit."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import RunFolder

if TYPE_CHECKING:
    from regard.exchange.ctranslate2 import Quantization


class Form(StrEnum):
    """The forms that a run can be written in."""

    ctranslate2 = "ctranslate2"
    argos = "argos"
    gpt2 = "gpt2"


class Arithmetic(StrEnum):
    """The numbers that weights can be written in."""

    int8 = "int8"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"


# The forms that an option is for; all others refuse it.
BELONGS = {
    "--quantization": (Form.ctranslate2, Form.argos),
    "--shortlist": (Form.ctranslate2,),
    "--source": (Form.argos,),
    "--target": (Form.argos,),
}


def export(
    run: RunFolder,
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    quantization: Annotated[
        Arithmetic | None, typer.Option(help="Smaller weights; float32 if left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder or file to write; else inside the run.")
    ] = None,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Add a table of likely words (ctranslate2).")
    ] = False,
    source: Annotated[str | None, typer.Option(help="Code of the source language (argos).")] = None,
    target: Annotated[str | None, typer.Option(help="Code of the target language (argos).")] = None,
) -> None:
    """Write a translator for CTranslate2 or Argos Translate, a language model for `transformers`.

    Example: regard export runs/mine --to ctranslate2 --quantization int8 --output mine-int8

    Example: regard export runs/book --to gpt2 --output book-gpt2
    """
    from regard.tasks.language_modelling.exchange import export_gpt2
    from regard.tasks.translation.export import export_argos, export_ctranslate2

    given = {
        "--quantization": quantization is not None,
        "--shortlist": shortlist,
        "--source": source is not None,
        "--target": target is not None,
    }
    for option, forms in BELONGS.items():
        if given[option] and to not in forms:
            raise SettingsError(f"{option} belongs to --to {' or '.join(forms)}, not to {to}.")
    kind: Quantization | None = quantization.value if quantization else None
    if output is not None and not output.parent.is_dir():
        raise SettingsError(f"Cannot write {output}: there is no folder {output.parent}.")
    if to is Form.gpt2:
        typer.echo(f"Wrote {export_gpt2(run, output)}")
        return
    if to is Form.argos:
        if source is None or target is None:
            raise SettingsError("--to argos needs the languages: give --source en --target de.")
        found = export_argos(run, source=source, target=target, output=output, quantization=kind)
    else:
        found = export_ctranslate2(
            run,
            output=output,
            quantization=kind,
            shortlist=shortlist,
            report=lambda sentence: typer.echo(sentence, err=True),
        )
    typer.echo(f"Wrote {found.path}")
    if found.bleu_change is not None:
        typer.echo(
            f"Validation: BLEU {found.bleu:.2f}, {found.bleu_change:+.2f} against float32 in full."
        )
