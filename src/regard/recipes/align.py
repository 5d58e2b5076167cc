"""Attention over given pairs, and the head of a Transformer whose attention aligns best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.base.errors import RegardError
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import encode_pairs, padded, sorted_batches
from regard.corpora.parallel import SentencePair
from regard.engines.engine import PASS_TOKENS, attention_over
from regard.recipes.attention_map import AttentionMap
from regard.recipes.loaded import LoadedTranslator
from regard.scoring.alignment import Link, alignment_error_rate, symmetrise_all
from regard.scoring.score import Score


@dataclass(frozen=True)
class HeadScore:
    """A head of the decoder's look at the source, and the error of the alignment it gives."""

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
    """Return the attention behind each given target, as if the model had chosen it itself.

    `head` is a layer and a head of the decoder, counted from 0; without it the map is the one that
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
        source, mask = padded([sources[row] for row in rows], after=END)
        target, _ = padded([targets[row] for row in rows], before=BEGIN)
        across = model.model.head_maps(source, mask, target).across
        for layer, of_layer in enumerate(across.transpose(1, 2)):  # heads, batch, target, source
            for head, of_head in enumerate(of_layer):
                found = links.setdefault((layer, head), {})
                for index, row in enumerate(rows):
                    weights = of_head[index, : lengths[row][1], : lengths[row][0]]
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
    turned = [SentencePair(pair.target, pair.source) for pair in pairs]
    there = align(forward, pairs, head=heads[0])
    back = align(backward, turned, head=heads[1])
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
