"""Forecasting: the next values of a series of numbers."""

from regard.tasks import LazyFunction, Task
from regard.tasks.forecasting.settings import ForecastRecipe

TASK = Task(
    schema=ForecastRecipe,
    train=LazyFunction("regard.tasks.forecasting.training:train"),
    load=LazyFunction("regard.tasks.forecasting.model:load"),
    build=LazyFunction("regard.tasks.forecasting.model:build"),
    report=LazyFunction("regard.tasks.forecasting.report:write_report"),
    views={
        "map": LazyFunction("regard.tasks.forecasting.views:series_view"),
    },
    trace=LazyFunction("regard.tasks.forecasting.trace:trace_forecaster"),
    untrained=LazyFunction("regard.tasks.forecasting.trace:untrained"),
)
