"""The recipe of a node classifier: graph, model and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.models import GraphModelSettings
from regard.settings.recipe import File, Recipe, Settings


class GraphDataSettings(Settings):
    """Where the graph comes from, how its edges are read and how its nodes are split."""

    graph: File = Field(None, description="npz (Planetoid) or GraphML file")
    edges: File = Field(None, description="edge list: one source,target per line")
    features: File = Field(None, description="CSV for the edge list: node,number,...")
    labels: File = Field(None, description="CSV for the edge list: node,label")
    label_attribute: str = Field("label", description="GraphML attribute that holds the class")
    undirected: bool = Field(True, description="use edges in both directions")
    normalise: bool = Field(True, description="divide features by their sum per node")
    split: Literal["auto", "standard", "random"] = Field(
        "auto", description="the file's split, or a random one; auto: the file's if it has one"
    )
    train_per_class: int = Field(20, ge=1, description="training nodes per class (random split)")
    valid_nodes: int = Field(500, ge=1, description="validation nodes, at most (random split)")
    test_nodes: int = Field(1_000, ge=1, description="test nodes, at most (random split)")
    split_seed: int = Field(1, ge=0, description="seed of a random split")
    built_in: bool = Field(False, description="use the built-in graph, documents that cite")
    from_memory: bool = Field(False, description="the graph was given in Python, not in a file")

    @model_validator(mode="after")
    def _one_source(self) -> GraphDataSettings:
        tables = (self.edges, self.features, self.labels)
        if self.graph is not None and any(tables):
            raise ValueError("give either graph, or edges with features and labels, not both")
        if any(tables) and not all(tables):
            raise ValueError("edges, features and labels must be given together")
        if self.built_in and (self.graph is not None or any(tables)):
            raise ValueError("built_in and files exclude each other; choose one")
        return self


class GraphTrainingSettings(Settings):
    """How the classifier is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of the first training")
    seeds: int = Field(1, ge=1, description="number of trainings, each with the next seed")
    steps: int = Field(5_000, ge=1, description="largest number of updates")
    minutes: float | None = Field(None, gt=0, description="stop a training after this many minutes")
    learning_rate: float = Field(0.005, gt=0, description="learning rate of Adam")
    l2: float = Field(5e-4, ge=0, description="L2 penalty on all parameters")
    select: Literal["loss", "accuracy", "both"] = Field(
        "both", description="validation metric that selects the best model"
    )
    patience: int | None = Field(
        100, ge=1, description="stop after this many validations without improvement"
    )
    validate_every: int = Field(1, ge=1, description="validate after this many updates")
    checkpoint_every: int = Field(
        1_000, ge=1, description="write a checkpoint after this many updates"
    )
    checkpoint_minutes: float = Field(
        5.0, gt=0, description="write a checkpoint also after this many minutes without one"
    )
    max_skipped: int = Field(
        10, ge=1, description="stop after this many updates in a row without a finite gradient"
    )
    batch_nodes: int | None = Field(
        None, ge=1, description="training nodes per batch, with sampled neighbours; none: all nodes"
    )
    neighbours: int = Field(10, ge=1, description="neighbours sampled per node and layer")


class GraphRecipe(Recipe):
    """Everything that decides a training of a node classifier."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.batch_nodes": "decides which nodes form a batch",
        "training.neighbours": "decides which neighbours a batch has",
        "training.select": "decides which model is the best so far",
    }

    task: Literal["classify-nodes"] = "classify-nodes"
    data: GraphDataSettings = GraphDataSettings()  # type: ignore[call-arg]
    model: GraphModelSettings = GraphModelSettings()  # type: ignore[call-arg]
    training: GraphTrainingSettings = GraphTrainingSettings()  # type: ignore[call-arg]
