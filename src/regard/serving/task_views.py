"""What the page shows of models of other tasks: a text, a window of a series, a node.

Each view is a function of a loaded model and a request; it reads nothing but the model, for what a
stranger's run says of files is not followed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, Field

from regard.base.shapes import Tensor
from regard.decoding.rules import with_temperature
from regard.serving.errors import ApiError, bad_request
from regard.serving.inspection import KEY, MODEL, bounded_text
from regard.serving.limits import ServerSettings
from regard.tasks.forecasting.data import read_series
from regard.tasks.forecasting.model import LoadedForecaster
from regard.tasks.language_modelling.model import LoadedLanguageModel
from regard.tasks.node_classification.model import LoadedGraphClassifier
from regard.tasks.text_classification.model import LoadedTextClassifier

DIGITS, PRECISE_DIGITS = 4, 6
MOST_NEIGHBOURS = 60
MOST_VALUES = 20_000  # of a window
MOST_NEW_TOKENS = 400


class LookQuestion(BaseModel):
    """A text, a window or a node, and how the model's expectations are to be shown."""

    q: str = Field(description="a text; numbers with commas between; the name of a node")
    model: str | None = MODEL
    temperature: float = Field(1.0, ge=0, le=5, description="of a language model's expectations")
    top: int = Field(8, ge=0, le=50, description="tokens expected at each step")
    api_key: str = KEY


class GenerationRequest(BaseModel):
    """A text for a language model to go on with."""

    q: str = Field(description="the beginning of a text")
    model: str | None = MODEL
    temperature: float = Field(0.8, ge=0, le=5, description="0 takes the most probable token")
    max_tokens: int = Field(60, ge=1, le=MOST_NEW_TOKENS, description="most new tokens")
    top_k: int | None = Field(None, ge=1, description="draw from the k most probable tokens")
    seed: int = Field(1, ge=0, le=2**31, description="seed of what is drawn")
    api_key: str = KEY


def task_view(loaded: Any, request: LookQuestion, settings: ServerSettings) -> dict[str, Any]:
    """Return what the page shows of a model, by its kind."""
    for kind, view in VIEWS.items():
        if isinstance(loaded, kind):
            return view(loaded, request, settings)
    raise bad_request("A translator is looked at by /attend.")


def continued(
    loaded: Any, request: GenerationRequest, settings: ServerSettings, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Return a continuation; `tell` is called with each new part of it."""
    if not isinstance(loaded, LoadedLanguageModel):
        raise bad_request("Only a language model writes on.")
    if request.q:
        bounded_text(loaded, request.q, settings)
    (found,) = loaded.generate(
        request.q,
        seed=request.seed,
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        top_k=request.top_k,
        on_text=lambda sample, part: tell(part),
    )
    return found.to_dict()


@torch.inference_mode()
def _text_view(
    loaded: LoadedLanguageModel, request: LookQuestion, settings: ServerSettings
) -> dict[str, Any]:
    """Return every head, and what the model expects at each step."""
    text, model = bounded_text(loaded, request.q, settings), loaded.model
    ids = list(loaded.read_ids(text))
    chances = _chances(
        model.project(model(torch.tensor([ids])).features[0]).float(), request.temperature
    )
    both = model.reads_both_ways
    following: list[int | None] = [*ids] if both else [*ids[1:], None]
    best = chances.topk(min(request.top, chances.shape[1]), dim=-1)
    steps = [
        {
            "token": None if token is None else loaded.text.pieces([token])[0],
            "probability": None if token is None else round(float(row[token]), PRECISE_DIGITS),
            "alternatives": [
                {"token": piece, "probability": round(value, PRECISE_DIGITS)}
                for piece, value in zip(loaded.text.pieces(numbers), values, strict=True)
            ],
        }
        for token, row, numbers, values in zip(
            following, chances, best.indices.tolist(), best.values.tolist(), strict=True
        )
    ]
    return {
        "text": text,
        "both_ways": both,
        "read": len(ids),
        "source": _tokens(loaded.text.pieces(ids)),
        "encoder": _heads(model.backbone, ids),
        "steps": steps,
    }


def _classifier_view(
    loaded: LoadedTextClassifier, request: LookQuestion, settings: ServerSettings
) -> dict[str, Any]:
    """Return the label, what each word speaks for, and every head."""
    text = bounded_text(loaded, request.q, settings)
    (found,) = loaded.classify([text])
    evidence = loaded.explain(text)
    ids = loaded.ids(text)
    return {
        "text": text,
        "label": found.label,
        "other": evidence.other,
        "probabilities": {k: round(v, PRECISE_DIGITS) for k, v in found.probabilities.items()},
        "log_odds": round(evidence.log_odds, PRECISE_DIGITS),
        "words": list(evidence.words),
        "values": [round(value, PRECISE_DIGITS) for value in evidence.values],
        "unknown": list(found.unknown),
        "source": _tokens(loaded.text.pieces(ids)),
        "encoder": _heads(loaded.model.backbone, ids),
    }


def _window_view(
    loaded: LoadedForecaster, request: LookQuestion, settings: ServerSettings
) -> dict[str, Any]:
    """Return a window, what the model attends to in it, and its forecast."""
    values = _window(loaded, request.q.strip())
    scaled = loaded.scale(values if loaded.recipe.data.inputs else values[:, 0])
    with torch.no_grad():
        loaded.model.eval()
        found = loaded.model.explain(torch.tensor(scaled)[None])
    low, high = loaded.low, loaded.high
    forecast = low + (high - low) * found["output"][0].numpy()
    weights, scores = found.get("alpha"), found.get("score")
    return {
        "names": [loaded.recipe.data.column or "series", *loaded.recipe.data.inputs],
        "window": values.tolist(),
        "forecast": forecast.tolist(),
        "weights": None if weights is None else weights[0].flatten().tolist(),
        "scores": None if scores is None else scores[0].flatten().tolist(),
    }


def _window(loaded: LoadedForecaster, text: str) -> np.ndarray:
    """Return the rows of a window: the numbers of the text, or one of the built-in series."""
    data = loaded.recipe.data
    columns = 1 + len(data.inputs)
    if data.built_in and text in ("first", "last"):
        series = read_series(data)[0].read
        part = series[: data.window] if text == "first" else series[-data.window :]
        return np.asarray(loaded.low + (loaded.high - loaded.low) * part)[:, None]
    parts = [part for part in re.split(r"[\s,;]+", text[: MOST_VALUES * 30]) if part]
    if len(parts) > MOST_VALUES:
        raise ApiError(413, f"The window has {len(parts)} numbers, more than {MOST_VALUES}.")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    wanted = data.window * columns
    if len(numbers) != wanted or not all(math.isfinite(number) for number in numbers):
        of = f" ({data.window} rows of {columns})" if columns > 1 else ""
        raise bad_request(
            f"This model reads {wanted} numbers{of}, with commas or spaces between; "
            f"there are {len(numbers)}."
        )
    return np.array(numbers).reshape(data.window, columns)


def _node_view(
    loaded: LoadedGraphClassifier, request: LookQuestion, settings: ServerSettings
) -> dict[str, Any]:
    """Return a node's classes, and its neighbours with the weights of every layer and head."""
    graph, name = loaded.graph, request.q.strip()
    if not name:
        raise bad_request("There is no node: q is empty.")
    node = graph.find(name[:1_000])
    chances = loaded.output.logits[node].softmax(0)
    network = loaded.recipe.model
    attends = network.layer == "attention"
    maps = [loaded.attention(number) for number in range(network.layers if attends else 0)]
    edges = loaded.tensors.edges
    first, last = edges.starts[node : node + 2].tolist()
    near = edges.source[first:last].tolist()
    mean = maps[0].weights[first:last].mean(axis=1) if maps else np.zeros(len(near))
    order = np.argsort(-mean, kind="stable")[:MOST_NEIGHBOURS]
    neighbours = [
        {
            "name": graph.name(near[place]),
            "label": _label(loaded, near[place]),
            "itself": near[place] == node,
            "weights": [
                np.round(each.weights[first + place].astype(float), DIGITS).tolist()
                for each in maps
            ],
        }
        for place in order.tolist()
    ]
    return {
        "name": graph.name(node),
        "nodes": graph.nodes,
        "classes": list(graph.classes),
        "probabilities": dict(zip(graph.classes, map(float, chances), strict=True)),
        "label": _label(loaded, node),
        "known": _known(loaded, node),
        "degree": len(near),
        "heads": [each.weights.shape[1] for each in maps],
        "neighbours": neighbours,
    }


def _label(loaded: LoadedGraphClassifier, node: int) -> str:
    """Return the class that the model takes a node for."""
    return str(loaded.graph.classes[int(loaded.predictions[node])])


def _known(loaded: LoadedGraphClassifier, node: int) -> str | None:
    """Return the class of a node in the data, if it has one."""
    label = int(loaded.graph.labels[node])
    return str(loaded.graph.classes[label]) if label >= 0 else None


def _chances(logits: Tensor, temperature: float) -> Tensor:
    """Return probabilities at a temperature; at 0 the most probable token has all."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    return with_temperature(logits, temperature).softmax(dim=-1)


def _tokens(pieces: Sequence[str]) -> dict[str, Any]:
    """Return a text in tokens, each of which is shown by itself."""
    return {"tokens": list(pieces), "words": list(range(len(pieces))), "word_texts": list(pieces)}


@torch.inference_mode()
def _heads(backbone: Any, ids: Sequence[int]) -> Any:
    """Return the weights of every layer and head; None where there are none."""
    if not hasattr(backbone, "look"):
        return None
    weights = backbone.look(torch.tensor([list(ids)]))[:, 0]
    return np.round(weights.numpy().astype(np.float64), DIGITS).tolist()


VIEWS: dict[type[Any], Callable[[Any, LookQuestion, ServerSettings], dict[str, Any]]] = {
    LoadedLanguageModel: _text_view,
    LoadedTextClassifier: _classifier_view,
    LoadedForecaster: _window_view,
    LoadedGraphClassifier: _node_view,
}
