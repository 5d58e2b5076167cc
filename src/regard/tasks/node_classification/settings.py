"""The recipe of a node classifier: graph, model and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.models import GraphModelSettings
from regard.settings.recipe import Recipe, Settings


class GraphDataSettings(Settings):
    """Where the graph comes from, how its edges are read and how its nodes are split."""

    graph: str | None = Field(None, description="npz (Planetoid-style) or GraphML file")
    edges: str | None = Field(None, description="edge list: source,target a line")
    features: str | None = Field(None, description="CSV beside the edge list: node,number,...")
    labels: str | None = Field(None, description="CSV beside the edge list: node,label")
    label_attribute: str = Field("label", description="the attribute of GraphML with the class")
    undirected: bool = Field(True, description="edges lead both ways; else target hears source")
    normalise: bool = Field(True, description="divide the features of a node by their sum")
    split: Literal["auto", "standard", "random"] = Field(
        "auto", description="the file's own split, or one drawn at random; auto: own if it has one"
    )
    train_per_class: int = Field(20, ge=1, description="training nodes a class, split random")
    valid_nodes: int = Field(500, ge=1, description="most validation nodes, split random")
    test_nodes: int = Field(1_000, ge=1, description="most test nodes, split random")
    split_seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _one_source(self) -> GraphDataSettings:
        tables = (self.edges, self.features, self.labels)
        if self.graph is not None and any(tables):
            raise ValueError("give either graph, or edges with features and labels, not both")
        if any(tables) and not all(tables):
            raise ValueError("edges, features and labels must be given together")
        return self


class GraphTrainingSettings(Settings):
    """How the classifier is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="of the first training")
    seeds: int = Field(1, ge=1, description="trainings, each with the next seed")
    steps: int = Field(5_000, ge=1, description="most updates")
    minutes: float | None = Field(None, gt=0, description="most minutes of one training")
    learning_rate: float = Field(0.005, gt=0)
    l2: float = Field(5e-4, ge=0, description="weight of the squared parameters in the loss")
    select: Literal["loss", "accuracy", "both"] = Field(
        "both", description="what makes a model the best on the validation nodes"
    )
    patience: int | None = Field(100, ge=1, description="validations without progress until stop")
    validate_every: int = Field(1, ge=1, description="updates between validations")
    checkpoint_every: int = Field(1_000, ge=1, description="updates between checkpoints")
    batch_nodes: int | None = Field(
        None, ge=1, description="training nodes a batch, with sampled neighbours; else all at once"
    )
    neighbours: int = Field(10, ge=1, description="sampled for each node and layer of a batch")


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
