"""Interventions in models of running text: what is written on, or which label is chosen, anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from regard.attention.probe import Change, Probe, Recorder, in_turn
from regard.base.errors import RegardError
from regard.compute.device import beside
from regard.models.interventions import Intervened, mean_contexts
from regard.tasks.attention import AttentionMap
from regard.tasks.interventions import (
    Effect,
    InterventionRequest,
    InterventionSubject,
    Outcome,
    Words,
    changes_of,
)
from regard.tasks.language_modelling.model import LoadedLanguageModel, prompt_ids
from regard.transformer.encoder import BidirectionalTransformer

if TYPE_CHECKING:
    from regard.tasks.text_classification.model import LoadedTextClassifier

WRITTEN = 16  # tokens, greedily, to see what becomes of a text


def intervene_in_language_model(
    loaded: LoadedLanguageModel, text: str, request: InterventionRequest
) -> Effect:
    """Continue a text greedily as it is and with interventions."""
    described = request.described()
    ids = prompt_ids(loaded.text, text)
    subject = _subject(loaded, ids, request.examples or [text])
    before_ids, before = _written(loaded, ids, [])
    changed = changes_of(request, subject)
    _, after = _written(loaded, ids, changed)
    kept = _probabilities(loaded, ids, before_ids, changed)
    return Effect(text, described, before, after, tuple(kept))


def _written(
    loaded: LoadedLanguageModel, ids: Sequence[int], wanted: Sequence[Change]
) -> tuple[list[int], Outcome]:
    """Return the most probable continuation, token by token."""
    model: Any = Intervened(loaded.model, wanted)
    tokens: list[int] = []
    with torch.inference_mode():
        step = model.read(beside(loaded.model, torch.tensor([list(ids)])), model.start(1))
        while len(tokens) < WRITTEN:
            tokens.append(int(step.logits[0].argmax()))
            full = loaded.model.context is not None and (
                len(ids) + len(tokens) >= loaded.model.context
            )
            if tokens[-1] == loaded.text.end or full:
                break
            step = model.read(beside(loaded.model, torch.tensor([tokens[-1:]])), step.state)
    pieces = loaded.text.pieces(tokens)
    return tokens, Outcome(
        loaded.text.decode([*ids, *tokens])[len(loaded.text.decode(list(ids))) :],
        tuple(pieces),
        tuple(_probabilities(loaded, ids, tokens, wanted)),
        _mean_map(loaded, ids, wanted),
    )


@torch.inference_mode()
def _probabilities(
    loaded: LoadedLanguageModel,
    ids: Sequence[int],
    tokens: Sequence[int],
    wanted: Sequence[Change],
) -> list[float]:
    """Return the probability of each token that was written."""
    model: Any = Intervened(loaded.model, wanted)
    read = beside(loaded.model, torch.tensor([[*ids, *tokens[:-1]]]))
    features = model(read).features[0, len(ids) - 1 :]
    chances = loaded.model.project(features).softmax(dim=-1)
    found: list[float] = chances[range(len(tokens)), list(tokens)].tolist()
    return found


def _mean_map(loaded: Any, ids: Sequence[int], wanted: Sequence[Change]) -> AttentionMap | None:
    """Return what the last layer looks at, on average over its heads."""
    backbone: Any = loaded.model.backbone
    if not hasattr(backbone, "look"):
        return None
    with torch.inference_mode():
        output, _ = backbone(
            beside(backbone, torch.tensor([list(ids)])),
            backbone.start(1),
            with_weights=True,
            probe=Probe(in_turn(*wanted)),
        )
    pieces, places = tuple(loaded.text.pieces(list(ids))), tuple(range(len(ids)))
    return AttentionMap(output.attention[0].cpu().numpy(), pieces, pieces, places, places)


def _subject(loaded: Any, ids: Sequence[int], examples: Sequence[str]) -> InterventionSubject:
    """Return what can be changed about a text."""
    backbone: Any = loaded.model.backbone
    if not hasattr(backbone, "look"):
        raise RegardError("This model has no attention heads; only a Transformer has them.")
    part = "encoder" if isinstance(backbone, BidirectionalTransformer) else "decoder"
    words = Words(tuple(loaded.text.pieces(list(ids))), tuple(range(len(ids))), None, "text")

    def record(other: str) -> tuple[Words, Recorder]:
        recorder, read = Recorder(), loaded.text.encode(other)
        with torch.inference_mode():
            backbone(
                beside(backbone, torch.tensor([read])), backbone.start(1), probe=Probe(recorder)
            )
        pieces = tuple(loaded.text.pieces(read))
        return Words(pieces, tuple(range(len(read))), None, "other text"), recorder

    return InterventionSubject(
        source=words,
        target=words,
        part=part,
        parts={part: (len(backbone.layers), backbone.layers[0].attention.heads)},
        states=(part, "memory"),
        means=lambda: mean_contexts([record(each)[1] for each in examples]),
        record=record,
    )


def intervene_in_classifier(
    loaded: LoadedTextClassifier, text: str, request: InterventionRequest
) -> Effect:
    """Classify a text as it is and with interventions."""
    described = request.described()
    if not text.strip():
        raise RegardError("There is nothing to classify: the text is empty.")
    ids = loaded.ids(text)
    wanted = changes_of(request, _subject(loaded, ids, request.examples or [text]))
    before, after = (_label(loaded, ids, changes) for changes in ([], wanted))
    kept = dict(zip(after.tokens, after.probabilities, strict=True))
    return Effect(text, described, before, after, tuple(kept[name] for name in before.tokens))


@torch.inference_mode()
def _label(loaded: LoadedTextClassifier, ids: Sequence[int], wanted: Sequence[Change]) -> Outcome:
    """Return the label of a text, and all labels with their probabilities, highest first."""
    model: Any = Intervened(loaded.model, wanted)
    tokens = beside(loaded.model, torch.tensor([list(ids)]))
    chances = model(tokens, torch.ones_like(tokens, dtype=torch.bool))[0].softmax(dim=0)
    order = chances.argsort(descending=True).tolist()
    labels = tuple(loaded.labels[number] for number in order)
    return Outcome(
        labels[0], labels, tuple(chances[order].tolist()), _mean_map(loaded, ids, wanted)
    )
