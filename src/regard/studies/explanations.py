"""Is attention an explanation? Methods of explanation, graded on a user's own translator.

Two questions, on given translations: does a method link the words that gold alignments link, and
does the model change its mind as soon as the tokens that a method names are gone? The second is
asked by deletion and insertion (Petsiuk et al. 2018): tokens become unknown, or known, one after
the other, the most important first, and the area is that under the probability of the target token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from regard.base.errors import RegardError
from regard.base.special_tokens import END, UNKNOWN
from regard.compute.device import beside
from regard.corpora.parallel import SentencePair
from regard.scoring.alignment import Link, alignment_error_rate
from regard.studies.common_test import common_test
from regard.tasks import load
from regard.tasks.translation.evaluation import score_heads
from regard.tasks.translation.explanations import SentencePass, explained, methods_of
from regard.tasks.translation.model import LoadedTranslator

RANDOM = "random"  # an order without a reason, for comparison
SAMPLES, LEVEL = 1_000, 0.95  # of the bootstrap over sentences
LONGEST = 24  # source tokens of a sentence that is graded; the work grows with the square


@dataclass(frozen=True)
class Area:
    """A mean area over sentences with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Grade:
    """What is known of a method; the alignment error in percent, if there was gold."""

    method: str
    alignment_error: float | None
    deletion: Area
    insertion: Area

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "method": self.method,
            "alignment_error": self.alignment_error,
            "deletion": vars(self.deletion),
            "insertion": vars(self.insertion),
        }


@dataclass(frozen=True)
class Grades:
    """The grades of all methods on one model."""

    sentences: int
    grades: tuple[Grade, ...]
    head: tuple[int, int] | None
    """The head of the method best-head: layer and head, chosen on other sentences."""

    def __getitem__(self, method: str) -> Grade:
        return next(grade for grade in self.grades if grade.method == method)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "sentences": self.sentences,
            "best_head": self.head,
            "methods": [grade.to_dict() for grade in self.grades],
        }

    def _table(self) -> tuple[list[str], list[list[str]]]:
        gold = any(grade.alignment_error is not None for grade in self.grades)
        head = ["method", *(["AER"] if gold else []), "deletion (less)", "insertion (more)"]
        rows = []
        for grade in self.grades:
            error = "" if grade.alignment_error is None else f"{grade.alignment_error:.1f}"
            areas = [str(grade.deletion), str(grade.insertion)]
            rows.append([grade.method, *([error] if gold else []), *areas])
        return head, rows

    def __str__(self) -> str:
        head, rows = self._table()
        widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *rows)
        ]
        chosen = (
            "" if self.head is None else (f"; best head: layer {self.head[0]}, head {self.head[1]}")
        )
        note = (
            f"{self.sentences} sentences, intervals of {LEVEL:.0%}{chosen}. Less or more is better."
        )
        return "\n".join([*lines, "", note])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        parts = ["<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
        parts += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        return f"<table>{''.join(parts)}</table>"


def grade_explanations(
    run: str | Path | LoadedTranslator,
    *,
    pairs: Sequence[SentencePair] | None = None,
    sentences: int = 100,
    methods: Sequence[str] | None = None,
    on_sentence: Callable[[int, int], None] = lambda done, of: None,
) -> Grades:
    """Return the grades of all methods that a model has, on given translations.

    `pairs` are by default those of the run's own test part. Where they have gold alignments, the
    best head is chosen on others than those that are graded.
    """
    loaded = load(run) if isinstance(run, str | Path) else run
    if not isinstance(loaded, LoadedTranslator) or not loaded.attends:
        raise RegardError("Explanations are graded on a translator with attention.")
    chosen = list(methods or methods_of(loaded))
    known = [pair for pair in pairs or common_test({"run": loaded.recipe}) if pair.target.strip()]
    fitting = [
        pair for pair in known if 0 < len(loaded.source_tokenizer.encode(pair.source)) <= LONGEST
    ]
    graded, others = fitting[:sentences], fitting[sentences : 2 * sentences] or fitting
    if not graded:
        raise RegardError(f"There is no test sentence of at most {LONGEST} tokens to grade on.")
    gold = all(pair.alignment is not None for pair in graded)
    head = None
    if gold and "best-head" in chosen:
        head = score_heads(loaded, others)[0].place
    links: dict[str, list[frozenset[Link]]] = {name: [] for name in chosen}
    areas: dict[str, list[tuple[float, float]]] = {name: [] for name in (*chosen, RANDOM)}
    for number, pair in enumerate(graded):
        source = tuple(loaded.source_tokenizer.encode(pair.source))
        target = tuple(loaded.target_tokenizer.encode(pair.target))
        given = SentencePass(loaded, source, target, head)
        for name in chosen:
            found = explained(given, name, pair.source, pair.target)
            links[name].append(found.shares.links())
            areas[name].append(_areas(given, np.abs(found.values)))
        noise = np.random.default_rng(number).random((len(target) + 1, len(source) + 1))
        areas[RANDOM].append(_areas(given, noise))
        on_sentence(number + 1, len(graded))
    marked = [pair.alignment or () for pair in graded]
    grades = [
        Grade(
            name,
            alignment_error_rate(links[name], marked).value if gold and name in links else None,
            *(_interval(np.array(each)) for each in zip(*areas[name], strict=True)),
        )
        for name in (*chosen, RANDOM)
    ]
    return Grades(len(graded), tuple(grades), head)


@torch.inference_mode()
def _areas(given: SentencePass, sizes: Float[np.ndarray, "target source"]) -> tuple[float, float]:
    """Return the areas of deletion and insertion, mean over the target tokens but the end mark."""
    places, steps = len(given.source), len(given.target)
    whole = torch.tensor([*given.source, END])
    rows = []
    for step in range(steps):
        order = np.argsort(-sizes[step, :places], kind="stable")
        for count in range(places + 1):
            gone = torch.zeros(places + 1, dtype=torch.bool)
            gone[torch.from_numpy(order[:count].copy())] = True
            there = ~gone
            there[places] = True
            unknown = torch.full_like(whole, UNKNOWN)
            unknown[places] = END
            rows += [torch.where(gone, unknown, whole), torch.where(gone, whole, unknown)]
    sources = beside(given.model, torch.stack(rows))  # [steps * (places + 1) * 2, source]
    owners = torch.arange(steps).repeat_interleave((places + 1) * 2)
    chances = []
    for block in torch.split(torch.arange(len(sources)), 256):
        found = given.chances(given.features(len(block), source=sources[block]))
        chances.append(found.cpu()[torch.arange(len(block)), owners[block]])
    curves = torch.cat(chances).view(steps, places + 1, 2)
    deletion, insertion = torch.trapezoid(curves, dim=1).mean(dim=0) / max(1, places)
    return float(deletion), float(insertion)


def _interval(values: Float[np.ndarray, "sentences"]) -> Area:
    """Return the mean over sentences with its bootstrap interval."""
    draws = np.random.default_rng(1).integers(0, len(values), (SAMPLES, len(values)))
    means = values[draws].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Area(float(values.mean()), float(low), float(high))
