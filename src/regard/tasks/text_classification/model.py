"""A trained text classifier, ready to use."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import RegardError, RunError
from regard.batching.texts import LabelledIds, collate_labelled
from regard.compute.device import beside, placed
from regard.corpora.labelled import LabelledText
from regard.models import text_classifier
from regard.models.language_model import build_language_model
from regard.models.pretrained import add_adapters, merge_adapters
from regard.models.sizes import build_for
from regard.runs.run import Run, TrainedRun, quoted
from regard.scoring.measures import ClassificationScore, score_labels
from regard.tasks.language_modelling.data import TOKENIZER
from regard.tasks.language_modelling.model import HeadView
from regard.tasks.text_classification.settings import TextClassificationRecipe
from regard.text.tokenizers import RunningText, UnknownCount, load_tokenizer, unknown_parts
from regard.text.words import CharacterTokenizer
from regard.training.checkpoint import load_weights

LABELS = "labels.json"
TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class Classified:
    """A text's most probable label, and the probabilities of all."""

    text: str
    label: str
    probability: float
    probabilities: dict[str, float]
    unknown: tuple[str, ...] = ()
    """What the vocabulary does not know of the text."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found = dict(vars(self))
        unknown = found.pop("unknown")
        return {**found, "unknown": list(unknown)} if unknown else found


@dataclass(frozen=True)
class Evidence:
    """How much each word of a text speaks for its label rather than for the next one.

    `log_odds` is log p(label) / p(other), and the value of a word is by how much that falls when
    the word is left out (Li et al. 2016, erasure).
    """

    text: str
    label: str
    probability: float
    other: str
    log_odds: float
    words: tuple[str, ...]
    values: tuple[float, ...]
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rounded = [round(value, 6) for value in self.values]
        return {
            **vars(self),
            "words": list(self.words),
            "values": rounded,
            "unknown": list(self.unknown),
        }


def read_ids(tokens: RunningText, text: str, *, context: int) -> list[int]:
    """Return what a model reads of a text: the opening, then as much as fits."""
    return [*tokens.opening, *tokens.encode(text)][:context] or [0]


class LoadedTextClassifier:
    """A classifier, its tokenizer, its labels and its recipe."""

    def __init__(
        self,
        *,
        model: text_classifier.TextClassifier,
        text: RunningText,
        labels: Sequence[str],
        recipe: TextClassificationRecipe,
    ):
        self.model = model
        self.text = text
        self.labels = tuple(labels)
        self.recipe = recipe

    def ids(self, text: str) -> list[int]:
        """Return what the model reads of a text."""
        return read_ids(self.text, text, context=self.recipe.model.context)

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Return the label of each text."""
        return [
            Classified(
                text=text,
                label=max(chances, key=lambda label: chances[label]),
                probability=max(chances.values()),
                probabilities=chances,
                unknown=self._unknown(text),
            )
            for text, chances in zip(texts, self._probabilities(texts), strict=True)
        ]

    def explain(self, text: str) -> Evidence:
        """Return which words decided: what the text would be taken for without each of them."""
        words = text.split()
        if not words:
            raise RegardError("There is nothing to classify: the text is empty.")
        without = [" ".join(words[:place] + words[place + 1 :]) for place in range(len(words))]
        found, *others = self.classify([text, *without])
        label, other, *_ = sorted(found.probabilities, key=lambda name: -found.probabilities[name])

        def log_odds(one: Classified) -> float:
            smallest = torch.finfo(torch.float32).tiny
            chances = (max(one.probabilities[name], smallest) for name in (label, other))
            return math.log(next(chances)) - math.log(next(chances))

        whole = log_odds(found)
        return Evidence(
            text=text,
            label=label,
            probability=found.probability,
            other=other,
            log_odds=whole,
            words=tuple(words),
            values=tuple(whole - log_odds(each) for each in others),
            unknown=found.unknown,
        )

    def unknown_count(self) -> UnknownCount:
        """Return an empty count of what the vocabulary does not know."""
        by_character = isinstance(self.text.tokenizer, CharacterTokenizer)
        return UnknownCount("character" if by_character else "word", "texts")

    def _unknown(self, text: str) -> tuple[str, ...]:
        return unknown_parts(self.text.tokenizer, text, self.text.encode(text))

    @torch.no_grad()
    def heads(self, text: str) -> HeadView:
        """Return what every head of every layer looks at, at each token of a text."""
        backbone: Any = self.model.backbone
        if not hasattr(backbone, "look"):
            raise RegardError("This model has no attention heads; only a Transformer has them.")
        ids = self.ids(text)
        maps = backbone.look(beside(self.model, torch.tensor([ids])))
        return HeadView(tuple(self.text.pieces(ids)), maps[:, 0].cpu())

    def score(self, texts: Sequence[LabelledText]) -> ClassificationScore:
        """Return how many of these texts get their label."""
        found = self.classify([one.text for one in texts])
        number = self.labels.index
        return score_labels(
            [number(one.label) for one in found],
            [number(one.label) for one in texts],
            labels=self.labels,
        )

    @torch.no_grad()
    def _probabilities(self, texts: Sequence[str]) -> list[dict[str, float]]:
        self.model.eval()
        ids = [self.ids(text) for text in texts]
        # Texts of like length together, for little padding; the results do not depend on it.
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        found: dict[int, dict[str, float]] = {}
        for first in range(0, len(order), TEXTS_AT_ONCE):
            places = order[first : first + TEXTS_AT_ONCE]
            batch = collate_labelled([LabelledIds(ids[place], 0) for place in places])
            batch = beside(self.model, batch)
            chances = torch.softmax(self.model(batch.tokens, batch.mask), dim=-1).tolist()
            for place, row in zip(places, chances, strict=True):
                found[place] = dict(zip(self.labels, row, strict=True))
        return [found[place] for place in range(len(ids))]


def build_text_classifier(
    recipe: TextClassificationRecipe, *, vocab: int, labels: int
) -> text_classifier.TextClassifier:
    """Return a fresh classifier, with adapters if the recipe asks for them."""
    network = build_language_model(recipe.model, vocab=vocab)
    model = text_classifier.classifier_of(network, labels=labels, dropout=recipe.training.dropout)
    if recipe.training.adapter_rank:
        rank = recipe.training.adapter_rank
        add_adapters(model.backbone, rank=rank, to=[MultiHeadAttention])
    return model


def load(folder: str | Path) -> LoadedTextClassifier:
    """Load the best classifier of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(TextClassificationRecipe)
    text = RunningText(load_tokenizer(run.folder, TOKENIZER))
    path = run.folder / LABELS
    try:
        labels = [str(label) for label in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise RunError(f"{path} is missing or damaged: train again.") from None
    weights = run.weights()
    model = build_for(
        lambda: build_text_classifier(recipe, vocab=text.size, labels=len(labels)), weights
    )
    load_weights(model, weights)
    merge_adapters(model)
    model.requires_grad_(False).eval()
    return LoadedTextClassifier(model=placed(model), text=text, labels=labels, recipe=recipe)


ASSUMED_VOCABULARY = 8_000


def build(recipe: TextClassificationRecipe) -> text_classifier.TextClassifier:
    """Return the untrained classifier of a recipe, for two labels."""
    vocab = recipe.model.vocab or recipe.tokenizer.size or ASSUMED_VOCABULARY
    return build_text_classifier(recipe, vocab=vocab, labels=2)


MOST_LABELS = 12  # of a confusion matrix in the terminal


def confusion_lines(score: ClassificationScore) -> list[str]:
    """Return the score as lines of text, with the confusion matrix if it is not too wide."""
    lines = [
        f"{score.examples} texts: accuracy {score.accuracy:.1%}, macro-F1 {score.macro_f1:.3f}"
    ]
    if len(score.labels) > MOST_LABELS:
        return lines
    width = max(6, *(len(label) + 2 for label in score.labels))
    lines.append(f"{'true / predicted':<18}" + "".join(f"{x:>{width}}" for x in score.labels))
    for label, row in zip(score.labels, score.confusion.tolist(), strict=True):
        lines.append(f"{label:<18}" + "".join(f"{count:>{width}}" for count in row))
    return lines


@dataclass(frozen=True)
class TrainedTextClassifier(TrainedRun):
    """A finished training: run, best model, and its score on the test or validation part."""

    model: LoadedTextClassifier
    score: ClassificationScore
    part: str = "validation"
    """The part that was scored: "test", or "validation" where there is no test part."""

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the score, as plain values."""
        return {**super().to_dict(), **self.score.to_dict()}

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        run = quoted(self.run.folder)
        return [f'regard classify {run} "..."', f'regard look {run} "..."']

    def lines(self) -> list[str]:
        """Return the score as a person reads it."""
        return [*super().lines(), *confusion_lines(self.score)]
