"""The data of a translator: sentence pairs of files or of the grammar, and tokenizers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isqrt
from pathlib import Path
from typing import Any

from regard.base.errors import DataError, SettingsError
from regard.base.files import fingerprint
from regard.base.protocols import Tokenizer
from regard.corpora.parallel import SentencePair, read_pairs
from regard.runs.run import Run, require_files
from regard.settings.recipe import require_known, validate
from regard.tasks.translation import settings as schema
from regard.text.tokenizers import extend_tokenizer, load_tokenizer, train_tokenizer

PARTS = ("train", "valid", "test")
# Pairs to train on, or such pairs or names of files for each part.
GivenData = Mapping[str, Iterable[Any]] | Iterable[Any]


@dataclass(frozen=True)
class Splits:
    """The three parts of a corpus; the test part may be missing."""

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]

    def fingerprint(self) -> str:
        """Return a short digest of all pairs, which tells one corpus from another."""
        pairs = chain(self.train, self.valid, self.test)
        return fingerprint(f"{pair.source}\t{pair.target}\n" for pair in pairs)


def read_splits(settings: schema.DataSettings) -> Splits:
    """Return the pairs that the settings name."""
    require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return grammar_splits(settings.grammar)
    train = _read(settings.train, max_words=settings.max_words)
    test = _read(settings.test, max_words=settings.max_words) if settings.test else []
    if settings.valid:
        return Splits(train, _read(settings.valid, max_words=settings.max_words), test)
    return Splits(*_held_out(train, settings, origin=settings.train[0]), test)


def _held_out(
    pairs: list[SentencePair], settings: schema.DataSettings, *, origin: str
) -> tuple[list[SentencePair], list[SentencePair]]:
    """Return the pairs to train on, and the last ones to validate on."""
    if len(pairs) < 10:
        raise DataError(
            f"{len(pairs)} pairs are too few to hold some out for validation",
            path=origin,
            remedy="Give data.valid=[source,target], or more pairs.",
        )
    held = min(settings.hold_out, max(1, len(pairs) // 10))
    return pairs[:-held], pairs[-held:]


def given_splits(
    recipe: schema.TranslationRecipe, data: GivenData | None
) -> tuple[schema.TranslationRecipe, Splits]:
    """Return the pairs that are given in Python, or else those of the recipe.

    Names of files become settings of the recipe. Pairs from memory are in no file, which the
    recipe of the run records, so that nobody looks for them later.
    """
    if data is None:
        return recipe, read_splits(recipe.data)
    if not isinstance(data, Mapping):
        data = {"train": data}
    data = {part: (it,) if isinstance(it, str | Path) else it for part, it in data.items()}
    for part in data:
        require_known(part, PARTS, what="part of the data")
    if "train" not in data:
        raise SettingsError('The data has no part "train" to learn from.')
    files = {part: tuple(map(str, given)) for part, given in data.items() if _are_files(given)}
    if len(files) == len(data):
        table = {**recipe.data.model_dump(), **files, "from_memory": False}
        settings = validate(table, schema.DataSettings, origin="data")
        recipe = recipe.model_copy(update={"data": settings})
        return recipe, read_splits(settings)
    if files:
        raise SettingsError(
            f"The data has files ({', '.join(files)}) and pairs from memory: give one kind only."
        )
    longest = recipe.data.max_words
    pairs = {part: _checked_pairs(given, part, longest) for part, given in data.items()}
    settings = recipe.data.model_copy(
        update={"from_memory": True, "train": (), "valid": (), "test": ()}
    )
    recipe = recipe.model_copy(update={"data": settings})
    if "valid" in pairs:
        return recipe, Splits(pairs["train"], pairs["valid"], pairs.get("test", []))
    train, valid = _held_out(pairs["train"], settings, origin="data")
    return recipe, Splits(train, valid, pairs.get("test", []))


def _are_files(given: Any) -> bool:
    """Return whether these are names of files, rather than pairs."""
    if not isinstance(given, Sequence) or not given:
        return False
    return all(isinstance(one, str | Path) for one in given)


def _checked_pairs(given: Iterable[Any], part: str, max_words: int) -> list[SentencePair]:
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
    require_files(settings.from_memory, what="sentence pairs")
    if settings.built_in:
        return _generated(settings.grammar, "valid")
    if settings.valid:
        return _read(settings.valid, max_words=settings.max_words)
    return read_splits(settings).valid


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
        seed=settings.seed,
    )


def _read(files: Sequence[str], *, max_words: int) -> list[SentencePair]:
    return read_pairs([Path(file) for file in files], max_words=max_words)


LEAST, MOST = 1_000, 32_000


def run_tokenizers(
    run: Run, recipe: schema.TranslationRecipe, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return the run's tokenizers, learned from its training pairs if they are not there yet."""
    if not run.has_tokenizers():
        start = recipe.training.start_from
        if start is None:
            run.save_tokenizers(*learn_tokenizers(recipe.tokenizer, pairs))
        else:
            run.save_tokenizers(*_taken_over(Path(start), recipe.tokenizer, pairs))
    return run.tokenizers()


def learn_tokenizers(
    settings: schema.TokenizerSettings, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return a tokenizer for each language, or the same one twice."""
    sources, targets = [p.source for p in pairs], [p.target for p in pairs]
    if settings.shared:
        joint = _learn(settings, [*sources, *targets], pairs=len(pairs))
        return joint, joint
    learn = partial(_learn, settings, pairs=len(pairs))
    return learn(sources), learn(targets)


def _taken_over(
    folder: Path, settings: schema.TokenizerSettings, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return another run's tokenizers with the new tokens of these pairs."""
    run = Run.open(folder)
    before = run.recipe(schema.TranslationRecipe).tokenizer
    for name in ("kind", "shared"):
        old, new = getattr(before, name), getattr(settings, name)
        if old != new:
            raise SettingsError(
                f"training.start_from: {folder} was trained with tokenizer.{name} = {old!r}, "
                f"which {new!r} would not fit. Set tokenizer.{name} as it was there."
            )
    extend = partial(extend_tokenizer, size=settings.size, min_count=settings.min_count)
    sources, targets = [p.source for p in pairs], [p.target for p in pairs]
    if settings.shared:
        joint = extend(load_tokenizer(folder, "source"), [*sources, *targets])
        return joint, joint
    return (
        extend(load_tokenizer(folder, "source"), sources),
        extend(load_tokenizer(folder, "target"), targets),
    )


def supported_size(*, pairs: int, characters: int) -> int:
    """Return how many subwords this number of pairs can teach.

    New words come with the root of the length of a text (Heaps' law). A subword that is hardly
    ever seen is not learned; below a thousand there are not enough to be more than letters.
    """
    return min(MOST, max(LEAST, 60 * isqrt(pairs))) + characters


def _learn(settings: schema.TokenizerSettings, texts: Sequence[str], *, pairs: int) -> Tokenizer:
    size = settings.size
    if size is None and settings.kind == "sentencepiece":
        size = supported_size(pairs=pairs, characters=len(set(chain.from_iterable(texts))))
    return train_tokenizer(texts, kind=settings.kind, size=size, min_count=settings.min_count)


NAMES = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}


def languages_of(pair: str) -> tuple[str, str]:
    """Return source and target of a pair, as "en-de"."""
    languages = pair.split("-")
    if len(languages) != 2 or not all(languages) or languages[0] == languages[1]:
        raise SettingsError(f"--pair {pair!r} is not of the form source-target, as en-de.")
    return languages[0], languages[1]


def find_corpus(
    folder: Path, pair: str, *, needs_test: bool = True
) -> dict[str, tuple[Path, Path]]:
    """Return the two files of each part; validation may be missing, and the test if not needed.

    A name may go on after its part (`test_2016.en`) and end in .gz.
    """
    if not folder.is_dir():
        raise DataError(
            "there is no such folder", path=folder, remedy="Give a folder that holds a corpus."
        )
    source, target = languages_of(pair)
    found = {}
    for part, names in NAMES.items():
        files = _only(_candidates(folder, names, source, target), folder, part, names, source)
        if files is not None:
            found[part] = files
        elif part == "train" or (part == "test" and needs_test):
            raise DataError(
                f"there are no {part}*.{source} and {part}*.{target} of the same name",
                path=folder,
                remedy="Both languages are needed, one sentence a line, plain or .gz. Another "
                "language pair is named with --pair.",
            )
    return found


def _candidates(
    folder: Path, names: tuple[str, ...], source: str, target: str
) -> list[tuple[Path, Path]]:
    """Return all source files of a part that have a target file next to them."""
    pattern = re.compile(rf"({'|'.join(names)})(?![a-z]).*\.{re.escape(source)}(\.gz)?")
    pairs = []
    for file in sorted(folder.iterdir()):
        if pattern.fullmatch(file.name):
            stem = file.name.removesuffix(".gz").removesuffix(source)
            others = [folder / f"{stem}{target}{ending}" for ending in ("", ".gz")]
            pairs += [(file, other) for other in others if other.is_file()][:1]
    return pairs


def _only(
    candidates: list[tuple[Path, Path]],
    folder: Path,
    part: str,
    names: tuple[str, ...],
    source: str,
) -> tuple[Path, Path] | None:
    """Return the one that is meant: the shortest name if there are several, else the only one."""
    plain = [f"{name}.{source}{ending}" for name in names for ending in ("", ".gz")]
    exact = [files for files in candidates if files[0].name in plain]
    chosen = exact or candidates
    if len(chosen) > 1:
        listed = ", ".join(files[0].name for files in chosen)
        raise DataError(
            f"several files may be the {part} part ({listed})",
            path=folder,
            remedy=f"Keep one of them there, or name it {part}.{source}."
            + (" A test set can also be given with --test." if part == "test" else ""),
        )
    return chosen[0] if chosen else None
