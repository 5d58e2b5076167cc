"""`regard export`: a run in the form of another toolkit."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import RunFolder

if TYPE_CHECKING:
    from regard.exchange.ctranslate2 import Quantization
    from regard.scoring.bootstrap import BleuChange


class Form(StrEnum):
    """The forms that a run can be written in."""

    ctranslate2 = "ctranslate2"
    argos = "argos"
    onnx = "onnx"
    hugging_face = "hugging-face"
    gpt2 = "gpt2"


class Arithmetic(StrEnum):
    """The numbers that weights can be written in."""

    int8 = "int8"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"


# The forms that an option is for; all others refuse it.
BELONGS = {
    "--quantization": (Form.ctranslate2, Form.argos, Form.onnx),
    "--weights": (Form.onnx,),
    "--shortlist": (Form.ctranslate2,),
    "--source": (Form.argos,),
    "--target": (Form.argos,),
}


def _require_fitting(options: list[str], to: Form) -> None:
    """Refuse options that this form does not have."""
    for option in options:
        if to not in BELONGS[option]:
            *others, last = BELONGS[option]
            known = f"{', '.join(others)} or {last}" if others else last
            raise SettingsError(f"{option} belongs to --to {known}, not to {to}.")


def export(
    run: RunFolder,
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    quantization: Annotated[
        Arithmetic | None, typer.Option(help="Smaller weights; float32 if left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder or file to write; else inside the run.")
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights", help="Attention of every head as outputs (onnx).")
    ] = False,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Add a table of likely words (ctranslate2).")
    ] = False,
    source: Annotated[str | None, typer.Option(help="Code of the source language (argos).")] = None,
    target: Annotated[str | None, typer.Option(help="Code of the target language (argos).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
) -> None:
    """Write a run for another program: CTranslate2, Argos Translate, onnxruntime, `transformers`.

    Example: regard export runs/mine --to ctranslate2 --quantization int8 --output mine-int8

    Example: regard export runs/mine --to hugging-face --output mine-hf
    """
    from regard.runs.run import Run
    from regard.tasks.language_modelling.exchange import export_gpt2, export_language_model
    from regard.tasks.translation import export as exports

    given = {
        "--quantization": quantization is not None,
        "--shortlist": shortlist,
        "--weights": weights,
        "--source": source is not None,
        "--target": target is not None,
    }
    _require_fitting([option for option, used in given.items() if used], to)
    kind: Quantization | None = quantization.value if quantization else None
    say = partial(typer.echo, err=True)
    if output is not None and not output.parent.is_dir():
        raise SettingsError(f"Cannot write {output}: there is no folder {output.parent}.")
    if to is Form.gpt2:
        typer.echo(f"Wrote {export_gpt2(run, output, force=force)}")
        return
    if to is Form.hugging_face:
        writes_text = Run.open(run).task == "language-model"
        write = export_language_model if writes_text else exports.export_hugging_face
        typer.echo(f"Wrote {write(run, output, force=force)}")
        return
    if to is Form.argos:
        if source is None or target is None:
            raise SettingsError("--to argos needs the languages: give --source en --target de.")
        found = exports.export_argos(
            run, source=source, target=target, output=output, quantization=kind, force=force
        )
    elif to is Form.onnx:
        if kind not in (None, "int8"):
            raise SettingsError(f"--to onnx writes float32 or int8, not {kind}.")
        found = exports.export_onnx(
            run,
            output=output,
            int8=kind is not None,
            weights=weights,
            report=say,
            force=force,
        )
    else:
        found = exports.export_ctranslate2(
            run,
            output=output,
            quantization=kind,
            shortlist=shortlist,
            report=say,
            force=force,
        )
    typer.echo(f"Wrote {found.path}")
    if found.change is not None:
        typer.echo(_cost(found.change))


def _cost(change: "BleuChange") -> str:
    """Return what smaller weights cost, as a person reads it."""
    return (
        f"Validation: BLEU {change.bleu:.2f}, {change.difference:+.2f} against float32 in full "
        f"(95 % interval {change.interval.low:+.2f} to {change.interval.high:+.2f})."
    )
