"""The data of a language model: running text as token files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.base.errors import DataError, SettingsError
from regard.batching.order import BatchPosition
from regard.batching.texts import (
    StreamBatch,
    WindowOrder,
    all_windows,
    iterate_stream,
)
from regard.corpora import running_text, sources
from regard.corpora.built_in import story
from regard.runs.run import Run
from regard.settings.recipe import require_known, validate
from regard.tasks.language_modelling import settings as schema
from regard.text import tokenizers
from regard.training.progress import DataFacts, Fact

TOKENIZER = "text"
BUILT_IN = "sentences of the grammar"
LIKE_A_FILE = re.compile(r"\S*\.(txt|text|md|jsonl|ndjson|csv|tsv|parquet|arrow)(\.gz)?")


@dataclass(frozen=True)
class TextData:
    """A tokenizer, and the two parts of a text as its ids."""

    text: tokenizers.RunningText
    train: running_text.TokenFile
    valid: running_text.TokenFile

    @property
    def validation_tokens(self) -> int:
        """The number of tokens to validate on."""
        return len(self.valid)

    def fingerprint(self) -> str:
        """Return what tells one text and its division from another."""
        return f"{self.train.digest}+{self.valid.digest}"

    def facts(self, recipe: schema.LanguageModelRecipe) -> DataFacts:
        """Return what a plan says of the text and its vocabulary."""
        sizes = {part: len(getattr(self, part)) for part in ("train", "valid")}
        shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
        each = self.train.characters / len(self.train)
        return DataFacts(
            facts=(
                Fact("tokens", sizes, f"{shown}; {each:.2f} characters each"),
                vocabulary_fact(recipe.tokenizer, self.text),
            ),
            batches=self._order(recipe).batches(0),
            unit="tokens",
        )

    def _order(self, recipe: schema.LanguageModelRecipe) -> WindowOrder:
        return WindowOrder(
            len(self.train),
            context=recipe.model.context,
            batch_size=recipe.training.batch_size,
            seed=recipe.training.seed,
        )

    def batches(
        self, recipe: schema.LanguageModelRecipe
    ) -> Callable[[int, int], Iterator[tuple[BatchPosition, StreamBatch]]]:
        """Return the order of training."""
        order = self._order(recipe)
        return lambda epoch, batch: iterate_stream(
            self.train, order, start=BatchPosition(epoch, batch)
        )

    def validation(
        self, recipe: schema.LanguageModelRecipe, *, most: int | None
    ) -> Iterator[StreamBatch]:
        """Yield the text to validate on, or `most` of its tokens, always the same ones."""
        context, seed = recipe.model.context, recipe.training.seed
        return all_windows(self.valid, context=context, most=most, seed=seed)


def vocabulary_fact(
    settings: schema.LanguageTokenizerSettings, text: tokenizers.RunningText
) -> Fact:
    """Return what a plan says of a vocabulary."""
    kind = {"character": "characters"}.get(settings.kind, "subwords")
    return Fact("vocabulary", {"kind": settings.kind, "size": text.size}, f"{text.size:,} {kind}")


Chunks = Callable[[], Iterator[str]]
# A text, several one after the other, or {"train": ..., "valid": ...} of such; or names of files.
GivenText = str | Path | Iterable[Any] | Mapping[str, Any]


@dataclass(frozen=True)
class Texts:
    """Texts that are given in Python, each like a file: to train on, and to validate on."""

    text: tuple[str, ...]
    valid: tuple[str, ...]

    def chunks(self, part: str) -> Iterator[str]:
        """Yield the texts of a part in chunks of whole lines, as those of files."""
        texts: tuple[str, ...] = getattr(self, part)
        lines = (line.removesuffix("\r") for text in texts for line in _lines(text))
        return running_text.line_chunks(lines)


def _lines(text: str) -> list[str]:
    """Return the lines of a text; a newline at its end begins no further line."""
    return text.removesuffix("\n").split("\n")


def given_text(
    recipe: schema.LanguageModelRecipe, data: GivenText | None
) -> tuple[schema.LanguageModelRecipe, Texts | None]:
    """Return the recipe with the files that are given in Python, or texts from memory.

    A path is a file. A string is a file if it looks like the name of one, and a text otherwise.
    """
    if data is None:
        texts = Texts((story(),), ()) if recipe.data.built_in else None
        return recipe.model_copy(update={"data": located(recipe.data)}), texts
    table = dict(data) if isinstance(data, Mapping) else {"train": data}
    for part in table:
        require_known(part, ("train", "text", "valid"), what="part of the data")
    parts = {
        "text" if part == "train" else part: (given,)
        if isinstance(given, str | Path)
        else tuple(given)
        for part, given in table.items()
    }
    every = [one for given in parts.values() for one in given]
    files = [one for one in every if _is_file(one)]
    if files and len(files) != len(every):
        raise SettingsError("The data has files and texts from memory: give one kind only.")
    if files:
        named = {part: tuple(map(str, given)) for part, given in parts.items()}
        none = {"text": (), "pairs": (), "valid": (), "from_memory": False, "built_in": False}
        table = {**recipe.data.model_dump(), **none, **named}
        settings = located(validate(table, schema.TextSettings, origin="data"))
        return recipe.model_copy(update={"data": settings}), None
    for part, given in parts.items():
        for number, one in enumerate(given, start=1):
            if not isinstance(one, str) or not one.strip():
                raise SettingsError(f"Item {number} of the {part} data is not a text: {one!r:.80}")
    settings = recipe.data.model_copy(
        update={"from_memory": True, "built_in": False, "text": (), "pairs": (), "valid": ()}
    )
    texts = Texts(parts.get("text", ()), parts.get("valid", ()))
    return recipe.model_copy(update={"data": settings}), texts


def _is_file(given: Any) -> bool:
    """Return whether this is a file rather than a text: a path, or a string that looks like one."""
    if not isinstance(given, str):
        return isinstance(given, Path)
    return LIKE_A_FILE.fullmatch(given) is not None or (len(given) < 256 and Path(given).exists())


def located(settings: schema.TextSettings) -> schema.TextSettings:
    """Return the settings with the files of a folder in its place; refuse settings without data."""
    if settings.from_memory or settings.built_in or settings.pairs:
        return settings
    if not settings.text:
        raise sources.no_data("texts", built_in=BUILT_IN)
    found = sources.locate({"train": settings.text, "valid": settings.valid}, records="texts")
    return settings.model_copy(update={"text": found["train"], "valid": found.get("valid", ())})


def held_out_note(settings: schema.TextSettings, texts: Texts | None) -> str:
    """Return a sentence about what is held out for validation; empty if that is given."""
    if settings.valid or (texts is not None and texts.valid):
        return ""
    return f"Held out: the last {settings.valid_share:.0%} of the data for validation."


class Parts:
    """The two parts of a text, which can be read again and again."""

    def __init__(self, settings: schema.TextSettings, texts: Texts | None, known: Path | None):
        """Measure the parts, unless the folder `known` of a run has them from before."""
        sources.require_files(settings.from_memory and texts is None, what="texts")
        if not (texts.text if texts else settings.text):
            raise sources.no_data("texts")
        chunks = partial(running_text.text_chunks, columns=settings.columns)
        files = partial(chunks, [Path(file) for file in settings.text])
        valid_files = partial(chunks, [Path(file) for file in settings.valid])
        self._text: Chunks = files if texts is None else partial(texts.chunks, "text")
        self._valid: Chunks | None = valid_files if settings.valid else None
        if texts is not None:
            self._valid = partial(texts.chunks, "valid") if texts.valid else None
        measured = running_text.measured
        named = [[] if texts else [*map(Path, part)] for part in (settings.text, settings.valid)]
        records = [known / name if known else None for name in ("text.json", "valid.json")]
        self.measure = measured(self._text, named[0], records[0])
        held = 0 if self._valid else round(self.measure.characters * settings.valid_share)
        self.characters = self.measure.characters - held
        self.digests = (
            f"{self.measure.digest}:{self.characters}",
            measured(self._valid, named[1], records[1]).digest if self._valid else "end",
        )

    def train(self) -> Iterator[str]:
        """Yield the text to train on."""
        return running_text.between(self._text(), 0, self.characters)

    def valid(self) -> Iterator[str]:
        """Yield the text to validate on."""
        first, last = self.characters, self.measure.characters
        return self._valid() if self._valid else running_text.between(self._text(), first, last)


def prepare_text(
    run: Run, recipe: schema.LanguageModelRecipe, texts: Texts | None = None
) -> TextData:
    """Return the run's tokenizer and token files, made from its text if they are not there yet."""
    folder = run.folder
    parts = Parts(recipe.data, texts, folder / "data")
    if not (folder / f"{TOKENIZER}.json").is_file():
        learned = _tokenizer(recipe, parts)
        learned.save(folder, TOKENIZER)
    text = tokenizers.RunningText(tokenizers.load_tokenizer(folder, TOKENIZER))
    files = []
    named = zip(("train", "valid"), (parts.train, parts.valid), parts.digests, strict=True)
    for name, part, digest in named:
        path, size = folder / "data" / f"{name}.tokens", text.size
        if not running_text.has_tokens(path) or running_text.open_tokens(path).digest != digest:
            running_text.write_tokens(path, part(), encode=text.encode, vocab=size, digest=digest)
        files.append(running_text.open_tokens(path, vocab=size))
    data = TextData(text, *files)
    _require_length(data, parts.measure, recipe)
    return data


def _tokenizer(recipe: schema.LanguageModelRecipe, parts: Parts) -> tokenizers.AnyTokenizer:
    """Return a tokenizer of the training part, or that of the run to go on from."""
    start = recipe.training.start_from
    if start is not None:
        return tokenizers.load_tokenizer(Run.open(Path(start)).folder, TOKENIZER)
    return learn_tokenizer(recipe.tokenizer, parts.train(), characters=parts.characters)


def learn_tokenizer(
    settings: schema.LanguageTokenizerSettings, chunks: Iterator[str], *, characters: int
) -> tokenizers.AnyTokenizer:
    """Learn a tokenizer from a text; subwords from a sample of it, so that memory stays small."""
    learn = partial(tokenizers.train_tokenizer, size=settings.size, normalise=settings.normalise)
    if settings.kind == "character":
        return learn(chunks, kind="character")
    sample = running_text.thinned(chunks, total=characters, wanted=settings.sample)
    if settings.kind == "sentencepiece":
        lines = (line for chunk in sample for line in chunk.split("\n"))
        return learn(lines, kind="sentencepiece")
    return learn(sample, kind="byte-bpe")


def _require_length(
    data: TextData, size: running_text.TextMeasure, recipe: schema.LanguageModelRecipe
) -> None:
    """Refuse a text that has not one window to train on, or nothing to validate on."""
    context = recipe.model.context
    if len(data.train) < context + 1 or len(data.valid) < 2:
        raise DataError(
            f"the text has {size.characters} characters, too few: {len(data.train)} tokens to "
            f"train on and {len(data.valid)} to validate on, where one window takes {context + 1}",
            path=recipe.data.text[0] if recipe.data.text else "data",
            remedy="Give more text, or set a smaller model.context.",
        )
