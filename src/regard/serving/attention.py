"""Attention requests: what they contain, and the answer that the page draws."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import BaseModel, Field

from regard.base.protocols import Tokenizer
from regard.base.results import Hypothesis
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import BEGIN, END, PAD, UNKNOWN
from regard.batching.batch import Example, padded
from regard.compute.device import beside
from regard.decoding.constraints.phrases import Constraints
from regard.decoding.search import LengthPenalty
from regard.engines.torch_engine import attention_over
from regard.serving.errors import ApiError, bad_request
from regard.settings.decoding import DecodingSettings
from regard.tasks.attention import END_MARK
from regard.tasks.translation.constraints import TextConstraints
from regard.tasks.translation.model import LoadedTranslator, SourceSentence
from regard.tasks.translation.results import forced_log_probabilities, with_source_words
from regard.text.tokenizers import unknown_parts


class AttentionRequest(BaseModel):
    """A sentence to translate, with the attention, steps and beam of its translation."""

    q: str = Field(description="a sentence")
    model: str | None = Field(None, description="name of a model, as /models lists them")
    prefix: str = Field("", description="text that the translation begins with")
    prefix_tokens: list[int] | None = Field(
        None, description="the same as token ids; the last may be the end token"
    )
    beam: int | None = Field(None, ge=1, description="width of the search")
    top: int = Field(8, ge=0, le=50, description="alternatives at each step")
    api_key: str = Field("", description="where the server requires one")


class TextRequest(BaseModel):
    """A text of any number of sentences and lines."""

    q: str = Field(description="a text")
    model: str | None = Field(None, description="name of a model, as /models lists them")
    api_key: str = Field("", description="where the server requires one")


class EncodedRequest(NamedTuple):
    """An attention request in the tokens of a model."""

    text: str
    source: list[int]
    settings: DecodingSettings
    constraints: Constraints
    ended: bool
    """Whether the prefix is a complete translation, end token included."""
    top: int


def encode_request(
    translator: LoadedTranslator, request: AttentionRequest, *, max_tokens: int, max_beam: int
) -> EncodedRequest:
    """Return the request in tokens, or refuse one that the model cannot answer."""
    text = " ".join(request.q.split())
    if not text:
        raise bad_request("There is nothing to translate: q is empty.")
    source = translator.source_tokenizer.encode(text)
    if len(source) > max_tokens:
        raise ApiError(
            413,
            f"The sentence has {len(source)} tokens; attention is shown for at most {max_tokens}.",
        )
    if request.beam is not None and request.beam > max_beam:
        raise bad_request(f"beam ({request.beam}) must not exceed {max_beam}.")
    given = request.prefix_tokens
    ended = given is not None and given[-1:] == [END]
    settings = _settings(translator, request.beam)
    prefix = TextConstraints(prefix=request.prefix if given is None else "")
    found = translator.all_constraints([SourceSentence(text, source, prefix)], settings)
    constraints = found[0] if found else Constraints()
    if given is not None:
        ids = given[:-1] if ended else given
        require_tokens(ids, translator.target_tokenizer.size, most=4 * max_tokens)
        constraints = replace(constraints, prefix=tuple(ids))
    return EncodedRequest(text, source, settings, constraints, ended, request.top)


def _settings(translator: LoadedTranslator, beam: int | None) -> DecodingSettings:
    """Return the recipe's beam search; a recipe that samples gets the default one."""
    if translator.recipe.decoding.method == "beam":
        return translator.decoding(beam=beam)
    plain = DecodingSettings()  # type: ignore[call-arg]
    return plain if beam is None else plain.model_copy(update={"beam": beam})


def require_tokens(
    ids: Sequence[int], vocab: int, *, most: int, name: str = "prefix_tokens"
) -> None:
    """Refuse ids that cannot be those of a translation."""
    if len(ids) > most:
        raise ApiError(413, f"{name} has {len(ids)} ids, more than {most}.")
    for number in ids:
        if not 0 <= number < vocab or number in (PAD, BEGIN, END):
            raise bad_request(
                f"{name} holds {number}, which cannot be in a translation; ids lie "
                f"between {END + 1} and {vocab - 1}, or are 1 for an unknown word."
            )


DIGITS = 4
# Of scores and probabilities; more digits would only make the JSON longer.
PRECISE_DIGITS = 6


class Maps(NamedTuple):
    """Attention weights of one sentence pair; None where the model has no such layers."""

    cross: Float[Tensor, "layers heads target source"] | None
    encoder: Float[Tensor, "layers heads source source"] | None
    decoder: Float[Tensor, "layers heads target target"] | None
    mean: Float[Tensor, "target source"] | None


def attention_view(
    translator: LoadedTranslator, name: str, request: EncodedRequest
) -> dict[str, Any]:
    """Return the translation with its attention, steps and beam, as plain values for JSON."""
    hypotheses = _search(translator, request)
    best = hypotheses[0]
    maps = _maps(translator, request.source, best.tokens)
    steps = _steps(translator, request, best.tokens)
    text = _text(translator, request, best, maps.mean)
    unknown = unknown_parts(translator.source_tokenizer, request.text, request.source)
    places = [place for place, number in enumerate(request.source) if number == UNKNOWN]
    return {
        "model": name,
        "text": text,
        "score": round(best.score, PRECISE_DIGITS),
        "unknown": list(unknown),
        "source": {
            **_side(translator.source_tokenizer, request.source, request.text),
            "unknown": places if unknown else [],
        },
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
        "beams": _beams(translator, request, hypotheses),
    }


def _search(translator: LoadedTranslator, request: EncodedRequest) -> list[Hypothesis]:
    """Return the hypotheses of the beam, best first, or the translation given as a prefix."""
    if request.ended:
        return [_scored_prefix(translator, request)]
    constraints = [request.constraints] if request.constraints else None
    found = translator.engine.search(
        [request.source], request.settings, n_best=request.settings.beam, constraints=constraints
    )
    return found[0]


def _scored_prefix(translator: LoadedTranslator, request: EncodedRequest) -> Hypothesis:
    tokens = request.constraints.prefix
    values = forced_log_probabilities(translator.model, [Example(request.source, list(tokens))])[0]
    penalty = LengthPenalty(request.settings.length_penalty_kind, request.settings.length_penalty)
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
    model = translator.model
    ids, mask = beside(model, padded([source], after=END))
    heads = model.head_maps(ids, mask, beside(model, padded([target], before=BEGIN)[0]))
    return Maps(
        heads.cross[:, 0],
        None if heads.encoder is None else heads.encoder[:, 0],
        None if heads.decoder is None else heads.decoder[:, 0],
        mean,
    )


@torch.inference_mode()
def _steps(
    translator: LoadedTranslator, request: EncodedRequest, target: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the probability and the alternatives of each token, end token included."""
    model = translator.model
    ids, mask = beside(model, padded([request.source], after=END))
    read = beside(model, padded([target], before=BEGIN)[0])
    features = model(ids, mask, read).features[0]
    values = model.project(features).float().softmax(dim=-1)  # [target, vocab]
    chosen = [*target, END]
    probabilities = values[range(len(chosen)), chosen].tolist()
    others = values.clone()
    others[:, [PAD, BEGIN]] = -1.0  # which are never decoded
    others[range(len(chosen)), chosen] = -1.0
    best = others.topk(min(request.top, values.shape[1] - 3), dim=1)
    return [
        {
            **_token(translator.target_tokenizer, number, probability),
            "alternatives": [
                _token(translator.target_tokenizer, other, value, with_text=True)
                for other, value in zip(numbers, some, strict=True)
            ],
        }
        for number, probability, numbers, some in zip(
            chosen, probabilities, best.indices.tolist(), best.values.tolist(), strict=True
        )
    ]


def _token(
    tokenizer: Tokenizer, number: int, probability: float, *, with_text: bool = False
) -> dict[str, Any]:
    piece = END_MARK if number == END else tokenizer.pieces([number])[0]
    text = {"text": tokenizer.decode([number])} if with_text else {}
    return {"token": piece, "id": number, **text, "probability": round(probability, PRECISE_DIGITS)}


def _text(
    translator: LoadedTranslator, request: EncodedRequest, best: Hypothesis, mean: Tensor | None
) -> str:
    text = translator.target_tokenizer.decode(best.tokens)
    if not request.settings.replace_unknown or mean is None:
        return text
    seen = translator.attention_map(request.source, best.tokens, mean)
    return with_source_words(text, best.tokens, source=request.text, attention=seen)


def _side(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> dict[str, Any]:
    """Return the tokens of one side, the end token last, and the word each belongs to."""
    return {
        "tokens": [*tokenizer.pieces(ids), END_MARK],
        "words": [*tokenizer.word_of_piece(ids), -1],
        "word_texts": text.split(),
    }


def _beams(
    translator: LoadedTranslator, request: EncodedRequest, hypotheses: Sequence[Hypothesis]
) -> list[dict[str, Any]]:
    """Return all hypotheses of the search with the log-probability of each token."""
    tokenizer = translator.target_tokenizer
    examples = [Example(request.source, list(found.tokens)) for found in hypotheses]
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
    return np.round(weights.cpu().numpy().astype(np.float64), DIGITS).tolist()
