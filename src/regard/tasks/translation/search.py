"""Where else a head does this: training examples in which a word attends to a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from regard.base.errors import SettingsError
from regard.batching.batch import Example, collate, sorted_batches
from regard.corpora.parallel import SentencePair
from regard.tasks.attention import merge_to_words
from regard.tasks.interventions import two_sides
from regard.tasks.looking import LookRequest, View
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.model import LoadedTranslator, load

MOST_PAIRS = 50_000  # that are searched for the two words
MOST_READ = 2_000  # pairs with both words that the model reads
MOST_SHOWN = 50
BATCH_TOKENS = 2_000
LEAST = 0.3


@dataclass(frozen=True, kw_only=True)
class GazeQuery:
    """A head, and the words between which it should attend: from one to the other."""

    attends: str
    attended: str
    part: str = "cross"
    layer: int | None = None
    """None stands for the last."""
    head: int | None = None
    """None stands for the mean of the layer's heads."""
    least: float = LEAST
    """The smallest weight that counts."""


@dataclass(frozen=True)
class Gaze:
    """A place where one word attends to another; words count from 0."""

    source: str
    target: str
    attends: int
    attended: int
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "weight": round(self.weight, 6)}


def find_gazes(
    loaded: LoadedTranslator, pairs: Iterable[SentencePair], query: GazeQuery
) -> list[Gaze]:
    """Return the places where a head attends from one word to the other, the strongest first."""
    sides = {"cross": ("target", "source"), "encoder": ("source", "source"),
             "decoder": ("target", "target")}  # fmt: skip
    if query.part not in sides:
        raise SettingsError(f"There is no part {query.part!r}: it is cross, encoder or decoder.")
    rows, columns = sides[query.part]
    wanted, given = _bare(query.attends), _bare(query.attended)
    fit = (
        pair
        for pair in islice(pairs, MOST_PAIRS)
        if wanted in map(_bare, getattr(pair, rows).split())
        and given in map(_bare, getattr(pair, columns).split())
    )
    chosen = list(islice(fit, MOST_READ))
    found = [
        gaze
        for pair, weights in _word_maps(loaded, chosen, query)
        for gaze in _places(pair, weights, query, (rows, columns))
    ]
    return sorted(found, key=lambda gaze: -gaze.weight)


def _bare(word: str) -> str:
    """Return a word without case and punctuation, or the punctuation itself."""
    return "".join(filter(str.isalnum, word.casefold())) or word


def _places(
    pair: SentencePair,
    weights: Float[np.ndarray, "rows columns"],
    query: GazeQuery,
    sides: tuple[str, str],
) -> Iterator[Gaze]:
    """Yield the places of one pair."""
    rows, columns = (getattr(pair, side).split() for side in sides)
    for row, column in zip(*np.nonzero(weights >= query.least), strict=True):
        if row < len(rows) and column < len(columns):
            here, there = _bare(rows[row]), _bare(columns[column])
            if (here, there) == (_bare(query.attends), _bare(query.attended)):
                weight = float(weights[row, column])
                yield Gaze(pair.source, pair.target, int(row), int(column), weight)


def _word_maps(
    loaded: LoadedTranslator, pairs: Sequence[SentencePair], query: GazeQuery
) -> Iterator[tuple[SentencePair, Float[np.ndarray, "rows columns"]]]:
    """Yield each pair with the weights between its words, while the pair's own target is read."""
    source_tokenizer, target_tokenizer = loaded.source_tokenizer, loaded.target_tokenizer
    examples = [
        Example(source_tokenizer.encode(pair.source), target_tokenizer.encode(pair.target))
        for pair in pairs
    ]
    lengths = [(len(each.source) + 1, len(each.target) + 1) for each in examples]
    for places in sorted_batches(lengths, token_budget=BATCH_TOKENS):
        maps = _maps(loaded, [examples[place] for place in places], query)
        for place, weights in zip(places, maps, strict=True):
            each = examples[place]
            source = [*source_tokenizer.word_of_piece(each.source), -1]
            target = [*target_tokenizer.word_of_piece(each.target), -1]
            # What the decoder has read begins with the begin mark, and lacks the end mark.
            read = [-1, *target[:-1]]
            rows = source if query.part == "encoder" else target
            columns = read if query.part == "decoder" else source
            own = weights[: len(rows), : len(columns)]
            yield pairs[place], merge_to_words(own, source_words=columns, target_words=rows)


@torch.inference_mode()
def _maps(
    loaded: LoadedTranslator, examples: Sequence[Example], query: GazeQuery
) -> Float[np.ndarray, "batch rows columns"]:
    """Return the weights of a head for a batch."""
    model, batch = loaded.model, collate(examples)
    source, mask, target = batch.source, batch.source_mask, batch.target_input
    if not hasattr(model.decoder, "look"):
        if query.part != "cross" or query.layer not in (None, 0) or query.head not in (None, 0):
            raise SettingsError("A recurrent translator has one head: cross, layer 0, head 0.")
        weights = model(source, mask, target, with_weights=True).attention
        return np.asarray(weights.cpu().numpy())
    found = getattr(model.head_maps(source, mask, target), query.part)
    if found is None:
        raise SettingsError(f"This model has no attention in {query.part}.")
    layer = len(found) - 1 if query.layer is None else query.layer
    for name, number, count in (("layer", layer, len(found)),
                                ("head", query.head or 0, found.shape[2])):  # fmt: skip
        if not 0 <= number < count:
            raise SettingsError(
                f"There is no {name} {number} in {query.part}: it has {count}, counted from 0."
            )
    heads = found[layer]
    chosen = heads.mean(dim=1) if query.head is None else heads[:, query.head]
    return np.asarray(chosen.cpu().numpy())


def where_view(request: LookRequest) -> View:
    """Show where in the training examples a head attends from one word to another."""
    loaded = load(request.run)
    if not loaded.attends:
        raise SettingsError(f"The model of {request.run} has no attention to look at.")
    form = "WORD:WORD, as Hunde:dogs, the word that attends first"
    attends, attended = two_sides(request.where or "", ":", what="where", form=form)
    query = GazeQuery(
        attends=attends,
        attended=attended,
        part=request.part or "cross",
        layer=request.layer,
        head=request.head,
    )
    found = find_gazes(loaded, read_splits(loaded.recipe.data).train, query)

    def shown(width: int) -> str:
        lines = [f"{len(found)} places where {attends} attends to {attended}"]
        lines += [f"{g.weight:.2f}  {g.source}  |  {g.target}" for g in found[:MOST_SHOWN]]
        return "\n".join(lines)

    def save(path: Any) -> None:
        raise SettingsError(f"{path}: what was found is a list, not a picture: ask for --json.")

    record = {"places": [gaze.to_dict() for gaze in found], "count": len(found)}
    return View(record=record, save=save, shown=shown)
