"""The recipe of a translator: data, tokenizer, model, batches, training and decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.corpora.filters import FilterSettings
from regard.settings.decoding import DecodingSettings
from regard.settings.models import RecurrentSettings, TransformerSettings, TranslatorSettings
from regard.settings.recipe import File, Files, Names, Recipe, Settings, WatchedSettings


class AugmentationSettings(Settings):
    """Shares of the training sentences that are changed, anew in each epoch; 0: none.

    The first four change the source alone, so that bad input still gives a good translation. The
    others change both sides alike.
    """

    case: float = Field(0.0, ge=0, le=1, description="sources in capitals, small or title case")
    typos: float = Field(
        0.0, ge=0, le=1, description="sources with letters swapped, dropped, doubled or mistyped"
    )
    punctuation: float = Field(
        0.0, ge=0, le=1, description="sources whose punctuation is missing or doubled"
    )
    diacritics: float = Field(0.0, ge=0, le=1, description="sources without accents and umlauts")
    joined: float = Field(
        0.0, ge=0, le=1, description="pairs joined with another pair on the same line"
    )
    markup: float = Field(
        0.0, ge=0, le=1, description="pairs with tags around the sentence or a word that is copied"
    )
    copied: float = Field(
        0.0, ge=0, le=1, description="pairs with another name or number, the same on both sides"
    )

    def shares(self) -> dict[str, float]:
        """Return the kinds that are asked for, with their shares."""
        return {name: share for name, share in self.model_dump().items() if share}


class GrammarSettings(Settings):
    """The built-in corpus, generated on the fly; setting any of these keys asks for it."""

    pair: str = Field("en-de", description='language pair: "en-de" or "en-fr"')
    size: int = Field(20_000, ge=1, le=10_000_000, description="number of training pairs")
    valid_size: int = Field(500, ge=1, le=10_000_000, description="number of validation pairs")
    test_size: int = Field(1_000, ge=1, le=10_000_000, description="number of test pairs")
    min_words: int = Field(3, ge=3, description="fewest words of a sentence")
    max_words: int = Field(60, ge=3, description="most words of a sentence")
    words: Literal["full", "small", "agreements"] = Field(
        "full",
        description='vocabulary, large or small; "agreements" (en-fr): "the agreement on the '
        'European economic area was signed in August 1992"',
    )
    style: Literal["plain", "written", "mixed"] = Field(
        "plain",
        description="plain: small letters and no full stop; written: with capital and full stop; "
        "mixed: some sentences so, some so",
    )
    contested: float = Field(
        0.0,
        ge=0,
        le=1,
        description='share of sentences of 10 words or more in which "it" could stand for several '
        "nouns, and only an adjective tells which",
    )
    seed: int = Field(1, ge=0, description="seed of the generated sentences")

    @model_validator(mode="after")
    def _range(self) -> GrammarSettings:
        if self.min_words > self.max_words:
            raise ValueError(
                f"min_words ({self.min_words}) must not exceed max_words ({self.max_words})"
            )
        return self


class DataSettings(Settings):
    """Where the pairs come from: files with both languages, two line files, or a folder."""

    asks_for_built_in: ClassVar[str] = "grammar"
    """The key that asks for the built-in data when it is set."""

    train: Files = Field(
        (), description="what to train on: one file or shards, [source, target], or a folder"
    )
    valid: Files = Field((), description="what to validate on; none: held out of train")
    test: Files = Field((), description="what to test on; none: held out of train")
    pair: str | None = Field(
        None, description='languages from and to, as "en-de": endings of files, names of columns'
    )
    columns: Names = Field(
        (), description="columns of source and target in a table, by name, or by number from 1"
    )
    weights: tuple[float, ...] = Field(
        (),
        description="mix the corpora that train names, each seen so many times as often as the "
        "others; a corpus is a file with both languages, a folder, or two line files with a comma "
        "between them",
    )
    temperature: float = Field(
        1.0,
        gt=0,
        description="mix the corpora that train names, each in the share n^(1/temperature) of its "
        "n pairs, times its weight",
    )
    fetch: str | None = Field(
        None,
        description='corpus to fetch into the folder that train names, as "multi30k" or '
        '"opus/Books"; one that is there is checked',
    )
    filter: FilterSettings | None = Field(
        None, description="drop bad training pairs, as `regard corpus filter` does; none: keep all"
    )
    hold_out: int = Field(
        500, ge=1, description="pairs held out of train where valid is not given, at most a tenth"
    )
    hold_out_test: int = Field(
        500,
        ge=0,
        description="pairs held out of train where test is not given, at most a tenth; 0: no test",
    )
    seed: int = Field(1, ge=0, description="seed of what is held out")
    skip_bad: bool = Field(
        False, description="leave out empty, incomplete and overlong lines instead of refusing them"
    )
    max_words: int = Field(1_000, ge=1, description="refuse longer sentences")
    built_in: bool = Field(False, description="use the built-in corpus of data.grammar")
    grammar: GrammarSettings = Field(
        GrammarSettings(),  # type: ignore[call-arg]
        description="the built-in corpus, used with built_in or where one of its keys is set",
    )
    from_memory: bool = Field(False, description="the pairs were given in Python, not in files")
    mix: Files = Field(
        (), description="general pairs to mix into the training, against forgetting; as train"
    )
    mix_share: float = Field(
        0.5, gt=0, lt=1, description="share of the tokens of each update that come from mix"
    )
    general_test: Files = Field(
        (),
        description="general pairs to test on before and after fine-tuning; none: held out of mix, "
        "or the test part of the run that training starts from",
    )

    @model_validator(mode="before")
    @classmethod
    def _asked(cls, table: Any) -> Any:
        """Take a key of the grammar as a request for it, unless there are other data."""
        if isinstance(table, Mapping) and table.get("grammar") and "built_in" not in table:
            return {**table, "built_in": not (table.get("train") or table.get("from_memory"))}
        return table

    @model_validator(mode="after")
    def _one_origin(self) -> DataSettings:
        if self.built_in and (self.train or self.from_memory):
            raise ValueError("built_in and train exclude each other; choose one")
        return self

    @property
    def mixes(self) -> bool:
        """Whether train names corpora to mix, and not the files of one."""
        return bool(self.weights) or self.temperature != 1

    @model_validator(mode="after")
    def _one_weight_each(self) -> DataSettings:
        # The files are often given apart from the recipe, with --data.
        if self.weights and self.train and len(self.weights) != len(self.train):
            raise ValueError(
                f"there are {len(self.train)} corpora in train and {len(self.weights)} weights; "
                "give one for each"
            )
        if any(weight <= 0 for weight in self.weights):
            raise ValueError("weights must be above 0")
        if self.mixes and self.filter is not None:
            raise ValueError(
                "filter and a mixture exclude each other; clean the corpora with `regard corpus "
                "filter` first"
            )
        return self


class TokenizerSettings(Settings):
    """How text becomes tokens."""

    kind: Literal["character", "word", "sentencepiece", "imported"] = Field(
        "sentencepiece",
        description='what a token is: a character, a word or a subword; "imported" is another '
        "program's own",
    )
    shared: bool = Field(False, description="use one vocabulary for both languages")
    size: int | None = Field(
        None,
        ge=8,
        description="largest number of entries; none: all characters or words with min_count, or "
        "60 sqrt(pairs) subwords (1,000 to 32,000) plus one for each character",
    )
    sample_lines: int = Field(
        500_000,
        ge=1_000,
        description="lines that the subwords of a vocabulary are learned from; of more, a choice "
        "that training.seed makes",
    )
    min_count: int = Field(1, ge=1, description="rarer words become unknown (kind word)")
    normalise: Literal["nfc", "none"] = Field(
        "nfc", description="spell every letter in Unicode's composed form; none: text as it is"
    )
    mark_capitals: bool = Field(
        False, description='read "Cats" as a mark and "cats", which share a token (kind word)'
    )


class BatchSettings(Settings):
    """How sentence pairs form batches."""

    tokens: int = Field(
        4_096, ge=1, description="largest number of source and target tokens, padding included"
    )
    max_length: int = Field(512, ge=1, description="leave out training pairs with more tokens")
    short_first: bool = Field(False, description="sort the first epoch from short to long")


class TrainingSettings(WatchedSettings):
    """How the model is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of weights, dropout and batch order")
    steps: int = Field(10_000, ge=1, description="largest number of updates")
    minutes: float | None = Field(None, gt=0, description="stop after this many minutes")
    optimizer: Literal["adam", "muon"] = Field(
        "adam",
        description="muon needs fewer updates, each costing the cube of the width: for narrow "
        "Transformers",
    )
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, after the warm-up")
    schedule: Literal["constant", "inverse-sqrt", "linear", "cosine"] = Field(
        "cosine", description="how the learning rate decays after the warm-up"
    )
    warmup: int = Field(
        100, ge=0, description="updates of linear warm-up to the full learning rate"
    )
    weight_decay: float = Field(0.0, ge=0, description="weight decay of AdamW")
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="probability spread over all tokens (Szegedy et al. 2016)"
    )
    coverage: float = Field(
        0.0, ge=0, description="weight of the penalty on attending twice to a source token"
    )
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of input tokens replaced by the unknown token"
    )
    subword_sampling: float = Field(
        0.0, ge=0, description="alpha of subword regularisation (Kudo 2018), such as 0.2; 0: none"
    )
    sampling_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="share of the training that uses subword_sampling and augmentation; the rest "
        "uses plain text in the most likely subwords, as decoding does",
    )
    r_drop: float = Field(
        0.0, ge=0, description="weight of the divergence of two dropout passes (Liang et al. 2021)"
    )
    alignment_loss: float = Field(
        0.0,
        ge=0,
        description="weight of the loss that teaches model.alignment_head to align words (Garg et "
        "al. 2019), such as 0.1; 0: none",
    )
    alignments: File = Field(
        None,
        description="word links of the training pairs, one line for each (Pharaoh format); none: "
        "found by IBM model 1",
    )
    clip: float = Field(1.0, gt=0, description="clip the gradient to this norm")
    accumulate: int = Field(1, ge=1, description="batches per update")
    processes: int | None = Field(
        None, ge=1, description="processes that share each batch; none: chosen by model and cores"
    )
    validate_every: int = Field(500, ge=1, description="validate after this many updates")
    validate_sentences: int = Field(
        200, ge=1, description="sentences translated at each validation"
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
    select: Literal["loss", "bleu"] = Field(
        "bleu", description="metric that selects the best model"
    )
    patience: int | None = Field(
        None, ge=1, description="stop after this many validations without improvement"
    )
    average: int = Field(
        0, ge=0, description="average this many checkpoints at the end, if that is better; 0: none"
    )
    average_of: Literal["last", "best"] = Field(
        "last", description="average the newest checkpoints, or those that validated best"
    )
    ema: float = Field(
        0.0, ge=0, lt=1, description="decay of a moving average of the weights; 0: none"
    )
    recompute: bool = Field(
        False, description="recompute activations in the backward pass: saves memory, costs time"
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="precision of matrix products; bf16 needs a processor that has it"
    )
    compile: bool = Field(False, description="use torch.compile; pays off after minutes")

    @model_validator(mode="after")
    def _one_average(self) -> TrainingSettings:
        if self.average == 1:
            raise ValueError("average (1) must be 0 for none, or at least 2 checkpoints")
        if self.average and self.ema:
            raise ValueError("average and ema exclude each other; choose one")
        if self.adapter_rank and self.optimizer != "adam":
            raise ValueError('adapters (adapter_rank) are trained with optimizer = "adam"')
        return self


class TranslationRecipe(Recipe):
    """Everything that decides a training of a translator."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.start_from": "decides the first weights and the vocabulary",
        "training.adapter_rank": "decides which weights the model has",
        "training.optimizer": "has a memory that another optimiser cannot read",
        "training.subword_sampling": "decides how the sentences of a batch are cut",
        "training.select": "decides which model is the best so far",
    }

    task: Literal["translate"] = "translate"
    own_model: bool = Field(False, description="the network was built by a function in Python")
    data: DataSettings = DataSettings()  # type: ignore[call-arg]
    tokenizer: TokenizerSettings = TokenizerSettings()  # type: ignore[call-arg]
    model: TranslatorSettings = RecurrentSettings()  # type: ignore[call-arg]
    batches: BatchSettings = BatchSettings()  # type: ignore[call-arg]
    augmentation: AugmentationSettings = AugmentationSettings()  # type: ignore[call-arg]
    training: TrainingSettings = TrainingSettings()  # type: ignore[call-arg]
    decoding: DecodingSettings = DecodingSettings()  # type: ignore[call-arg]

    @property
    def tuned(self) -> bool:
        """Whether the training starts from a run or has general pairs."""
        general = self.data.mix or self.data.general_test
        return bool(self.training.start_from or general)

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
    def _head_to_teach(self) -> TranslationRecipe:
        """Refuse a loss for a head that is not named."""
        named = getattr(self.model, "alignment_head", None) is not None
        if self.training.alignment_loss and not named:
            raise ValueError(
                f"training.alignment_loss ({self.training.alignment_loss:g}) needs a head to "
                "teach: set model.alignment_head, as 0; only a Transformer has heads"
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
