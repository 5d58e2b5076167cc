"""The commands of the task `classify-nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import typer
from rich.console import Console

from regard.base.errors import SettingsError
from regard.cli.display import TrainingDisplay
from regard.models.graph_classifier import build_graph_classifier
from regard.models.inspection import LayerRow, layer_table
from regard.recipes.classify_nodes import (
    load_node_classifier,
    train_node_classifier,
)
from regard.recipes.graph_data import read_graph
from regard.recipes.graph_pictures import draw_classes, draw_node, look_at_node
from regard.recipes.node_report import report_node_classifier
from regard.recipes.resume import limits_of, open_run
from regard.settings.graph import GraphRecipe
from regard.settings.schema import Recipe, expect
from regard.training.progress import Observer

PRINTED_NEIGHBOURS = 20
TABLES = (".tsv", ".npz")


def train(recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
    """Train a node classifier over its seeds and print the accuracy with its spread."""
    settings = expect(recipe, GraphRecipe)
    graph = read_graph(settings.data)
    run = open_run(out, settings, resume=resume)
    console = Console(stderr=True)

    def observers(seed: int) -> Sequence[Observer]:
        limits, title = limits_of(settings.training), f"{name}, seed {seed}"
        return [QuietDisplay(console, limits, title=title, unit="nodes")]

    best, accuracy = train_node_classifier(settings, run, graph=graph, observers=observers)
    report = out / "report.html"
    report_node_classifier(run, best, accuracy, report, title=settings.title or name)
    console.print(f"Test accuracy: {accuracy}", highlight=False)
    console.print(
        f"Run: {out}   predictions: {out / 'predictions.tsv'}   report: {report}",
        highlight=False,
        soft_wrap=True,
    )
    return {"run": str(out), "report": str(report), **accuracy.to_dict()}


class QuietDisplay(TrainingDisplay):
    """A display that says how a training ended but not what every single epoch gave."""

    def validated(self, *_: Any) -> None:
        """Say nothing: full-batch training validates after every update."""


def summarise_recipe(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of a recipe; model.features and model.classes stand in for a graph's."""
    settings = expect(recipe, GraphRecipe).model
    return layer_table(
        build_graph_classifier(settings, features=settings.features, classes=settings.classes)
    )


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained classifier."""
    return layer_table(load_node_classifier(folder).model)


def look(
    folder: Path,
    *,
    node: str | None,
    layer: int,
    head: int | None,
    embeddings: str | None,
    out: Path | None,
) -> dict[str, Any]:
    """Show what a node attends to, or write the attention of all edges, or draw all nodes."""
    loaded = load_node_classifier(folder)
    if embeddings is not None:
        if out is None or embeddings not in ("pca", "t-sne"):
            raise SettingsError("--embeddings takes pca or t-sne, and a picture with --out.")
        draw_classes(loaded, out, method=cast(Literal["pca", "t-sne"], embeddings))
        return {"written": str(out)}
    if node is None:
        if out is None or out.suffix.lower() not in TABLES:
            raise SettingsError(
                "Name a node with --node, or write the attention of all edges with --out FILE.tsv "
                "(or .npz)."
            )
        loaded.attention(layer).save(out, graph=loaded.graph)
        return {"written": str(out)}
    number = loaded.graph.find(node)
    seen = look_at_node(loaded, number, layer=layer, head=head)
    classes = loaded.graph.classes
    result: dict[str, Any] = {
        "node": node,
        "predicted": classes[loaded.predictions[number]],
        "attends_to": [
            {"node": each.name, "predicted": classes[each.label], "weight": each.weight}
            for each in seen
        ],
    }
    if out is not None:
        if out.suffix.lower() in TABLES:
            loaded.attention(layer).of(number).save(out, graph=loaded.graph)
        else:
            draw_node(loaded, number, out, layer=layer, head=head)
        result["written"] = str(out)
    return result


def print_look(result: dict[str, Any]) -> None:
    """Print what `look` found for a person to read."""
    if "node" in result:
        typer.echo(f"node {result['node']}: class {result['predicted']}")
        seen = result["attends_to"]
        most = max((each["weight"] for each in seen), default=1.0)
        for each in seen[:PRINTED_NEIGHBOURS]:
            bar = "█" * round(20 * each["weight"] / most)
            typer.echo(f"  {each['weight']:.4f} {bar:<20} {each['node']} ({each['predicted']})")
        if rest := seen[PRINTED_NEIGHBOURS:]:
            share = sum(each["weight"] for each in rest)
            typer.echo(f"  {share:.4f} on {len(rest)} more (all with --json or --out F.tsv)")
    if "written" in result:
        typer.echo(f"Wrote {result['written']}")
