"""The results of a translator: translations with scores and attention, and scored pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.base.errors import RegardError
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.batching.batch import Example, collate, sorted_batches
from regard.compute.device import beside
from regard.decoding.sampling import Utility, expected_utilities
from regard.models.translator import Translator
from regard.scoring.bleu import sentence_bleu, sentence_chrf
from regard.tasks.attention import AttentionMap
from regard.text.vocabulary import composed


@dataclass(frozen=True)
class Translation:
    """A translation with its score, attention and alternatives."""

    source: str
    text: str
    score: float
    log_probability: float
    attention: AttentionMap | None
    alternatives: tuple[Translation, ...] = ()
    unknown: tuple[str, ...] = ()
    """Words of the source that the vocabulary does not know; characters where those are tokens."""

    def by_word(self) -> AttentionMap:
        """Return the attention between whole words, without the end marks."""
        if self.attention is None:
            raise RegardError("This translation was made without attention.")
        return self.attention.by_word(self.source, self.text)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: both sentences, the alternatives and the attention."""
        from regard.pictures.svg import notebook_lines

        others = [(f"{other.score:.3f}", other.text) for other in self.alternatives]
        unknown = [("unknown", ", ".join(self.unknown))] if self.unknown else []
        lines = notebook_lines(
            ("source", self.source), (f"{self.score:.3f}", self.text), *others, *unknown
        )
        drawn = self.attention is not None and self.source.split() and self.text.split()
        return lines + (self.by_word()._repr_html_() if drawn else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            **({"unknown": list(self.unknown)} if self.unknown else {}),
            **({"attention": self.attention.to_dict()} if self.attention else {}),
            **(
                {"alternatives": [other.to_dict() for other in self.alternatives]}
                if self.alternatives
                else {}
            ),
        }


def with_source_words(
    text: str, tokens: Sequence[int], *, source: str, attention: AttentionMap | None
) -> str:
    """Return the text with the most attended source word for each unknown token.

    Where there is no attention, or the source has no words, the text stays as it is.
    """
    mark = SPECIALS[UNKNOWN]
    places = [place for place, token in enumerate(tokens) if token == UNKNOWN]
    parts = text.split(mark)
    if not places or attention is None or len(parts) != len(places) + 1:
        return text
    written = [parts[0]]
    for place, part in zip(places, parts[1:], strict=True):
        written += [_most_attended(place, source, attention) or mark, part]
    return "".join(written)


def _most_attended(place: int, source: str, attention: AttentionMap) -> str:
    """Return the source word with the most weight, or the character if tokens are characters."""
    weights = attention.weights[place, :-1]  # the last column is the end mark
    if not len(weights):
        return ""
    best = int(weights.argmax())
    for written in (source, composed(source)):
        if len(weights) == len(written):
            return written[best]
    words = source.split()
    word = attention.source_words[best]
    return words[word] if 0 <= word < len(words) else ""


UTILITIES: dict[str, Utility] = {"chrf": sentence_chrf, "bleu": sentence_bleu}


def least_risk(draws: Sequence[Translation], utility: str) -> list[Translation]:
    """Return the distinct samples, the best first, with their expected utility as score."""
    by_text: dict[str, Translation] = {}
    for draw in draws:
        by_text.setdefault(draw.text, draw)
    expected = expected_utilities([draw.text for draw in draws], UTILITIES[utility])
    return [replace(by_text[text], score=value) for text, value in expected.items()]


PASS_TOKENS = 4_096


@dataclass(frozen=True)
class ScoredPair:
    """A given translation with its log-probability, in total and token by token."""

    source: str
    target: str
    score: float
    """The log-probability under the length penalty, comparable with a search's scores."""
    log_probability: float
    pieces: tuple[str, ...]
    """The tokens of the target and the end mark."""
    log_probabilities: tuple[float, ...]
    unknown: tuple[str, ...] = ()
    """Words of either side that its vocabulary does not know."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "score": self.score,
            "log_probability": self.log_probability,
            "pieces": list(self.pieces),
            "log_probabilities": list(self.log_probabilities),
            **({"unknown": list(self.unknown)} if self.unknown else {}),
        }


@torch.inference_mode()
def forced_log_probabilities(
    model: Translator[Any], examples: Sequence[Example]
) -> list[Float[Tensor, "target"]]:
    """Return log p of every token of each target, end mark included, in one parallel pass."""
    model.eval()
    found: dict[int, Tensor] = {}
    lengths = [example.lengths for example in examples]
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        batch = beside(model, collate([examples[row] for row in rows]))
        features = model(batch.source, batch.source_mask, batch.target_input).features
        for index, row in enumerate(rows):  # one sentence's logits at a time: they are large
            length = lengths[row][1]
            logits = model.project(features[index, :length]).float()
            wanted = batch.target_output[index, :length, None]
            found[row] = logits.log_softmax(dim=-1).gather(1, wanted).squeeze(1).cpu()
    return [found[row] for row in range(len(examples))]
