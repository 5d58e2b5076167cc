"""The trace of a window through a forecaster: every value, with its formula."""

import re
from pathlib import Path

import numpy as np
import torch

from regard.base.errors import RegardError
from regard.compute.device import beside, placed
from regard.models.forecaster import Forecaster
from regard.models.inspection import Trace, TracedArray, recorded, traced_parts
from regard.models.layer_traces import gate_arrays
from regard.tasks.forecasting.data import read_series, read_table
from regard.tasks.forecasting.model import LoadedForecaster, build
from regard.tasks.forecasting.settings import ForecastRecipe

FIRST, LAST = "first", "last"


def trace_forecaster(loaded: LoadedForecaster, text: str) -> Trace:
    """Trace a window: numbers with commas or spaces between, a CSV file, or a place in the series.

    A file stands for its last window; `first`, `last` and `@40` for windows of the recipe's own
    series: the first one, the last one, and the one that begins at value 40, counted from 0.
    """
    window = beside(loaded.model, torch.tensor(_window(loaded, text))[None])
    loaded.model.eval()
    with torch.no_grad(), recorded(loaded.model) as outputs:
        found = loaded.model.explain(window)
    formulas = forecast_formulas(loaded.model)
    axes = {**FORECAST_AXES, "input": ("time", "input")[: window.dim() - 1]}
    arrays = [
        TracedArray(name, axes[name], value[0].cpu().numpy(), formulas[name])
        for name, value in found.items()
    ]
    forecast = loaded.low + (loaded.high - loaded.low) * found["output"][0].cpu().numpy()
    return Trace(
        family="forecaster",
        source=text,
        output=", ".join(f"{value:.6g}" for value in forecast),
        arrays=arrays,
        labels={},
        parts=traced_parts(outputs),
        inside=gate_arrays(
            loaded.model.rnn,
            (window if window.dim() == 3 else window[:, :, None])[0],
            loaded.model.rnn.zero_state(1),
            name="rnn",
            axis="time",
        ),
    )


def _window(loaded: LoadedForecaster, text: str) -> np.ndarray:
    """Return the window that the text means, in the model's units."""
    data = loaded.recipe.data
    if text in (FIRST, LAST) or re.fullmatch(r"@[0-9]{1,9}", text):
        series = read_series(data)[0].read
        last = len(series) - data.window
        start = {FIRST: 0, LAST: last}.get(text, int(text[1:]) if text[0] == "@" else 0)
        if start > last:
            raise RegardError(
                f"There is no window at {start}: the series has {len(series)} values, and the last "
                f"window begins at {last}."
            )
        return series[start : start + data.window].copy()
    if text.lower().endswith((".csv", ".csv.gz")):
        values = read_table(Path(text), data).values[-data.window :]
        return loaded.scale(values if data.inputs else values[:, 0])
    try:
        numbers = [float(part) for part in re.split(r"[\s,;]+", text.strip())]
    except ValueError:
        raise RegardError(
            f"{text!r} is no window of a series: give {data.window} numbers with commas between, "
            f"a CSV file, or 'first', {LAST!r} or '@40' for a window of the recipe's own series."
        ) from None
    return loaded.scale(numbers)


def untrained(recipe: ForecastRecipe, text: str) -> LoadedForecaster:
    """Return an untrained forecaster; it has seen no series, so numbers are taken as they are."""
    torch.manual_seed(recipe.training.seed)
    inputs = [(0.0, 1.0)] * len(recipe.data.inputs)
    return LoadedForecaster(
        model=placed(build(recipe)), recipe=recipe, low=0.0, high=1.0, inputs=inputs
    )


FORECAST_AXES = {
    "input": ("time",),
    "state": ("time", "hidden"),
    "score": ("time",),
    "alpha": ("time",),
    "alpha_state": ("time", "hidden"),
    "bias": ("hidden",),
    "context": ("hidden",),
    "output": ("horizon",),
}


def forecast_formulas(model: Forecaster) -> dict[str, str]:
    """Return the formula of every value on the way through this model."""
    pooling = model.attention
    return {
        "bias": "b, the bias of the attention layer",
        "input": "x_t, scaled",
        "state": "h_t = f(x_t, h_{t-1})",
        "score": "e_t = tanh(w . h_t + b_t)",
        "alpha": "" if pooling is None else pooling.weight_formula,
        "alpha_state": "alpha_t h_t",
        "context": "c = h_T" if pooling is None else pooling.context_formula,
        "output": f"y = {'tanh(W c + b)' if model.squash else 'W c + b'}, scaled",
    }
