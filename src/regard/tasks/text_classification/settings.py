"""The recipe of a text classifier: labelled texts, network and fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.models import CausalTransformerSettings, LanguageModelSettings
from regard.settings.recipe import Recipe, Settings
from regard.tasks.language_modelling.settings import LanguageTokenizerSettings


class LabelledSettings(Settings):
    """Where the labelled texts come from: lines of label and text, TSV (.tsv) or JSON (.jsonl)."""

    train: str | None = None
    valid: str | None = Field(None, description="else a part of train is held out")
    test: str | None = None
    hold_out: float = Field(0.1, gt=0, lt=1, description="share of each class, without valid")
    share: float = Field(1.0, gt=0, le=1, description="of each class of train that is used")
    seed: int = Field(1, ge=0, description="draws what is held out or used")
    from_memory: bool = Field(False, description="the texts were given in Python, not in files")


class FineTuningSettings(Settings):
    """How the classifier is trained, and when to stop."""

    seed: int = Field(1, ge=0)
    epochs: int = Field(5, ge=1, description="times that all texts are seen")
    minutes: float | None = Field(None, gt=0, description="most minutes of training")
    tokens: int = Field(1_024, ge=1, description="symbols a batch, padding counted")
    learning_rate: float = Field(5e-4, gt=0, description="of the new layer and the top")
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    warmup: int = Field(20, ge=0, description="updates until the full learning rate")
    weight_decay: float = Field(0.01, ge=0, description="of matrices")
    dropout: float = Field(0.1, ge=0, lt=1, description="before the new layer")
    layer_decay: float = Field(
        1.0, gt=0, le=1, description="learning rate of each layer, as a share of the one above"
    )
    freeze_layers: int = Field(
        0, ge=0, description="lowest layers that stay as they are, and the symbols' vectors"
    )
    adapter_rank: int = Field(
        0, ge=0, description="train low-rank adapters of the attention only; 0: all weights"
    )
    clip: float = Field(1.0, gt=0, description="largest gradient norm")
    validate_every: int | None = Field(None, ge=1, description="updates; else once an epoch")
    keep: int = Field(1, ge=1, description="newest checkpoints kept")
    patience: int | None = Field(None, ge=1, description="validations without progress until stop")


class TextClassificationRecipe(Recipe):
    """Everything that decides a training of a text classifier."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.tokens": "decides which texts form a batch",
        "training.freeze_layers": "decides which weights are trained",
        "training.adapter_rank": "decides which weights the model has",
        "training.layer_decay": "decides how the optimiser groups the weights",
        "training.weight_decay": "decides how the optimiser groups the weights",
    }

    task: Literal["classify-text"] = "classify-text"
    pretrained: str | None = Field(
        None, description="run of a language model to begin with; its tokenizer and model are used"
    )
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
