"""Traces of each model family, from a trained run or from a recipe with fresh weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.base.errors import RegardError
from regard.base.shapes import Tensor
from regard.base.special_tokens import BEGIN, END, SPECIALS
from regard.batching.batch import padded
from regard.corpora.series import read_column
from regard.decoding.search import length_limits
from regard.models.build import build_translator
from regard.models.forecaster import build_forecaster
from regard.models.inspection import join_calls, recorded
from regard.recipes.attention_map import END_MARK
from regard.recipes.classify_nodes import load_node_classifier
from regard.recipes.forecast import LoadedForecaster, load_forecaster
from regard.recipes.loaded import LoadedTranslator, load
from regard.recipes.run import Run
from regard.recipes.series import read_series
from regard.recipes.trace import Trace, TracedArray
from regard.recipes.trace_graph import trace_node
from regard.settings.forecast import ForecastRecipe
from regard.settings.schema import Recipe, expect
from regard.settings.suggest import require_known
from regard.settings.translation import TranslationRecipe
from regard.text.tokenizers import train_tokenizer

LAST = "last"


def trace_run(folder: Path, text: str) -> Trace:
    """Trace one input through the best model of a run."""
    task = Run.open(folder).task
    require_known(task, FROM_RUN, what="task to trace:")
    return FROM_RUN[task](folder, text)


def trace_recipe(recipe: Recipe, text: str) -> Trace:
    """Trace one input through the untrained model of a recipe."""
    require_known(recipe.task, FROM_RECIPE, what="task to trace:")
    return FROM_RECIPE[recipe.task](recipe, text)


def trace_forecaster(loaded: LoadedForecaster, text: str) -> Trace:
    """Trace a window: numbers with commas or spaces between, a CSV file, or `last`.

    A file or `last` stands for the last window of the file, or of the recipe's own series.
    """
    window = torch.tensor(_window(loaded, text))[None]
    loaded.model.eval()
    with torch.no_grad(), recorded(loaded.model) as heard:
        found = loaded.model.explain(window)
    arrays = [
        TracedArray(name, FORECAST_AXES[name], value[0].numpy(), FORECAST_FORMULAS[name])
        for name, value in found.items()
    ]
    forecast = loaded.low + (loaded.high - loaded.low) * found["output"][0].numpy()
    return Trace(
        family="forecaster",
        source=text,
        output=", ".join(f"{value:.6g}" for value in forecast),
        arrays=arrays,
        labels={},
        parts=_parts(heard),
    )


def trace_translator(loaded: LoadedTranslator, text: str) -> Trace:
    """Trace a sentence: the source is read once, then the most probable symbols are written."""
    _require_text(text)
    ids = loaded.source_tokenizer.encode(text)
    source, mask = padded([ids], after=END)
    limits = length_limits(
        mask.sum(dim=1),
        ratio=loaded.recipe.decoding.max_ratio,
        extra=loaded.recipe.decoding.max_extra,
    )
    model: Any = loaded.model
    model.eval()
    with torch.no_grad(), recorded(model) as heard:
        encoded = model.encode(source, mask)
        tokens, steps, states = _write_greedily(model, encoded, limit=int(limits[0]))
    written = loaded.target_tokenizer.pieces([token for token in tokens if token != END])
    given = {
        "embedding": _heard(heard, "encoder.embedding"),
        "encoder_state": encoded.memory[0],
        "target_embedding": _heard(heard, "decoder.embedding"),
        "decoder_state": torch.stack(states) if states else None,
        "score": _ending(heard, ".score"),
        "weight": _stacked([step.weights for step in steps]),
        "context": _ending(heard, ".lookup.context"),
        "probability": torch.cat([torch.softmax(step.logits, dim=-1) for step in steps]),
    }
    arrays = [
        TracedArray(name, TRANSLATION_AXES[name], value.numpy(), TRANSLATION_FORMULAS[name])
        for name, value in given.items()
        if value is not None
    ]
    ended = tokens[-1] == END
    return Trace(
        family="translator",
        source=text,
        output=loaded.target_tokenizer.decode([token for token in tokens if token != END]),
        arrays=arrays,
        labels={
            "source": [*loaded.source_tokenizer.pieces(ids), END_MARK],
            "target": [*written, END_MARK] if ended else written,
            "vocab": _names(loaded),
        },
        parts=_parts(heard),
    )


def _write_greedily(
    model: Any, encoded: Any, *, limit: int
) -> tuple[list[int], list[Any], list[Tensor]]:
    """Write until the end mark; return the symbols, the steps and the recurrent states."""
    state = model.start(encoded)
    token = BEGIN
    tokens: list[int] = []
    steps: list[Any] = []
    states: list[Tensor] = []
    while token != END and len(tokens) < limit:
        step = model.step(torch.tensor([token]), state, with_weights=True)
        state = step.state
        token = int(step.logits[0].argmax())
        tokens.append(token)
        steps.append(step)
        if hasattr(state, "cells"):  # a Transformer's state is a cache instead
            states.append(state.cells[0][-1, 0])
    return tokens, steps, states


def _window(loaded: LoadedForecaster, text: str) -> np.ndarray:
    """Return the window that the text means, in the model's units."""
    data = loaded.recipe.data
    if text == LAST:
        return read_series(data).scaled[-data.window :].copy()
    if text.lower().endswith((".csv", ".csv.gz")):
        _, values = read_column(Path(text), data.column)
        return loaded.scale(values[-data.window :].tolist())
    try:
        numbers = [float(part) for part in re.split(r"[\s,;]+", text.strip())]
    except ValueError:
        raise RegardError(
            f"{text!r} is no window of a series: give {data.window} numbers with commas between, "
            f"a CSV file, or {LAST!r} for the last window of the recipe's own series."
        ) from None
    return loaded.scale(numbers)


def _forecaster_of(recipe: Recipe, text: str) -> Trace:
    settings = expect(recipe, ForecastRecipe)
    torch.manual_seed(settings.training.seed)
    data = settings.data
    model = build_forecaster(settings.model, window=data.window, horizon=data.horizon)
    # A recipe that has seen no series has no scale: numbers are taken as they are.
    loaded = LoadedForecaster(model=model, recipe=settings, low=0.0, high=1.0)
    return trace_forecaster(loaded, text)


def _translator_of(recipe: Recipe, text: str) -> Trace:
    """Trace an untrained translator, whose vocabulary is what the text itself has."""
    _require_text(text)
    settings = expect(recipe, TranslationRecipe)
    kind = "word" if settings.tokenizer.kind == "word" else "character"
    tokenizer = train_tokenizer([text], kind=kind)  # type: ignore[arg-type]
    torch.manual_seed(settings.training.seed)
    model = build_translator(
        settings.model, source_vocab=tokenizer.size, target_vocab=tokenizer.size
    )
    loaded = LoadedTranslator(
        model=model, source_tokenizer=tokenizer, target_tokenizer=tokenizer, recipe=settings
    )
    return trace_translator(loaded, text)


def _require_text(text: str) -> None:
    if not text.strip():
        raise RegardError("There is nothing to trace: the text is empty.")


def _names(loaded: LoadedTranslator) -> list[str]:
    """Return every entry of the target vocabulary as a person reads it."""
    tokenizer = loaded.target_tokenizer
    return [*SPECIALS, *tokenizer.pieces(list(range(len(SPECIALS), tokenizer.size)))]


def _parts(heard: Mapping[str, list[Tensor]]) -> list[TracedArray]:
    """Return what each part of the model returned, by its place in the model."""
    arrays = []
    for name, calls in heard.items():
        for number, values in enumerate(join_calls(calls), 1):
            title = f"part.{name}" if number == 1 else f"part.{name}#{number}"
            axes = ("batch", *(f"axis {place}" for place in range(1, values.dim())))
            arrays.append(TracedArray(title, axes, values.numpy()))
    return arrays


def _heard(heard: Mapping[str, list[Tensor]], name: str) -> Tensor | None:
    return join_calls(heard[name])[0][0] if name in heard else None


def _ending(heard: Mapping[str, list[Tensor]], ending: str) -> Tensor | None:
    """Return what the decoder's part of this name gave, if it has one such part."""
    names = [name for name in heard if name.startswith("decoder.") and name.endswith(ending)]
    return _heard(heard, names[0]) if len(names) == 1 else None


def _stacked(weights: list[Tensor | None]) -> Tensor | None:
    rows = [row for row in weights if row is not None]
    return torch.cat(rows) if rows else None


FORECAST_AXES = {
    "input": ("time",),
    "state": ("time", "hidden"),
    "score": ("time",),
    "alpha": ("time",),
    "alpha_state": ("time", "hidden"),
    "context": ("hidden",),
    "output": ("horizon",),
}
FORECAST_FORMULAS = {
    "input": "x_t, scaled",
    "state": "h_t = f(x_t, h_{t-1})",
    "score": "e_t = tanh(w . h_t + b_t)",
    "alpha": "alpha_t",
    "alpha_state": "alpha_t h_t",
    "context": "c = sum_t alpha_t h_t (+ b); without attention h_T",
    "output": "y = W c + b, scaled",
}
TRANSLATION_AXES = {
    "embedding": ("source", "embedding"),
    "encoder_state": ("source", "hidden"),
    "target_embedding": ("target", "embedding"),
    "decoder_state": ("target", "hidden"),
    "score": ("target", "source"),
    "weight": ("target", "source"),
    "context": ("target", "hidden"),
    "probability": ("target", "vocab"),
}
TRANSLATION_FORMULAS = {
    "embedding": "x_j",
    "encoder_state": "h_j",
    "target_embedding": "y_{i-1}",
    "decoder_state": "s_i",
    "score": "e_ij",
    "weight": "alpha_ij = softmax_j(e_ij)",
    "context": "c_i = sum_j alpha_ij h_j",
    "probability": "p(y_i | y_<i, x)",
}
FROM_RUN: dict[str, Callable[[Path, str], Trace]] = {
    "translate": lambda folder, text: trace_translator(load(folder), text),
    "forecast": lambda folder, text: trace_forecaster(load_forecaster(folder), text),
    "classify-nodes": lambda folder, text: trace_node(load_node_classifier(folder), text),
}
FROM_RECIPE: dict[str, Callable[[Recipe, str], Trace]] = {
    "translate": _translator_of,
    "forecast": _forecaster_of,
}
