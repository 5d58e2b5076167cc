"""The recipe of a language model: text, tokenizer, model, training and generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.language_models import CausalTransformerSettings, LanguageModelSettings
from regard.settings.recipe import Files, Names, Recipe, Settings, WatchedSettings


class TextSettings(Settings):
    """Where the text comes from: plain files, columns of tables, or a folder."""

    text: Files = Field((), description="files to train on, one after the other, or a folder")
    pairs: Files = Field(
        (), description="prompts and answers instead of text: a table, or two line files"
    )
    valid: Files = Field((), description="files to validate on; none: the end of text")
    columns: Names = Field(
        (), description="column of the text in a table (of pairs: two), by name or number from 1"
    )
    valid_share: float = Field(
        0.1, gt=0, lt=1, description="share of the text held out where valid is not given"
    )
    built_in: bool = Field(False, description="use the built-in text, sentences of the grammar")
    from_memory: bool = Field(False, description="the text was given in Python, not in files")

    @model_validator(mode="after")
    def _one_kind(self) -> TextSettings:
        if self.text and self.pairs:
            raise ValueError("text and pairs exclude each other; choose one")
        if self.built_in and (self.text or self.pairs):
            raise ValueError("built_in and files exclude each other; choose one")
        return self


class LanguageTokenizerSettings(Settings):
    """How text becomes tokens."""

    kind: Literal["character", "sentencepiece", "byte-bpe", "imported"] = Field(
        "character",
        description='what a token is: a character or a subword; "imported" is another program\'s '
        "own",
    )
    size: int | None = Field(
        None, ge=8, description="largest number of entries; none: 8,000, or all characters"
    )
    sample: int = Field(
        10_000_000,
        ge=1,
        description="characters, from all over the text, to learn subwords from",
    )
    normalise: Literal["nfc", "none"] = Field(
        "nfc", description="spell every letter in Unicode's composed form; none: text as it is"
    )


class PretrainingSettings(WatchedSettings):
    """How the model is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of weights, dropout and batch order")
    steps: int = Field(2_000, ge=1, description="largest number of updates")
    minutes: float | None = Field(None, gt=0, description="stop after this many minutes")
    batch_size: int = Field(12, ge=1, description="windows per batch")
    accumulate: int = Field(1, ge=1, description="batches per update")
    processes: int = Field(1, ge=1, description="processes that share each batch")
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, after the warm-up")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "cosine", description="how the learning rate decays after the warm-up"
    )
    lowest_rate: float = Field(
        0.1, ge=0, le=1, description="learning rate at the end, as a share of learning_rate"
    )
    warmup: int = Field(
        100, ge=0, description="updates of linear warm-up to the full learning rate"
    )
    weight_decay: float = Field(0.1, ge=0, description="weight decay of matrices; others have none")
    beta2: float = Field(0.99, gt=0, lt=1, description="second beta of AdamW")
    clip: float = Field(1.0, gt=0, description="clip the gradient to this norm")
    validate_every: int = Field(500, ge=1, description="validate after this many updates")
    validate_tokens: int | None = Field(
        200_000,
        ge=1,
        description="validate on so many tokens, chosen by the seed; none: all, as at the end",
    )
    checkpoint_every: int = Field(
        500, ge=1, description="write a checkpoint after this many updates"
    )
    checkpoint_minutes: float = Field(
        5.0, gt=0, description="write a checkpoint also after this many minutes without one"
    )
    max_skipped: int = Field(
        10, ge=1, description="stop after this many updates in a row without a finite gradient"
    )
    keep: int = Field(2, ge=1, description="number of newest checkpoints to keep")
    patience: int | None = Field(
        None, ge=1, description="stop after this many validations without improvement"
    )
    ema: float = Field(
        0.0, ge=0, lt=1, description="decay of a moving average of the weights; 0: none"
    )


class GenerationSettings(Settings):
    """How text is generated, unless a command or call says otherwise."""

    prompt: str = Field("", description="start of the samples written during training")
    max_tokens: int = Field(
        200, ge=0, description="largest number of new tokens; 0: no samples during training"
    )
    temperature: float = Field(0.8, ge=0, description="0 always takes the most probable token")
    top_k: int | None = Field(None, ge=1, description="sample from the k most probable tokens")
    top_p: float = Field(
        1.0, gt=0, le=1, description="sample from the fewest tokens with this total probability"
    )
    min_p: float = Field(
        0.0, ge=0, le=1, description="drop tokens below this share of the largest probability"
    )
    repetition_penalty: float = Field(
        1.0, gt=0, description="above 1: tokens that occurred become less likely"
    )


class LanguageModelRecipe(Recipe):
    """Everything that decides a training of a language model."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.start_from": "decides the first weights and the vocabulary",
        "training.freeze": "decides which weights are trained",
        "training.adapter_rank": "decides which weights the model has",
        "training.batch_size": "decides which windows form a batch",
    }

    task: Literal["language-model"] = "language-model"
    data: TextSettings = TextSettings()  # type: ignore[call-arg]
    tokenizer: LanguageTokenizerSettings = LanguageTokenizerSettings()  # type: ignore[call-arg]
    model: LanguageModelSettings = CausalTransformerSettings()  # type: ignore[call-arg]
    training: PretrainingSettings = PretrainingSettings()  # type: ignore[call-arg]
    decoding: GenerationSettings = GenerationSettings()  # type: ignore[call-arg]
