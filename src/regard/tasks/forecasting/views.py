"""What there is to see of a forecaster: its series with forecasts and attention."""

from functools import partial

from regard.runs.run import Run
from regard.tasks.forecasting.data import read_windows
from regard.tasks.forecasting.model import TrainedForecaster, load
from regard.tasks.forecasting.report import draw_trained
from regard.tasks.forecasting.training import measure_forecaster
from regard.tasks.looking import LookRequest, View


def series_view(request: LookRequest) -> View:
    """Show a series with the forecasts of its test windows."""
    model = load(request.run)
    windows = read_windows(model.recipe.data)
    score = measure_forecaster(model, windows)
    trained = TrainedForecaster(Run.open(request.run), model, windows, score)
    return View(record=score.to_dict(), save=partial(draw_trained, trained))
