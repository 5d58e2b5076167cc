"""Sentence pairs from the grammar: drawn, sorted into their split, realised and aligned."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, TypeAlias

from regard.base.errors import RegardError, SettingsError
from regard.corpora.grammar import english
from regard.corpora.grammar.align import align, antecedents
from regard.corpora.grammar.languages import target_language
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.sampling import Sampler
from regard.corpora.pair import SentencePair

Split: TypeAlias = Literal["train", "valid", "test"]
Words: TypeAlias = Literal["full", "small"]

SHORTEST = 3
# Draws in a row without a new sentence after which the range counts as exhausted: a split that
# takes one draw in eleven finds a new one in them unless hardly one in a thousand is new.
PATIENCE = 20_000


def split_of(source: str) -> Split:
    """Return the split of a source sentence: its own hash decides, so that splits never meet."""
    first = blake2b(source.encode("utf-8"), digest_size=1).digest()[0]
    if first < 24:
        return "valid"
    return "test" if first < 48 else "train"


def generate(
    *,
    pair: str,
    split: Split,
    size: int,
    min_words: int = SHORTEST,
    max_words: int = 60,
    words: Words = "full",
    seed: int = 1,
) -> list[SentencePair]:
    """Return `size` different sentence pairs whose sources have `min_words` to `max_words` words.

    The wanted lengths are uniform over the range. A larger size starts with the same sentences.
    """
    language = target_language(pair)
    if not SHORTEST <= min_words <= max_words:
        raise SettingsError(
            f"Sentences of {min_words} to {max_words} words cannot be drawn: the fewest words "
            f"(min_words) are at least {SHORTEST}, and the most (max_words) no fewer than those."
        )
    stream = RandomStream(seed)
    sampler = Sampler(lexicon(small=words == "small"), stream, language, small=words == "small")
    pairs: list[SentencePair] = []
    seen: set[str] = set()
    draws = 0
    while len(pairs) < size:
        draws += 1
        if draws > PATIENCE:
            raise RegardError(
                f"The grammar found only {len(pairs)} different {split} sentences of {min_words} "
                f"to {max_words} words, and {size} were asked for. "
                "Ask for fewer, or allow longer sentences or the full vocabulary."
            )
        sentence = sampler.sentence(stream.between(min_words, max_words))
        tokens = english.realise(sentence)
        source = " ".join([token.text for token in tokens])
        if source in seen or split_of(source) != split:
            continue
        draws = 0
        seen.add(source)
        translated = language.realise(sentence)
        pairs.append(
            SentencePair(
                source=source,
                target=" ".join([token.text for token in translated]),
                alignment=align(tokens, translated),
                antecedents=antecedents(tokens),
            )
        )
    return pairs
