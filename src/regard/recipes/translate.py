"""Training a translator: data, tokenizers, model, loop and final test, in the order they happen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.base.errors import SettingsError
from regard.batching.augmentation import Resegmenter, SamplingEncoder
from regard.batching.batch import Batch, Example, collate, encode_pairs, sorted_batches
from regard.batching.order import BatchOrder, Position, iterate
from regard.compute.device import computing_in
from regard.compute.processes import processes_for
from regard.corpora.parallel import SentencePair
from regard.models.build import build_translator
from regard.models.pretrained import freeze, load_extended
from regard.models.translator import Translator
from regard.recipes.data import Splits, read_splits
from regard.recipes.evaluate import Evaluation, evaluate
from regard.recipes.loaded import LoadedTranslator, load
from regard.recipes.objective import batch_loss, training_loss
from regard.recipes.optimizer import optimizer_of
from regard.recipes.resume import limits_of, open_records, open_store
from regard.recipes.run import Run
from regard.recipes.tokenizers import run_tokenizers
from regard.scoring.bleu import corpus_bleu
from regard.settings.translation import TrainingSettings, TranslationRecipe
from regard.training.checkpoint import CheckpointAverage, MovingAverage, read_tensors
from regard.training.loop import Validation, fit, learning_rate
from regard.training.losses import LossSum
from regard.training.progress import Done, Observer, Observers
from regard.training.update import Sharing
from regard.transformer.layers import recompute_layers

VALIDATION_TOKENS = 4_096
LEAST_BLEU = 1.0


@dataclass(frozen=True)
class Trained:
    """A finished training: its run, its best model, and what the test found if there was one."""

    run: Run
    model: LoadedTranslator
    evaluation: Evaluation | None


def train_translator(
    recipe: TranslationRecipe,
    run: Run,
    *,
    splits: Splits | None = None,
    observers: Sequence[Observer] = (),
) -> Trained:
    """Train until the recipe's limits, from the newest checkpoint of the run if there is one."""
    splits = splits or read_splits(recipe.data)
    source_tokenizer, target_tokenizer = run_tokenizers(run, recipe, splits.train)
    encode = partial(
        encode_pairs, source_tokenizer=source_tokenizer, target_tokenizer=target_tokenizer
    )
    train = encode(splits.train, max_length=recipe.batches.max_length)
    valid = encode(splits.valid, max_length=None)
    if not train:
        raise SettingsError(
            f"No training pair is within batches.max_length ({recipe.batches.max_length} symbols); "
            "raise it."
        )

    settings = recipe.training
    torch.manual_seed(settings.seed)
    model = build_translator(
        recipe.model, source_vocab=source_tokenizer.size, target_vocab=target_tokenizer.size
    )
    if settings.start_from is not None and not (run.folder / "checkpoints").exists():
        load_extended(model, read_tensors(Run.open(Path(settings.start_from)).weights()))
    freeze(model, settings.freeze)
    translator = LoadedTranslator(
        model=model,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        recipe=recipe,
    )
    validation = partial(
        validate,
        translator,
        valid,
        splits.valid[: settings.validate_sentences],
        select=settings.select,
    )
    done = Done()
    keep = max(settings.keep, settings.average)
    moving = MovingAverage(model, decay=settings.ema) if settings.ema else None
    store = open_store(run, keep=keep, fingerprint=splits.fingerprint())
    records = open_records(run, store, tensorboard=settings.tensorboard)
    fit(
        model=model,
        optimizer=optimizer_of(model, settings),
        loss_sum=_loss(model, settings),
        batches_from=_batches(
            recipe, train, _resegmenter(recipe, translator, splits.train, train), done
        ),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        validate=validation,
        store=store,
        limits=limits_of(settings),
        observer=Observers([*records, *observers]),
        clip=settings.clip,
        accumulate=settings.accumulate,
        moving=moving,
        average=CheckpointAverage(settings.average, of=settings.average_of)
        if settings.average
        else None,
        judge=partial(validation, beam=recipe.decoding.beam),
        sharing=Sharing(_processes(recipe, model), Batch.split),
        done=done,
    )
    return Trained(run, load(run.folder), None)


def tested(trained: Trained, pairs: Sequence[SentencePair]) -> Trained:
    """Return the training with what a test on these pairs found, which its run records."""
    if not pairs:
        return trained
    evaluation = evaluate(trained.model, pairs)
    (trained.run.folder / "test.json").write_text(
        json.dumps(evaluation.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return replace(trained, evaluation=evaluation)


def validate(
    translator: LoadedTranslator,
    examples: Sequence[Example],
    pairs: Sequence[SentencePair],
    *,
    select: str,
    beam: int = 1,
) -> Validation:
    """Return the loss over all validation examples and the BLEU of some; greedy is fast."""
    nats, tokens = 0.0, 0
    lengths = [example.lengths for example in examples]
    for rows in sorted_batches(lengths, token_budget=VALIDATION_TOKENS):
        batch = collate([examples[row] for row in rows])
        nats += float(batch_loss(translator.model, batch, smoothing=0.0).nats)
        tokens += batch.target_tokens
    found = translator.translate([pair.source for pair in pairs], beam=beam, attention=False)
    bleu = corpus_bleu([t.text for t in found], [pair.target for pair in pairs]).value
    loss = nats / tokens
    return Validation(
        metrics={"loss": loss, "bleu": bleu},
        # A BLEU near zero is chance: until it means something, the loss decides.
        value=-bleu if select == "bleu" and bleu >= LEAST_BLEU else loss,
    )


def _loss(model: Translator[Any], settings: TrainingSettings) -> Callable[[Batch], LossSum]:
    """Return the loss of a batch, computed as the settings ask for."""
    if settings.recompute:
        recompute_layers(model)
    if settings.compile:
        model.compile(dynamic=True)
    within = computing_in(settings.precision)

    def loss_sum(batch: Batch) -> LossSum:
        with within():
            return training_loss(
                model,
                batch,
                smoothing=settings.label_smoothing,
                coverage=settings.coverage,
                word_dropout=settings.word_dropout,
                r_drop=settings.r_drop,
            )

    return loss_sum


def _processes(recipe: TranslationRecipe, model: Translator[Any]) -> int:
    return processes_for(
        model,
        wanted=recipe.training.processes,
        tokens=recipe.batches.tokens,
        compiled=recipe.training.compile,
    )


def _batches(
    recipe: TranslationRecipe,
    examples: Sequence[Example],
    redraw: Resegmenter | None,
    done: Done,
) -> Callable[[int, int], Iterator[tuple[Position, Batch]]]:
    order = BatchOrder(
        [example.lengths for example in examples],
        token_budget=recipe.batches.tokens,
        seed=recipe.training.seed,
        short_first=recipe.batches.short_first,
    )
    return lambda epoch, batch: iterate(
        order,
        examples,
        Position(epoch=epoch, batch=batch),
        redraw=redraw,
        redraws=lambda: done.share < recipe.training.sampling_share,
    )


def _resegmenter(
    recipe: TranslationRecipe,
    translator: LoadedTranslator,
    pairs: Sequence[SentencePair],
    examples: Sequence[Example],
) -> Resegmenter | None:
    """Return what cuts the training pairs into other subwords, if that is asked for."""
    source, target = translator.source_tokenizer, translator.target_tokenizer
    if not recipe.training.subword_sampling:
        return None
    if not isinstance(source, SamplingEncoder) or not isinstance(target, SamplingEncoder):
        raise SettingsError('training.subword_sampling needs tokenizer.kind = "sentencepiece".')
    if len(pairs) != len(examples):  # some were too long: take those that were not
        longest = recipe.batches.max_length
        pairs = [
            pair
            for pair in pairs
            if len(source.encode(pair.source)) < longest
            and len(target.encode(pair.target)) < longest
        ]
    return Resegmenter(
        pairs,
        examples,
        source=source,
        target=target,
        alpha=recipe.training.subword_sampling,
        seed=recipe.training.seed,
        max_length=recipe.batches.max_length,
    )
