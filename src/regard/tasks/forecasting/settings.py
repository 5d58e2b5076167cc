"""The recipe of a forecaster: series, model and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from regard.settings.models import ForecasterSettings
from regard.settings.recipe import Recipe, Settings


class SeriesSettings(Settings):
    """Where the series comes from and how it is cut into windows."""

    file: str | None = Field(None, description="CSV file; without one the built-in series is used")
    column: str | None = Field(None, description="its column; may be left out if there is but one")
    terms: int = Field(1_200, ge=2, le=1_400, description="terms of the built-in Fibonacci series")
    window: int = Field(20, ge=1, description="values that the model reads")
    horizon: int = Field(1, ge=1, description="values after them that it forecasts")
    train_share: float = Field(0.7, gt=0, lt=1, description="share of windows to train on")
    valid_share: float = Field(
        0.1, ge=0, lt=1, description="share of those that chooses the best model; 0 = none"
    )
    split: Literal["time", "shuffled"] = Field(
        "time", description="test on the end of the series, or on windows drawn at random"
    )
    seed: int = Field(1, ge=0, description="draws the windows of a shuffled split")
    from_memory: bool = Field(False, description="the series was given in Python, not in a file")


class ForecastTrainingSettings(Settings):
    """How the forecaster is trained, and when to stop."""

    seed: int = Field(1, ge=0)
    steps: int = Field(3_000, ge=1, description="most updates")
    minutes: float | None = Field(None, gt=0, description="most minutes of training")
    batch_size: int = Field(32, ge=1, description="windows a batch")
    learning_rate: float = Field(5e-3, gt=0)
    schedule: Literal["constant", "inverse-sqrt", "linear", "cosine"] = "cosine"
    warmup: int = Field(50, ge=0, description="updates until the full learning rate")
    clip: float = Field(1.0, gt=0, description="largest gradient norm")
    validate_every: int = Field(250, ge=1, description="updates between validations")
    checkpoint_every: int = Field(1_000, ge=1, description="updates between checkpoints")
    keep: int = Field(1, ge=1, description="newest checkpoints kept")
    patience: int | None = Field(None, ge=1, description="validations without progress until stop")


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
