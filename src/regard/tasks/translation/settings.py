"""The recipe of a translator: data, tokenizer, model, batches, training and decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.decoding import DecodingSettings
from regard.settings.models import RecurrentSettings, TransformerSettings, TranslatorSettings
from regard.settings.recipe import Recipe, Settings


class GrammarSettings(Settings):
    """The built-in corpus, generated on the fly; used where no files are given."""

    pair: str = Field("en-de", description='"en-de" or "en-fr"')
    size: int = Field(20_000, ge=1, description="training pairs")
    valid_size: int = Field(500, ge=1)
    test_size: int = Field(1_000, ge=1)
    min_words: int = Field(3, ge=3)
    max_words: int = Field(60, ge=3)
    words: Literal["full", "small"] = Field("full", description="how many words it knows")
    seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _range(self) -> GrammarSettings:
        if self.min_words > self.max_words:
            raise ValueError(
                f"min_words ({self.min_words}) must not exceed max_words ({self.max_words})"
            )
        return self


class DataSettings(Settings):
    """Where the pairs come from: [source file, target file], or one TSV, TMX, PO, XLIFF, JSONL."""

    train: tuple[str, ...] = ()
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    grammar: GrammarSettings = GrammarSettings()  # type: ignore[call-arg]
    hold_out: int = Field(500, ge=1, description="pairs kept from train where valid is not given")
    max_words: int = Field(1_000, ge=1, description="longer lines are refused")
    from_memory: bool = Field(False, description="the pairs were given in Python, not in files")

    @model_validator(mode="after")
    def _one_or_two(self) -> DataSettings:
        for name in ("train", "valid", "test"):
            files = getattr(self, name)
            if len(files) > 2:
                raise ValueError(
                    f"{name} takes [source file, target file] or one file of pairs (TSV, TMX, PO, "
                    f"XLIFF or JSONL), not {len(files)} files"
                )
        return self


class TokenizerSettings(Settings):
    """How text becomes symbols."""

    kind: Literal["character", "word", "sentencepiece"] = "sentencepiece"
    shared: bool = Field(False, description="one vocabulary, learned from both languages")
    size: int | None = Field(
        None,
        ge=8,
        description="most entries a vocabulary may have; where it is not given, characters and "
        "words are limited by min_count alone, and SentencePiece to 60 times the root of the "
        "number of pairs (about 10,000 for 30,000), at least 1,000 and at most 32,000, and one "
        "more for each character",
    )
    min_count: int = Field(1, ge=1, description="rarer words are unknown (kind word)")


class BatchSettings(Settings):
    """How examples are gathered into batches."""

    tokens: int = Field(
        4_096, ge=1, description="source and target symbols a batch, padding counted"
    )
    max_length: int = Field(512, ge=1, description="longer training examples are left out")
    short_first: bool = Field(False, description="begin with short sentences in the first epoch")


class TrainingSettings(Settings):
    """How the model is trained, and when to stop."""

    seed: int = Field(1, ge=0)
    start_from: str | None = Field(
        None,
        description="folder of a run to begin with: its weights and tokenizers, to which "
        "new characters or words are added, and subwords up to tokenizer.size",
    )
    freeze: tuple[str, ...] = Field(
        (), description='names of parameters that stay as they are, as ["encoder.*"]'
    )
    steps: int = Field(10_000, ge=1, description="most updates")
    minutes: float | None = Field(None, gt=0, description="most minutes of training")
    optimizer: Literal["adam", "muon"] = Field(
        "adam",
        description="muon learns sooner, with work that grows with the cube of the width: for "
        "narrow Transformers",
    )
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["constant", "inverse-sqrt", "linear", "cosine"] = "cosine"
    warmup: int = Field(100, ge=0, description="updates until the full learning rate")
    weight_decay: float = Field(0.0, ge=0)
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    coverage: float = Field(0.0, ge=0, description="weight of the penalty on looking twice")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of read symbols made unknown")
    subword_sampling: float = Field(
        0.0, ge=0, description="other subwords each time (alpha of Kudo 2018, as 0.2); 0: none"
    )
    sampling_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="share of the training with subword_sampling; the rest has the likely "
        "subwords, as a search has",
    )
    r_drop: float = Field(
        0.0, ge=0, description="weight of the distance between two passes with other dropout"
    )
    clip: float = Field(1.0, gt=0, description="largest gradient norm")
    accumulate: int = Field(1, ge=1, description="batches an update")
    processes: int | None = Field(
        None, ge=1, description="share out every batch; none: by cores and size of the model"
    )
    validate_every: int = Field(500, ge=1, description="updates between validations")
    validate_sentences: int = Field(200, ge=1, description="translated at each validation")
    checkpoint_every: int = Field(500, ge=1, description="updates between checkpoints")
    keep: int = Field(2, ge=1, description="newest checkpoints kept")
    select: Literal["loss", "bleu"] = Field("bleu", description="what makes a model the best")
    patience: int | None = Field(None, ge=1, description="validations without progress until stop")
    average: int = Field(
        0, ge=0, description="checkpoints whose mean is tried as the best model at the end; 0: none"
    )
    average_of: Literal["last", "best"] = Field(
        "last", description="the newest checkpoints, or the weights that validated best"
    )
    ema: float = Field(
        0.0, ge=0, lt=1, description="decay of a moving average that is kept for use; 0: none"
    )
    recompute: bool = Field(
        False, description="compute layers twice instead of keeping their results: for long input"
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="of products; bf16 where the processor has it"
    )
    compile: bool = Field(False, description="by torch.compile; takes minutes before it pays")
    tensorboard: bool = False

    @model_validator(mode="after")
    def _one_average(self) -> TrainingSettings:
        if self.average == 1:
            raise ValueError("average (1) must be 0 for none, or at least 2 checkpoints")
        if self.average and self.ema:
            raise ValueError("average and ema exclude each other; choose one")
        return self


class TranslationRecipe(Recipe):
    """Everything that decides a training of a translator."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.start_from": "decides the first weights and the vocabulary",
        "training.optimizer": "has a memory that another optimiser cannot read",
        "training.subword_sampling": "decides how the sentences of a batch are cut",
        "training.select": "decides which model is the best so far",
    }

    task: Literal["translate"] = "translate"
    data: DataSettings = DataSettings()  # type: ignore[call-arg]
    tokenizer: TokenizerSettings = TokenizerSettings()  # type: ignore[call-arg]
    model: TranslatorSettings = RecurrentSettings()  # type: ignore[call-arg]
    batches: BatchSettings = BatchSettings()  # type: ignore[call-arg]
    training: TrainingSettings = TrainingSettings()  # type: ignore[call-arg]
    decoding: DecodingSettings = DecodingSettings()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _within_the_table(self) -> TranslationRecipe:
        """Refuse training examples that are longer than a table of learned positions."""
        model, longest = self.model, self.batches.max_length
        if not isinstance(model, TransformerSettings) or model.positions != "learned":
            return self
        if longest > model.max_length:
            raise ValueError(
                f"batches.max_length ({longest}) must not exceed model.max_length "
                f"({model.max_length}), where the learned positions end"
            )
        return self

    @model_validator(mode="after")
    def _one_vocabulary(self) -> TranslationRecipe:
        """Refuse one table for two vocabularies: its rows would mean different words."""
        model = self.model
        if isinstance(model, TransformerSettings) and model.tie == "all":
            if not self.tokenizer.shared:
                raise ValueError(
                    'model.tie = "all" needs one vocabulary for both languages; set '
                    'tokenizer.shared=true, or model.tie="target"'
                )
            if model.source_vocab != model.target_vocab:
                raise ValueError(
                    f"model.source_vocab ({model.source_vocab}) must equal model.target_vocab "
                    f'({model.target_vocab}) where model.tie = "all"'
                )
        return self
