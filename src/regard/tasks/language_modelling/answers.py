"""The data of a language model that learns to answer: prompts with answers, as ids."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DataError
from regard.base.files import fingerprint
from regard.batching.batch import taken
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows
from regard.batching.texts import (
    AnswerBatch,
    AnswerIds,
    answer_ids,
    collate_answers,
    some_answers,
)
from regard.batching.tokenising import open_examples, write_rows
from regard.corpora import store
from regard.corpora.parallel import SentencePair, fingerprint_of, iterate_pairs
from regard.corpora.store import StoredRow, StoredSequence, StoreError
from regard.runs.run import Run
from regard.settings.recipe import with_paths
from regard.tasks.language_modelling import settings as schema
from regard.tasks.language_modelling.data import TOKENIZER, learn_tokenizer, vocabulary_fact
from regard.text import tokenizers
from regard.training.progress import DataFacts, Fact

ROWS = 32
MOST_HELD_OUT = 20_000  # of a corpus that is too large for memory


@dataclass(frozen=True)
class AnswerData:
    """A tokenizer, and prompts with answers to train and to validate on.

    A line end stands after the prompt and after the answer.
    """

    text: tokenizers.RunningText
    train: Sequence[AnswerIds]
    """Of a large corpus they are in a store, not in memory."""
    lengths: NDArray[np.integer]
    """How many ids each of them has."""
    valid: Sequence[AnswerIds]
    digest: str

    def fingerprint(self) -> str:
        """Return what tells one corpus from another."""
        return self.digest

    def facts(self, recipe: schema.LanguageModelRecipe) -> DataFacts:
        """Return what a plan says of prompts, answers and vocabulary."""
        sizes = {"train": len(self.train), "valid": len(self.valid)}
        shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
        return DataFacts(
            facts=(Fact("answers", sizes, shown), vocabulary_fact(recipe.tokenizer, self.text)),
            batches=len(self._order(recipe).epoch(0)),
            unit="tokens",
        )

    def _order(self, recipe: schema.LanguageModelRecipe) -> BatchOrder:
        return BatchOrder(
            np.stack([self.lengths, np.zeros_like(self.lengths)], axis=1),
            token_budget=recipe.training.batch_size * recipe.model.context,
            seed=recipe.training.seed,
        )

    def batches(
        self, recipe: schema.LanguageModelRecipe
    ) -> Callable[[int, int], Iterator[tuple[BatchPosition, AnswerBatch]]]:
        """Return the order of training."""
        order = self._order(recipe)
        return lambda epoch, batch: iterate_rows(
            order,
            lambda rows: collate_answers(taken(self.train, rows)),
            start=BatchPosition(epoch, batch),
        )

    @property
    def validation_tokens(self) -> int:
        """The number of tokens to validate on, prompts included."""
        return sum(len(one.ids) for one in self.valid)

    def validation(
        self, recipe: schema.LanguageModelRecipe, *, most: int | None
    ) -> Iterator[AnswerBatch]:
        """Yield the answers to validate on, or those with about `most` tokens, always the same."""
        chosen = some_answers(self.valid, most, seed=recipe.training.seed)
        ordered = sorted(chosen, key=lambda one: len(one.ids))
        for first in range(0, len(ordered), ROWS):
            yield collate_answers(ordered[first : first + ROWS])


class StoredAnswers(StoredSequence[AnswerIds]):
    """Prompts and answers in a store of token ids."""

    def _item(self, row: StoredRow) -> AnswerIds:
        prompt, answer = row
        size, context = (self.store.made_of[name] for name in ("size", "context"))
        for ids in row:
            if len(ids) and int(ids.max()) >= size:
                raise StoreError(self.store.folder, f"a token has the id {int(ids.max())}")
        return answer_ids(prompt.tolist(), answer.tolist(), context=context)


def prepare_answers(run: Run, recipe: schema.LanguageModelRecipe) -> AnswerData:
    """Return the pairs of a recipe as ids, made from its files if they are not there yet."""
    train, valid, digest = _read(recipe)
    if not (run.folder / f"{TOKENIZER}.json").is_file():
        _tokenizer(recipe, train).save(run.folder, TOKENIZER)
    text = tokenizers.RunningText(tokenizers.load_tokenizer(run.folder, TOKENIZER))
    context = recipe.model.context
    cut = partial(_cut, text)

    def encoded(pairs: Sequence[SentencePair]) -> list[AnswerIds]:
        return [answer_ids(*cut(pair), context=context) for pair in pairs]

    if not isinstance(train, StoredSequence):
        answers = encoded(train)
        lengths = np.array([len(one.ids) for one in answers], np.int64)
        return AnswerData(text, answers, lengths, encoded(valid), digest)
    folder = run.folder / "data" / "train"
    made_of = {
        "corpus": digest,
        "tokenizer": fingerprint(sorted(run.folder.glob(f"{TOKENIZER}.*"))),
        "size": text.size,
        "context": context,
    }
    rows = open_examples(folder, made_of, rows=len(train), say=lambda line: None)
    if rows is None:
        rows = write_rows(
            folder, train, cut, size=text.size, made_of=made_of, watch=lambda count, share: None
        )
    prompts, kept = rows.lengths().astype(np.int64).T
    kept = np.minimum(kept, context)  # as `answer_ids` cuts them
    lengths = kept + np.minimum(prompts, context + 1 - kept)
    return AnswerData(text, StoredAnswers(rows), lengths, encoded(valid), digest)


def _cut(text: tokenizers.RunningText, pair: SentencePair) -> tuple[list[int], list[int]]:
    """Return a prompt and its answer as ids."""
    end = tokenizers.NEWLINE
    return list(text.encode(pair.source + end)), list(text.encode(pair.target + end))


def _tokenizer(
    recipe: schema.LanguageModelRecipe, pairs: Sequence[SentencePair]
) -> tokenizers.AnyTokenizer:
    """Return a tokenizer of the pairs to train on, or that of the run to go on from."""
    start = recipe.training.start_from
    if start is not None:
        return tokenizers.load_tokenizer(Run.open(Path(start)).folder, TOKENIZER)
    end = tokenizers.NEWLINE
    size = sum(len(pair.source) + len(pair.target) + 2 for pair in pairs)
    texts = (f"{pair.source}{end}{pair.target}{end}" for pair in pairs)
    return learn_tokenizer(recipe.tokenizer, texts, characters=size)


Read = tuple[Sequence[SentencePair], Sequence[SentencePair], str]


def _read(recipe: schema.LanguageModelRecipe) -> Read:
    """Return the pairs to train and to validate on, and their fingerprint."""
    data = recipe.data
    stream = iterate_pairs([Path(file) for file in data.pairs], columns=data.columns)
    first = list(islice(stream, store.MOST_IN_MEMORY + 1))
    if len(first) > store.MOST_IN_MEMORY:
        return _stored(data, chain(first, stream))
    if data.valid:
        train, valid = first, _valid(data)
    else:
        held = _held(len(first), data)
        train, valid = first[:-held], first[-held:]
    return train, valid, fingerprint_of(chain(train, valid))


def _stored(data: schema.TextSettings, pairs: Iterator[SentencePair]) -> Read:
    """Return pairs that are too many for memory: from their store, which is built if need be."""
    from regard.corpora import pair_store  # of no use for all smaller corpora

    named = with_paths(data, os.path.abspath)
    reading = pair_store.CorpusReading(
        settings=named.model_dump(mode="json"),
        files=[*named.pairs, *named.valid],
        hold_out={},
        seed=0,
    )
    corpus = pair_store.open_corpus(reading, say=lambda line: None)
    if corpus is None:

        def facts(total: int, held: Mapping[str, int]) -> dict[str, Any]:
            return {"notes": [], "left_out": {}, "corpora": []}

        others = {"valid": _valid(data)} if data.valid else {}
        corpus = pair_store.build_corpus(
            reading, pairs, others, facts=facts, watch=lambda count, share: None
        )
    train, digest = corpus.train, corpus.made_of["fingerprint"]
    if data.valid:
        return train, corpus.valid, digest
    total = len(train)
    last = np.arange(total - min(_held(total, data), MOST_HELD_OUT), total)
    return train.without(last), train.take(last), digest


def _valid(data: schema.TextSettings) -> list[SentencePair]:
    return list(iterate_pairs([Path(file) for file in data.valid], columns=data.columns))


def _held(total: int, data: schema.TextSettings) -> int:
    """Return how many pairs to hold out at the end."""
    held = round(total * data.valid_share)
    if not 0 < held < total:
        raise DataError(
            f"{total} pairs are too few to hold some out for validation",
            path=data.pairs[0],
            remedy="Give data.valid, or more pairs.",
        )
    return held
