"""Training a node classifier, once a seed; early stopping by loss, by accuracy, or by both."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.graph import GraphInput
from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.batching.neighbours import NodeBatch, iterate_nodes
from regard.batching.order import BatchPosition
from regard.compute.device import beside, placed
from regard.compute.group import current_group
from regard.corpora.graph import Graph, GraphSplit
from regard.corpora.graph_files import read_npz, write_npz
from regard.models.graph_classifier import GraphClassifier
from regard.runs.display import Display, SilentDisplay
from regard.runs.evidence import evidence_of
from regard.runs.report import EXAMPLE_COUNT, keep_inputs
from regard.runs.run import Run, limits_of, training_run
from regard.settings.recipe import Recipe, expect
from regard.tasks.node_classification import data as task_data
from regard.tasks.node_classification import model as loaded_model
from regard.tasks.node_classification.data import graph_facts, graph_input, node_batch
from regard.tasks.node_classification.report import write_report
from regard.tasks.node_classification.settings import GraphRecipe
from regard.training.checkpoint import CheckpointStore, load_weights
from regard.training.loop import fit
from regard.training.losses import LossSum
from regard.training.objective import Objective, Optimisation, Validation
from regard.training.progress import MetricsLog, Observer, Observers, Progress, read_metrics
from regard.training.update import Sharing


class EarlyStopping:
    """Decides after each validation whether the model is the best so far.

    By "both", training goes on while either figure gets better, and the best model is the last one
    at which loss and accuracy were both the best so far: the rule of Velickovic et al. 2018.
    """

    def __init__(self, select: str, *, earlier: Iterable[Mapping[str, Any]] = ()):
        self._select = select
        self._loss, self._accuracy = math.inf, -math.inf
        self._improvements = 0
        self.chosen = False
        for row in earlier:  # a resumed training has seen these
            self.value(row["loss"], row["accuracy"])

    def value(self, loss: float, accuracy: float) -> float:
        """Return a number that falls when a figure improves; `chosen` says if it is the best."""
        lower, higher = loss <= self._loss, accuracy >= self._accuracy
        self._loss, self._accuracy = min(loss, self._loss), max(accuracy, self._accuracy)
        if self._select != "both":
            self.chosen = True  # the loop keeps a model whenever the number falls
            return loss if self._select == "loss" else -accuracy
        self.chosen = lower and higher
        self._improvements += lower or higher
        return float(-self._improvements)


class LateStore(CheckpointStore):
    """Checkpoints whose best model is kept in memory until the next one is written.

    A small graph improves hundreds of times in seconds; writing each would take longer than it.
    """

    def __init__(self, run: Path, *, stopping: EarlyStopping, evidence: Mapping[str, Any]):
        super().__init__(run, evidence=evidence)
        self._stopping = stopping
        self._best: tuple[dict[str, torch.Tensor], Progress, dict[str, float]] | None = None

    def save_best(self, model: nn.Module, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Remember the weights of the best model so far."""
        if not self._stopping.chosen:
            return
        copies = {name: p.detach().clone() for name, p in model.named_parameters()}
        self._best = (copies, progress, dict(metrics))

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        *,
        extra: bool = False,
    ) -> None:
        """Write the best model, then a checkpoint that training can continue from."""
        if self._best is not None:
            copies, best_progress, metrics = self._best
            super().save_best(_Weights(copies), best_progress, metrics)
            self._best = None
        super().save(model, optimizer, progress, extra=extra)


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
    shown: Callable[[int], AbstractContextManager[Observer]] | None = None,
) -> loaded_model.TrainedNodeClassifier:
    """Train once a seed, each from its newest checkpoint; return the model validation chose."""
    graph = graph or task_data.read_graph(recipe.data)
    _keep_graph(run, graph)
    tensors = graph_input(graph, recipe.data)
    settings = recipe.training
    results = []
    for seed in range(settings.seed, settings.seed + settings.seeds):
        with shown(seed) if shown else nullcontext(Observers([])) as observer:
            results.append(
                _train_seed(recipe, run, graph, tensors, seed=seed, observers=[observer])
            )
    accuracy = loaded_model.NodeAccuracy(tuple(results))
    write_json(run.folder / loaded_model.RESULT, accuracy.to_dict())
    nodes = range(EXAMPLE_COUNT) if graph.split is None else graph.split.test[:EXAMPLE_COUNT]
    keep_inputs(run.folder, (graph.name(int(node)) for node in nodes))
    best = loaded_model.load(run.folder, known=(graph, tensors))
    best.save_predictions(run.folder / loaded_model.PREDICTIONS)
    return loaded_model.TrainedNodeClassifier(run, best, accuracy)


def node_loss(model: GraphClassifier, batch: NodeBatch) -> LossSum:
    """Return the summed loss of the nodes of a batch."""
    batch = beside(model, batch)
    logits = model(batch.graph).logits.index_select(0, batch.rows)
    loss = F.cross_entropy(logits, batch.labels, reduction="sum")
    return LossSum(loss, loss.detach())


def measure_nodes(model: GraphClassifier, batch: NodeBatch) -> dict[str, float]:
    """Return mean loss and accuracy over the nodes of a batch."""
    batch = beside(model, batch)
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
) -> loaded_model.SeedResult:
    settings = recipe.training
    (folder := loaded_model.seed_folder(run, seed)).mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    model = placed(loaded_model.fresh_network(recipe, graph))
    if settings.batch_nodes is None:  # a whole graph is moved once, of another one its samples
        tensors = beside(model, tensors)
    train, valid, test = _parts(graph, tensors)
    log = MetricsLog(folder / loaded_model.METRICS, resume_step=CheckpointStore(folder).step)
    earlier = [row for row in read_metrics(folder / loaded_model.METRICS) if row["kind"] == "valid"]
    stopping = EarlyStopping(settings.select, earlier=earlier)
    objective = Objective(
        loss_sum=partial(node_loss, model),
        batches_from=lambda epoch, batch: iterate_nodes(
            train,
            batch_nodes=settings.batch_nodes,
            neighbours=settings.neighbours,
            hops=recipe.model.layers,
            seed=seed,
            start=BatchPosition(epoch=epoch, batch=batch),
        ),
        validate=partial(validate_nodes, model, valid, stopping=stopping),
        read=partial(graph_facts, graph, settings) if seed == settings.seed else None,
    )
    optimisation = Optimisation[NodeBatch](
        optimizer=torch.optim.Adam(model.parameters(), weight_decay=settings.l2, fused=True),
        learning_rate=lambda step, share: settings.learning_rate,
        clip=float("inf"),
        sharing=Sharing(1, NodeBatch.split),
    )
    progress = fit(
        model,
        objective,
        optimisation,
        limits=limits_of(settings),
        store=LateStore(folder, stopping=stopping, evidence=evidence_of(graph.fingerprint())),
        observer=Observers([log, *observers]),
        last=seed == settings.seed + settings.seeds - 1,
    )
    if current_group().leads:
        load_weights(model, Run(folder).weights())
    model.eval()
    with torch.no_grad():
        found, tested = measure_nodes(model, valid), measure_nodes(model, test)
    return loaded_model.SeedResult(
        seed=seed,
        steps=progress.step,
        valid_loss=found["loss"],
        valid_accuracy=100.0 * found["accuracy"],
        test_accuracy=100.0 * tested["accuracy"],
    )


def _parts(graph: Graph, tensors: GraphInput) -> tuple[NodeBatch, NodeBatch, NodeBatch]:
    """Return the nodes to train, to validate and to test on."""
    split = _split(graph)
    train, valid, test = (
        node_batch(graph, tensors, torch.from_numpy(part))
        for part in (split.train, split.valid, split.test)
    )
    return train, valid, test


def _split(graph: Graph) -> GraphSplit:
    if graph.split is None:
        raise SettingsError("The graph has no split into training, validation and test nodes.")
    return graph.split


def _keep_graph(run: Run, graph: Graph) -> None:
    """Keep the graph in the run, or refuse to go on with another one than it began with."""
    path = run.folder / loaded_model.GRAPH
    if not path.exists():
        write_npz(graph, path)
    elif read_npz(path).fingerprint() != graph.fingerprint():
        raise RunError(
            f"The graph has changed since the run at {run.folder} began: it cannot be resumed "
            "exactly. Restore the data, or train into another folder."
        )


def train(
    recipe: Recipe,
    out: Path,
    *,
    title: str = "",
    resume: bool = False,
    data: task_data.GivenGraph | None = None,
    display: Display | None = None,
) -> loaded_model.TrainedNodeClassifier:
    """Train a node classifier over its seeds, test it and write its report."""
    display = SilentDisplay() if display is None else display
    settings = expect(recipe, GraphRecipe)
    if not resume:
        Run.require_free(out)
    settings, graph = task_data.given_graph(settings, data)

    def shown(seed: int) -> AbstractContextManager[Observer]:
        limits, name = limits_of(settings.training), f"{title}, seed {seed}"
        return display.training(limits, title=name, unit="nodes", quiet=True)

    with training_run(out, settings, resume=resume) as run:
        trained = train_node_classifier(settings, run, graph=graph, shown=shown)
        write_report(trained, trained.report, title=settings.title or title)
    return trained
