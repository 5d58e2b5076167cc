"""Forecasting: the next values of a series of numbers."""

from regard.tasks import Task, part
from regard.tasks.forecasting.settings import ForecastRecipe

TASK = Task(
    schema=ForecastRecipe,
    train=part("regard.tasks.forecasting.training:train"),
    load=part("regard.tasks.forecasting.model:load"),
    build=part("regard.tasks.forecasting.model:build"),
    report=part("regard.tasks.forecasting.report:write_report"),
    views={
        "map": part("regard.tasks.forecasting.views:series_view"),
    },
    trace=part("regard.tasks.forecasting.trace:trace_forecaster"),
    untrained=part("regard.tasks.forecasting.trace:untrained"),
)
