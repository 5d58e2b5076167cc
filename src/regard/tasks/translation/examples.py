"""From pairs to batches: tokenizers, pairs as tokens, their order, and what a plan says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import isqrt
from operator import attrgetter
from pathlib import Path
from statistics import fmean as mean

from regard.base.errors import DataError, SettingsError
from regard.base.files import fingerprint
from regard.base.protocols import Tokenizer
from regard.batching.alignments import AlignedExamples, TokenAligner, WordAligner, WordLinks
from regard.batching.augmentation import Perturber, Resegmenter, SamplingEncoder
from regard.batching.batch import Batch, TrainingExamples, training_examples_of
from regard.batching.order import BatchOrder, BatchPosition, MixedRows, iterate
from regard.batching.tokenising import open_examples, stored_examples, write_examples
from regard.corpora.alignments import read_alignments
from regard.corpora.cache import Told
from regard.corpora.composition import quotas_of
from regard.corpora.parallel import SentencePair, drawn_evenly
from regard.corpora.store import MOST_IN_MEMORY, StoredSequence
from regard.runs.run import Run
from regard.tasks.translation import settings as schema
from regard.tasks.translation.data import PARTS, Splits, sizes_without
from regard.text.tokenizers import extend_tokenizer, load_tokenizer, train_tokenizer
from regard.training.progress import Completion, DataFacts, Fact

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
        changed = []
        if shares:
            change = Perturber(drawn, shares, seed=seed)
            changed = [change(0, row) for row in range(0, len(drawn), 10)]
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


def order_of(
    recipe: schema.TranslationRecipe, splits: Splits, train: TrainingExamples
) -> BatchOrder:
    """Return the order of training, in which several corpora may be mixed."""
    return BatchOrder(
        train.lengths,
        token_budget=recipe.batches.tokens,
        seed=recipe.training.seed,
        short_first=recipe.batches.short_first,
        mixture=_mixture(recipe, splits, train),
    )


def batches_from(
    recipe: schema.TranslationRecipe,
    order: BatchOrder,
    train: TrainingExamples,
    tokenizers: tuple[Tokenizer, Tokenizer],
    completion: Completion,
) -> Callable[[int, int], Iterator[tuple[BatchPosition, Batch]]]:
    """Return what yields the batches from any position on, changed as the settings ask for."""
    train, align = with_links(recipe, train, tokenizers)
    redraw = _resegmenter(recipe, tokenizers, train, align)
    return lambda epoch, batch: iterate(
        order,
        train.examples,
        BatchPosition(epoch=epoch, batch=batch),
        redraw=redraw,
        redraws=lambda: completion.share < recipe.training.sampling_share,
    )


def with_links(
    recipe: schema.TranslationRecipe,
    train: TrainingExamples,
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> tuple[TrainingExamples, TokenAligner | None]:
    """Return training examples with links between their tokens, if a head is taught to align.

    The links are those of a file with a line for each pair that was read, or of the pairs
    themselves; where there are none, IBM model 1 finds them.
    """
    settings = recipe.training
    if not settings.alignment_loss:
        return train, None
    kept, total = train.pairs, len(train.pairs) + len(train.left_out)
    if settings.alignments is not None:
        path = Path(settings.alignments)
        links = read_alignments(path)
        if len(links) != total:
            raise DataError(
                f"has {len(links):,} lines for {total:,} training pairs",
                path=path,
                remedy="One line belongs to each training pair: give --valid and --test, so that "
                "none are held out, and correct bad pairs instead of leaving them out.",
            )
        left_out = set(train.left_out.tolist())
        own = (one for row, one in enumerate(links) if row not in left_out)
        kept = [replace(pair, alignment=one) for pair, one in zip(kept, own, strict=True)]
    links_of: WordLinks = attrgetter("alignment")
    if any(pair.alignment is None for pair in kept):
        links_of = WordAligner.learn(kept)
    align = TokenAligner(links_of, *tokenizers)
    return replace(train, pairs=kept, examples=AlignedExamples(kept, train.examples, align)), align


def _resegmenter(
    recipe: schema.TranslationRecipe,
    tokenizers: tuple[Tokenizer, Tokenizer],
    train: TrainingExamples,
    align: TokenAligner | None,
) -> Resegmenter | None:
    """Return what changes the training pairs or cuts them anew, if that is asked for."""
    source, target = tokenizers
    samples, shares = recipe.training.subword_sampling, recipe.augmentation.shares()
    if not samples and not shares:
        return None
    if samples and not all(isinstance(one, SamplingEncoder) for one in (source, target)):
        raise SettingsError('training.subword_sampling needs tokenizer.kind = "sentencepiece".')
    return Resegmenter(
        train.pairs,
        train.examples,
        source=source,
        target=target,
        alpha=samples,
        seed=recipe.training.seed,
        max_length=recipe.batches.max_length,
        perturb=Perturber(train.pairs, shares, seed=recipe.training.seed) if shares else None,
        align=align,
    )


def _mixture(
    recipe: schema.TranslationRecipe, splits: Splits, train: TrainingExamples
) -> MixedRows | None:
    """Return how many examples of each corpus form an epoch; None if there is one corpus."""
    if not splits.corpora:
        return None
    sizes = sizes_without(splits.corpora, train.left_out.tolist())
    if not all(sizes):
        empty = recipe.data.train[sizes.index(0)]
        raise SettingsError(f"data.train: {empty} has no pair to train on; leave it out.")
    taken = quotas_of(sizes, recipe.data.weights, recipe.data.temperature, None)
    return MixedRows(sizes, tuple(taken), recipe.training.seed)


def data_facts(
    recipe: schema.TranslationRecipe,
    splits: Splits,
    tokenizers: tuple[Tokenizer, Tokenizer],
    train: TrainingExamples,
    order: BatchOrder,
) -> DataFacts:
    """Return what a plan says of the pairs, of those that were left out, and of the vocabulary."""
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    seen = drawn_evenly(splits.train, MOST_IN_MEMORY, seed=0)
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
        *_mixed(recipe, order.mixture),
        *_left_out(splits, train.left_out.tolist(), recipe.batches.max_length),
        _vocabulary(recipe.tokenizer, tokenizers),
    ]
    return DataFacts(facts=tuple(facts), batches=len(order.epoch(0)))


def _mixed(recipe: schema.TranslationRecipe, mixture: MixedRows | None) -> list[Fact]:
    """Return the share of each corpus in an epoch."""
    if mixture is None:
        return []
    total = sum(mixture.taken)
    shares = dict(zip(recipe.data.train, (one / total for one in mixture.taken), strict=True))
    shown = ", ".join(f"{share:.1%} {name}" for name, share in shares.items())
    return [Fact("mixture", shares, f"{total:,} pairs an epoch: {shown}")]


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
