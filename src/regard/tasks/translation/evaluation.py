"""Evaluation on a test set: BLEU, chrF, BLEU by length, and alignment error rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from rich.text import Text

from regard.base.errors import RegardError
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import encode_pairs, padded, sorted_batches
from regard.compute.device import beside
from regard.corpora.parallel import SentencePair
from regard.engines.torch_engine import PASS_TOKENS, attention_over, on_time
from regard.models.inspection import parameter_count
from regard.pictures.terminal import terminal_heat_map
from regard.runs.report import FEWEST_WORDS, MOST_WORDS, minutes
from regard.runs.run import TrainedRun, quoted
from regard.scoring.alignment import Link, alignment_error_rate, symmetrise_all
from regard.scoring.bleu import (
    Band,
    Interval,
    bleu_by_length,
    bleu_interval,
    chrf_interval,
    corpus_bleu,
    corpus_chrf,
    sentence_chrf,
)
from regard.scoring.measures import Score
from regard.tasks.attention import AttentionMap
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import Translation
from regard.training.progress import read_metrics

if TYPE_CHECKING:
    from regard.tasks.translation.forgetting import Forgetting


@dataclass(frozen=True)
class HeadScore:
    """A cross-attention head of the decoder, and the error rate of its alignments."""

    layer: int
    head: int
    error: Score

    @property
    def place(self) -> tuple[int, int]:
        """Layer and head, as `align` takes them."""
        return self.layer, self.head


def align(
    model: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    head: tuple[int, int] | None = None,
) -> list[AttentionMap]:
    """Return the attention of each given target, as if the model had generated it.

    `head` is a layer and a head of the decoder, counted from 0; by default the map is the one that
    the model shows.
    """
    if not model.attends:
        raise RegardError("This model has no attention to align by.")
    sources, targets = _ids(model, pairs)
    maps = attention_over(model.model, sources, targets, head=head)
    return [
        model.attention_map(source, target, weights)
        for source, target, weights in zip(sources, targets, maps, strict=True)
    ]


@torch.inference_mode()
def score_heads(model: LoadedTranslator, pairs: Sequence[SentencePair]) -> list[HeadScore]:
    """Return the alignment error of every head on pairs with gold links, lowest first.

    Choose a head on held-out pairs and report its error on others.
    """
    gold = [pair for pair in pairs if pair.alignment is not None]
    if not gold:
        raise RegardError(
            "There are no gold alignments to choose a head by; the pairs of the built-in grammar "
            "have them."
        )
    links: dict[tuple[int, int], dict[int, frozenset[Link]]] = {}
    sources, targets = _ids(model, gold)
    lengths = [(len(s) + 1, len(t) + 1) for s, t in zip(sources, targets, strict=True)]
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        source, mask = beside(model.model, padded([sources[row] for row in rows], after=END))
        target, _ = beside(model.model, padded([targets[row] for row in rows], before=BEGIN))
        cross = model.model.head_maps(source, mask, target).cross.cpu()
        for layer, of_layer in enumerate(cross.transpose(1, 2)):  # heads, batch, target, source
            for head, of_head in enumerate(of_layer):
                found = links.setdefault((layer, head), {})
                for index, row in enumerate(rows):
                    weights = of_head[index, : lengths[row][1], : lengths[row][0]]
                    if (layer, head) == model.model.taught_head:
                        weights = on_time(model.model, weights, source=lengths[row][0] - 1)
                    shown = model.attention_map(sources[row], targets[row], weights)
                    found[row] = shown.links()
    marked = [pair.alignment or () for pair in gold]
    scores = [
        HeadScore(*place, alignment_error_rate([found[row] for row in range(len(gold))], marked))
        for place, found in links.items()
    ]
    return sorted(scores, key=lambda score: (score.error.value, score.place))


def align_both(
    forward: LoadedTranslator,
    backward: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    method: str = "grow-diag-final-and",
    heads: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None),
) -> list[frozenset[Link]]:
    """Return links (source word, target word) of two models, one for each direction."""
    swapped = [SentencePair(pair.target, pair.source) for pair in pairs]
    there = align(forward, pairs, head=heads[0])
    back = align(backward, swapped, head=heads[1])
    return symmetrise_all(
        [one.links() for one in there],
        [{(source, target) for target, source in other.links()} for other in back],
        method=method,
    )


def _ids(
    model: LoadedTranslator, pairs: Sequence[SentencePair]
) -> tuple[list[Sequence[int]], list[Sequence[int]]]:
    examples = encode_pairs(
        pairs,
        source_tokenizer=model.source_tokenizer,
        target_tokenizer=model.target_tokenizer,
        max_length=None,
    )
    return [example.source for example in examples], [example.target for example in examples]


SHOWN_LINES = 3  # of the best translations, and of the worst
LONGEST_LINE = 200  # characters


@dataclass(frozen=True)
class Evaluation:
    """The scores of a test, with its translations."""

    bleu: Score
    chrf: Score
    bands: list[Band]
    alignment: Score | None
    pairs: list[SentencePair]
    translations: list[Translation]
    beam: int = 5
    part: str = "test"
    """What was translated: "test", or "validation" where there is no test part."""
    forgetting: Forgetting | None = None
    """The tests before and after, where a run was fine-tuned."""

    @cached_property
    def intervals(self) -> tuple[Interval, Interval]:
        """The 95 % confidence intervals of BLEU and chrF, by the bootstrap."""
        outputs = [translation.text for translation in self.translations]
        references = [pair.target for pair in self.pairs]
        return bleu_interval(outputs, references), chrf_interval(outputs, references)

    @cached_property
    def sentence_scores(self) -> list[float]:
        """The chrF of each translation."""
        return [
            sentence_chrf(translation.text, pair.target)
            for translation, pair in zip(self.translations, self.pairs, strict=True)
        ]

    def best(self, count: int) -> list[int]:
        """Return the places of the best translations; of equally good ones the longest."""
        scores = self.sentence_scores
        lengths = [len(pair.source) for pair in self.pairs]
        order = sorted(range(len(scores)), key=lambda row: (-scores[row], -lengths[row]))
        return order[:count]

    def worst(self, count: int) -> list[int]:
        """Return the places of the worst translations, the worst first."""
        scores = self.sentence_scores
        return sorted(range(len(scores)), key=lambda row: scores[row])[:count]

    @property
    def search(self) -> str:
        """How the translations were found."""
        return "greedy search" if self.beam == 1 else f"beam search, beam {self.beam}"

    def lines(self) -> list[str]:
        """Return the scores, and some of the best and worst translations."""
        bleu, chrf = self.intervals
        count = f"{len(self.pairs):,} {self.part} sentences"
        found = [
            f"BLEU {self.bleu.value:.1f} [{bleu.low:.1f}, {bleu.high:.1f}]   "
            f"chrF {self.chrf.value:.1f} [{chrf.low:.1f}, {chrf.high:.1f}]",
            f"({count}, {self.search}; 95 % intervals)",
        ]
        # Of few sentences, none is shown twice.
        shown = min(SHOWN_LINES, len(self.pairs) // 2)
        for name, rows in (("Best", self.best(shown)), ("Worst", self.worst(shown))):
            if rows:
                found += ["", f"{name} translations (chrF)"]
            for row in rows:
                pair, output = self.pairs[row], self.translations[row].text
                found += [
                    f"{self.sentence_scores[row]:>6.1f}  {shortened(pair.source)}",
                    f"{'model':>6}  {shortened(output)}",
                    *(
                        []
                        if output == pair.target
                        else [f"{'wanted':>6}  {shortened(pair.target)}"]
                    ),
                ]
        return [*found, *(["", *self.forgetting.lines()] if self.forgetting else [])]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the scores, and BLEU by the length of the sentence."""
        from regard.pictures.curves import length_curves_svg
        from regard.pictures.svg import notebook_picture

        scores = [self.bleu, self.chrf, *([self.alignment] if self.alignment else [])]
        drawn = length_curves_svg({"BLEU": self.bands})
        return "<br>".join(score._repr_html_() for score in scores) + notebook_picture(
            drawn, label="BLEU by the length of the source sentence"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values; the translations are left out."""
        return {
            "bleu": self.bleu.to_dict(),
            "chrf": self.chrf.to_dict(),
            "by_length": [band.to_dict() for band in self.bands],
            "alignment_error_rate": self.alignment.to_dict() if self.alignment else None,
            "sentences": len(self.pairs),
            "search": {"beam": self.beam},
            **({"fine_tuning": self.forgetting.to_dict()} if self.forgetting else {}),
        }


def shortened(text: str) -> str:
    """Return a text, or the beginning of one that is too long for a few lines."""
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} …"


def evaluate(
    model: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    beam: int | None = None,
    bands: Sequence[tuple[int, int]] | None = None,
    tokenize: str = "13a",
    watch: Callable[[int, float], None] | None = None,
) -> Evaluation:
    """Translate the sources, compare with the targets, and align the references.

    `tokenize` is BLEU's tokenizer: "none" where the texts are tokenised already. `watch` is told
    how many sentences are translated, and what share of all.
    """
    sources, references = [p.source for p in pairs], [p.target for p in pairs]
    found: dict[int, Translation] = {}
    for index, translation in model.stream(sources, beam=beam, attention=False):
        found[index] = translation
        if watch is not None:
            watch(len(found), len(found) / len(sources))
    translations = [found[index] for index in range(len(sources))]
    outputs = [translation.text for translation in translations]
    return Evaluation(
        bleu=corpus_bleu(outputs, references, tokenize=tokenize),
        chrf=corpus_chrf(outputs, references),
        bands=bleu_by_length(outputs, references, sources, bands=bands, tokenize=tokenize),
        alignment=_alignment(model, pairs),
        pairs=list(pairs),
        translations=translations,
        beam=beam or model.recipe.decoding.beam,
    )


def _alignment(model: LoadedTranslator, pairs: Sequence[SentencePair]) -> Score | None:
    gold = [(pair, pair.alignment) for pair in pairs if pair.alignment is not None]
    if not gold or not model.attends:
        return None
    maps = align(model, [pair for pair, _ in gold])
    return alignment_error_rate([m.links() for m in maps], [links for _, links in gold])


@dataclass(frozen=True)
class TrainedTranslator(TrainedRun):
    """A finished training: its run, its best model, and its evaluation if there was a test."""

    model: LoadedTranslator
    evaluation: Evaluation | None = None

    @property
    def minutes(self) -> float:
        """How long the training took."""
        return minutes(read_metrics(self.run.metrics))

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, the size, the time and the scores, as plain values."""
        found = self.evaluation
        return {
            **super().to_dict(),
            "parameters": parameter_count(self.model.model),
            "minutes": self.minutes,
            "test": found.to_dict() if found and found.part == "test" else None,
            **({"validation": found.to_dict()} if found and found.part != "test" else {}),
        }

    def lines(self) -> list[str]:
        """Return the scores and some translations."""
        return [*(self.evaluation.lines() if self.evaluation else []), "", *super().lines()]

    def drawn(self, width: int) -> Any:
        """Return what the model attends to in a good translation, None if there is none to show."""
        found = self.evaluation
        if found is None or not self.model.attends:
            return None
        for row in found.best(len(found.pairs)):
            source = found.pairs[row].source
            if not FEWEST_WORDS <= len(source.split()) <= MOST_WORDS:
                continue
            translation = self.model.translate(source, beam=found.beam)
            if translation.attention is not None and translation.text.strip():
                seen = translation.by_word()
                drawn = terminal_heat_map(
                    seen.weights, source=seen.source, target=seen.target, console_width=width
                )
                return Text("What each word of a good translation attends to\n\n") + drawn
        return None

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        run = quoted(self.run.folder)
        sources = [pair.source for pair in self.evaluation.pairs] if self.evaluation else ["..."]
        source = min(sources, key=lambda text: abs(len(text.split()) - MOST_WORDS // 2))
        look = f"regard look {run} {quoted(source)}" if self.model.attends else None
        shown = [f"regard translate {run} --input FILE --output FILE", look, f"regard serve {run}"]
        return [command for command in shown if command is not None]
