"""`regard import-gpt2` and `regard export-gpt2`: to and from Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import RunFolder


def import_gpt2(
    folder: Annotated[
        Path,
        typer.Argument(help="With config.json, model.safetensors, vocab.json and merges.txt."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, new or empty.")],
) -> None:
    """Make a run of a GPT-2 model in the layout of Hugging Face.

    Example: regard import-gpt2 models/gpt2 --out runs/gpt2
    """
    from regard.recipes import gpt2

    gpt2.import_gpt2(folder, out)
    typer.echo(f'Run: {out}   try: regard generate {out} "In a shocking finding,"', err=True)


def export_gpt2(
    run: RunFolder,
    out: Annotated[Path, typer.Option("--out", help="Folder to write, new or empty.")],
) -> None:
    """Write a language model so that `transformers` loads it as GPT-2.

    Example: regard export-gpt2 runs/book --out book-gpt2
    """
    from regard.recipes import gpt2

    gpt2.export_gpt2(run, out)
    typer.echo(f"Wrote {out}", err=True)
