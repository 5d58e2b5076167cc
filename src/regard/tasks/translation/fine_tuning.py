"""Fine-tuning a translator: the recipe that goes on from a run, and general pairs mixed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from regard.base.errors import RegardError, SettingsError
from regard.base.protocols import Tokenizer
from regard.batching.batch import Batch, collate, encode_pairs
from regard.batching.order import BatchOrder, BatchPosition
from regard.corpora import sources
from regard.corpora.cache import Told
from regard.corpora.parallel import SentencePair, drawn_evenly, fingerprint_of, hold_out, read_pairs
from regard.runs.run import Run
from regard.settings.models import TransformerSettings
from regard.tasks.planning import AutoChoice, gentle_reasons, gentle_training
from regard.tasks.translation import data as task_data
from regard.tasks.translation.model import load
from regard.tasks.translation.objective import batch_loss
from regard.tasks.translation.settings import TranslationRecipe
from regard.training.objective import Objective, Optimisation
from regard.training.progress import DataFacts, Fact

# Small data are cut into small batches, so that an epoch has some updates.
UPDATES_PER_EPOCH, FEWEST_TOKENS = 50, 512
SAMPLE = 1_000  # pairs from which the length of all is estimated
PROBED, HARMED = 32, 2.0  # pairs whose loss dropout may raise by this factor
DROPOUTS = {"dropout", "attention_dropout", "activation_dropout"}
MOST_GENERAL = 500  # general pairs to test on, of those that nobody named
OF_DATA = ("mix", "general_test")


@dataclass(frozen=True)
class General:
    """General pairs beside those of the domain: to mix in, and to test on before and after."""

    mix: list[SentencePair] = field(default_factory=list)
    test: list[SentencePair] = field(default_factory=list)
    test_of: str = ""
    """Where the test pairs come from; empty if there are none."""
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Return what tells one mixture from another; empty if nothing is mixed in."""
        if not self.mix:
            return ""
        return f"+{fingerprint_of(self.mix)}"


@dataclass(frozen=True)
class TuningData:
    """The pairs of the domain, and general ones."""

    splits: task_data.Splits
    general: General


def read_data(
    recipe: TranslationRecipe, data: Any, told: Told
) -> tuple[TranslationRecipe, task_data.Splits, General | None]:
    """Return the pairs, and general ones if a training starts from a run or mixes them in."""
    if isinstance(data, TuningData):
        return recipe, data.splits, data.general
    if not (recipe.tuned or any(data.get(part) for part in OF_DATA)):
        return *task_data.given_splits(recipe, data, told), None
    recipe, found = tuning_data(recipe, data, told)
    return recipe, found.splits, found.general


def tuning_data(
    recipe: TranslationRecipe, data: Any, told: Told | None = None
) -> tuple[TranslationRecipe, TuningData]:
    """Return the pairs that are given in Python, or else those of the recipe, with general ones."""
    table = dict(data) if isinstance(data, Mapping) else data
    given = {part: table.pop(part, None) for part in OF_DATA} if isinstance(table, dict) else {}
    if isinstance(table, dict) and not any(part is not None for part in table.values()):
        table = None
    recipe, splits = task_data.given_splits(recipe, table, told)
    pairs: dict[str, list[SentencePair]] = {}
    files: dict[str, tuple[str, ...]] = {}
    for part, value in sources.as_parts(given).items():
        named = sources.named_files({part: value}, what="pairs")
        if named is None:
            pairs[part] = task_data.checked_pairs(value, part, recipe.data.max_words)
        else:
            files |= named
    if files:
        recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=files)})
    return recipe, TuningData(splits, _general(recipe, splits, pairs))


def _general(
    recipe: TranslationRecipe,
    splits: task_data.Splits,
    given: Mapping[str, list[SentencePair]],
) -> General:
    """Return the general pairs that are given or named, or what the first run can be tested on."""
    settings = recipe.data
    mix, test = (
        given.get(part) or (_read(recipe, part) if getattr(settings, part) else [])
        for part in OF_DATA
    )
    origin = "data.general_test" if test else ""
    notes = []
    if mix and not test:
        held = min(settings.hold_out_test or MOST_GENERAL, max(1, len(mix) // 10))
        if len(mix) < 10:
            raise SettingsError(
                f"{len(mix)} general pairs are too few to hold some out for the test: give more "
                "with --mix, or a test of their own with --general-test."
            )
        total = len(mix)
        mix, test = hold_out(mix, sizes=[held], seed=settings.seed)
        origin = "held out of data.mix"
        notes.append(f"Held out of {total:,} general pairs by seed {settings.seed}: {held:,}.")
    if not test and recipe.training.start_from is not None:
        test, origin = _test_of_run(Path(recipe.training.start_from))
    wanted = {pair.source for pair in test}
    seen = {pair.source for pair in splits.train if pair.source in wanted}
    unseen = [pair for pair in test if pair.source not in seen]
    if len(unseen) < len(test):
        count = len(test) - len(unseen)
        notes.append(f"{count:,} general test pairs are among the training pairs: left out.")
    if recipe.training.start_from is not None and not unseen:
        notes.append(
            "There are no general pairs to test on, so what is forgotten cannot be seen: name some "
            "with --general-test, or mix some in with --mix."
        )
    return General(mix, unseen, origin if unseen else "", tuple(notes))


def _read(recipe: TranslationRecipe, part: str) -> list[SentencePair]:
    """Return the general pairs of files or of a folder, which is read as one to train on."""
    settings = recipe.data
    found = sources.locate({"train": getattr(settings, part)}, records="pairs", pair=settings.pair)[
        "train"
    ]
    read = partial(read_pairs, pair=settings.pair, max_words=settings.max_words)
    return read([Path(file) for file in found], columns=settings.columns)


def _test_of_run(folder: Path) -> tuple[list[SentencePair], str]:
    """Return what a run was tested or validated on, where that is still there."""
    settings = Run.open(folder).recipe(TranslationRecipe).data
    for part, read in (("test", task_data.read_test), ("validation", task_data.read_valid)):
        try:
            pairs = read(settings)
        except RegardError:  # an imported run has no data, others may have lost theirs
            continue
        if pairs:
            return pairs[:MOST_GENERAL], f"the {part} part of {folder}"
    return [], ""


def fine_tune(
    folder: Path,
    recipe: TranslationRecipe | None,
    data: Any,
    *,
    change: Callable[[Any], Any],
) -> AutoChoice:
    """Return the recipe that goes on from a run with this data, what was read, and the reasons.

    `recipe` is one that the user has named: it decides all but model, tokenizer and search.
    `change` makes the changes that the user has asked for.
    """
    before = Run.open(folder).recipe(TranslationRecipe)
    first = change(_going_on(before, folder, recipe))
    first, read = tuning_data(first, data)
    model = f"model, tokenizers and search are those of {folder}"
    if recipe is not None:
        return AutoChoice(first, read, (model,))
    train = read.splits.train
    tokens = _tokens(folder, train)
    settled = _settled(first, tokens=tokens)
    settled, dropped = _with_dropout_it_bears(settled, folder, train)
    chosen = change(settled).model_copy(update={"data": first.data})
    return AutoChoice(chosen, read, (model, *_reasons(chosen, tokens, len(train)), *dropped))


def _going_on(
    before: TranslationRecipe, folder: Path, recipe: TranslationRecipe | None
) -> TranslationRecipe:
    """Return a recipe with the model, the tokenizers and the search of a run."""
    tables: dict[str, Any] = {} if recipe is None else dict(recipe)
    settings = TranslationRecipe.model_validate(tables)
    for name in ("tokenizer", "model", "decoding"):
        tables[name] = getattr(before, name)
    tables["training"] = settings.training.model_copy(update={"start_from": str(folder)})
    if recipe is None:
        smoothing = before.training.label_smoothing  # a new one would flatten all logits first
        tables["training"] = tables["training"].model_copy(update={"label_smoothing": smoothing})
        tables["batches"] = before.batches
    if settings.data.pair is None:
        tables["data"] = settings.data.model_copy(update={"pair": before.data.pair})
    return TranslationRecipe.model_validate(tables)


def _tokens(folder: Path, train: Sequence[SentencePair]) -> float:
    """Return about how many tokens the pairs have on both sides together, end marks included."""
    source, target = Run.open(folder).tokenizers()
    some = drawn_evenly(train, SAMPLE, seed=1)
    each = fmean(
        2 + len(source.encode(pair.source)) + len(target.encode(pair.target)) for pair in some
    )
    return each * len(train)


def _settled(recipe: TranslationRecipe, *, tokens: float) -> TranslationRecipe:
    """Return the recipe with rate, batches and limits for so many tokens of training pairs."""
    whole = min(recipe.batches.tokens, max(FEWEST_TOKENS, round(tokens / UPDATES_PER_EPOCH)))
    model = recipe.model
    width = model.model_dim if isinstance(model, TransformerSettings) else model.hidden
    updates = max(1, math.ceil(tokens / whole))
    training = gentle_training(recipe.training, width=width, updates_per_epoch=updates)
    batches = recipe.batches.model_copy(update={"tokens": whole})
    return recipe.model_copy(update={"batches": batches, "training": training})


def _with_dropout_it_bears(
    recipe: TranslationRecipe, folder: Path, train: Sequence[SentencePair]
) -> tuple[TranslationRecipe, tuple[str, ...]]:
    """Return the recipe without dropout if the model was plainly not trained with it.

    Imported files seldom say. The en-pt student has a loss of 0.7 without dropout and 7.0 with 0.1;
    trained with it, the student first forgot everything.
    """
    if not recipe.model.dropout:
        return recipe, ()
    loaded = load(folder)
    pairs = drawn_evenly(train, PROBED, seed=1)
    batch = collate(encode_pairs(pairs, loaded.source_tokenizer, loaded.target_tokenizer))
    losses = []
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        for training in (False, True):
            loaded.model.train(training)
            nats = batch_loss(loaded.model, batch, smoothing=0.0).nats
            losses.append(float(nats) / batch.target_tokens)
    if losses[1] < HARMED * losses[0] + 1:
        return recipe, ()
    none = dict.fromkeys(DROPOUTS & set(type(recipe.model).model_fields), 0.0)
    reason = (
        f"no dropout: with {recipe.model.dropout:g} the loss of {len(pairs)} pairs rises from "
        f"{losses[0]:.2f} to {losses[1]:.2f}, so the model was not trained with it"
    )
    return recipe.model_copy(update={"model": recipe.model.model_copy(update=none)}), (reason,)


def _reasons(recipe: TranslationRecipe, tokens: float, pairs: int) -> tuple[str, ...]:
    """Return why the settings are as they are."""
    learned, length = gentle_reasons(recipe.training)
    batches = (
        f"{pairs:,} pairs of about {tokens / pairs:.0f} tokens in batches of "
        f"{recipe.batches.tokens:,}: {length}"
    )
    share = recipe.data.mix_share
    mixed = f"{share:.0%} of the tokens of each update are general pairs (data.mix_share)"
    return (learned, batches, *([mixed] if recipe.data.mix else []))


def mix_in(
    objective: Objective[Batch],
    optimisation: Optimisation[Batch],
    recipe: TranslationRecipe,
    pairs: Sequence[SentencePair],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> tuple[Objective[Batch], Optimisation[Batch]]:
    """Let each update read a general batch besides each of its batches.

    The batches stay apart, so that sentences of unlike length are not padded to each other; their
    gradients are summed as those of micro-batches are.
    """
    examples = encode_pairs(pairs, *tokenizers, max_length=recipe.batches.max_length)
    if not examples:
        raise SettingsError(
            f"No pair of data.mix is within batches.max_length ({recipe.batches.max_length} "
            "tokens); raise it."
        )
    share = recipe.data.mix_share
    order = BatchOrder(
        [example.lengths for example in examples],
        token_budget=max(1, round(recipe.batches.tokens * share / (1 - share))),
        seed=recipe.training.seed,
    )

    def general(epoch: int, first: int) -> Iterator[Batch]:
        for rows in islice(general_rows(order, epoch), first, None):
            yield collate([examples[row] for row in rows])

    mixed = replace(
        objective,
        batches_from=partial(alternating, objective.batches_from, general),
        read=partial(_mixed_facts, objective.read, len(pairs), share),
    )
    return mixed, replace(optimisation, accumulate=2 * optimisation.accumulate)


PASSES = 100_000  # over the general pairs in an epoch of the others, at most


def general_rows(order: BatchOrder, epoch: int) -> Iterator[list[int]]:
    """Yield the rows of general batches without end, as a function of seed and epoch alone."""
    for number in range(PASSES):
        yield from order.batches(epoch * PASSES + number)


def alternating(
    batches_from: Callable[[int, int], Iterator[tuple[BatchPosition, Batch]]],
    general: Callable[[int, int], Iterator[Batch]],
    epoch: int,
    batch: int,
) -> Iterator[tuple[BatchPosition, Batch]]:
    """Yield a batch and a general one in turn; each counts in the position that a run resumes at.

    The general batches of an epoch follow from its number, so that a resumed training reads the
    same ones.
    """
    first, skipped = divmod(batch, 2)
    others = general(epoch, first)
    for after, own in batches_from(epoch, first):
        whole = BatchPosition(after.epoch, 2 * after.batch)
        if not skipped:
            yield BatchPosition(epoch, 2 * first + 1), own
        skipped = 0
        yield whole, next(others)
        if after.epoch != epoch:
            others = general(after.epoch, 0)
        epoch, first = after.epoch, after.batch


def _mixed_facts(read: Callable[[], DataFacts] | None, pairs: int, share: float) -> DataFacts:
    """Return the facts of a plan with those of the general pairs."""
    found = DataFacts(facts=()) if read is None else read()
    shown = f"{pairs:,} general pairs, {share:.0%} of the tokens of each update"
    fact = Fact("mix", {"pairs": pairs, "share": share}, shown)
    batches = None if found.batches is None else 2 * found.batches
    return replace(found, facts=(*found.facts, fact), batches=batches)
