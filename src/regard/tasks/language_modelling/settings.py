"""The recipe of a language model: text, tokenizer, model, training and generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from regard.settings.models import (
    CausalTransformerSettings,
    LanguageModelSettings,
)
from regard.settings.recipe import Recipe, Settings


class TextSettings(Settings):
    """Where the text comes from: plain files, or such files compressed with gzip."""

    text: tuple[str, ...] = Field((), description="files to learn from, one after the other")
    pairs: tuple[str, ...] = Field(
        (), description="prompts and answers in place of text: one TSV, or two line files"
    )
    valid: tuple[str, ...] = Field((), description="files to validate on; else the end of text")
    valid_share: float = Field(0.1, gt=0, lt=1, description="of the text, where valid is not given")

    from_memory: bool = Field(False, description="the text was given in Python, not in files")

    @field_validator("text", "pairs", "valid", mode="before")
    @classmethod
    def _one_file(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind(self) -> TextSettings:
        if self.text and self.pairs:
            raise ValueError("text and pairs exclude each other; choose one")
        return self


class LanguageTokenizerSettings(Settings):
    """How text becomes symbols."""

    kind: Literal["character", "sentencepiece", "byte-bpe"] = "character"
    size: int | None = Field(
        None, ge=8, description="most entries; 8,000 if not given, and of characters all"
    )
    sample: int = Field(
        10_000_000,
        ge=1,
        description="characters, from all over the text, that subwords are learned from",
    )


class PretrainingSettings(Settings):
    """How the model is trained, and when to stop."""

    seed: int = Field(1, ge=0)
    start_from: str | None = Field(
        None, description="folder of a run to go on from: its weights and its tokenizer"
    )
    steps: int = Field(2_000, ge=1, description="most updates")
    minutes: float | None = Field(None, gt=0, description="most minutes of training")
    batch_size: int = Field(12, ge=1, description="windows a batch")
    accumulate: int = Field(1, ge=1, description="batches an update")
    processes: int = Field(1, ge=1, description="share out every batch among so many")
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    lowest_rate: float = Field(
        0.1, ge=0, le=1, description="where the schedule ends, as a share of learning_rate"
    )
    warmup: int = Field(100, ge=0, description="updates until the full learning rate")
    weight_decay: float = Field(0.1, ge=0, description="of matrices; other weights have none")
    second_beta: float = Field(0.99, gt=0, lt=1, description="memory of the gradients' squares")
    clip: float = Field(1.0, gt=0, description="largest gradient norm")
    validate_every: int = Field(500, ge=1, description="updates between validations")
    checkpoint_every: int = Field(500, ge=1, description="updates between checkpoints")
    keep: int = Field(2, ge=1, description="newest checkpoints kept")
    patience: int | None = Field(None, ge=1, description="validations without progress until stop")
    ema: float = Field(
        0.0, ge=0, lt=1, description="decay of a moving average that is kept for use; 0: none"
    )
    tensorboard: bool = False


class GenerationSettings(Settings):
    """How text is continued, where a command does not say otherwise."""

    prompt: str = Field("", description="of the samples that are written during training")
    max_tokens: int = Field(200, ge=0, description="symbols of a sample; 0 during training: none")
    temperature: float = Field(0.8, ge=0, description="0 takes the most probable symbol")
    top_k: int | None = Field(None, ge=1, description="draw among so many symbols")
    top_p: float = Field(1.0, gt=0, le=1, description="draw among the fewest that hold this mass")
    min_p: float = Field(
        0.0, ge=0, le=1, description="draw among those at least so probable, as a share of the best"
    )
    repetition_penalty: float = Field(
        1.0, gt=0, description="above 1: what was said is less likely"
    )


class LanguageModelRecipe(Recipe):
    """Everything that decides a training of a language model."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.start_from": "decides the first weights and the vocabulary",
        "training.batch_size": "decides which windows form a batch",
    }

    task: Literal["language-model"] = "language-model"
    data: TextSettings = TextSettings()  # type: ignore[call-arg]
    tokenizer: LanguageTokenizerSettings = LanguageTokenizerSettings()  # type: ignore[call-arg]
    model: LanguageModelSettings = CausalTransformerSettings()  # type: ignore[call-arg]
    training: PretrainingSettings = PretrainingSettings()  # type: ignore[call-arg]
    decoding: GenerationSettings = GenerationSettings()  # type: ignore[call-arg]
