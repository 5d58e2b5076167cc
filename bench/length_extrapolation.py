"""Sequences longer than any in training: how far each kind of position carries on.

    python bench/length_extrapolation.py [--longest 20] [--steps 1500] [--batch 2000]

The same small Transformer learns to copy sequences of up to `longest` random tokens, once with
each kind of position, and is tested on up to 40. The table of learned positions is as long as the
longest test, so that nothing is refused; its rows beyond the training length were never trained.
Writes results/length-extrapolation.json and the picture. A stopped training is continued.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random
from typing import get_args

from rich.console import Console

from regard.corpora.parallel import SentencePair
from regard.pictures.studies import LengthPanel, draw_by_length
from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.settings.models import TransformerSettings
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "length-extrapolation.png"
KINDS = get_args(TransformerSettings.model_fields["positions"].annotation)
TOKENS = [first + second for first in "bdfgklmnpt" for second in "aeiou"]
Shares = tuple[float, float]
LENGTHS, SEQUENCES = (5, 10, 15, 20, 25, 30, 35, 40), 100
SETTINGS = [
    "tokenizer.kind=word",
    "tokenizer.shared=false",
    "model.tie=target",
    "model.layers=2",
    "model.model_dim=64",
    "model.heads=4",
    "model.feed_forward=128",
    "model.norm_placement=pre",
    "model.dropout=0",
    f"model.max_length={max(LENGTHS) + 1}",
    f"batches.max_length={max(LENGTHS) + 1}",
    "training.optimizer=adam",
    "training.schedule=cosine",
    "training.learning_rate=0.003",
    "training.warmup=100",
    "training.label_smoothing=0",
    "training.average=0",
    "training.select=loss",
    "training.validate_every=500",
    "training.validate_sentences=20",
    "training.checkpoint_every=500",
    "decoding.beam=1",
]


def main() -> None:
    """Train with each kind of position, test at every length, write the result and draw it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--longest", type=int, default=20, help="tokens in training")
    options.add_argument("--steps", type=int, default=1_500)
    options.add_argument("--batch", type=int, default=2_000, help="tokens of a batch")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/length-extrapolation"))
    options.add_argument("--only", choices=KINDS, help="train just this kind")
    given = options.parse_args()
    changes = [f"training.steps={given.steps}", f"batches.tokens={given.batch}"]
    found: dict[str, dict[int, Shares]] = {}
    for kind in [given.only] if given.only else KINDS:
        model = train(kind, given.runs / kind, longest=given.longest, changes=changes)
        found[kind] = {length: accuracies(model, length) for length in LENGTHS}
        print(kind, found[kind], flush=True)
    if not given.only:
        command = (
            f"OMP_NUM_THREADS=1 python bench/length_extrapolation.py --longest {given.longest} "
            f"--steps {given.steps} --batch {given.batch}"
        )
        report(found, longest=given.longest, command=command)


def report(found: dict[str, dict[int, Shares]], *, longest: int, command: str) -> None:
    """Write the result file and the picture."""
    places = [(kind, length) for kind in found for length in LENGTHS]
    figures = {
        **{f"accuracy_{kind}_{length}": found[kind][length][0] for kind, length in places},
        **{f"exact_{kind}_{length}": found[kind][length][1] for kind, length in places},
    }
    details = {
        "accuracy": "share of tokens that are right at their place",
        "exact": "share of sequences that are right from first to last",
        "learned": f"table of {max(LENGTHS) + 1} rows, of which {longest + 1} were trained",
        "sequences_a_length": SEQUENCES,
        "settings": SETTINGS,
    }
    path = write_result("length-extrapolation", figures, command=command, details=details)
    percent = {
        kind: {length: 100 * shares[0] for length, shares in each.items()}
        for kind, each in found.items()
    }
    draw_by_length(
        [LengthPanel(label="tokens copied right, %", curves=percent, top=100.0)],
        PICTURE,
        mark=(longest, "longest in training"),
    )
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def train(kind: str, folder: Path, *, longest: int, changes: list[str]) -> LoadedTranslator:
    """Train or continue the model with one kind of position."""
    overrides = [*SETTINGS, f"model.positions={kind}", *changes]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    run = finish_or_start(folder, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=kind) as display:
        return train_translator(recipe, run, splits=copies(longest), observers=[display]).model


def copies(longest: int) -> Splits:
    """Return sequences of up to `longest` tokens, each with itself as its translation."""
    random = Random(1)

    def drawn(size: int) -> list[SentencePair]:
        texts = [sequence(random, random.randint(1, longest)) for _ in range(size)]
        return [SentencePair(text, text) for text in texts]

    return Splits(train=drawn(30_000), valid=drawn(200), test=[])


def sequence(random: Random, length: int) -> str:
    """Return `length` random tokens."""
    return " ".join(random.choices(TOKENS, k=length))


def accuracies(model: LoadedTranslator, length: int) -> Shares:
    """Return the shares of tokens and of whole sequences that are copied right."""
    random = Random(1_000 + length)
    texts = [sequence(random, length) for _ in range(SEQUENCES)]
    tokens = sequences = 0
    for text, found in zip(texts, model.translate(texts, attention=False), strict=True):
        wanted, said = text.split(), found.text.split()
        tokens += sum(one == other for one, other in zip(wanted, said, strict=False))
        sequences += wanted == said
    return round(tokens / (length * SEQUENCES), 4), round(sequences / SEQUENCES, 4)


if __name__ == "__main__":
    main()
