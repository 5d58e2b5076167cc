"""The data of a translator: sentence pairs of files or of the grammar, and tokenizers."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from statistics import fmean as mean
from typing import Any, Union

from regard.base.errors import DataError, SettingsError
from regard.base.protocols import Tokenizer
from regard.batching.batch import TrainingExamples
from regard.batching.order import BatchOrder
from regard.corpora import sources, store
from regard.corpora.cleaning import Account, judged
from regard.corpora.fetching import fetch_corpus
from regard.corpora.filters import TextPair, choose_filters
from regard.corpora.parallel import (
    SentencePair,
    drawn_evenly,
    fingerprint_of,
    hold_out,
    iterate_pairs,
)
from regard.corpora.sources import LeftOut
from regard.settings.recipe import require_known, validate, with_paths
from regard.tasks.translation import settings as schema
from regard.training.progress import DataFacts, Fact

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

    def fingerprint(self) -> str:
        """Return a short digest of all pairs, which tells one corpus from another."""
        return self.digest or fingerprint_of(chain(self.train, self.valid, self.test))


@dataclass(frozen=True)
class Told:
    """What hears of a long reading: how many pairs were read, and sentences to show."""

    watch: Callable[[int, float | None], None] = lambda lines, share: None
    say: Callable[[str], None] = lambda line: None


def read_splits(settings: schema.DataSettings, told: Told | None = None) -> Splits:
    """Return the pairs that the settings name."""
    sources.require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return grammar_splits(settings.grammar)
    settings = located(settings)
    left_out = LeftOut(refuse=not settings.skip_bad)
    stream = _pairs(settings, "train", left_out)
    parts = {"train": list(islice(stream, store.MOST_IN_MEMORY + 1))}
    if len(parts["train"]) > store.MOST_IN_MEMORY:
        return _stored_splits(settings, chain(parts["train"], stream), left_out, told or Told())
    for part in PARTS[1:]:
        if getattr(settings, part):
            parts[part] = list(_pairs(settings, part, left_out))
    account, read = Account(), parts["train"]
    parts["train"] = list(_kept(settings, read, account, learned_from=read))
    note = str(account) if account.read else ""
    splits = _split(parts, settings, left_out, origin=settings.train[0])
    return replace(splits, notes=(note, *splits.notes)) if note else splits


def _stored_splits(
    settings: schema.DataSettings, pairs: Iterator[SentencePair], left_out: LeftOut, told: Told
) -> Splits:
    """Return a corpus that is too large for memory: from its store, which is built if need be."""
    from regard.corpora import pair_store  # of no use for all smaller ones

    named = with_paths(settings, os.path.abspath)
    given = [part for part in PARTS if getattr(settings, part)]
    sizes = {"valid": settings.hold_out, "test": settings.hold_out_test}
    reading = pair_store.CorpusReading(
        settings=named.model_dump(mode="json"),
        files=[file for part in given for file in getattr(named, part)],
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
            return {"notes": [*notes, *left_out.lines()], "left_out": left_out.to_dict()}

        others = {part: _pairs(settings, part, left_out) for part in given if part != "train"}
        corpus = pair_store.build_corpus(reading, pairs, others, facts=facts, watch=told.watch)
    return Splits(
        corpus.train,
        corpus.valid,
        corpus.test,
        tuple(corpus.made_of["notes"]),
        LeftOut.from_dict(corpus.made_of["left_out"]),
        corpus.made_of["fingerprint"],
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
    return settings.model_copy(update=sources.locate(named, records="pairs", pair=settings.pair))


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
        seed=settings.seed,
    )


def _pairs(settings: schema.DataSettings, part: str, left_out: LeftOut) -> Iterator[SentencePair]:
    """Yield the pairs in the files of a part."""
    return iterate_pairs(
        [Path(file) for file in getattr(settings, part)],
        columns=settings.columns,
        pair=settings.pair,
        max_words=settings.max_words,
        left_out=left_out,
    )


def data_facts(
    recipe: schema.TranslationRecipe,
    splits: Splits,
    tokenizers: tuple[Tokenizer, Tokenizer],
    train: TrainingExamples,
    order: BatchOrder,
) -> DataFacts:
    """Return what a plan says of the pairs, of those that were left out, and of the vocabulary."""
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    seen = drawn_evenly(splits.train, store.MOST_IN_MEMORY, seed=0)
    sides = [pair.source for pair in seen], [pair.target for pair in seen]
    words = [mean(len(text.split()) for text in side) for side in sides]
    tokens = [float(side) - 1 for side in train.lengths.mean(axis=0)]
    lengths = {"source_words": words[0], "target_words": words[1]}
    lengths |= {"source_tokens": tokens[0], "target_tokens": tokens[1]}
    shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
    facts = [
        Fact("pairs", sizes, shown),
        Fact(
            "lengths",
            {name: round(value, 2) for name, value in lengths.items()},
            f"on average {words[0]:.1f} words of source and {words[1]:.1f} of target "
            f"({tokens[0]:.1f} and {tokens[1]:.1f} tokens)",
        ),
        *_left_out(splits, train.left_out.tolist(), recipe.batches.max_length),
        _vocabulary(recipe.tokenizer, tokenizers),
    ]
    return DataFacts(facts=tuple(facts), batches=len(order.epoch(0)))


def _left_out(splits: Splits, too_long: Sequence[int], longest: int) -> list[Fact]:
    """Return how many pairs could not be used or are too long to train on, with an example."""
    found = [
        {"pairs": count, "reason": reason, "example": splits.left_out.examples[reason][0]}
        for reason, count in splits.left_out.counts.most_common()
    ]
    if too_long:
        example = splits.train[too_long[0]].source
        why = f"more than {longest} tokens (batches.max_length)"
        found.append({"pairs": len(too_long), "reason": why, "example": f"{example[:40]!r} ..."})
    shown = "; ".join(f"{one['pairs']:,}: {one['reason']}, as {one['example']}" for one in found)
    return [Fact("left_out", found, shown)] if found else []


def _vocabulary(
    settings: schema.TokenizerSettings, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Fact:
    names = {"word": "words", "character": "characters"}
    kind, sizes = names.get(settings.kind, "subwords"), [tokenizer.size for tokenizer in tokenizers]
    shown = f"{sizes[0]:,} {kind} for both sides"
    if not settings.shared:
        shown = f"{sizes[0]:,} {kind} of the source, {sizes[1]:,} of the target"
    value = {"kind": settings.kind, "source": sizes[0], "target": sizes[1]}
    return Fact("vocabulary", value | {"shared": settings.shared}, shown)
