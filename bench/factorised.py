"""F-LSTM and G-LSTM against the whole LSTM: parameters, speed and loss after equal CPU seconds.

    python bench/factorised.py [--seconds 20] [--seeds 1 2 3]

Character models of Tiny Shakespeare with two LSTM layers of width 384: the matrices whole, as the
product of two narrow ones (Kuchaiev & Ginsburg 2017, section 2.2), or in groups (section 2.3); and
a whole LSTM that is narrower, with about the parameters of the factorised one: what one would
otherwise do to save. All are trained for the same CPU seconds, on one thread. Intervals are
Student's, over the seeds.
Writes results/factorised.json. The data is $REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch

from regard.models.inspection import parameter_count
from regard.settings.language_models import RecurrentLanguageModelSettings
from regard.studies.small_models import MeanOverSeeds, SmallTraining, TrainingBudget, train_small
from result import write_result
from small_texts import shakespeare

HIDDEN, CONTEXT, BATCH = 384, 64, 16
KINDS: dict[str, dict[str, Any]] = {
    "whole": {},
    "rank_96": {"cell_rank": 96},
    "rank_48": {"cell_rank": 48},
    "groups_2": {"cell_groups": 2},
    "groups_4": {"cell_groups": 4},
    "narrow": {"hidden": 160, "embedding": 160},
}


def main() -> None:
    """Train all kinds with each seed, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = options.parse_args()
    torch.set_num_threads(1)
    text = shakespeare()
    found: dict[str, list[SmallTraining]] = {name: [] for name in KINDS}
    for seed in given.seeds:
        budget = TrainingBudget(seconds=given.seconds, batch_size=BATCH, seed=seed, warmup=20)
        for name, more in KINDS.items():
            found[name].append(train_small(settings(**more), text, budget))
            print(name, seed, found[name][-1].last, flush=True)
    figures: dict[str, float] = {"cpu_seconds": given.seconds}
    details: dict[str, Any] = {"hidden": HIDDEN, "layers": 2, "batch": [BATCH, CONTEXT]}
    for name, trained in found.items():
        stack: Any = trained[0].model.backbone
        cells = parameter_count(stack.stack)
        speed = [one.last.tokens / one.last.seconds for one in trained]
        loss = MeanOverSeeds.of([one.last.loss for one in trained])
        against = MeanOverSeeds.of(
            [a.last.loss - b.last.loss for a, b in zip(trained, found["whole"], strict=True)]
        )
        figures[f"{name}_parameters_of_cells"] = cells
        figures[f"{name}_tokens_a_second"] = round(statistics.mean(speed))
        figures[f"{name}_loss"] = round(loss.mean, 4)
        details[name] = {
            "parameters": trained[0].parameters,
            "loss": loss.to_dict(),
            "loss_above_whole": against.to_dict(),
            "tokens_a_second": MeanOverSeeds.of(speed).to_dict(),
            "updates": [one.last.updates for one in trained],
        }
    seeds = " ".join(map(str, given.seeds))
    command = f"python bench/factorised.py --seconds {given.seconds:g} --seeds {seeds}"
    print(write_result("factorised", figures, command=command, details=details))


def settings(**more: Any) -> RecurrentLanguageModelSettings:
    """Return the model that all have in common."""
    sizes = {"layers": 2, "hidden": HIDDEN, "embedding": HIDDEN, "context": CONTEXT}
    return RecurrentLanguageModelSettings.model_validate(sizes | more)


if __name__ == "__main__":
    main()
