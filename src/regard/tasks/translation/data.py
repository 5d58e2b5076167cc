"""The data of a translator: sentence pairs of files or of the grammar, and tokenizers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean as mean
from typing import Any, Union

from regard.base.errors import DataError, SettingsError
from regard.base.files import fingerprint
from regard.base.protocols import Tokenizer
from regard.batching.batch import Example
from regard.batching.order import BatchOrder
from regard.corpora import sources
from regard.corpora.cleaning import Account, judged
from regard.corpora.fetching import fetch_corpus
from regard.corpora.filters import FilterSettings, TextPair, choose_filters
from regard.corpora.parallel import SentencePair, hold_out, read_pairs
from regard.corpora.sources import LeftOut
from regard.settings.recipe import require_known, validate
from regard.tasks.translation import settings as schema
from regard.training.progress import DataFacts, Fact

PARTS = sources.PARTS
BUILT_IN = "the built-in sentences"
# A file, a folder, pairs to train on, or any of these for each part.
GivenData = Union["Splits", Mapping[str, Any], Iterable[Any], str, Path]


@dataclass(frozen=True)
class Splits:
    """The three parts of a corpus; the test part may be missing."""

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    notes: tuple[str, ...] = ()
    """What was held out and what was left out, in sentences."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """How many lines could not be used, and why."""

    def fingerprint(self) -> str:
        """Return a short digest of all pairs, which tells one corpus from another."""
        pairs = chain(self.train, self.valid, self.test)
        return fingerprint(f"{pair.source}\t{pair.target}\n" for pair in pairs)


def read_splits(settings: schema.DataSettings) -> Splits:
    """Return the pairs that the settings name."""
    sources.require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return grammar_splits(settings.grammar)
    settings = located(settings)
    left_out = LeftOut(refuse=not settings.skip_bad)
    parts = {part: _read(settings, part, left_out) for part in PARTS if getattr(settings, part)}
    note = ""
    if settings.filter is not None:
        parts["train"], note = _filtered(parts["train"], settings.filter, settings.pair)
    splits = _split(parts, settings, left_out, origin=settings.train[0])
    return replace(splits, notes=(note, *splits.notes)) if note else splits


def _filtered(
    pairs: list[SentencePair], settings: FilterSettings, languages: str | None
) -> tuple[list[SentencePair], str]:
    """Return the pairs that the filters keep, and the account of those that they drop."""
    texts = [TextPair(pair.source, pair.target) for pair in pairs]
    filters = choose_filters(settings, texts, pair=languages)
    found = (verdicts.reasons for _, verdicts in judged(texts, filters))
    account, kept = Account(), []
    for pair, text, reason in zip(pairs, texts, chain.from_iterable(found), strict=True):
        account.add(text, reason)
        if reason is None:
            kept.append(pair)
    return kept, str(account)


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
    recipe: schema.TranslationRecipe, data: GivenData | None
) -> tuple[schema.TranslationRecipe, Splits]:
    """Return the pairs that are given in Python, or else those of the recipe.

    Names of files and folders become settings of the recipe. Pairs from memory are in no file,
    which the recipe of the run records, so that nobody looks for them later.
    """
    if isinstance(data, Splits):
        return recipe, data
    if data is None:
        settings = located(recipe.data)
        return recipe.model_copy(update={"data": settings}), read_splits(settings)
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
        return recipe.model_copy(update={"data": settings}), read_splits(settings)
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
        return _read(settings, part, LeftOut(refuse=not settings.skip_bad))
    found: list[SentencePair] = getattr(read_splits(settings), part)
    return found


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


def _read(settings: schema.DataSettings, part: str, left_out: LeftOut) -> list[SentencePair]:
    return read_pairs(
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
    examples: Sequence[Example],
    order: BatchOrder,
) -> DataFacts:
    """Return what a plan says of the pairs, of those that were left out, and of the vocabulary."""
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    words = [mean(len(text.split()) for text in side) for side in _sides(splits.train)]
    tokens = [mean(side) - 1 for side in zip(*(one.lengths for one in examples), strict=True)]
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
        *_left_out(splits, tokenizers, recipe.batches.max_length, len(examples)),
        _vocabulary(recipe.tokenizer, tokenizers),
    ]
    return DataFacts(facts=tuple(facts), batches=len(order.batches(0)))


def _sides(pairs: Sequence[SentencePair]) -> tuple[list[str], list[str]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _left_out(
    splits: Splits, tokenizers: tuple[Tokenizer, Tokenizer], longest: int, kept: int
) -> list[Fact]:
    """Return how many pairs could not be used or are too long to train on, with an example."""
    found = [
        {"pairs": count, "reason": reason, "example": splits.left_out.examples[reason][0]}
        for reason, count in splits.left_out.counts.most_common()
    ]
    if count := len(splits.train) - kept:
        source, target = tokenizers
        example = next(
            pair.source
            for pair in splits.train
            if max(len(source.encode(pair.source)), len(target.encode(pair.target))) >= longest
        )
        why = f"more than {longest} tokens (batches.max_length)"
        found.append({"pairs": count, "reason": why, "example": f"{example[:40]!r} ..."})
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
