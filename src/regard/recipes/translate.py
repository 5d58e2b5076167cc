"""Training a translator: data, tokenizers, model, loop and final test, in the order they happen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from regard.base.errors import RunError, SettingsError
from regard.base.protocols import Tokenizer
from regard.batching.batch import Batch, Example, collate, encode_pairs
from regard.batching.buckets import sorted_batches
from regard.batching.order import BatchOrder, Position, iterate
from regard.corpora.pair import SentencePair
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.recipes.data import Splits, read_splits
from regard.recipes.evaluate import Evaluation, evaluate
from regard.recipes.loaded import LoadedTranslator, load
from regard.recipes.run import RECIPE, Run
from regard.scoring.bleu import corpus_bleu
from regard.settings.translation import TokenizerSettings, TrainingSettings, TranslationRecipe
from regard.text.build import train_tokenizer
from regard.training.checkpoint import CheckpointStore, read_state
from regard.training.loop import Limits, Validation, fit
from regard.training.loss import LossSum, token_loss
from regard.training.metrics import MetricsLog, TensorBoardLog
from regard.training.progress import Observer, Observers
from regard.training.schedule import learning_rate

VALIDATION_TOKENS = 4_096


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
    source_tokenizer, target_tokenizer = _tokenizers(run, recipe.tokenizer, splits.train)
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
    translator = LoadedTranslator(
        model=model,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        recipe=recipe,
    )
    store = CheckpointStore(run.folder, keep=settings.keep, evidence=_evidence(splits))
    _require_same_data(store, splits)
    fit(
        model=model,
        optimizer=torch.optim.AdamW(
            model.parameters(), betas=(0.9, 0.98), weight_decay=settings.weight_decay, fused=True
        ),
        loss_sum=partial(batch_loss, model, smoothing=settings.label_smoothing),
        batches_from=_batches(recipe, train),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        validate=partial(
            validate,
            translator,
            valid,
            splits.valid[: settings.validate_sentences],
            select=settings.select,
        ),
        store=store,
        limits=limits_of(settings),
        observer=Observers([*_records(run, recipe, store), *observers]),
        clip=settings.clip,
        accumulate=settings.accumulate,
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


def limits_of(settings: TrainingSettings) -> Limits:
    """Return when to stop, validate and save."""
    return Limits(
        steps=settings.steps,
        minutes=settings.minutes,
        patience=settings.patience,
        validate_every=settings.validate_every,
        checkpoint_every=settings.checkpoint_every,
    )


def batch_loss(model: Translator[Any], batch: Batch, *, smoothing: float) -> LossSum:
    """Return the summed loss of a batch."""
    output = model(batch.source, batch.source_mask, batch.target_input)
    return token_loss(
        output.features,
        expected=batch.target_output,
        mask=batch.target_mask,
        project=model.project,
        smoothing=smoothing,
    )


def validate(
    translator: LoadedTranslator,
    examples: Sequence[Example],
    pairs: Sequence[SentencePair],
    *,
    select: str,
) -> Validation:
    """Return the loss over all validation examples and the BLEU of some, translated greedily."""
    nats, tokens = 0.0, 0
    lengths = [example.lengths for example in examples]
    for rows in sorted_batches(lengths, token_budget=VALIDATION_TOKENS):
        batch = collate([examples[row] for row in rows])
        nats += float(batch_loss(translator.model, batch, smoothing=0.0).nats)
        tokens += batch.target_tokens
    found = translator.translate([pair.source for pair in pairs], beam=1, attention=False)
    bleu = corpus_bleu([t.text for t in found], [pair.target for pair in pairs]).value
    loss = nats / tokens
    return Validation(
        metrics={"loss": loss, "bleu": bleu}, value=-bleu if select == "bleu" else loss
    )


def _tokenizers(
    run: Run, settings: TokenizerSettings, pairs: Sequence[SentencePair]
) -> tuple[Tokenizer, Tokenizer]:
    """Return the run's tokenizers, learned from its training pairs if they are not there yet."""
    if not run.has_tokenizers():
        learn = partial(
            train_tokenizer, kind=settings.kind, size=settings.size, min_count=settings.min_count
        )
        run.save_tokenizers(learn(p.source for p in pairs), learn(p.target for p in pairs))
    return run.tokenizers()


def _batches(
    recipe: TranslationRecipe, examples: Sequence[Example]
) -> Callable[[int, int], Iterator[tuple[Position, Batch]]]:
    order = BatchOrder(
        [example.lengths for example in examples],
        token_budget=recipe.batches.tokens,
        seed=recipe.training.seed,
        short_first=recipe.batches.short_first,
    )
    return lambda epoch, batch: iterate(order, examples, Position(epoch=epoch, batch=batch))


def _records(
    run: Run, recipe: TranslationRecipe, store: CheckpointStore
) -> list[MetricsLog | TensorBoardLog]:
    """Return the files that every training writes to."""
    newest = store.folders()[-1:]
    step = read_state(newest[0])["progress"]["step"] if newest else 0
    records: list[MetricsLog | TensorBoardLog] = [MetricsLog(run.metrics, resume_step=step)]
    if recipe.training.tensorboard:
        records.append(TensorBoardLog(run.folder / "tensorboard"))
    return records


def _evidence(splits: Splits) -> dict[str, Any]:
    packages = ("regard", "torch", "sentencepiece", "safetensors")
    return {
        "versions": {"python": sys.version.split()[0]} | {name: version(name) for name in packages},
        "data": splits.fingerprint(),
    }


def _require_same_data(store: CheckpointStore, splits: Splits) -> None:
    """Refuse to continue on other data than the run began with: the result would be neither."""
    for folder in store.folders()[-1:]:
        if read_state(folder).get("data") != splits.fingerprint():
            raise RunError(
                f"The data has changed since the checkpoint {folder}: it cannot be resumed "
                "exactly. Restore the data, or train into another folder."
            )


def resumed_recipe(run: Run, recipe: TranslationRecipe) -> TranslationRecipe:
    """Return the recipe to continue with: limits may change, but not what is being trained."""
    before = run.recipe(TranslationRecipe)
    for part in ("data", "tokenizer", "model", "batches"):
        if getattr(before, part) != getattr(recipe, part):
            raise SettingsError(
                f"The settings under {part!r} differ from those of the run at {run.folder}: "
                "a resumed training keeps them. Train into another folder to change them."
            )
    return recipe


def finish_or_start(folder: Path, recipe: TranslationRecipe) -> Run:
    """Return the run of this recipe in the folder, new if there is none."""
    exists = (folder / RECIPE).exists()
    return open_run(folder, recipe, resume=exists)


def open_run(folder: Path, recipe: TranslationRecipe, *, resume: bool) -> Run:
    """Return a new run, or with `resume` the one that is there."""
    if not resume:
        return Run.create(folder, recipe)
    run = Run.open(folder)
    run.rewrite(resumed_recipe(run, recipe))
    return run
