"""What inseq finds on a model of ours, and how far that is from what we find.

    pip install -c constraints.txt inseq
    python bench/inseq_peer.py --out inseq.json

`bench/explain.py --inseq inseq.json` then takes the differences into explain.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from regard.exchange.formats import ModelParts
from regard.exchange.hugging_face.trained import write_trained
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks import find_recipe
from regard.tasks.translation.explanations import explain_translation
from regard.tasks.translation.model import LoadedTranslator
from regard.text.tokenizers import train_tokenizer
from result import versions

TEXTS = ["one small cat sleeps", "two large dogs run", "a bird and a fish", "dogs see a small bird"]
PAIRS = [("dogs see a small cat", "two large dogs run"), ("a fish sleeps", "one bird and a cat")]
# Ours, and what inseq calls it.
SHARED = {
    "gradient": "input_x_gradient",
    "integrated-gradients": "integrated_gradients",
    "occlusion": "occlusion",
}


def small_model() -> LoadedTranslator:
    """Return an untrained Transformer, with weights large enough that tokens matter."""
    torch.manual_seed(2)
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=290)
    settings = TransformerSettings(
        layers=2, model_dim=32, heads=4, feed_forward=48, tie="all", scaled_embeddings=False
    )  # inseq 0.7 scales the decoder's embeddings twice where transformers 5 scales them itself
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    recipe: Any = find_recipe("transformer-tiny")
    return LoadedTranslator(
        model=model.eval().requires_grad_(False),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        recipe=recipe.model_copy(update={"model": settings}),
    )


def largest_differences(folder: Path) -> dict[str, float]:
    """Export a model, explain with both, and return the largest difference by method."""
    import inseq

    ours = small_model()
    tokenizer: Any = ours.source_tokenizer
    settings: Any = ours.recipe.model
    parts = ModelParts(
        model=ours.model,
        settings=settings,
        tokenizers={"source": tokenizer, "target": tokenizer},
    )
    write_trained(parts, folder)
    found = {}
    for method, name in SHARED.items():
        theirs = inseq.load_model(str(folder), name)
        worst = 0.0
        for source, text in PAIRS:
            output = theirs.attribute(
                [source],
                generated_texts=[text],
                attributed_fn="probability",
                show_progress=False,
                **({"n_steps": 50} if method == "integrated-gradients" else {}),
            )
            scores = output.sequence_attributions[0].source_attributions
            values = (scores.sum(-1) if scores.dim() == 3 else scores).T.numpy()
            mine = explain_translation(ours, source, text, method=method).values
            mine = np.abs(mine) if method == "occlusion" else mine
            worst = max(worst, float(np.abs(values - mine).max()))
        found[method] = worst
    return found


def main() -> None:
    """Write the largest differences, and the versions behind them, to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = {
            "differences": largest_differences(Path(folder)),
            "versions": versions(("inseq", "captum", "transformers", "torch")),
        }
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
