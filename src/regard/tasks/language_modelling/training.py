"""Training a language model on running text, or on the answers to prompts."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.base.files import write_file
from regard.batching.batch import split_rows
from regard.compute.device import placed, processes_for
from regard.models.language_model import build_language_model
from regard.models.pretrained import add_adapters, freeze, load_extended, merged_weights
from regard.runs.display import Display, SilentDisplay
from regard.runs.film import FILM, FilmLog
from regard.runs.report import EXAMPLE_COUNT, keep_inputs
from regard.runs.run import Run, limits_of, open_records, open_store, training_run
from regard.settings.recipe import Recipe, expect
from regard.tasks.language_modelling import data as task_data
from regard.tasks.language_modelling import model as loaded_model
from regard.tasks.language_modelling.answers import AnswerData, prepare_answers
from regard.tasks.language_modelling.objective import loss_of_recipe, validated
from regard.tasks.language_modelling.report import write_report
from regard.tasks.language_modelling.settings import LanguageModelRecipe, PretrainingSettings
from regard.training.averages import MovingAverage
from regard.training.checkpoint import read_state, read_tensors
from regard.training.loop import fit
from regard.training.objective import Objective, Optimisation
from regard.training.optimisers import learning_rate
from regard.training.progress import Observer, Observers, Progress, read_metrics
from regard.training.update import Sharing, UpdateResult


def train_language_model(
    recipe: LanguageModelRecipe,
    run: Run,
    *,
    data: task_data.TextData | AnswerData | None = None,
    observers: Sequence[Observer] = (),
) -> loaded_model.TrainedLanguageModel:
    """Train until the recipe's limits, from the newest checkpoint of the run if there is one."""
    data = data or prepare(run, recipe)
    settings = recipe.training
    torch.manual_seed(settings.seed)
    model = build_language_model(recipe.model, vocab=data.text.size)
    if settings.start_from is not None and run.last_update is None:
        weights = read_tensors(Run.open(Path(settings.start_from)).weights())
        load_extended(model, merged_weights(weights))
    if settings.adapter_rank:
        add_adapters(model, rank=settings.adapter_rank)
    freeze(placed(model), settings.freeze)
    store = open_store(run, keep=settings.keep, fingerprint=data.fingerprint())
    records = open_records(run, store, tensorboard=settings.tensorboard)
    loaded = loaded_model.LoadedLanguageModel(model=model, text=data.text, recipe=recipe)
    film = _film_log(run, loaded, data) if settings.film else []
    loss_of = loss_of_recipe(recipe, data.text)
    objective = Objective[Any](
        loss_sum=partial(loss_of, model),
        batches_from=data.batches(recipe),
        validate=partial(
            validated, data, model, recipe, loss_of=loss_of, most=settings.validate_tokens
        ),
        validates_together=True,
        read=partial(data.facts, recipe),
    )
    optimisation = Optimisation[Any](
        optimizer=optimizer_of(model, settings),
        learning_rate=partial(rate_of, settings=settings),
        clip=settings.clip,
        accumulate=settings.accumulate,
        moving=MovingAverage(model, decay=settings.ema) if settings.ema else None,
        sharing=Sharing(_processes(recipe, model, data), split_rows),
    )
    fit(
        model,
        objective,
        optimisation,
        limits=limits_of(settings),
        store=store,
        observer=Observers(
            [*records, SampleLog(run.folder / loaded_model.SAMPLES, loaded), *film, *observers]
        ),
    )
    best = loaded_model.load(run.folder)
    metrics = dict(read_state(run.folder / "best")["metrics"])
    if settings.validate_tokens is not None and data.validation_tokens > settings.validate_tokens:
        with torch.inference_mode():
            metrics = dict(validated(data, best.model, recipe, loss_of=loss_of).metrics)
    return loaded_model.TrainedLanguageModel(run, best, metrics)


def _film_log(
    run: Run,
    loaded: loaded_model.LoadedLanguageModel,
    data: task_data.TextData | AnswerData,
) -> list[FilmLog]:
    """Return what films every head on the beginning of the validation; nothing without heads."""
    if not hasattr(loaded.model.backbone, "look") or not len(data.valid):
        return []
    if isinstance(data, task_data.TextData):
        length = min(FILMED_TOKENS, len(data.valid))
        first = data.valid.rows(np.array([0]), length=length)[0].tolist()
    else:
        first = list(data.valid[0].ids)[:FILMED_TOKENS]
    text = loaded.text.decode(first)

    def frame() -> list[dict[str, Any]]:
        found = loaded.heads(text)
        weights = found.weights.numpy().astype(float).round(4)
        return [{"text": text, "tokens": list(found.pieces), "heads": weights.tolist()}]

    return [FilmLog(run.folder / FILM, loaded.model, frame)]


def _processes(
    recipe: LanguageModelRecipe, model: nn.Module, data: task_data.TextData | AnswerData
) -> int:
    """Return among how many processes windows are shared out; answers are too few for that."""
    if not isinstance(data, task_data.TextData):
        return 1
    tokens = recipe.training.batch_size * recipe.model.context
    return processes_for(model, wanted=recipe.training.processes, tokens=tokens)


def prepare(
    run: Run, recipe: LanguageModelRecipe, texts: task_data.Texts | None = None
) -> task_data.TextData | AnswerData:
    """Return the data of a recipe, or texts from memory: running text, or prompts with answers."""
    if recipe.data.pairs:
        return prepare_answers(run, recipe)
    return task_data.prepare_text(run, recipe, texts)


def optimizer_of(model: nn.Module, settings: PretrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW that pulls matrices towards zero; biases and norms have a place of their own."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        betas=(0.9, settings.beta2),
        fused=True,
    )


def rate_of(step: int, done: float, *, settings: PretrainingSettings) -> float:
    """Return the learning rate of an update: the schedule, set to end at the lowest rate."""
    peak = settings.learning_rate
    at = partial(learning_rate, step, schedule=settings.schedule, peak=peak, warmup=settings.warmup)
    if step < settings.warmup or (end := at(1.0)) == peak:
        return at(done)
    share = (at(done) - end) / (peak - end)  # 1 at the peak, 0 at the end
    return peak * (settings.lowest_rate + (1 - settings.lowest_rate) * share)


BEGINNING_WORDS = 6
FILMED_TOKENS = 20


class SampleLog:
    """Writes what the model says at each validation, a line of JSON a sample."""

    def __init__(self, path: Path, model: loaded_model.LoadedLanguageModel):
        self._path = path
        self._model = model

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Do nothing at an update."""

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Write a sample in place of any that was written after this step before a crash."""
        settings = self._model.recipe.decoding
        if not settings.max_tokens or self._model.model.reads_both_ways:
            return
        if not settings.prompt and not self._model.text.opening:
            return  # a text of one line has no line ends to begin after
        rows = [row for row in read_metrics(self._path) if row["step"] < progress.step]
        (found,) = self._model.generate(settings.prompt, seed=progress.step)
        rows.append({"step": progress.step, **found.to_dict()})
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_file(self._path, "".join(lines))

    def finished(self, progress: Progress, reason: str) -> None:
        """Do nothing at the end."""

    def noted(self, line: str) -> None:
        """Do nothing with a note."""


def _keep_beginnings(run: Run) -> None:
    """Keep the first words of what the model has written, for the page to begin with."""
    rows = read_metrics(run.folder / loaded_model.SAMPLES)[-EXAMPLE_COUNT:]
    texts = (f"{row['prompt']}{row['text']}" for row in rows)
    keep_inputs(run.folder, (" ".join(text.split()[:BEGINNING_WORDS]) for text in texts))


def train(
    recipe: Recipe,
    out: Path,
    *,
    title: str = "",
    resume: bool = False,
    data: task_data.GivenText | None = None,
    display: Display | None = None,
) -> loaded_model.TrainedLanguageModel:
    """Train a language model, and report how well it predicts and what it writes."""
    display = SilentDisplay() if display is None else display
    settings = expect(recipe, LanguageModelRecipe)
    settings, texts = task_data.given_text(settings, data)
    if note := task_data.held_out_note(settings.data, texts):
        display.note(note)
    with training_run(out, settings, resume=resume) as run:
        with display.waiting("Reading the text ..."):
            prepared = prepare(run, settings, texts)
        with display.training(limits_of(settings.training), title=title) as observer:
            trained = train_language_model(settings, run, data=prepared, observers=[observer])
        _keep_beginnings(run)
        with display.waiting("Writing the report ..."):
            write_report(trained, trained.report, title=settings.title or title)
    return trained
