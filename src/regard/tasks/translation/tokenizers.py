"""The tokenizers of a translator: learned from its training pairs, or taken over from a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isqrt
from pathlib import Path

from regard.base.errors import SettingsError
from regard.base.files import fingerprint
from regard.base.protocols import Tokenizer
from regard.batching.augmentation import Perturber
from regard.batching.batch import TrainingExamples, training_examples_of
from regard.batching.tokenising import open_examples, stored_examples, write_examples
from regard.corpora.parallel import SentencePair, drawn_evenly
from regard.corpora.store import StoredSequence
from regard.runs.run import Run
from regard.tasks.translation import settings as schema
from regard.tasks.translation.data import Splits, Told
from regard.text.tokenizers import extend_tokenizer, load_tokenizer, train_tokenizer

LEAST, MOST = 1_000, 32_000


def run_tokenizers(
    run: Run, recipe: schema.TranslationRecipe, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return the run's tokenizers, learned from its training pairs if they are not there yet.

    Subwords are learned from a sample if there are many pairs; words and characters are counted in
    all of them.
    """
    if not run.has_tokenizers():
        sample = VocabularySample.of(recipe, pairs)
        start = recipe.training.start_from
        if start is None:
            run.save_tokenizers(*learn_tokenizers(recipe.tokenizer, sample))
        else:
            run.save_tokenizers(*_taken_over(Path(start), recipe.tokenizer, sample))
    return run.tokenizers()


@dataclass(frozen=True)
class VocabularySample:
    """The pairs that a tokenizer is learned from, which may be in a store."""

    pairs: Sequence[SentencePair]
    changed: Sequence[SentencePair] = ()
    """A tenth of them as augmentation changes them, so that tokenizers know its text."""
    share: float = 1.0
    """Their share of all pairs."""

    @classmethod
    def of(
        cls, recipe: schema.TranslationRecipe, pairs: Sequence[SentencePair]
    ) -> VocabularySample:
        """Return what the recipe's tokenizers are learned from."""
        settings, seed = recipe.tokenizer, recipe.training.seed
        drawn = drawn_evenly(
            pairs, settings.sample_lines // (2 if settings.shared else 1), seed=seed
        )
        shares = recipe.augmentation.shares()
        change = Perturber(drawn, shares, seed=seed)
        changed = [change(0, row) for row in range(0, len(drawn), 10)] if shares else []
        if settings.kind != "sentencepiece":
            return cls(pairs, changed)
        return cls(drawn, changed, len(drawn) / max(1, len(pairs)))

    def __len__(self) -> int:
        return len(self.pairs) + len(self.changed)

    def sources(self) -> Iterator[str]:
        """Yield the source texts."""
        return (pair.source for pair in chain(self.pairs, self.changed))

    def targets(self) -> Iterator[str]:
        """Yield the target texts."""
        return (pair.target for pair in chain(self.pairs, self.changed))

    def both(self) -> Iterator[str]:
        """Yield the texts of one side and then of the other."""
        return chain(self.sources(), self.targets())


def learn_tokenizers(
    settings: schema.TokenizerSettings, pairs: Sequence[SentencePair] | VocabularySample
) -> tuple[Tokenizer, Tokenizer]:
    """Return a tokenizer for each language, or the same one twice."""
    sample = pairs if isinstance(pairs, VocabularySample) else VocabularySample(pairs)
    learn = partial(_learn, settings, pairs=round(len(sample) / sample.share))
    if settings.shared:
        joint = learn(sample.both)
        return joint, joint
    return learn(sample.sources), learn(sample.targets)


def _taken_over(
    folder: Path, settings: schema.TokenizerSettings, sample: VocabularySample
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
    if settings.kind == "imported":  # two files may share a vocabulary and cut in two ways
        return run.tokenizers()
    if settings.shared:
        joint = extend(load_tokenizer(folder, "source"), sample.both())
        return joint, joint
    return (
        extend(load_tokenizer(folder, "source"), sample.sources()),
        extend(load_tokenizer(folder, "target"), sample.targets()),
    )


def supported_size(*, pairs: int, characters: int) -> int:
    """Return how many subwords this number of pairs can teach.

    New words come with the root of the length of a text (Heaps' law). A subword that is hardly
    ever seen is not learned; below a thousand there are not enough to be more than letters.
    """
    return min(MOST, max(LEAST, 60 * isqrt(pairs))) + characters


def _learn(
    settings: schema.TokenizerSettings, texts: Callable[[], Iterator[str]], *, pairs: int
) -> Tokenizer:
    size = settings.size
    if size is None and settings.kind == "sentencepiece":
        characters = set(chain.from_iterable(texts()))
        size = supported_size(pairs=pairs, characters=len(characters))
    return train_tokenizer(
        texts(),
        kind=settings.kind,
        size=size,
        min_count=settings.min_count,
        normalise=settings.normalise,
        mark_capitals=settings.mark_capitals,
    )


def training_examples(
    run: Run,
    recipe: schema.TranslationRecipe,
    splits: Splits,
    tokenizers: tuple[Tokenizer, Tokenizer],
    told: Told | None = None,
) -> TrainingExamples:
    """Return the training pairs as ids: of a large corpus from the run's store, made if need be."""
    longest, pairs = recipe.batches.max_length, splits.train
    if not isinstance(pairs, StoredSequence):
        return training_examples_of(pairs, tokenizers, max_length=longest)
    told = told or Told()
    folder = run.folder / "data" / "train"
    made_of = {
        "corpus": splits.fingerprint(),
        "tokenizers": fingerprint(sorted(_files_of_tokenizers(run))),
        "sizes": [tokenizer.size for tokenizer in tokenizers],
    }
    store = open_examples(folder, made_of, rows=len(pairs), say=told.say)
    if store is None:
        store = write_examples(folder, pairs, tokenizers, made_of=made_of, watch=told.watch)
    return stored_examples(pairs, store, max_length=longest)


def _files_of_tokenizers(run: Run) -> Iterator[Path]:
    return (path for side in ("source", "target") for path in run.folder.glob(f"{side}.*"))
