"""Prompts with answers as the data of a language model's training."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import DataError
from regard.batching.order import BatchOrder, Position, endless
from regard.batching.stream import AnswerBatch, AnswerIds, answer_ids, collate_answers
from regard.corpora.parallel import SentencePair, read_pairs
from regard.models.language_model import LanguageModel
from regard.recipes.run import Run
from regard.recipes.text_data import TOKENIZER, learn_tokenizer
from regard.settings.language_model import LanguageModelRecipe
from regard.text.tokenizers import NEWLINE, RunningText, load_tokenizer
from regard.training.loop import Validation
from regard.training.losses import LossSum

ROWS = 32


@dataclass(frozen=True)
class AnswerData:
    """A tokenizer, and prompts with answers to train and to validate on.

    A line end stands after the prompt and after the answer.
    """

    text: RunningText
    train: list[AnswerIds]
    valid: list[AnswerIds]
    digest: str

    def fingerprint(self) -> str:
        """Return what tells one corpus from another."""
        return self.digest

    def batches(
        self, recipe: LanguageModelRecipe
    ) -> Callable[[int, int], Iterator[tuple[Position, AnswerBatch]]]:
        """Return the order of training."""
        settings = recipe.training
        order = BatchOrder(
            [(len(one.ids), 0) for one in self.train],
            token_budget=settings.batch_size * recipe.model.context,
            seed=settings.seed,
        )
        return lambda epoch, batch: endless(
            order,
            lambda rows: collate_answers([self.train[row] for row in rows]),
            start=Position(epoch, batch),
        )

    def validate(
        self,
        model: LanguageModel[Any],
        recipe: LanguageModelRecipe,
        *,
        loss_of: Callable[[LanguageModel[Any], AnswerBatch], LossSum],
    ) -> Validation:
        """Return loss and perplexity of the answers' symbols."""
        nats, tokens = 0.0, 0
        ordered = sorted(self.valid, key=lambda one: len(one.ids))
        for first in range(0, len(ordered), ROWS):
            batch = collate_answers(ordered[first : first + ROWS])
            nats += float(loss_of(model, batch).nats)
            tokens += batch.target_tokens
        loss = nats / tokens
        metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700))}
        return Validation(metrics=metrics, value=loss)


def prepare_answers(run: Run, recipe: LanguageModelRecipe) -> AnswerData:
    """Return the pairs of a recipe as ids."""
    train, valid = _read(recipe)
    if not (run.folder / f"{TOKENIZER}.json").is_file():
        start = recipe.training.start_from
        if start is not None:
            tokenizer = load_tokenizer(Run.open(Path(start)).folder, TOKENIZER)
        else:
            texts = [f"{pair.source}{NEWLINE}{pair.target}{NEWLINE}" for pair in train]
            size = sum(len(text) for text in texts)
            tokenizer = learn_tokenizer(recipe.tokenizer, iter(texts), characters=size)
        tokenizer.save(run.folder, TOKENIZER)
    text = RunningText(load_tokenizer(run.folder, TOKENIZER))
    digest = hashlib.blake2b(digest_size=16)
    for pair in (*train, *valid):
        digest.update(f"{pair.source}\t{pair.target}\n".encode())

    def encoded(pairs: Sequence[SentencePair]) -> list[AnswerIds]:
        return [
            answer_ids(
                text.encode(pair.source + NEWLINE),
                text.encode(pair.target + NEWLINE),
                context=recipe.model.context,
            )
            for pair in pairs
        ]

    return AnswerData(text, encoded(train), encoded(valid), digest.hexdigest())


def _read(recipe: LanguageModelRecipe) -> tuple[list[SentencePair], list[SentencePair]]:
    data = recipe.data
    pairs = read_pairs([Path(file) for file in data.pairs])
    if data.valid:
        return pairs, read_pairs([Path(file) for file in data.valid])
    held = round(len(pairs) * data.valid_share)
    if not 0 < held < len(pairs):
        raise DataError(
            f"{len(pairs)} pairs are too few to hold some out for validation",
            path=data.pairs[0],
            remedy="Give data.valid, or more pairs.",
        )
    return pairs[:-held], pairs[-held:]
