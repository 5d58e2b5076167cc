"""The data of a translator: sentence pairs of files or of the grammar, and tokenizers."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Union

import numpy as np

from regard.base.errors import DataError, SettingsError
from regard.corpora import sources, store
from regard.corpora.cache import Told
from regard.corpora.cleaning import Account, judged
from regard.corpora.composition import corpus_files
from regard.corpora.fetching import fetch_corpus
from regard.corpora.filters import TextPair, choose_filters
from regard.corpora.parallel import (
    SentencePair,
    fingerprint_of,
    hold_out,
    iterate_pairs,
)
from regard.corpora.sources import LeftOut
from regard.settings.recipe import require_known, validate, with_paths
from regard.tasks.translation import settings as schema

PARTS = sources.PARTS
BUILT_IN = "the built-in sentences"
# A file, a folder, pairs to train on, or any of these for each part.
GivenData = Union["Splits", Mapping[str, Any], Iterable[Any], str, Path]


@dataclass(frozen=True)
class Splits:
    """The three parts of a corpus; the test part may be missing."""

    train: Sequence[SentencePair]
    """Of a large corpus they are in a store, not in memory."""
    valid: Sequence[SentencePair]
    test: Sequence[SentencePair]
    notes: tuple[str, ...] = ()
    """What was held out and what was left out, in sentences."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """How many lines could not be used, and why."""
    digest: str = ""
    """The fingerprint, where it is known already."""
    corpora: tuple[int, ...] = ()
    """How many of the training pairs come from each corpus of a mixture, in this order."""

    def fingerprint(self) -> str:
        """Return a short digest of all pairs, which tells one corpus from another."""
        return self.digest or fingerprint_of(chain(self.train, self.valid, self.test))


def read_splits(settings: schema.DataSettings, told: Told | None = None) -> Splits:
    """Return the pairs that the settings name."""
    sources.require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return grammar_splits(settings.grammar)
    settings = located(settings)
    left_out = LeftOut(refuse=not settings.skip_bad)
    counts: Counter[int] = Counter()
    stream = _pairs(settings, "train", left_out, counts)
    parts = {"train": list(islice(stream, store.MOST_IN_MEMORY + 1))}
    if len(parts["train"]) > store.MOST_IN_MEMORY:
        every = chain(parts["train"], stream)
        return _stored_splits(settings, every, left_out, counts, told or Told())
    for part in PARTS[1:]:
        if getattr(settings, part):
            parts[part] = list(_pairs(settings, part, left_out))
    account, read = Account(), parts["train"]
    parts["train"] = list(_kept(settings, read, account, learned_from=read))
    note = str(account) if account.read else ""
    splits = _split(parts, settings, left_out, origin=settings.train[0])
    if settings.mixes:
        kept = set(map(id, splits.train))
        held = [row for row, pair in enumerate(read) if id(pair) not in kept]
        splits = replace(splits, corpora=sizes_without(list(counts.values()), held))
    return replace(splits, notes=(note, *splits.notes)) if note else splits


def sizes_without(sizes: Sequence[int], rows: Sequence[int]) -> tuple[int, ...]:
    """Return how many rows corpora have that stand one after the other, without some rows."""
    gone = np.searchsorted(np.sort(np.asarray(rows, np.int64)), np.cumsum([0, *sizes]))
    return tuple((np.array(sizes) - np.diff(gone)).tolist())


def _stored_splits(
    settings: schema.DataSettings,
    pairs: Iterator[SentencePair],
    left_out: LeftOut,
    counts: Mapping[int, int],
    told: Told,
) -> Splits:
    """Return a corpus that is too large for memory: from its store, which is built if need be."""
    from regard.corpora import pair_store  # of no use for all smaller ones

    named = with_paths(settings, os.path.abspath)
    given = [part for part in PARTS if getattr(settings, part)]
    sizes = {"valid": settings.hold_out, "test": settings.hold_out_test}
    reading = pair_store.CorpusReading(
        settings=named.model_dump(mode="json"),
        files=[str(file) for part in given for one in _corpora(named, part) for file in one],
        hold_out={part: size for part, size in sizes.items() if size and part not in given},
        seed=settings.seed,
    )
    corpus = pair_store.open_corpus(reading, say=told.say)
    if corpus is None:
        account = Account()
        again = _pairs(settings, "train", LeftOut(refuse=False))
        pairs = _kept(settings, pairs, account, learned_from=again)

        def facts(total: int, held: Mapping[str, int]) -> dict[str, Any]:
            notes = [str(account)] if account.read else []
            if held:
                notes.append(sources.held_out_note(total, "pairs", held, seed=settings.seed))
            found = {"notes": [*notes, *left_out.lines()], "left_out": left_out.to_dict()}
            return found | {"corpora": list(counts.values()) if settings.mixes else []}

        others = {part: _pairs(settings, part, left_out) for part in given if part != "train"}
        corpus = pair_store.build_corpus(reading, pairs, others, facts=facts, watch=told.watch)
    made_of = corpus.made_of
    return Splits(
        corpus.train,
        corpus.valid,
        corpus.test,
        tuple(made_of["notes"]),
        LeftOut.from_dict(made_of["left_out"]),
        made_of["fingerprint"],
        sizes_without(made_of["corpora"], list(chain.from_iterable(made_of["rows"].values()))),
    )


def _kept(
    settings: schema.DataSettings,
    pairs: Iterable[SentencePair],
    account: Account,
    *,
    learned_from: Iterable[SentencePair],
) -> Iterator[SentencePair]:
    """Yield the pairs that the filters keep; without filters, all."""
    if settings.filter is None:
        yield from pairs
        return
    texts = (TextPair(pair.source, pair.target) for pair in learned_from)
    filters = choose_filters(settings.filter, texts, pair=settings.pair)
    stream = (TextPair(pair.source, pair.target) for pair in pairs)
    for block, verdicts in judged(stream, filters):
        for pair, reason in zip(block, verdicts.reasons, strict=True):
            account.add(pair, reason)
            if reason is None:
                yield SentencePair(*pair)


def located(settings: schema.DataSettings) -> schema.DataSettings:
    """Return the settings with the files of a folder in its place; refuse settings without data."""
    if settings.built_in or settings.from_memory:
        return settings
    if not settings.train:
        raise sources.no_data("pairs", built_in=BUILT_IN)
    if settings.fetch is not None and not Path(settings.train[0]).is_file():
        fetch_corpus(settings.fetch, out=settings.train[0], pair=settings.pair)
    named = {part: getattr(settings, part) for part in PARTS}
    if settings.mixes:  # whose folders are corpora
        named["train"] = ()
    found = sources.locate(named, records="pairs", pair=settings.pair)
    return settings.model_copy(update={**found, "train": found["train"] or settings.train})


def _split(
    parts: Mapping[str, list[SentencePair]],
    settings: schema.DataSettings,
    left_out: LeftOut,
    *,
    origin: str,
) -> Splits:
    """Return the parts; what is missing is held out of the pairs to train on."""
    train, total = parts["train"], len(parts["train"])
    most = max(1, total // 10)
    sizes = {"valid": min(settings.hold_out, most), "test": min(settings.hold_out_test, most)}
    missing = {part: size for part, size in sizes.items() if part not in parts and size}
    if missing and total < 10:
        raise DataError(
            f"{total} pairs are too few to hold some out for validation and test",
            path=origin,
            remedy="Give --valid and --test, or more pairs.",
        )
    train, *held = hold_out(train, sizes=list(missing.values()), seed=settings.seed)
    found = {**parts, **dict(zip(missing, held, strict=True))}
    counts = {part: len(found[part]) for part in missing}
    notes = [sources.held_out_note(total, "pairs", counts, seed=settings.seed)] if missing else []
    return Splits(
        train,
        found["valid"],
        found.get("test", []),
        (*notes, *left_out.lines()),
        left_out,
    )


def given_splits(
    recipe: schema.TranslationRecipe, data: GivenData | None, told: Told | None = None
) -> tuple[schema.TranslationRecipe, Splits]:
    """Return the pairs that are given in Python, or else those of the recipe.

    Names of files and folders become settings of the recipe. Pairs from memory are in no file,
    which the recipe of the run records, so that nobody looks for them later.
    """
    if isinstance(data, Splits):
        return recipe, data
    if data is None:
        settings = located(recipe.data)
        return recipe.model_copy(update={"data": settings}), read_splits(settings, told)
    parts = sources.as_parts(data)
    for part in parts:
        require_known(part, PARTS, what="part of the data")
    if "train" not in parts:
        raise SettingsError('The data has no part "train" to learn from.')
    files = sources.named_files(parts, what="pairs")
    none: dict[str, Any] = {**dict.fromkeys(PARTS, ()), "built_in": False}
    if files is not None:
        table = {**recipe.data.model_dump(), **none, **files, "from_memory": False}
        settings = located(validate(table, schema.DataSettings, origin="data"))
        return recipe.model_copy(update={"data": settings}), read_splits(settings, told)
    if recipe.data.mixes:
        raise SettingsError(
            "data.weights and data.temperature mix files; pairs from memory are one corpus. Leave "
            "them out, or give files."
        )
    longest = recipe.data.max_words
    pairs = {part: checked_pairs(given, part, longest) for part, given in parts.items()}
    settings = recipe.data.model_copy(update={**none, "from_memory": True})
    recipe = recipe.model_copy(update={"data": settings})
    return recipe, _split(pairs, settings, LeftOut(), origin="data")


def checked_pairs(given: Iterable[Any], part: str, max_words: int) -> list[SentencePair]:
    """Return pairs of any kind as sentence pairs, or say which is none."""
    pairs = []
    for number, one in enumerate(given, start=1):
        sides: Any = (one.source, one.target) if isinstance(one, SentencePair) else one
        if not isinstance(sides, tuple | list) or len(sides) != 2 or not all(map(_is_text, sides)):
            raise SettingsError(
                f"Item {number} of the {part} data is not a pair of two texts: {one!r:.80}"
            )
        words = max(len(side.split()) for side in sides)
        if words > max_words:
            raise SettingsError(
                f"Item {number} of the {part} data has {words} words, more than data.max_words "
                f"({max_words}): split it, or raise the limit."
            )
        pairs.append(one if isinstance(one, SentencePair) else SentencePair(*sides))
    if not pairs:
        raise SettingsError(f"The {part} data has no pairs.")
    return pairs


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def read_valid(settings: schema.DataSettings) -> list[SentencePair]:
    """Return the validation pairs alone, without reading the others where that is possible."""
    return _read_part(settings, "valid")


def read_test(settings: schema.DataSettings) -> list[SentencePair]:
    """Return the test pairs alone, without reading the others where that is possible."""
    return _read_part(settings, "test")


def _read_part(settings: schema.DataSettings, part: str) -> list[SentencePair]:
    sources.require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return _generated(settings.grammar, part)
    settings = located(settings)
    if getattr(settings, part):
        return list(_pairs(settings, part, LeftOut(refuse=not settings.skip_bad)))
    return list(getattr(read_splits(settings), part))


def grammar_splits(settings: schema.GrammarSettings) -> Splits:
    """Return the pairs of the built-in grammar."""
    train, valid, test = (_generated(settings, split) for split in ("train", "valid", "test"))
    return Splits(train, valid, test)


def _generated(settings: schema.GrammarSettings, split: str) -> list[SentencePair]:
    from regard.corpora.grammar.generate import generate  # not for a corpus of files

    sizes = {"train": settings.size, "valid": settings.valid_size, "test": settings.test_size}
    return generate(
        pair=settings.pair,
        split=split,  # type: ignore[arg-type]
        size=sizes[split],
        min_words=settings.min_words,
        max_words=settings.max_words,
        words=settings.words,
        style=settings.style,
        contested=settings.contested,
        seed=settings.seed,
    )


def _pairs(
    settings: schema.DataSettings,
    part: str,
    left_out: LeftOut,
    counts: Counter[int] | None = None,
) -> Iterator[SentencePair]:
    """Yield the pairs in the files of a part; count those of each corpus."""
    for number, files in enumerate(_corpora(settings, part)):
        for pair in iterate_pairs(
            files,
            columns=settings.columns,
            pair=settings.pair,
            max_words=settings.max_words,
            left_out=left_out,
        ):
            if counts is not None:
                counts[number] += 1
            yield pair


def _corpora(settings: schema.DataSettings, part: str) -> list[list[Path]]:
    """Return the files of each corpus that a part consists of."""
    names = getattr(settings, part)
    if part == "train" and settings.mixes:
        return [corpus_files(name, settings.pair) for name in names]
    return [[Path(file) for file in names]]
