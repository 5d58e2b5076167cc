"""`regard import-gpt2`: a run from Hugging Face's layout; `regard export --to gpt2` goes back."""

from pathlib import Path
from typing import Annotated

import typer


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
    from regard.tasks.language_modelling import exchange as gpt2

    gpt2.import_gpt2(folder, out)
    typer.echo(f'Run: {out}   try: regard generate {out} "In a shocking finding,"', err=True)
