"""Training a translator: data, tokenizers, model, loop and final test, in the order they happen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.base.errors import SettingsError
from regard.base.files import write_json
from regard.base.protocols import Tokenizer
from regard.batching.batch import Batch, encode_pairs
from regard.compute.device import computing_in, device_of, placed, processes_for
from regard.corpora.cache import Told
from regard.corpora.parallel import SentencePair, corpus_warnings, drawn_evenly, vocabulary_warning
from regard.corpora.store import MOST_IN_MEMORY, StoredSequence
from regard.engines.preparation import prepare_patience
from regard.engines.torch_engine import MOST_UNFINISHED, TorchEngine, unfinished_share
from regard.models.pretrained import add_adapters, freeze, load_extended, merged_weights
from regard.models.translator import Translator
from regard.runs import run as run_folders
from regard.runs.display import Display, SilentDisplay
from regard.runs.report import keep_examples
from regard.settings.recipe import Recipe, expect
from regard.tasks.translation import data as task_data
from regard.tasks.translation import examples as task_examples
from regard.tasks.translation.evaluation import TrainedTranslator, evaluate
from regard.tasks.translation.film import film_log
from regard.tasks.translation.fine_tuning import OF_DATA, General, TuningData, mix_in, read_data
from regard.tasks.translation.forgetting import before_fine_tuning, forgetting
from regard.tasks.translation.model import BuildTranslator, LoadedTranslator, fresh_network, load
from regard.tasks.translation.objective import optimizer_of, training_loss, validate
from regard.tasks.translation.report import write_report
from regard.tasks.translation.settings import TrainingSettings, TranslationRecipe
from regard.training.averages import CheckpointAverage, MovingAverage
from regard.training.checkpoint import read_tensors
from regard.training.loop import fit
from regard.training.losses import LossSum
from regard.training.objective import Objective, Optimisation
from regard.training.optimisers import learning_rate
from regard.training.progress import Completion, Observer, Observers
from regard.training.update import Sharing
from regard.transformer.layers import recompute_layers

TESTED_VALIDATION = 1_000  # sentences that stand in for a test part
UNLEARNED_SENTENCES = 100  # at most, that a model which has hardly learned is tested on


def train_translator(
    recipe: TranslationRecipe,
    run: run_folders.Run,
    *,
    splits: task_data.Splits | None = None,
    general: General | None = None,
    model: BuildTranslator | None = None,
    observers: Sequence[Observer] = (),
) -> TrainedTranslator:
    """Train until the recipe's limits, from the newest checkpoint of the run if there is one.

    Each update also reads of the `general` pairs to mix in. `model` builds the network in place of
    the recipe's.
    """
    splits = splits or task_data.read_splits(recipe.data)
    settings = recipe.training
    tokenizers = task_examples.run_tokenizers(run, recipe, splits.train)
    train = task_examples.training_examples(run, recipe, splits, tokenizers)
    if not len(train.lengths):
        raise SettingsError(
            f"No training pair is within batches.max_length ({recipe.batches.max_length} tokens); "
            "raise it."
        )
    valid = encode_pairs(splits.valid, *tokenizers, max_length=None)
    translator = _fresh_translator(recipe, run, *tokenizers, model=model)
    network = translator.model
    order = task_examples.order_of(recipe, splits, train)
    completion = Completion()
    validation = partial(
        validate,
        translator,
        valid,
        splits.valid[: settings.validate_sentences],
        select=settings.select,
    )
    objective = Objective(
        loss_sum=_loss(network, settings),
        batches_from=task_examples.batches_from(recipe, order, train, tokenizers, completion),
        validate=validation,
        final_validate=partial(validation, beam=recipe.decoding.beam),
        validates_together=True,
        read=partial(task_examples.data_facts, recipe, splits, tokenizers, train, order),
    )
    optimisation = _optimisation(recipe, network, completion)
    digest = splits.fingerprint() + (general.fingerprint() if general else "")
    if general is not None and general.mix:
        objective, optimisation = mix_in(objective, optimisation, recipe, general.mix, tokenizers)
    keep = max(settings.keep, settings.average)
    store = run_folders.open_store(run, keep=keep, fingerprint=digest)
    film = film_log(run, translator, splits.valid, wanted=settings.film)
    records = run_folders.open_records(run, store, tensorboard=settings.tensorboard)
    fit(
        network,
        objective,
        optimisation,
        limits=run_folders.limits_of(settings),
        store=store,
        observer=Observers([*records, *film, *observers]),
    )
    return TrainedTranslator(run, load(run.folder, model=model))


def _fresh_translator(
    recipe: TranslationRecipe,
    run: run_folders.Run,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    model: BuildTranslator | None,
) -> LoadedTranslator:
    """Return a new model, with the weights of the run that it starts from if there is one."""
    settings = recipe.training
    torch.manual_seed(settings.seed)
    network = fresh_network(recipe, source_tokenizer.size, target_tokenizer.size, model=model)
    if settings.start_from is not None and run.last_update is None:
        weights = read_tensors(run_folders.Run.open(Path(settings.start_from)).weights())
        load_extended(network, merged_weights(weights))
    if settings.adapter_rank:
        add_adapters(network, rank=settings.adapter_rank)
    if settings.freeze:
        freeze(network, settings.freeze)
    return LoadedTranslator(
        model=placed(network),
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        recipe=recipe,
    )


def _optimisation(
    recipe: TranslationRecipe, model: Translator[Any], completion: Completion
) -> Optimisation[Batch]:
    """Return the optimiser, the learning rate and the averages that the settings ask for."""
    settings = recipe.training
    average = CheckpointAverage(settings.average, of=settings.average_of)
    return Optimisation(
        optimizer=optimizer_of(model, settings),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        clip=settings.clip,
        accumulate=settings.accumulate,
        moving=MovingAverage(model, decay=settings.ema) if settings.ema else None,
        average=average if settings.average else None,
        sharing=Sharing(_processes(recipe, model), Batch.split),
        completion=completion,
    )


def tested(
    trained: TrainedTranslator,
    pairs: Sequence[SentencePair],
    *,
    part: str = "test",
    beam: int | None = None,
    watch: Callable[[int, float], None] | None = None,
    tuned: bool = False,
) -> TrainedTranslator:
    """Return the training with what a test on these pairs found, which its run records.

    A `tuned` model is also compared with the one that it started from.
    """
    if not pairs:
        return trained
    evaluation = replace(evaluate(trained.model, pairs, beam=beam, watch=watch), part=part)
    if tuned:
        evaluation = replace(evaluation, forgetting=forgetting(trained, evaluation))
    if part == "test":
        write_json(trained.run.folder / "test.json", evaluation.to_dict())
    return replace(trained, evaluation=evaluation)


def _loss(model: Translator[Any], settings: TrainingSettings) -> Callable[[Batch], LossSum]:
    """Return the loss of a batch, computed as the settings ask for."""
    if settings.recompute:
        recompute_layers(model)
    if settings.compile:
        model.compile(dynamic=True)
    within = computing_in(settings.precision, device_of(model))

    def loss_sum(batch: Batch) -> LossSum:
        with within():
            return training_loss(
                model,
                batch,
                smoothing=settings.label_smoothing,
                coverage=settings.coverage,
                word_dropout=settings.word_dropout,
                r_drop=settings.r_drop,
                alignment=settings.alignment_loss,
            )

    return loss_sum


def _processes(recipe: TranslationRecipe, model: Translator[Any]) -> int:
    return processes_for(
        model,
        wanted=recipe.training.processes,
        tokens=recipe.batches.tokens,
        compiled=recipe.training.compile,
    )


def prepare_for_inference(
    trained: TrainedTranslator,
    splits: task_data.Splits,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Measure and keep what the fast engine needs to know of a model."""
    run = trained.run.folder
    prepare_patience(trained.model, run, [pair.source for pair in splits.valid], say=say)


def train(
    recipe: Recipe,
    out: Path,
    *,
    title: str = "",
    resume: bool = False,
    data: task_data.GivenData | TuningData | None = None,
    model: BuildTranslator | None = None,
    display: Display | None = None,
) -> TrainedTranslator:
    """Train a translator, test it and write its report; `model` may build its network."""
    display = SilentDisplay() if display is None else display
    settings = expect(recipe, TranslationRecipe)
    if not resume:
        run_folders.Run.require_free(out)  # before time is spent on the data
    with display.translating("Reading the data") as watcher:
        told = Told(watcher.moved, display.note)
        general: General | None = None
        mixed = isinstance(data, Mapping) and any(data.get(part) for part in OF_DATA)
        if settings.tuned or mixed or isinstance(data, TuningData):
            settings, splits, general = read_data(settings, data, told)
        else:
            settings, splits = task_data.given_splits(settings, data, told)
    if model is not None:
        settings = settings.model_copy(update={"own_model": True})
    for note in (*splits.notes, *(general.notes if general else ())):
        display.note(note)
    for warning in _warnings(settings, splits):
        display.note(f"Warning: {warning}")
    with run_folders.training_run(out, settings, resume=resume) as run:
        return _trained(settings, run, splits, general, title=title, model=model, display=display)


def train_many(
    recipes: Mapping[str, TranslationRecipe], folder: Path, *, display: Display
) -> dict[str, TrainedTranslator]:
    """Train, test and report every recipe in a folder of its name.

    What was stopped goes on, what is done stays. All recipes must name the same data: it is read
    once.
    """
    with display.translating("Reading the data") as watcher:
        told = Told(watcher.moved, display.note)
        splits = task_data.read_splits(next(iter(recipes.values())).data, told)
    trained = {}
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        pairs = f"{len(splits.train):,} sentence pairs"
        display.note(f"\n{number}/{len(recipes)} {recipe.title}: {pairs}")
        place = folder / name
        there = (place / run_folders.RECIPE).exists()
        with run_folders.training_run(place, recipe, resume=there) as run:
            trained[name] = _trained(recipe, run, splits, title=name, display=display)
    return trained


def _trained(
    recipe: TranslationRecipe,
    run: run_folders.Run,
    splits: task_data.Splits,
    general: General | None = None,
    *,
    title: str,
    display: Display,
    model: BuildTranslator | None = None,
) -> TrainedTranslator:
    """Train, test and report."""
    with display.waiting("Learning the tokenizers ..."):
        tokenizers = task_examples.run_tokenizers(run, recipe, splits.train)
    if isinstance(splits.train, StoredSequence):
        with display.translating("Tokenising") as watcher:
            told = Told(watcher.moved, display.note)
            task_examples.training_examples(run, recipe, splits, tokenizers, told)
    part = "test" if splits.test else "validation"
    pairs = splits.test or splits.valid[:TESTED_VALIDATION]
    with display.training(run_folders.limits_of(recipe.training), title=title) as observer:
        observers = [observer]
        if general is not None and recipe.training.start_from is not None:
            domain = (f"the {part} part", pairs)
            observers.append(before_fine_tuning(run, recipe, domain, general, say=display.note))
        trained = train_translator(
            recipe, run, splits=splits, general=general, model=model, observers=observers
        )
    with display.waiting("Trying the model ..."):
        unfinished = unfinished_share(
            TorchEngine(trained.model.model),
            [ids for pair in pairs if (ids := trained.model.source_tokenizer.encode(pair.source))],
            recipe.decoding,
        )
    beam = 1 if unfinished > MOST_UNFINISHED else None
    if beam is not None:  # every output takes as long as it may: a few say enough
        total, pairs = len(pairs), pairs[:: -(-len(pairs) // UNLEARNED_SENTENCES)]
        display.note(
            f"{unfinished:.0%} of some outputs end only at their length limit: the model has "
            f"hardly learned. It is tested by greedy search on {len(pairs):,} of {total:,} "
            "sentences and not prepared for the fast engine."
        )
    with display.translating("Testing") as watcher:
        trained = tested(
            trained, pairs, part=part, beam=beam, watch=watcher.moved, tuned=general is not None
        )
    keep_examples(run.folder, (pair.source for pair in pairs))
    if beam is None:
        with display.waiting("Preparing the fast engine ..."):
            prepare_for_inference(trained, splits, say=display.note)
    with display.waiting("Writing the report ..."):
        write_report(trained, trained.report, title=recipe.title or title)
    return trained


def _warnings(settings: TranslationRecipe, splits: task_data.Splits) -> list[str]:
    """Return what looks wrong with the data of a user; the built-in corpus needs no check."""
    pairs = drawn_evenly(splits.train, MOST_IN_MEMORY, seed=0)
    found = [] if settings.data.built_in else corpus_warnings(pairs, splits.valid)
    tokenizer = settings.tokenizer
    if tokenizer.size is not None and tokenizer.kind != "character":
        share = len(pairs) / max(1, len(splits.train))
        warning = vocabulary_warning(
            pairs, size=tokenizer.size, shared=tokenizer.shared, share=share
        )
        found.append(warning)
    return [warning for warning in found if warning]
