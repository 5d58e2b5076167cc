"""`regard finetune`: what a language model has read is put to use for another task."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, Overrides, RunFolder, print_json


def finetune(
    run: RunFolder,
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Labelled texts (classify), plain text (continue) or prompt TAB answer (answer).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new run, new or empty.")],
    task: Annotated[
        str, typer.Option("--task", help="classify texts, continue with other text, or answer.")
    ] = "classify",
    test: Annotated[
        Path | None, typer.Option("--test", help="Labelled texts to test on (classify).")
    ] = None,
    scratch: Annotated[
        bool,
        typer.Option(" /--no-scratch", help="Leave out the same network from scratch."),
    ] = True,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Fine-tune a language model, and show what its pre-training was worth.

    Example: regard finetune runs/book --task classify --data reviews.tsv --out runs/reviews
    """
    from regard.runs.display import ConsoleDisplay
    from regard.studies import finetuning

    display = ConsoleDisplay()
    found = finetuning.finetune(
        run,
        data,
        out=out,
        task=task,
        test=test,
        scratch=scratch,
        set=overrides or [],
        progress=display,
    )
    for line in found.lines():
        display.note(line)
    if json:
        print_json(found.to_dict())
