"""What interventions tell about a translator: the worth of each head, and whether weights rule.

The worth of a head is the BLEU that the test set loses without it (Michel et al. 2019, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.attention.probe import Probe, Site
from regard.base.errors import RegardError, SettingsError
from regard.base.shapes import Tensor
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded
from regard.compute.device import beside
from regard.corpora.parallel import SentencePair
from regard.models.interventions import Off, Place
from regard.scoring.bleu import corpus_bleu
from regard.studies.common_test import common_test
from regard.tasks import load
from regard.tasks.translation.interventions import attending_parts
from regard.tasks.translation.model import LoadedTranslator


@dataclass(frozen=True)
class HeadWorth:
    """A head, and the BLEU of the test set without it."""

    part: str
    layer: int
    head: int
    bleu: float
    lost: float


@dataclass(frozen=True)
class HeadImportance:
    """BLEU with all heads, and what is lost without each of them."""

    bleu: float
    sentences: int
    heads: tuple[HeadWorth, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "bleu": self.bleu,
            "sentences": self.sentences,
            "heads": [dict(vars(head)) for head in self.heads],
        }

    def __str__(self) -> str:
        lines = [
            f"BLEU {self.bleu:.1f} on {self.sentences} sentences; what is lost without a head:",
            "",
            f"{'part':<8} {'layer':>5} {'head':>4}  {'BLEU':>6}  {'lost':>6}",
        ]
        for one in sorted(self.heads, key=lambda head: -head.lost):
            lines.append(
                f"{one.part:<8} {one.layer:>5} {one.head:>4}  {one.bleu:6.1f}  {one.lost:+6.1f}"
            )
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Draw a map of all heads (.png, .svg, .pdf), or write the numbers (.csv, .json)."""
        from regard.pictures.heat_map import write_map

        weights, rows, columns = self._table()
        write_map(weights, source=columns, target=rows, path=path, title=self._title)

    def _repr_html_(self) -> str:
        from regard.pictures.heat_map import heat_map_svg
        from regard.pictures.svg import notebook_picture

        weights, rows, columns = self._table()
        drawn = heat_map_svg(weights, source=columns, target=rows, title=self._title)
        return notebook_picture(drawn, label=self._title)

    @property
    def _title(self) -> str:
        return f"BLEU lost without each head (of {self.bleu:.1f})"

    def _table(self) -> tuple[Any, list[str], list[str]]:
        """Return a row for each layer of each part; what gains without a head is shown as 0."""
        import numpy as np

        rows = list(dict.fromkeys(f"{head.part} {head.layer}" for head in self.heads))
        most = max(head.head for head in self.heads) + 1
        weights = np.zeros((len(rows), most))
        for head in self.heads:
            weights[rows.index(f"{head.part} {head.layer}"), head.head] = max(0.0, head.lost)
        return weights, rows, [f"head {number}" for number in range(most)]


def head_importance(
    run: str | Path | LoadedTranslator,
    *,
    pairs: Sequence[SentencePair] | None = None,
    sentences: int = 200,
    parts: Sequence[str] | None = None,
    on_head: Callable[[int, int], None] = lambda done, of: None,
) -> HeadImportance:
    """Return what the test set loses without each head, one at a time, decoding greedily.

    `pairs` are by default the first `sentences` of the run's own test part.
    """
    loaded = load(run) if isinstance(run, str | Path) else run
    if not isinstance(loaded, LoadedTranslator) or not loaded.attends:
        raise RegardError("Heads are rated by BLEU: give a run of a translator with attention.")
    chosen = list(pairs or common_test({"run": loaded.recipe}))[:sentences]
    if not chosen:
        raise RegardError("There is no test sentence to rate heads on.")
    known = attending_parts(loaded.model)
    if missing := [part for part in parts or () if part not in known]:
        raise SettingsError(f"This model has no attention in {missing[0]}: {', '.join(known)}.")
    places = [
        Place(part, layer, head)
        for part, (layers, heads) in known.items()
        if parts is None or part in parts
        for layer in range(layers)
        for head in range(heads)
    ]
    whole = _bleu(loaded, chosen)
    worth = []
    for number, place in enumerate(places, 1):
        bleu = _bleu(loaded.with_interventions([Off(place)]), chosen)
        worth.append(
            HeadWorth(place.part or "", place.layer or 0, place.head or 0, bleu, whole - bleu)
        )
        on_head(number, len(places))
    return HeadImportance(whole, len(chosen), tuple(worth))


def _bleu(loaded: LoadedTranslator, pairs: Sequence[SentencePair]) -> float:
    found = loaded.translate([pair.source for pair in pairs], attention=False, beam=1)
    return corpus_bleu([one.text for one in found], [pair.target for pair in pairs]).value


@dataclass(frozen=True)
class ForcedSteps:
    """How often a model writes the gold translation of the word that it is made to look at."""

    steps: int
    """Pairs of a step and a source word that has a gold translation."""
    gold: float
    """The share in which the word's translation was written, forced to look at the word."""
    unforced: float
    """The same share where the model looked as it would."""
    own: float
    """The share at the steps at which the word's translation stands in the reference."""
    others: float
    """The share at all other steps."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


@torch.inference_mode()
def forced_steps(loaded: LoadedTranslator, pairs: Sequence[SentencePair]) -> ForcedSteps:
    """Force the attention of each step of the reference to each source word, one at a time.

    The model has read the reference up to that step. A word's translation are the tokens of the
    target words that its gold links lead to.
    """
    hits: list[tuple[bool, bool, bool]] = []  # forced, unforced, at the word's own step
    for pair in pairs:
        if pair.alignment is not None:
            hits += _forced_sentence(loaded, pair)
    if not hits:
        raise RegardError("There are no gold alignments to force attention by.")
    own = [forced for forced, _, mine in hits if mine]
    others = [forced for forced, _, mine in hits if not mine]
    return ForcedSteps(
        steps=len(hits),
        gold=sum(forced for forced, *_ in hits) / len(hits),
        unforced=sum(free for _, free, _ in hits) / len(hits),
        own=sum(own) / max(1, len(own)),
        others=sum(others) / max(1, len(others)),
    )


def _forced_sentence(loaded: LoadedTranslator, pair: SentencePair) -> list[tuple[bool, bool, bool]]:
    source = loaded.source_tokenizer.encode(pair.source)
    target = loaded.target_tokenizer.encode(pair.target)
    source_words = loaded.source_tokenizer.word_of_piece(source)
    target_words = loaded.target_tokenizer.word_of_piece(target)
    linked: dict[int, set[int]] = {}  # source word: tokens of its translation
    for there, here in pair.alignment or ():
        mine = {token for token, word in zip(target, target_words, strict=True) if word == here}
        linked.setdefault(there, set()).update(mine)
    cases = [(step, word) for step in range(len(target)) for word in sorted(linked)]
    if not cases:
        return []
    ids, mask = padded([source] * len(cases), after=END)
    begun = padded([target] * len(cases), before=BEGIN)[0]
    rows = torch.zeros(len(cases), len(source) + 1)
    for number, (_, word) in enumerate(cases):
        places = [place for place, owner in enumerate(source_words) if owner == word]
        rows[number, places] = 1 / max(1, len(places))
    steps = torch.tensor([step for step, _ in cases])
    ids, mask, begun, rows, steps = beside(loaded.model, (ids, mask, begun, rows, steps))

    def force(site: Site, name: str, value: Tensor) -> Tensor:
        if site.part != "cross" or name != "weights":
            return value
        # Steps of these queries.
        at = torch.arange(site.start, site.start + value.shape[2], device=value.device)
        here = (steps[:, None] == at)[:, None, :, None]
        return torch.where(here, rows[:, None, None], value)

    written = []
    for probe in (Probe(force), None):
        features = loaded.model(ids, mask, begun, probe=probe).features
        at_step = features[torch.arange(len(cases), device=steps.device), steps]
        written.append(loaded.model.project(at_step).argmax(dim=-1).tolist())
    return [
        (forced in linked[word], free in linked[word], target[step] in linked[word])
        for (step, word), forced, free in zip(cases, *written, strict=True)
    ]
