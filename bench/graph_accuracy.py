"""Accuracy of graph attention on Cora and Citeseer (standard split), with graph convolution beside.

Models are chosen on the validation nodes only; the figures are of the test nodes. Usage:

    python bench/graph_accuracy.py --data FOLDER_OF_NPZ [--seeds 20]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

from regard.recipes.catalog import find_recipe
from regard.recipes.classify_nodes import NodeAccuracy, open_graph_run, train_node_classifier
from regard.settings.graph import GraphRecipe
from regard.settings.schema import expect
from result import write_result

# Kipf & Welling 2017: 16 hidden units, dropout 0.5, rate 0.01.
CONVOLUTION = (
    "model.layer=convolution",
    "model.hidden=16",
    "model.dropout=0.5",
    "training.learning_rate=0.01",
)
EXPERIMENTS = {
    "cora": ("cora", ()),
    "citeseer": ("citeseer", ()),
    "gcn_cora": ("cora", CONVOLUTION),
    "gcn_citeseer": ("citeseer", CONVOLUTION),
    "gatv2_cora": ("cora", ("model.score=dynamic",)),
    "messages_cora": ("cora", ("model.layer=messages", "model.dropout=0.5")),
}


def measure(graph: Path, overrides: tuple[str, ...], *, seeds: int, folder: Path) -> NodeAccuracy:
    """Train over seeds, or go on where an earlier call was stopped."""
    recipe = expect(
        find_recipe(
            "gat-cora", overrides=[f"data.graph={graph}", f"training.seeds={seeds}", *overrides]
        ),
        GraphRecipe,
    )
    run = open_graph_run(folder, recipe, resume=(folder / "recipe.toml").exists())
    return train_node_classifier(recipe, run)[1]


def main() -> None:
    """Measure, print each result when it is there, and write the result file at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--runs", type=Path, help="keep the runs here, to be able to resume")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only:
            file, overrides = EXPERIMENTS[name]
            found = measure(
                options.data / f"{file}.npz",
                overrides,
                seeds=options.seeds,
                folder=(options.runs or Path(temporary)) / name,
            )
            figures |= {f"{name}_mean": round(found.mean, 3), f"{name}_std": round(found.spread, 3)}
            print(f"{name:<16}{found}", flush=True)
    figures["seeds"] = options.seeds
    write_result(
        "graph-accuracy",
        figures,
        command="python bench/graph_accuracy.py --data DATA --seeds " + str(options.seeds),
        notes={"selection": "validation loss and accuracy; test nodes are used once, at the end"},
    )
    print(json.dumps(figures, indent=1), file=sys.stderr)


if __name__ == "__main__":
    main()
