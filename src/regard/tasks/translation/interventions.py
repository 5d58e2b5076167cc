"""Interventions in a translator: a sentence is decoded as it is, and anew with what is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from regard.attention.probe import Probe, Recorder
from regard.base.errors import RegardError
from regard.base.shapes import Tensor
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded
from regard.compute.device import beside
from regard.models.interventions import mean_contexts
from regard.models.translator import Translator
from regard.tasks.attention import END_MARK
from regard.tasks.interventions import (
    Effect,
    InterventionRequest,
    InterventionSubject,
    Outcome,
    Words,
    changes_of,
)
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import Translation


def intervene_in_translator(
    loaded: LoadedTranslator, text: str, request: InterventionRequest
) -> Effect:
    """Translate a sentence as it is and with interventions."""
    described = request.described()
    if not text.strip():
        raise RegardError("There is nothing to translate: the text is empty.")
    if not loaded.attends:
        raise RegardError("This model has no attention to intervene in.")
    plain = loaded.with_interventions([])
    first = plain.translate(text)
    changed = loaded.with_interventions(
        changes_of(request, subject_of(loaded, text, first.text, request.examples))
    )
    second = changed.translate(text)
    kept = _outcome(changed, first).probabilities
    return Effect(text, described, _outcome(plain, first), _outcome(changed, second), kept)


def _outcome(loaded: LoadedTranslator, found: Translation) -> Outcome:
    """Return a translation with the probability of each of its tokens."""
    (scored,) = loaded.score_pairs([found.source], [found.text])
    probabilities = torch.tensor(scored.log_probabilities).exp().tolist()
    drawn = found.attention is not None and found.text.split()
    return Outcome(
        found.text, scored.pieces, tuple(probabilities), found.by_word() if drawn else None
    )


def subject_of(
    loaded: LoadedTranslator, text: str, output: str, examples: Sequence[str] = ()
) -> InterventionSubject:
    """Return what can be changed about a sentence and its translation."""
    return InterventionSubject(
        source=words_of(loaded.source_tokenizer, text, name="source"),
        target=words_of(loaded.target_tokenizer, output, name="translation"),
        part="cross",
        parts=attending_parts(loaded.model),
        states=("encoder", "memory"),
        means=lambda: translator_means(loaded, examples or [text]),
        record=lambda other: (
            words_of(loaded.source_tokenizer, other, name="other text"),
            _recorded_source(loaded, other),
        ),
    )


def words_of(tokenizer: Any, text: str, *, name: str) -> Words:
    """Return a sentence as a translator reads it, with its end mark."""
    ids = tokenizer.encode(text)
    return Words(tuple(text.split()), (*tokenizer.word_of_piece(ids), -1), END_MARK, name)


def attending_parts(model: Translator[Any]) -> dict[str, tuple[int, int]]:
    """Return the layers and heads of each part of a translator that attends."""
    decoder: Any = model.decoder
    encoder: Any = model.encoder
    if not hasattr(decoder, "layers"):  # a recurrent network
        return {"cross": (1, getattr(decoder.lookup.score, "heads", 1))}
    found = {"cross": (len(decoder.layers), decoder.layers[0].cross_attention.heads)}
    for part, layers, name in (
        ("encoder", getattr(encoder, "layers", ()), "attention"),
        ("decoder", decoder.layers, "self_attention"),
    ):
        heads = getattr(getattr(layers[0], name, None), "heads", None) if layers else None
        if heads is not None:
            found[part] = (len(layers), heads)
    return found


@torch.inference_mode()
def _recorded_source(loaded: LoadedTranslator, text: str) -> Recorder:
    recorder = Recorder()
    read = padded([loaded.source_tokenizer.encode(text)], after=END)
    ids, mask = beside(loaded.model, read)
    loaded.model.encode(ids, mask, probe=Probe(recorder))
    return recorder


@torch.inference_mode()
def translator_means(
    loaded: LoadedTranslator, texts: Sequence[str]
) -> dict[tuple[str, int], Tensor]:
    """Return the mean context of every head over these sentences and their translations."""
    recorders = []
    for translation in loaded.translate(list(texts), attention=False):
        recorder = Recorder()
        read = padded([loaded.source_tokenizer.encode(translation.source)], after=END)
        written = padded([loaded.target_tokenizer.encode(translation.text)], before=BEGIN)
        (source, mask), (target, _) = beside(loaded.model, (read, written))
        loaded.model(source, mask, target, probe=Probe(recorder))
        recorders.append(recorder)
    return mean_contexts(recorders)
