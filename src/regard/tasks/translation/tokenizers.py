"""The tokenizers of a translator: learned from its training pairs, or taken over from a run."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from math import isqrt
from pathlib import Path

from regard.base.errors import SettingsError
from regard.base.protocols import Tokenizer
from regard.batching.augmentation import Perturber
from regard.corpora.parallel import SentencePair
from regard.runs.run import Run
from regard.tasks.translation import settings as schema
from regard.text.tokenizers import extend_tokenizer, load_tokenizer, train_tokenizer

LEAST, MOST = 1_000, 32_000


def run_tokenizers(
    run: Run, recipe: schema.TranslationRecipe, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return the run's tokenizers, learned from its training pairs if they are not there yet."""
    if not run.has_tokenizers():
        pairs = [*pairs, *_changed(recipe, pairs)]
        start = recipe.training.start_from
        if start is None:
            run.save_tokenizers(*learn_tokenizers(recipe.tokenizer, pairs))
        else:
            run.save_tokenizers(*_taken_over(Path(start), recipe.tokenizer, pairs))
    return run.tokenizers()


def _changed(
    recipe: schema.TranslationRecipe, pairs: Sequence[SentencePair]
) -> Iterator[SentencePair]:
    """Yield a tenth of the pairs as augmentation changes them, so that tokenizers know its text."""
    shares = recipe.augmentation.shares()
    if shares:
        change = Perturber(pairs, shares, seed=recipe.training.seed)
        yield from (change(0, row) for row in range(0, len(pairs), 10))


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
    if settings.kind == "imported":  # two files may share a vocabulary and cut in two ways
        return run.tokenizers()
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
    return train_tokenizer(
        texts,
        kind=settings.kind,
        size=size,
        min_count=settings.min_count,
        normalise=settings.normalise,
        mark_capitals=settings.mark_capitals,
    )
