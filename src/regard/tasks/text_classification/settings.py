"""The recipe of a text classifier: labelled texts, network and fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.language_models import CausalTransformerSettings, LanguageModelSettings
from regard.settings.recipe import Files, Names, Recipe, Settings, StartSettings
from regard.tasks.language_modelling.settings import LanguageTokenizerSettings


class LabelledSettings(Settings):
    """Where the labelled texts come from: lines of label and text, tables, or a folder."""

    train: Files = Field((), description="what to train on: one file or shards, or a folder")
    valid: Files = Field((), description="what to validate on; none: held out of train")
    test: Files = Field((), description="what to test on; none: held out of train")
    columns: Names = Field(
        (), description="columns of text and label in a table, by name, or by number from 1"
    )
    hold_out: float = Field(
        0.1, gt=0, lt=1, description="share of each class held out where valid is not given"
    )
    hold_out_test: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="share of each class held out where test is not given; 0: test on valid",
    )
    share: float = Field(1.0, gt=0, le=1, description="share of each class of train to use")
    seed: int = Field(1, ge=0, description="seed of what is held out and used")
    from_memory: bool = Field(False, description="the texts were given in Python, not in files")


class FineTuningSettings(StartSettings):
    """How the classifier is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of weights, dropout and batch order")
    epochs: int = Field(5, ge=1, description="passes over all training texts")
    minutes: float | None = Field(None, gt=0, description="stop after this many minutes")
    tokens: int = Field(
        1_024, ge=1, description="largest number of tokens per batch, padding included"
    )
    learning_rate: float = Field(5e-4, gt=0, description="peak learning rate, of the top layers")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "linear", description="how the learning rate decays after the warm-up"
    )
    warmup: int = Field(20, ge=0, description="updates of linear warm-up to the full learning rate")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of matrices")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the classification layer")
    layer_decay: float = Field(
        1.0, gt=0, le=1, description="learning rate of a layer, as a share of that of the next"
    )
    freeze_layers: int = Field(
        0, ge=0, description="freeze the embedding and this many layers above it; 0: none"
    )
    clip: float = Field(1.0, gt=0, description="clip the gradient to this norm")
    validate_every: int | None = Field(
        None, ge=1, description="validate after this many updates; none: after each epoch"
    )
    checkpoint_minutes: float = Field(
        5.0, gt=0, description="write a checkpoint also after this many minutes without one"
    )
    max_skipped: int = Field(
        10, ge=1, description="stop after this many updates in a row without a finite gradient"
    )
    keep: int = Field(1, ge=1, description="number of newest checkpoints to keep")
    patience: int | None = Field(
        None, ge=1, description="stop after this many validations without improvement"
    )


class TextClassificationRecipe(Recipe):
    """Everything that decides a training of a text classifier."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.tokens": "decides which texts form a batch",
        "training.start_from": "decides the first weights and the vocabulary",
        "training.freeze": "decides which weights are trained",
        "training.freeze_layers": "decides which weights are trained",
        "training.adapter_rank": "decides which weights the model has",
        "training.layer_decay": "decides how the optimiser groups the weights",
        "training.weight_decay": "decides how the optimiser groups the weights",
    }

    task: Literal["classify-text"] = "classify-text"
    data: LabelledSettings = LabelledSettings()  # type: ignore[call-arg]
    tokenizer: LanguageTokenizerSettings = LanguageTokenizerSettings()  # type: ignore[call-arg]
    model: LanguageModelSettings = CausalTransformerSettings()  # type: ignore[call-arg]
    training: FineTuningSettings = FineTuningSettings()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _layers(self) -> TextClassificationRecipe:
        frozen, layers = self.training.freeze_layers, self.model.layers
        if frozen > layers:
            raise ValueError(f"training.freeze_layers ({frozen}) exceeds model.layers ({layers})")
        return self
