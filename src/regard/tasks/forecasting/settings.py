"""The recipe of a forecaster: series, model and training."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from regard.settings.models import ForecasterSettings
from regard.settings.recipe import Recipe, Settings


class SeriesSettings(Settings):
    """Where the series comes from and how it is cut into windows."""

    file: str | None = Field(None, description="CSV file; none: the built-in Fibonacci series")
    column: str | None = Field(None, description="column of the file; none: its only column")
    terms: int = Field(1_200, ge=2, le=1_400, description="length of the built-in series")
    window: int = Field(20, ge=1, description="number of values the model reads")
    horizon: int = Field(1, ge=1, description="number of values it forecasts")
    train_share: float = Field(0.7, gt=0, lt=1, description="share of windows to train on")
    valid_share: float = Field(
        0.1, ge=0, lt=1, description="share of those to validate on; 0: the training windows"
    )
    split: Literal["time", "shuffled"] = Field(
        "time", description="test on the end of the series, or on random windows"
    )
    seed: int = Field(1, ge=0, description="seed of a shuffled split")
    from_memory: bool = Field(False, description="the series was given in Python, not in a file")


class ForecastTrainingSettings(Settings):
    """How the forecaster is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of weights, dropout and batch order")
    steps: int = Field(3_000, ge=1, description="largest number of updates")
    minutes: float | None = Field(None, gt=0, description="stop after this many minutes")
    batch_size: int = Field(32, ge=1, description="windows per batch")
    learning_rate: float = Field(5e-3, gt=0, description="peak learning rate, after the warm-up")
    schedule: Literal["constant", "inverse-sqrt", "linear", "cosine"] = Field(
        "cosine", description="how the learning rate decays after the warm-up"
    )
    warmup: int = Field(50, ge=0, description="updates of linear warm-up to the full learning rate")
    clip: float = Field(1.0, gt=0, description="clip the gradient to this norm")
    validate_every: int = Field(250, ge=1, description="validate after this many updates")
    checkpoint_every: int = Field(
        1_000, ge=1, description="write a checkpoint after this many updates"
    )
    keep: int = Field(1, ge=1, description="number of newest checkpoints to keep")
    patience: int | None = Field(
        None, ge=1, description="stop after this many validations without improvement"
    )


class ForecastRecipe(Recipe):
    """Everything that decides a training of a forecaster."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        **Recipe.kept_on_resume,
        "training.batch_size": "decides which windows form a batch",
    }

    task: Literal["forecast"] = "forecast"
    data: SeriesSettings = SeriesSettings()  # type: ignore[call-arg]
    model: ForecasterSettings = ForecasterSettings()  # type: ignore[call-arg]
    training: ForecastTrainingSettings = ForecastTrainingSettings()  # type: ignore[call-arg]
