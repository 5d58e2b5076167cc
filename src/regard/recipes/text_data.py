"""The text of a language model's training: its tokenizer, and its parts as token files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import DataError, SettingsError
from regard.batching.order import Position
from regard.batching.stream import StreamBatch, WindowOrder, all_windows, iterate_stream
from regard.corpora.running_text import (
    TextMeasure,
    TokenFile,
    between,
    has_tokens,
    measure,
    open_tokens,
    text_chunks,
    thinned,
    write_tokens,
)
from regard.models.language_model import LanguageModel
from regard.recipes.run import Run
from regard.settings.language_model import (
    LanguageModelRecipe,
    LanguageTokenizerSettings,
    TextSettings,
)
from regard.text.tokenizers import AnyTokenizer, RunningText, load_tokenizer, train_tokenizer
from regard.training.loop import Validation
from regard.training.losses import LossSum

TOKENIZER = "text"


@dataclass(frozen=True)
class TextData:
    """A tokenizer, and the two parts of a text as its ids."""

    text: RunningText
    train: TokenFile
    valid: TokenFile

    def fingerprint(self) -> str:
        """Return what tells one text and its division from another."""
        return f"{self.train.digest}+{self.valid.digest}"

    def batches(
        self, recipe: LanguageModelRecipe
    ) -> Callable[[int, int], Iterator[tuple[Position, StreamBatch]]]:
        """Return the order of training."""
        order = WindowOrder(
            len(self.train),
            context=recipe.model.context,
            batch_size=recipe.training.batch_size,
            seed=recipe.training.seed,
        )
        return lambda epoch, batch: iterate_stream(self.train, order, start=Position(epoch, batch))

    def validate(
        self,
        model: LanguageModel[Any],
        recipe: LanguageModelRecipe,
        *,
        loss_of: Callable[[LanguageModel[Any], StreamBatch], LossSum],
    ) -> Validation:
        """Return loss and perplexity a symbol, and bits a character and byte, of all the text."""
        nats, tokens = 0.0, 0
        for batch in all_windows(self.valid, context=recipe.model.context):
            nats += float(loss_of(model, batch).nats)
            tokens += batch.target_tokens
        loss = nats / tokens
        bits = loss / math.log(2) * len(self.valid)  # its first symbol costs as the others do
        metrics = {
            "loss": loss,
            "perplexity": math.exp(min(loss, 700)),
            "bits_per_character": bits / self.valid.characters,
            "bits_per_byte": bits / self.valid.bytes,
        }
        return Validation(metrics=metrics, value=loss)


class _Parts:
    """The two parts of a text, which can be read again and again."""

    def __init__(self, settings: TextSettings):
        if not settings.text:
            raise SettingsError("There is no text to learn from: set data.text=FILE.")
        self._text = [Path(file) for file in settings.text]
        self._valid = [Path(file) for file in settings.valid]
        self.measure = measure(text_chunks(self._text))
        held = 0 if self._valid else round(self.measure.characters * settings.valid_share)
        self.characters = self.measure.characters - held
        self.digests = (
            f"{self.measure.digest}:{self.characters}",
            measure(text_chunks(self._valid)).digest if self._valid else "end",
        )

    def train(self) -> Iterator[str]:
        return between(text_chunks(self._text), 0, self.characters)

    def valid(self) -> Iterator[str]:
        if self._valid:
            return text_chunks(self._valid)
        return between(text_chunks(self._text), self.characters, self.measure.characters)


def prepare_text(run: Run, recipe: LanguageModelRecipe) -> TextData:
    """Return the run's tokenizer and token files, made from its text if they are not there yet."""
    parts = _Parts(recipe.data)
    folder = run.folder
    if not (folder / f"{TOKENIZER}.json").is_file():
        learned = _tokenizer(recipe, parts)
        learned.save(folder, TOKENIZER)
    text = RunningText(load_tokenizer(folder, TOKENIZER))
    files = []
    for name, part, digest in zip(
        ("train", "valid"), (parts.train, parts.valid), parts.digests, strict=True
    ):
        path = folder / "data" / f"{name}.tokens"
        if not has_tokens(path) or open_tokens(path).digest != digest:
            write_tokens(path, part(), encode=text.encode, vocab=text.size, digest=digest)
        files.append(open_tokens(path))
    data = TextData(text, *files)
    _require_length(data, parts.measure, recipe)
    return data


def _tokenizer(recipe: LanguageModelRecipe, parts: _Parts) -> AnyTokenizer:
    """Return a tokenizer of the training part, or that of the run to go on from."""
    start = recipe.training.start_from
    if start is not None:
        return load_tokenizer(Run.open(Path(start)).folder, TOKENIZER)
    return learn_tokenizer(recipe.tokenizer, parts.train(), characters=parts.characters)


def learn_tokenizer(
    settings: LanguageTokenizerSettings, chunks: Iterator[str], *, characters: int
) -> AnyTokenizer:
    """Learn a tokenizer from a text; subwords from a sample of it, so that memory stays small."""
    if settings.kind == "character":
        return train_tokenizer(chunks, kind="character", size=settings.size)
    sample = thinned(chunks, total=characters, wanted=settings.sample)
    if settings.kind == "sentencepiece":
        lines = (line for chunk in sample for line in chunk.split("\n"))
        return train_tokenizer(lines, kind="sentencepiece", size=settings.size)
    return train_tokenizer(sample, kind="byte-bpe", size=settings.size)


def _require_length(data: TextData, size: TextMeasure, recipe: LanguageModelRecipe) -> None:
    """Refuse a text that has not one window to train on, or nothing to validate on."""
    context = recipe.model.context
    if len(data.train) < context + 1 or len(data.valid) < 2:
        raise DataError(
            f"the text has {size.characters} characters, too few: {len(data.train)} symbols to "
            f"train on and {len(data.valid)} to validate on, where one window takes {context + 1}",
            path=recipe.data.text[0],
            remedy="Give more text, or set a smaller model.context.",
        )
