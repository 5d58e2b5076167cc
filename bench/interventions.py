"""What interventions do: forced attention, forced weights that change nothing, worth of heads.

    python bench/interventions.py --demo runs/demo

The runs are those of `regard demo --out runs/demo`. On test pairs with gold links, the attention of
each step is forced to each source word that has a translation; `forced_gold_share` is
how often the recurrent model then writes this translation, `unforced_gold_share` how often it does
so where it looks as it would. `identity_differences` counts the numbers among features and weights
that differ after each step's weights were forced to what they are; every bit counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

import regard
from regard.attention.probe import Probe, Recorder
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded
from regard.models.interventions import Force, Intervened, Place
from regard.studies.interventions import forced_steps, head_importance
from regard.tasks.translation.data import read_test
from result import write_result


@torch.inference_mode()
def identity_differences(model: Any, pairs: Any) -> tuple[int, int]:
    """Force all weights to what they are; return how many numbers differ, and of how many."""
    different = numbers = 0
    for pair in pairs:
        source, mask = padded([model.source_tokenizer.encode(pair.source)], after=END)
        target, _ = padded([model.target_tokenizer.encode(pair.target)], before=BEGIN)
        first = Recorder()
        plain = model.model(source, mask, target, probe=Probe(first)).features
        kept = []
        for (part, layer, name), values in first.values.items():
            if name == "weights":
                rows = torch.cat(values, dim=2)[0]
                kept += [
                    Force(step, rows[:, step], Place(part, layer)) for step in range(rows.shape[1])
                ]
        forced = Intervened(model.model, kept)(source, mask, target).features
        different += int((forced != plain).sum())
        numbers += plain.numel()
    return different, numbers


def main() -> None:
    """Measure and write bench/results/interventions.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="the folder of regard demo")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--importance", type=int, default=200, help="sentences to rate heads on")
    options = parser.parse_args()
    names = ("attention", "transformer")
    recurrent, transformer = (regard.load(options.demo / name) for name in names)
    pairs = read_test(recurrent.recipe.data)[: options.pairs]
    forced, forced_transformer = forced_steps(recurrent, pairs), forced_steps(transformer, pairs)
    counts = [identity_differences(model, pairs[:100]) for model in (recurrent, transformer)]
    heads = head_importance(transformer, sentences=options.importance)
    figures = {
        "forced_gold_share": round(forced.gold, 4),
        "unforced_gold_share": round(forced.unforced, 4),
        "forced_gold_share_other_steps": round(forced.others, 4),
        "forced_gold_share_transformer": round(forced_transformer.gold, 4),
        "forced_steps": forced.steps,
        "identity_differences": sum(count for count, _ in counts),
        "identity_numbers": sum(numbers for _, numbers in counts),
        "bleu_lost_without_the_most_important_head": round(max(h.lost for h in heads.heads), 2),
        "heads_worth_less_than_half_a_point": sum(h.lost < 0.5 for h in heads.heads),
        "heads": len(heads.heads),
    }
    command = "python bench/interventions.py --demo runs/demo"
    details = {"importance": heads.to_dict(), "forced": forced.to_dict(),
               "forced_transformer": forced_transformer.to_dict()}  # fmt: skip
    print(write_result("interventions", figures, command=command, details=details))
    print(figures)


if __name__ == "__main__":
    main()
