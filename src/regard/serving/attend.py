"""A translation seen from inside: its symbols, weights, steps, alternatives and beam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.base.protocols import Tokenizer
from regard.base.results import Hypothesis
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.batching.batch import Example, padded
from regard.decoding.search import LengthPenalty
from regard.engines.engine import attention_over
from regard.recipes.attention_map import END_MARK
from regard.recipes.forced import forced_log_probabilities
from regard.recipes.loaded import LoadedTranslator
from regard.recipes.unknown_words import with_source_words
from regard.serving.question import Task

DIGITS = 4
# Further away, JSON is longer than its digits are worth.
PRECISE_DIGITS = 6


class Maps(NamedTuple):
    """Weights of one sentence pair; None where the model has no such part."""

    cross: Float[Tensor, "layers heads target source"] | None
    encoder: Float[Tensor, "layers heads source source"] | None
    decoder: Float[Tensor, "layers heads target target"] | None
    mean: Float[Tensor, "target source"] | None


def look(translator: LoadedTranslator, name: str, task: Task) -> dict[str, Any]:
    """Return everything that there is to see, as plain values for JSON."""
    hypotheses = _search(translator, task)
    best = hypotheses[0]
    maps = _maps(translator, task.source, best.tokens)
    steps = _steps(translator, task, best.tokens)
    text = _text(translator, task, best, maps.mean)
    return {
        "model": name,
        "text": text,
        "score": round(best.score, PRECISE_DIGITS),
        "source": _side(translator.source_tokenizer, task.source, task.text),
        "target": {
            **_side(translator.target_tokenizer, best.tokens, text),
            "ids": list(best.tokens),
            "probabilities": [step["probability"] for step in steps],
        },
        "cross": _rounded(maps.cross),
        "encoder": _rounded(maps.encoder),
        "decoder": _rounded(maps.decoder),
        "mean": _rounded(maps.mean),
        "steps": steps,
        "beams": _beams(translator, task, hypotheses),
    }


def _search(translator: LoadedTranslator, task: Task) -> list[Hypothesis]:
    """Return the beam's outputs, best first, or the one that was given as a whole."""
    if task.ended:
        return [_given(translator, task)]
    constraints = [task.constraints] if task.constraints else None
    found = translator.engine.search(
        [task.source], task.settings, n_best=task.settings.beam, constraints=constraints
    )
    return found[0]


def _given(translator: LoadedTranslator, task: Task) -> Hypothesis:
    tokens = task.constraints.prefix
    values = forced_log_probabilities(translator.model, [Example(task.source, list(tokens))])[0]
    penalty = LengthPenalty(task.settings.length_penalty_kind, task.settings.length_penalty)
    total = float(values.sum())
    return Hypothesis(
        tokens, total, total / float(penalty.divisor(torch.tensor(len(values)))), None
    )


@torch.inference_mode()
def _maps(translator: LoadedTranslator, source: Sequence[int], target: Sequence[int]) -> Maps:
    if not translator.attends:
        return Maps(None, None, None, None)
    mean = attention_over(translator.model, [source], [target])[0]
    if not hasattr(translator.model.decoder, "look"):
        return Maps(mean[None, None], None, None, mean)
    ids, mask = padded([source], after=END)
    heads = translator.model.head_maps(ids, mask, padded([target], before=BEGIN)[0])
    return Maps(
        heads.across[:, 0],
        None if heads.encoder is None else heads.encoder[:, 0],
        None if heads.decoder is None else heads.decoder[:, 0],
        mean,
    )


@torch.inference_mode()
def _steps(translator: LoadedTranslator, task: Task, target: Sequence[int]) -> list[dict[str, Any]]:
    """Return for each symbol, end mark included, how probable it was and what else was."""
    model = translator.model
    ids, mask = padded([task.source], after=END)
    features = model(ids, mask, padded([target], before=BEGIN)[0]).features[0]
    values = model.project(features).float().softmax(dim=-1)  # [target, vocab]
    chosen = [*target, END]
    probabilities = values[range(len(chosen)), chosen].tolist()
    others = values.clone()
    others[:, [PAD, BEGIN]] = -1.0  # which never come
    others[range(len(chosen)), chosen] = -1.0
    best = others.topk(min(task.top, values.shape[1] - 3), dim=1)
    return [
        {
            **_symbol(translator.target_tokenizer, number, probability),
            "alternatives": [
                _symbol(translator.target_tokenizer, other, value, with_text=True)
                for other, value in zip(numbers, some, strict=True)
            ],
        }
        for number, probability, numbers, some in zip(
            chosen, probabilities, best.indices.tolist(), best.values.tolist(), strict=True
        )
    ]


def _symbol(
    tokenizer: Tokenizer, number: int, probability: float, *, with_text: bool = False
) -> dict[str, Any]:
    piece = END_MARK if number == END else tokenizer.pieces([number])[0]
    text = {"text": tokenizer.decode([number])} if with_text else {}
    return {"token": piece, "id": number, **text, "probability": round(probability, PRECISE_DIGITS)}


def _text(translator: LoadedTranslator, task: Task, best: Hypothesis, mean: Tensor | None) -> str:
    text = translator.target_tokenizer.decode(best.tokens)
    if not task.settings.replace_unknown or mean is None:
        return text
    seen = translator.attention_map(task.source, best.tokens, mean)
    return with_source_words(text, best.tokens, source=task.text, attention=seen)


def _side(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> dict[str, Any]:
    """Return the symbols of one side, the end mark last, and the words that they belong to."""
    return {
        "tokens": [*tokenizer.pieces(ids), END_MARK],
        "words": [*tokenizer.word_of_piece(ids), -1],
        "word_texts": text.split(),
    }


def _beams(
    translator: LoadedTranslator, task: Task, hypotheses: Sequence[Hypothesis]
) -> list[dict[str, Any]]:
    """Return all outputs of the search with the log-probability of each symbol."""
    tokenizer = translator.target_tokenizer
    examples = [Example(task.source, list(found.tokens)) for found in hypotheses]
    values = forced_log_probabilities(translator.model, examples)
    return [
        {
            "text": tokenizer.decode(found.tokens),
            "score": round(found.score, PRECISE_DIGITS),
            "ids": list(found.tokens),
            "tokens": [*tokenizer.pieces(found.tokens), END_MARK],
            "log_probabilities": [round(value, DIGITS) for value in some.tolist()],
        }
        for found, some in zip(hypotheses, values, strict=True)
    ]


def _rounded(weights: Tensor | None) -> Any:
    if weights is None:
        return None
    return np.round(weights.numpy().astype(np.float64), DIGITS).tolist()
