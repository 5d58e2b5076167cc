"""The recipe of a forecaster: series, model and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from regard.settings.models import ForecasterSettings
from regard.settings.recipe import File, Recipe, Settings


class SeriesSettings(Settings):
    """Where the series comes from and how it is cut into windows."""

    asks_for_built_in: ClassVar[str] = "terms"
    """The key that asks for the built-in data when it is set."""

    file: File = Field(None, description="table with the series: CSV, TSV, JSONL or Parquet")
    column: str | None = Field(None, description="column of the file; none: its only column")
    inputs: tuple[str, ...] = Field((), description="further columns that the model reads")
    dates: str | None = Field(None, description="column of dates; none: found by its cells")
    decimal: Literal["auto", "point", "comma"] = Field(
        "auto", description="decimal mark of the numbers; auto: the one that they show"
    )
    gaps: Literal["refuse", "interpolate", "drop"] = Field(
        "refuse", description="what to do with empty cells"
    )
    season: int | None = Field(
        None, ge=0, description="steps of a season, for the baseline; none: found; 0: no season"
    )
    built_in: bool = Field(False, description="use the built-in series, the Fibonacci numbers")
    terms: int = Field(1_200, ge=2, le=1_400, description="length of the built-in series")
    window: int = Field(20, ge=1, le=100_000, description="number of values the model reads")
    horizon: int = Field(1, ge=1, le=100_000, description="number of values it forecasts")
    train_share: float = Field(0.7, gt=0, lt=1, description="share of windows to train on")
    valid_share: float = Field(
        0.1, ge=0, lt=1, description="share of those to validate on; 0: the training windows"
    )
    split: Literal["time", "shuffled"] = Field(
        "time", description="test on the end of the series, or on random windows"
    )
    seed: int = Field(1, ge=0, description="seed of a shuffled split")
    from_memory: bool = Field(False, description="the series was given in Python, not in a file")

    @model_validator(mode="before")
    @classmethod
    def _asked(cls, table: Any) -> Any:
        """Take the length of the built-in series as a request for it, unless there is another."""
        if isinstance(table, Mapping) and "terms" in table and "built_in" not in table:
            return {**table, "built_in": not (table.get("file") or table.get("from_memory"))}
        return table

    @model_validator(mode="after")
    def _one_origin(self) -> SeriesSettings:
        if self.built_in and (self.file or self.from_memory):
            raise ValueError("built_in and file exclude each other; choose one")
        return self


class ForecastTrainingSettings(Settings):
    """How the forecaster is trained, and when to stop."""

    seed: int = Field(1, ge=0, description="seed of weights, dropout and batch order")
    seeds: int = Field(
        1,
        ge=1,
        description="trainings to compare, each with the next seed for weights and split, and the "
        "same without attention; the run keeps the first",
    )
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
    checkpoint_minutes: float = Field(
        5.0, gt=0, description="write a checkpoint also after this many minutes without one"
    )
    max_skipped: int = Field(
        10, ge=1, description="stop after this many updates in a row without a finite gradient"
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
