"""Fine-tuning: the network of a language model learns to classify, or the same one from scratch."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from regard.base.errors import SettingsError
from regard.base.files import fingerprint, write_json
from regard.batching.batch import split_rows, taken
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows
from regard.batching.texts import LabelledBatch, LabelledIds, collate_labelled
from regard.batching.tokenising import StoredLabelledIds, open_examples, write_labelled
from regard.compute.device import beside, placed
from regard.corpora.cache import Told
from regard.corpora.labelled import LabelledText
from regard.corpora.store import StoredSequence
from regard.models.pretrained import ORIGINAL, freeze, merged_weights
from regard.models.text_classifier import TextClassifier
from regard.runs.display import Display, SilentDisplay
from regard.runs.report import keep_inputs
from regard.runs.run import Run, open_records, open_store, training_run
from regard.settings.recipe import Recipe, expect
from regard.tasks.language_modelling.data import TOKENIZER, learn_tokenizer
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.planning import AutoChoice
from regard.tasks.text_classification import data as task_data
from regard.tasks.text_classification import model as loaded_model
from regard.tasks.text_classification.model import read_ids
from regard.tasks.text_classification.report import write_report
from regard.tasks.text_classification.settings import FineTuningSettings, TextClassificationRecipe
from regard.text.tokenizers import RunningText, load_tokenizer
from regard.training.checkpoint import read_tensors
from regard.training.loop import fit
from regard.training.losses import LossSum
from regard.training.objective import Limits, Objective, Optimisation, Validation
from regard.training.optimisers import learning_rate
from regard.training.progress import Observer, Observers
from regard.training.update import Sharing


def begin_with(recipe: TextClassificationRecipe, pretrained: Path) -> TextClassificationRecipe:
    """Return the recipe with the tokenizer and the network of a language model."""
    found = Run.open(pretrained).recipe(LanguageModelRecipe)
    training = recipe.training.model_copy(update={"start_from": str(pretrained)})
    changes = {"training": training, "tokenizer": found.tokenizer, "model": found.model}
    return TextClassificationRecipe.model_validate({**dict(recipe), **changes})


def fine_tune(
    folder: Path,
    recipe: TextClassificationRecipe | None,
    data: task_data.GivenTexts | None,
    *,
    change: Callable[[Any], Any],
) -> AutoChoice:
    """Return the recipe that learns labels with the network of a language model, and the reasons.

    `recipe` is one that the user has named; the settings of a fresh one are for fine-tuning.
    """
    chosen = change(begin_with(recipe or TextClassificationRecipe.model_validate({}), folder))
    chosen, _ = task_data.given_texts(chosen, data)
    training = chosen.training
    reasons = (
        f"network and tokenizer are those of {folder}, with a fresh layer for the labels",
        f"{training.epochs} epochs at a learning rate of {training.learning_rate:g}; the epoch "
        "that validates best is kept",
    )
    return AutoChoice(chosen, data if chosen.data.from_memory else None, reasons)


def from_scratch(recipe: TextClassificationRecipe) -> TextClassificationRecipe:
    """Return the recipe of the same network with fresh weights, all of which are trained."""
    whole = {
        "start_from": None,
        "freeze": (),
        "freeze_layers": 0,
        "adapter_rank": 0,
        "layer_decay": 1.0,
    }
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=whole)})


def train_text_classifier(
    recipe: TextClassificationRecipe,
    run: Run,
    *,
    splits: task_data.LabelledSplits | None = None,
    tokenizer_of: Path | None = None,
    observers: Sequence[Observer] = (),
) -> loaded_model.TrainedTextClassifier:
    """Train until the recipe's limits; `tokenizer_of` is a run whose tokenizer is taken over."""
    splits = splits or task_data.read_labelled_splits(recipe.data)
    settings = recipe.training
    text = _tokenizer(recipe, run, splits, tokenizer_of)
    write_json(run.folder / loaded_model.LABELS, splits.labels, indent=None)
    torch.manual_seed(settings.seed)
    model = loaded_model.build_text_classifier(recipe, vocab=text.size, labels=len(splits.labels))
    if settings.start_from is not None and run.last_update is None:
        weights = read_tensors(Run.open(Path(settings.start_from)).weights())
        _load_backbone(model, merged_weights(weights))
    _freeze(placed(model), settings)
    train, lengths = _training_texts(run, recipe, text, splits, Told())
    valid = _encoded(recipe, text, splits.valid, splits.labels)
    order = BatchOrder(
        np.stack([lengths, np.ones_like(lengths)], axis=1),
        token_budget=settings.tokens,
        seed=settings.seed,
    )
    store = open_store(run, keep=settings.keep, fingerprint=splits.fingerprint())
    objective = Objective(
        loss_sum=partial(label_loss, model),
        batches_from=lambda epoch, batch: iterate_rows(
            order,
            lambda rows: collate_labelled(taken(train, rows)),
            start=BatchPosition(epoch, batch),
        ),
        validate=partial(_validate, model, valid),
        read=partial(task_data.data_facts, splits, order, vocabulary=text.size),
    )
    fit(
        model,
        objective,
        _optimisation(model, recipe),
        limits=limits_of(settings, batches=len(order.epoch(0))),
        store=store,
        observer=Observers([*open_records(run, store), *observers]),
    )
    best = loaded_model.load(run.folder)
    score = best.score(splits.test or splits.valid)
    write_json(run.folder / "test.json", score.to_dict())
    keep_inputs(run.folder, (one.text for one in splits.test or splits.valid))
    return loaded_model.TrainedTextClassifier(
        run, best, score, part="test" if splits.test else "validation"
    )


def _optimisation(
    model: TextClassifier, recipe: TextClassificationRecipe
) -> Optimisation[LabelledBatch]:
    """Return the optimiser and the learning rate that the settings ask for."""
    settings = recipe.training
    return Optimisation(
        optimizer=optimizer_of(model, settings, layers=recipe.model.layers),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        clip=settings.clip,
        sharing=Sharing(1, split_rows),
    )


def limits_of(settings: FineTuningSettings, *, batches: int) -> Limits:
    """Return when to stop, validate and save, for this number of batches per epoch."""
    every = settings.validate_every or batches
    return Limits(
        steps=settings.epochs * batches,
        minutes=settings.minutes,
        patience=settings.patience,
        validate_every=every,
        checkpoint_every=every,
        checkpoint_minutes=settings.checkpoint_minutes,
        max_skipped=settings.max_skipped,
    )


def label_loss(model: TextClassifier, batch: LabelledBatch) -> LossSum:
    """Return the summed loss of a batch."""
    batch = beside(model, batch)
    nats = F.cross_entropy(model(batch.tokens, batch.mask), batch.labels, reduction="sum")
    return LossSum(nats, nats.detach())


def optimizer_of(
    model: TextClassifier, settings: FineTuningSettings, *, layers: int
) -> torch.optim.Optimizer:
    """Return AdamW, in which lower layers have lower rates (Howard & Ruder 2018, section 3.2)."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            share = settings.layer_decay ** (layers + 1 - _height(name, layers))
            decay = settings.weight_decay if parameter.dim() >= 2 else 0.0
            groups.setdefault((share, decay), []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": parameters, "rate_share": share, "weight_decay": decay}
            for (share, decay), parameters in groups.items()
        ],
        fused=True,
    )


def _height(name: str, layers: int) -> int:
    """Return how high in the network a parameter stands: tokens 0, layers 1, 2, ..., the top."""
    if name.startswith(("backbone.embedded.", "backbone.embedding.")):
        return 0
    if name.startswith("backbone.layers."):
        return 1 + int(name.split(".")[2])
    return layers + 1


def _freeze(model: TextClassifier, settings: FineTuningSettings) -> None:
    freeze(model, settings.freeze)
    frozen = settings.freeze_layers
    if not frozen:
        return
    if not any(name.startswith("backbone.layers.") for name, _ in model.named_parameters()):
        raise SettingsError("training.freeze_layers: this network has no layers to freeze.")
    for name, parameter in model.named_parameters():
        if _height(name, 10**9) <= frozen:
            parameter.requires_grad_(False)


@torch.no_grad()
def _load_backbone(model: TextClassifier, weights: dict[str, torch.Tensor]) -> None:
    """Copy the network of a language model, whose matrices may have adapters."""
    for name, parameter in model.backbone.named_parameters():
        plain = f"backbone.{name}".replace(ORIGINAL, ".weight")
        if "parametrizations" in plain:
            continue  # an adapter is new
        if plain not in weights or weights[plain].shape != parameter.shape:
            raise SettingsError(
                f"training.start_from: that run's model has no weights {plain!r} of this shape. "
                "Use the settings under 'model' of that run."
            )
        parameter.copy_(weights[plain])


def _tokenizer(
    recipe: TextClassificationRecipe, run: Run, splits: task_data.LabelledSplits, other: Path | None
) -> RunningText:
    """Return the run's tokenizer: taken over, or learned from the training texts."""
    if not (run.folder / f"{TOKENIZER}.json").is_file():
        start = recipe.training.start_from
        source = other or (Path(start) if start else None)
        if source is not None:
            tokenizer = load_tokenizer(Run.open(source).folder, TOKENIZER)
        else:
            size = sum(len(one.text) + 1 for one in splits.train)
            chunks = (one.text + "\n" for one in splits.train)
            tokenizer = learn_tokenizer(recipe.tokenizer, chunks, characters=size)
        tokenizer.save(run.folder, TOKENIZER)
    return RunningText(load_tokenizer(run.folder, TOKENIZER))


def _training_texts(
    run: Run,
    recipe: TextClassificationRecipe,
    text: RunningText,
    splits: task_data.LabelledSplits,
    told: Told,
) -> tuple[Sequence[LabelledIds], NDArray[np.integer]]:
    """Return the texts to train on as ids, of a large corpus from the run's store; and lengths."""
    texts, labels = splits.train, splits.labels
    if not isinstance(texts, StoredSequence):
        train = _encoded(recipe, text, texts, labels)
        return train, np.array([len(one.ids) for one in train], np.int64)
    folder = run.folder / "data" / "train"
    made_of = {
        "corpus": splits.fingerprint(),
        "tokenizer": fingerprint(sorted(run.folder.glob(f"{TOKENIZER}.*"))),
        "sizes": [text.size, len(labels)],
        "context": recipe.model.context,
    }
    store = open_examples(folder, made_of, rows=len(texts), say=told.say)
    if store is None:
        encode = partial(read_ids, text, context=recipe.model.context)
        store = write_labelled(folder, texts, encode, labels, made_of=made_of, watch=told.watch)
    stored = StoredLabelledIds(store)
    return stored, stored.lengths()[:, 0]


def _encoded(
    recipe: TextClassificationRecipe,
    text: RunningText,
    texts: Sequence[LabelledText],
    labels: Sequence[str],
) -> list[LabelledIds]:
    encode = partial(read_ids, text, context=recipe.model.context)
    return [LabelledIds(encode(one.text), labels.index(one.label)) for one in texts]


def _validate(model: TextClassifier, examples: Sequence[LabelledIds]) -> Validation:
    """Return loss and accuracy; the accuracy chooses, and among equals the loss."""
    nats, right = 0.0, 0
    ordered = sorted(examples, key=lambda one: len(one.ids))
    for first in range(0, len(ordered), 64):
        batch = beside(model, collate_labelled(ordered[first : first + 64]))
        logits = model(batch.tokens, batch.mask)
        nats += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
        right += int((logits.argmax(-1) == batch.labels).sum())
    loss, accuracy = nats / len(examples), right / len(examples)
    return Validation(
        metrics={"loss": loss, "accuracy": accuracy}, value=-accuracy + 1e-6 * min(loss, 1e3)
    )


def train(
    recipe: Recipe,
    out: Path,
    *,
    title: str = "",
    resume: bool = False,
    data: task_data.GivenTexts | None = None,
    display: Display | None = None,
) -> loaded_model.TrainedTextClassifier:
    """Train a text classifier, test it and write its report."""
    settings = expect(recipe, TextClassificationRecipe)
    if settings.training.start_from is not None and not resume:  # a run has all of it
        settings = begin_with(settings, Path(settings.training.start_from))
    display = SilentDisplay() if display is None else display
    if not resume:
        Run.require_free(out)
    with display.translating("Reading the data") as watcher:
        told = Told(watcher.moved, display.note)
        settings, splits = task_data.given_texts(settings, data, told)
    for note in (*splits.notes, *splits.warnings):
        display.note(note)
    return train_one(settings, out, splits=splits, title=title, resume=resume, display=display)


def train_one(
    recipe: TextClassificationRecipe,
    out: Path,
    *,
    splits: task_data.LabelledSplits,
    title: str,
    display: Display,
    resume: bool = False,
    tokenizer_of: Path | None = None,
) -> loaded_model.TrainedTextClassifier:
    """Train into a folder, showing progress, and write the report there."""
    limits = Limits(steps=_steps(recipe, splits), minutes=recipe.training.minutes)
    with training_run(out, recipe, resume=resume) as run:
        if isinstance(splits.train, StoredSequence):
            with display.waiting("Learning the tokenizer ..."):
                text = _tokenizer(recipe, run, splits, tokenizer_of)
            with display.translating("Tokenising") as watcher:
                told = Told(watcher.moved, display.note)
                _training_texts(run, recipe, text, splits, told)
        with display.training(limits, title=title, unit="texts") as observer:
            trained = train_text_classifier(
                recipe,
                run,
                splits=splits,
                tokenizer_of=tokenizer_of,
                observers=[observer],
            )
        write_report(trained, trained.report, title=recipe.title or title)
    return trained


def _steps(recipe: TextClassificationRecipe, splits: task_data.LabelledSplits) -> int:
    """Return about how many updates there will be, for the display: a token for four letters."""
    texts = splits.train
    if isinstance(texts, StoredSequence):
        letters = texts.lengths()[:, 1]  # in bytes
    else:
        letters = np.array([len(one.text) for one in texts], np.uint32)
    lengths = np.minimum(recipe.model.context, 1 + letters // 4)
    order = BatchOrder(
        np.stack([lengths, np.ones_like(lengths)], axis=1),
        token_budget=recipe.training.tokens,
        seed=1,
    )
    return recipe.training.epochs * len(order.epoch(0))
