"""Alignment error rates: of published alignments, and of the best head of a trained Transformer.

    python bench/alignment.py [--run DIR] [--minutes 30]

`giza_enfr` and `giza_roen` are GIZA++ alignments that others have published with their error (8.0 %
and 28.7 %), counted again by our code. `best_head_grammar` is a head of transformer-tiny, trained
on the built-in grammar: chosen by its error on the validation part, reported on the test part.
Without --run the model is trained here (a stopped training is continued).
Writes results/alignment.json. The data is $REGARD_DATA/alignments, or ../shared/data/alignments.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
from rich.console import Console

from regard.corpora.alignments import read_alignments, read_gold
from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.scoring.alignment import alignment_error_rate
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.evaluation import align, score_heads
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
PUBLISHED = {"enfr": 8.0, "roen": 28.7}
SETTINGS = [
    "data.built_in=true",
    "training.optimizer=adam",
    "training.learning_rate=0.003",
    # Words are tokens, so that links between words need no merging.
    "tokenizer.kind=word",
    "tokenizer.shared=false",
    "model.tie=target",
    # There is no noise in the grammar, and little time.
    "model.dropout=0.1",
    "batches.tokens=2048",
]


def main() -> None:
    """Count, choose and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=DATA / "alignments")
    options.add_argument("--run", type=Path, help="a Transformer trained on the grammar")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/alignment"))
    options.add_argument("--minutes", type=float, default=30.0, help="of the training")
    options.add_argument("--sentences", type=int, default=500, help="of each part")
    given = options.parse_args()
    figures = {f"giza_{pair}": round(published_error(given.data, pair), 2) for pair in PUBLISHED}
    print(json.dumps(figures))
    model = load(given.run) if given.run else trained(given.runs, minutes=given.minutes)
    head, figures["best_head_grammar"], mean = best_head(model, sentences=given.sentences)
    details = {
        "published": PUBLISHED,
        "head": {"layer": head[0], "head": head[1], "chosen_on": "validation gold"},
        "mean_of_the_shown_layer": mean,
        "model": model.recipe.title,
        "settings": SETTINGS,
        "sentences": given.sentences,
    }
    command = f"OMP_NUM_THREADS={torch.get_num_threads()} python bench/alignment.py"
    command += " --run DIR" if given.run else f" --minutes {given.minutes:g}"
    path = write_result("alignment", figures, command=command, details=details)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def published_error(folder: Path, pair: str) -> float:
    """Return the error rate of GIZA's alignments of a pair of languages, in percent."""
    found = read_alignments(folder / f"giza.{pair}.talp")
    gold = read_gold(folder / f"{pair}.gold", first=1)
    sure, possible = [line.sure for line in gold], [line.possible for line in gold]
    return alignment_error_rate(found, sure, possible).value


def trained(runs: Path, *, minutes: float) -> LoadedTranslator:
    """Return transformer-tiny, trained on the built-in grammar or loaded if that is done."""
    overrides = [*SETTINGS, f"training.minutes={minutes}"]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    run = finish_or_start(runs / "grammar", recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title="grammar") as display:
        return train_translator(recipe, run, observers=[display]).model


def best_head(model: LoadedTranslator, *, sentences: int) -> tuple[tuple[int, int], float, float]:
    """Return the head that validation chose, its error on the test part, and that of the mean."""
    splits = read_splits(model.recipe.data)
    best = score_heads(model, splits.valid[:sentences])[0]
    print(f"layer {best.layer}, head {best.head}: {best.error.value:.2f} % on validation")
    test = splits.test[:sentences]
    gold = [pair.alignment or () for pair in test]
    errors = [
        alignment_error_rate([shown.links() for shown in align(model, test, head=head)], gold)
        for head in (best.place, None)
    ]
    return best.place, round(errors[0].value, 2), round(errors[1].value, 2)


if __name__ == "__main__":
    main()
