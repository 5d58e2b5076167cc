"""Training a node classifier over one or more seeds, and loading it again.

The run holds recipe.toml, graph.npz (the graph with its split), a folder of checkpoints a seed,
test.json (accuracies) and predictions.tsv (of the seed that was best in validation).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.graph import GraphInput
from regard.base.errors import RunError, SettingsError
from regard.batching.neighbours import NodeBatch, iterate_nodes
from regard.batching.order import Position
from regard.corpora.graph import Graph, Split
from regard.corpora.graph_files import read_npz, write_npz
from regard.models.graph_classifier import GraphClassifier, build_graph_classifier
from regard.recipes.early_stopping import EarlyStopping
from regard.recipes.graph_data import graph_input, node_batch, read_graph
from regard.recipes.loaded_graph import LoadedGraphClassifier
from regard.recipes.resume import evidence_of, limits_of
from regard.recipes.run import Run
from regard.settings.graph import GraphRecipe
from regard.training.checkpoint import CheckpointStore, load_weights, read_state
from regard.training.loop import Validation, fit
from regard.training.losses import LossSum
from regard.training.progress import MetricsLog, Observer, Observers, Progress, read_metrics

GRAPH, RESULT, PREDICTIONS = "graph.npz", "test.json", "predictions.tsv"
METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class SeedResult:
    """One training: what validation said of its best model, and the test accuracy of that one."""

    seed: int
    steps: int
    valid_loss: float
    valid_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class NodeAccuracy:
    """Test accuracies in percent over seeds; the best seed is the one validation chose."""

    seeds: tuple[SeedResult, ...]

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return statistics.fmean(each.test_accuracy for each in self.seeds)

    @property
    def spread(self) -> float:
        """Return the standard deviation over seeds."""
        return statistics.pstdev(each.test_accuracy for each in self.seeds)

    @property
    def best(self) -> SeedResult:
        """Return the seed with the lowest validation loss, whatever its test."""
        return min(self.seeds, key=lambda each: each.valid_loss)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "accuracy_mean": self.mean,
            "accuracy_std": self.spread,
            "best_seed": self.best.seed,
            "seeds": [asdict(each) for each in self.seeds],
        }

    def __str__(self) -> str:
        over = f" over {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        spread = f" ± {self.spread:.1f}" if len(self.seeds) > 1 else ""
        return f"{self.mean:.1f}{spread} %{over}"


class LateStore(CheckpointStore):
    """Checkpoints whose best model is kept in memory until the next one is written.

    A small graph improves hundreds of times in seconds; writing each would take longer than it.
    """

    def __init__(self, run: Path, *, stopping: EarlyStopping, evidence: Mapping[str, Any]):
        super().__init__(run, keep=1, evidence=evidence)
        self._stopping = stopping
        self._best: tuple[dict[str, torch.Tensor], Progress, dict[str, float]] | None = None

    def save_best(self, model: nn.Module, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Remember the weights of the best model so far."""
        if not self._stopping.chosen:
            return
        copies = {name: p.detach().clone() for name, p in model.named_parameters()}
        self._best = (copies, progress, dict(metrics))

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write the best model, then a checkpoint that training can continue from."""
        if self._best is not None:
            copies, best_progress, metrics = self._best
            super().save_best(_Weights(copies), best_progress, metrics)
            self._best = None
        super().save(model, optimizer, progress)


class _Weights(nn.Module):
    """Weights by name, as a module, for a store that wants one."""

    def __init__(self, weights: Mapping[str, torch.Tensor]):
        super().__init__()
        self._weights = weights

    def named_parameters(self, *_: Any, **__: Any) -> Any:
        """Yield names and weights."""
        yield from self._weights.items()


def train_node_classifier(
    recipe: GraphRecipe,
    run: Run,
    *,
    graph: Graph | None = None,
    observers: Callable[[int], Sequence[Observer]] = lambda seed: (),
) -> tuple[LoadedGraphClassifier, NodeAccuracy]:
    """Train once a seed, each from its newest checkpoint; return the model validation chose."""
    graph = graph or read_graph(recipe.data)
    _keep_graph(run, graph)
    tensors = graph_input(graph, recipe.data)
    settings = recipe.training
    results = tuple(
        _train_seed(recipe, run, graph, tensors, seed=seed, observers=observers(seed))
        for seed in range(settings.seed, settings.seed + settings.seeds)
    )
    accuracy = NodeAccuracy(results)
    (run.folder / RESULT).write_text(
        json.dumps(accuracy.to_dict(), indent=1) + "\n", encoding="utf-8"
    )
    best = load_node_classifier(run.folder)
    best.save_predictions(run.folder / PREDICTIONS)
    return best, accuracy


def load_node_classifier(folder: str | Path, *, seed: int | None = None) -> LoadedGraphClassifier:
    """Load a trained classifier with its graph; of several seeds the best in validation."""
    run = Run.open(Path(folder))
    recipe = run.recipe(GraphRecipe)
    path = run.folder / RESULT
    if seed is None:
        try:
            seed = int(json.loads(path.read_text(encoding="utf-8"))["best_seed"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{path} is missing or damaged: continue the training with --resume."
            ) from error
    graph = read_npz(run.folder / GRAPH)
    model = _fresh_model(recipe, graph)
    load_weights(model, Run(seed_folder(run, seed)).weights())
    model.eval()
    return LoadedGraphClassifier(
        model=model, graph=graph, tensors=graph_input(graph, recipe.data), recipe=recipe
    )


def node_loss(model: GraphClassifier, batch: NodeBatch) -> LossSum:
    """Return the summed loss of the nodes of a batch."""
    logits = model(batch.graph).logits.index_select(0, batch.rows)
    loss = F.cross_entropy(logits, batch.labels, reduction="sum")
    return LossSum(loss, loss.detach())


def measure_nodes(model: GraphClassifier, batch: NodeBatch) -> dict[str, float]:
    """Return mean loss and accuracy over the nodes of a batch."""
    logits = model(batch.graph).logits.index_select(0, batch.rows)
    loss = float(F.cross_entropy(logits, batch.labels))
    accuracy = float((logits.argmax(1) == batch.labels).float().mean())
    return {"loss": loss, "accuracy": accuracy}


def validate_nodes(
    model: GraphClassifier, batch: NodeBatch, *, stopping: EarlyStopping
) -> Validation:
    """Return the figures of the validation nodes, and what to choose a model by."""
    metrics = measure_nodes(model, batch)
    return Validation(metrics=metrics, value=stopping.value(**metrics))


def _train_seed(
    recipe: GraphRecipe,
    run: Run,
    graph: Graph,
    tensors: GraphInput,
    *,
    seed: int,
    observers: Sequence[Observer],
) -> SeedResult:
    settings, split = recipe.training, _split(graph)
    folder = seed_folder(run, seed)
    folder.mkdir(parents=True, exist_ok=True)
    train, valid, test = (
        node_batch(graph, tensors, torch.from_numpy(part))
        for part in (split.train, split.valid, split.test)
    )
    torch.manual_seed(seed)
    model = _fresh_model(recipe, graph)
    done = CheckpointStore(folder).folders()[-1:]
    resumed = int(read_state(done[0])["progress"]["step"]) if done else 0
    log = MetricsLog(folder / METRICS, resume_step=resumed)
    earlier = [row for row in read_metrics(folder / METRICS) if row["kind"] == "valid"]
    stopping = EarlyStopping(settings.select, earlier=earlier)
    progress = fit(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), weight_decay=settings.l2, fused=True),
        loss_sum=partial(node_loss, model),
        batches_from=lambda epoch, batch: iterate_nodes(
            train,
            batch_nodes=settings.batch_nodes,
            neighbours=settings.neighbours,
            hops=recipe.model.layers,
            seed=seed,
            start=Position(epoch=epoch, batch=batch),
        ),
        learning_rate=lambda step, share: settings.learning_rate,
        validate=partial(validate_nodes, model, valid, stopping=stopping),
        store=LateStore(folder, stopping=stopping, evidence=evidence_of(graph.fingerprint())),
        limits=limits_of(settings),
        observer=Observers([log, *observers]),
        clip=float("inf"),
    )
    load_weights(model, Run(folder).weights())
    model.eval()
    with torch.no_grad():
        found, tested = measure_nodes(model, valid), measure_nodes(model, test)
    return SeedResult(
        seed=seed,
        steps=progress.step,
        valid_loss=found["loss"],
        valid_accuracy=100.0 * found["accuracy"],
        test_accuracy=100.0 * tested["accuracy"],
    )


def _fresh_model(recipe: GraphRecipe, graph: Graph) -> GraphClassifier:
    return build_graph_classifier(
        recipe.model, features=graph.features.width, classes=len(graph.classes)
    )


def seed_folder(run: Run, seed: int) -> Path:
    """Return where the training of a seed is kept."""
    return run.folder / "seeds" / f"{seed:04d}"


def _split(graph: Graph) -> Split:
    if graph.split is None:
        raise SettingsError("The graph has no split into training, validation and test nodes.")
    return graph.split


def _keep_graph(run: Run, graph: Graph) -> None:
    """Keep the graph in the run, or refuse to go on with another one than it began with."""
    path = run.folder / GRAPH
    if not path.exists():
        write_npz(graph, path)
    elif read_npz(path).fingerprint() != graph.fingerprint():
        raise RunError(
            f"The graph has changed since the run at {run.folder} began: it cannot be resumed "
            "exactly. Restore the data, or train into another folder."
        )
