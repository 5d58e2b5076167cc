"""The trace of a text through a language model or a text classifier: every value, with its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from regard.attention.probe import Probe, Recorder
from regard.base.errors import RegardError
from regard.compute.device import beside
from regard.models.inspection import Trace, TracedArray, recorded, traced_parts
from regard.models.layer_traces import Sides, attention_arrays, feed_forward_arrays, gate_arrays
from regard.tasks.language_modelling.model import LoadedLanguageModel, prompt_ids
from regard.transformer.encoder import BidirectionalTransformer

if TYPE_CHECKING:
    from regard.tasks.text_classification.model import LoadedTextClassifier


@torch.no_grad()
def trace_language_model(loaded: LoadedLanguageModel, text: str) -> Trace:
    """Trace a text: what the model makes of each token, and what it expects after each."""
    ids = prompt_ids(loaded.text, text)[-(loaded.model.context or 0) :]
    loaded.model.eval()
    recorder, tokens = Recorder(), beside(loaded.model, torch.tensor([ids]))
    with recorded(loaded.model) as outputs:
        features = loaded.model(tokens, probe=Probe(recorder)).features
        chances = loaded.model.project(features)[0].softmax(dim=-1)
    best = int(chances[-1].argmax())
    vocabulary = loaded.text.pieces(list(range(loaded.text.size)))
    meaning = "p(x_t | all others)" if loaded.model.reads_both_ways else "p(x_{t+1} | x_1 .. x_t)"
    return Trace(
        family="language model",
        source=text,
        output=vocabulary[best],
        arrays=[
            *_common(recorder, features),
            TracedArray("probability", ("token", "vocab"), chances.cpu().numpy(), meaning),
        ],
        labels={"token": loaded.text.pieces(ids), "vocab": vocabulary},
        parts=traced_parts(outputs),
        inside=_inside(loaded.model.backbone, recorder),
    )


@torch.no_grad()
def trace_classifier(loaded: LoadedTextClassifier, text: str) -> Trace:
    """Trace a text to the probabilities of its labels."""
    if not text.strip():
        raise RegardError("There is nothing to trace: the text is empty.")
    ids = loaded.ids(text)
    loaded.model.eval()
    recorder, tokens = Recorder(), beside(loaded.model, torch.tensor([ids]))
    with recorded(loaded.model) as outputs:
        logits = loaded.model(tokens, torch.ones_like(tokens, dtype=torch.bool),
                              probe=Probe(recorder))[0]  # fmt: skip
    return Trace(
        family="text classifier",
        source=text,
        output=loaded.labels[int(logits.argmax())],
        arrays=[
            *_common(recorder, None),
            TracedArray("logit", ("label",), logits.cpu().numpy(), "W mean_t f_t + b"),
            TracedArray("probability", ("label",), logits.softmax(0).cpu().numpy(), "softmax"),
        ],
        labels={"token": loaded.text.pieces(ids), "label": list(loaded.labels)},
        parts=traced_parts(outputs),
        inside=_inside(loaded.model.backbone, recorder),
    )


def _common(recorder: Recorder, features: Any) -> list[TracedArray]:
    """Return embeddings, and what the last layer says of each token."""
    embedded = next(value[-1] for key, value in recorder.values.items() if key[2] == "embedding")
    found = [TracedArray("embedding", ("token", "embedding"), embedded[0].cpu().numpy(), "x_t")]
    if features is not None:
        found.append(TracedArray("features", ("token", "hidden"), features[0].cpu().numpy(), "f_t"))
    return found


def _inside(backbone: Any, recorder: Recorder) -> list[TracedArray]:
    """Return what happens inside each layer of a network."""
    if not hasattr(backbone, "layers"):
        ((embedded,),) = (value for key, value in recorder.values.items() if key[2] == "embedding")
        start = backbone.stack.zero_state(1)
        return gate_arrays(backbone.stack, embedded[0], start, name="decoder", axis="token")
    part = "encoder" if isinstance(backbone, BidirectionalTransformer) else "decoder"
    found: list[TracedArray] = []
    for number, layer in enumerate(backbone.layers):
        found += attention_arrays(recorder, layer, part, number, Sides("token", "token"))
        found += feed_forward_arrays(recorder, layer, part, number, "token")
    return found
