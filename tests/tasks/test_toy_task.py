"""The design test: a task is one module with `TASK`, and one line in the registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.base.errors import SettingsError
from regard.cli.app import main
from regard.tasks import TASKS, task_of

# All that there is to a task: it learns the mean of some numbers.
TOY = '''
"""A toy task: learn one number that is near all numbers of a list."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.base.files import fingerprint, write_file
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows
from regard.runs.run import Run, TrainedRun, open_records, open_store, training_run
from regard.settings.recipe import Recipe, Settings
from regard.tasks import Task
from regard.tasks.looking import LookRequest, View
from regard.training.checkpoint import load_weights
from regard.training.loop import fit
from regard.training.objective import Limits, Objective, Optimisation, Validation
from regard.training.losses import LossSum
from regard.training.progress import Observers


class MeanTraining(Settings):
    seed: int = Field(1, description="seed of the batch order")
    steps: int = Field(60, description="updates")


class MeanRecipe(Recipe):
    task: Literal["mean"] = "mean"
    numbers: tuple[float, ...] = ()
    training: MeanTraining = MeanTraining()


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))


@dataclass(frozen=True)
class Numbers:
    values: Tensor
    padding_share: float = 0.0

    @property
    def target_tokens(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class LoadedMean:
    model: Mean
    recipe: MeanRecipe

    @property
    def mean(self) -> float:
        return float(self.model.value.detach())


def loss(model: Mean, batch: Numbers) -> LossSum:
    error = (model.value - batch.values).square().sum()
    return LossSum(error, error.detach())


def train(recipe, out, *, title="", resume=False, data=None, display=None) -> TrainedRun:
    numbers = torch.tensor(list(data or recipe.numbers))
    everything = Numbers(numbers)
    with training_run(out, recipe, resume=resume) as run:
        model = Mean()
        order = BatchOrder([(1, 1)] * len(numbers), token_budget=4, seed=recipe.training.seed)
        store = open_store(run, keep=1, fingerprint=fingerprint([numbers.numpy()]))

        def validate() -> Validation:
            value = float(loss(model, everything).nats)
            return Validation(metrics={"loss": value}, value=value)

        fit(
            model,
            Objective(
                loss_sum=partial(loss, model),
                batches_from=lambda epoch, batch: iterate_rows(
                    order,
                    lambda rows: Numbers(numbers[rows]),
                    start=BatchPosition(epoch, batch),
                ),
                validate=validate,
            ),
            Optimisation(
                optimizer=torch.optim.SGD(model.parameters()),
                learning_rate=lambda step, done: 0.2 * (1 - done),
            ),
            limits=Limits(steps=recipe.training.steps, validate_every=20),
            store=store,
            observer=Observers(open_records(run, store)),
        )
        trained = TrainedRun(run, load(run.folder))
        report(trained, trained.report, title=title)
    return trained


def load(folder: Path) -> LoadedMean:
    run = Run.open(folder)
    model = Mean()
    load_weights(model, run.weights())
    return LoadedMean(model, run.recipe(MeanRecipe))


def report(trained: TrainedRun, path: Path, *, title: str) -> None:
    write_file(path, f"<h1>{title}</h1><p>{trained.model.mean:.3f}</p>")


def view(request: LookRequest) -> View:
    mean = load(request.run).mean
    return View(
        record={"mean": mean},
        save=lambda path: write_file(path, f"{mean:.3f}"),
        shown=lambda columns: f"The mean is {mean:.3f}.",
    )


TASK = Task(
    schema=MeanRecipe,
    train=train,
    load=load,
    build=lambda recipe: Mean(),
    report=report,
    views={"map": view},
)
'''
NUMBERS = [1.0, 2.0, 3.0, 6.0]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the module of the toy task."""
    folder = tmp_path_factory.mktemp("toy-task")
    (folder / "toy_mean.py").write_text(TOY, encoding="utf-8")
    return folder


@pytest.fixture
def recipe(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe of the toy task, which the program knows for as long as the test runs."""
    monkeypatch.syspath_prepend(str(toy))
    monkeypatch.setitem(TASKS, "mean", "toy_mean")  # the one line
    path = tmp_path / "mean.toml"
    path.write_text(f'task = "mean"\nnumbers = {NUMBERS}\n', encoding="utf-8")
    return path


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_it_is_trained_loaded_and_looked_at(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    trained = regard.train(recipe, out=out, progress=False)
    assert trained.model.mean == pytest.approx(3.0, abs=0.3)
    assert regard.load(out).mean == trained.model.mean
    assert f"<p>{trained.model.mean:.3f}</p>" in trained.report.read_text()
    capsys.readouterr()
    assert command("look", out) == 0
    assert f"The mean is {trained.model.mean:.3f}." in capsys.readouterr().out
    assert command("look", out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"mean": trained.model.mean}
    assert command("look", out, "--out", tmp_path / "mean.txt") == 0
    assert (tmp_path / "mean.txt").read_text() == f"{trained.model.mean:.3f}"
    assert command("look", out, "--curves", "--out", tmp_path / "curves.svg") == 0
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")


def test_the_command_trains_it_too(recipe: Path, tmp_path: Path) -> None:
    assert command("train", recipe, "--out", tmp_path / "command") == 0
    regard.train(recipe, out=tmp_path / "call", progress=False)
    assert regard.load(tmp_path / "command").mean == regard.load(tmp_path / "call").mean


def test_it_takes_settings_data_and_resumes(recipe: Path, tmp_path: Path) -> None:
    whole = regard.train(recipe, out=tmp_path / "whole", data=[5.0, 7.0], progress=False)
    assert whole.model.mean == pytest.approx(6.0, abs=0.3)
    for steps in (20, 60):
        parts = regard.train(
            recipe,
            out=tmp_path / "parts",
            set={"training.steps": steps},
            data=[5.0, 7.0],
            resume=steps == 60,
            progress=False,
        )
    assert parts.run.table["training"]["steps"] == 60
    with pytest.raises(SettingsError, match=r"has training\.seed = 1, not 2"):
        regard.train(
            recipe, out=tmp_path / "parts", set=["training.seed=2"], resume=True, progress=False
        )


def test_what_it_cannot_do_is_said(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    regard.train(recipe, out=tmp_path / "run", progress=False)
    assert command("look", tmp_path / "run", "--arcs") == 2
    assert "is of the task 'mean' and has no --arcs" in capsys.readouterr().err
    assert command("trace", tmp_path / "run", "text") == 2
    assert "A run of the task 'mean' has no trace yet" in capsys.readouterr().err


def test_without_its_line_it_is_unknown(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Unknown task 'mean'"):
        task_of("mean")
