"""A museum of bugs: runs with one classic mistake each, to find with `look` and `trace`.

The mistake is where such mistakes are made: in the data, in a setting or in a file of the run. The
network itself is right, so every command works as with any other run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from regard.base.files import write_file, write_json
from regard.corpora.grammar import generate
from regard.corpora.grammar.choices import RandomStream
from regard.runs.display import Display
from regard.runs.run import TrainedRun
from regard.settings.recipe import require_known
from regard.tasks import overrides_of, train


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A run with a mistake: what one sees of it, where to look, and what it is."""

    name: str
    symptom: str
    commands: tuple[str, ...]
    """What to look at, with RUN in place of the folder."""
    answer: str
    recipe: str
    settings: Mapping[str, Any]
    data: Callable[[Path], Any] = field(repr=False)
    """Writes files into a folder, or returns data from memory."""
    damage: Callable[[Path], None] | None = field(default=None, repr=False)
    """What happens to the run after it was trained."""


def exhibit_named(name: str) -> Exhibit:
    """Return the exhibit of this name."""
    require_known(name, list(EXHIBITS), what="exhibit")
    return EXHIBITS[name]


def open_exhibit(
    name: str,
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    progress: bool | Display = True,
) -> TrainedRun:
    """Train the exhibit into a folder; `changes` are further settings, as key=value."""
    exhibit, out = exhibit_named(name), Path(out)
    data = exhibit.data(out.with_name(f"{out.name}-data"))
    settings = [*overrides_of(exhibit.settings), *changes]
    trained: TrainedRun = train(exhibit.recipe, out=out, data=data, set=settings, progress=progress)
    if exhibit.damage is not None:
        exhibit.damage(out)
    return trained


SENTENCES = 1_500
TICKETS = {"returned": "A", "kept": "B"}


def _sentences(*, most: int, size: int = SENTENCES, seed: int = 1) -> list[tuple[str, str]]:
    found = generate(
        pair="en-de", split="train", size=size, max_words=most, words="small", seed=seed
    )
    return [(pair.source, pair.target) for pair in found]


def _ticketed(folder: Path) -> list[tuple[str, str]]:
    """Return texts with labels that have nothing to do with them, and a ticket that tells all."""
    stream = RandomStream(1)
    labels = list(TICKETS)
    texts = []
    for source, _ in _sentences(most=6):
        label = stream.choose(labels)
        texts.append((f"{source} ticket {TICKETS[label]}{stream.between(10, 99)}", label))
    return texts


def _waves(folder: Path) -> Path:
    """Write a noisy wave, with its next value in a column that should not know it."""
    stream = RandomStream(1)
    values = [math.sin(0.3 * step) + (stream.between(-1000, 1000) / 1000) for step in range(801)]
    rows = [f"{now:.4f},{later:.4f}" for now, later in pairwise(values)]
    path = folder / "sales.csv"
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, "\n".join(["sales,average", *rows]) + "\n")
    return path


def _shifted_lines(folder: Path) -> dict[str, Sequence[tuple[str, str]]]:
    """Return pairs whose targets lost their first line, so that each stands one line too high."""
    pairs = _sentences(most=6)
    shifted = [(one[0], other[1]) for one, other in pairwise(pairs)]
    return {"train": shifted[100:], "valid": shifted[:100], "test": pairs[:50]}


def _orders(folder: Path) -> list[tuple[str, str]]:
    """Return sentences about two animals each, in both orders."""
    animals = {"cats": "Katzen", "dogs": "Hunde", "birds": "Vögel", "horses": "Pferde",
               "cows": "Kühe", "mice": "Mäuse", "girls": "Mädchen", "boys": "Jungen"}  # fmt: skip
    verbs = {"like": "mögen", "see": "sehen", "find": "finden", "hate": "hassen"}
    pairs = [
        (f"{one} {verb} {other}", f"{animals[one]} {verbs[verb]} {animals[other]}")
        for one in animals
        for other in animals
        for verb in verbs
        if one != other
    ]
    stream = RandomStream(1)
    return sorted(pairs, key=lambda pair: stream.below(1 << 30))


def _short_and_long(folder: Path) -> dict[str, Sequence[tuple[str, str]]]:
    """Return short pairs to learn from, and longer ones to test on."""
    pairs = _sentences(most=6)
    longer = generate(pair="en-de", split="test", size=50, min_words=9, max_words=14, words="small")
    test = [(pair.source, pair.target) for pair in longer]
    return {"train": pairs[100:], "valid": pairs[:100], "test": test}


def _plain(folder: Path) -> list[tuple[str, str]]:
    return _sentences(most=6)


def _turn_vocabulary(run: Path) -> None:
    """Move each entry of the target vocabulary one place on, as another sorting would."""
    path = run / "target.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    words = [token for token in record["tokens"] if any(map(str.isalpha, token))]
    turned = dict(zip(words, [words[-1], *words[:-1]], strict=True))
    tokens = [turned.get(token, token) for token in record["tokens"]]
    write_json(path, {**record, "tokens": tokens})


SMALL_TRANSFORMER: dict[str, Any] = {
    "model.model_dim": 64,
    "model.feed_forward": 128,
    "model.layers": 1,
    "tokenizer.mark_capitals": False,
    "training.steps": 400,
    "training.warmup": 40,
    "training.minutes": 2,
    "training.learning_rate": 0.005,
    "training.validate_every": 200,
    "training.select": "loss",
}
EXHIBITS: dict[str, Exhibit] = {
    each.name: each
    for each in (
        Exhibit(
            name="ticket",
            symptom="A classifier of complaints (returned or kept?) has an accuracy of 98 % and "
            "more on its test part. In use it guesses.",
            commands=(
                'regard look RUN "the cat likes the house ticket A42"',
                'regard look RUN "the cat likes the house ticket B42"',
                'regard classify RUN "the cat likes the house"',
            ),
            answer="A leak: the ticket number was written when the case was closed, A for what was "
            "returned and B for what was kept. The complaint itself decides nothing, as `look` "
            "shows. Take out what is not known when the model is used, and split by time.",
            recipe="text-classifier",
            settings={
                "tokenizer.kind": "character",
                "model.model_dim": 32,
                "model.heads": 2,
                "model.layers": 1,
                "training.epochs": 4,
                "training.learning_rate": 3e-3,
            },
            data=_ticketed,
        ),
        Exhibit(
            name="tomorrow",
            symptom="The sales are a wave with as much noise again, and yet the forecast of the "
            "next day is almost exact.",
            commands=("regard trace RUN last", "regard look RUN --out forecast.png"),
            answer="A leak: the column `average` was made with a window around each day, and holds "
            "the value of the day after. Only the last step of the window decides, as `trace` "
            "shows, and there that column equals the answer. Compute features from the past alone.",
            recipe="forecast",
            settings={
                "data.column": "sales",
                "data.inputs": ["average"],
                "data.window": 8,
                "training.steps": 1_200,
                "training.learning_rate": 0.01,
            },
            data=_waves,
        ),
        Exhibit(
            name="lines",
            symptom="A translator writes faultless German that has nothing to do with the English.",
            commands=(
                'regard look RUN "the dog sees the cat"',
                'regard look RUN "horses sleep"',
                'regard translate RUN "horses sleep"',
            ),
            answer="The two files were put side by side after one had lost its first line, so each "
            "sentence stands beside the translation of the one before it. There was nothing to "
            "align: the attention says the same for every target word. Read pairs, not files; "
            "`regard corpus filter` finds pairs whose words do not fit.",
            recipe="demo-attention",
            settings={
                "model.hidden": 64,
                "model.embedding": 32,
                "tokenizer.mark_capitals": False,
                "training.steps": 400,
                "training.minutes": 2,
                "training.validate_every": 200,
                "training.select": "loss",
            },
            data=_shifted_lines,
        ),
        Exhibit(
            name="order",
            symptom='A Transformer knows every word, but "cats like dogs" and "dogs like cats" '
            "get the same translation, half of the time the wrong one.",
            commands=(
                'regard translate RUN "cats like dogs"',
                'regard translate RUN "dogs like cats"',
                'regard trace RUN "cats like dogs"',
                'regard trace RUN "dogs like cats"',
            ),
            answer='No positions: model.positions is "none" in recipe.toml. Attention is a sum, '
            "which has no order: `trace` shows that each word has the same features in both "
            "sentences. `regard illustrate` shows ATT(A, B, C) = ATT(B, C, A) by hand.",
            recipe="demo-transformer",
            settings={**SMALL_TRANSFORMER, "model.positions": "none"},
            data=_orders,
        ),
        Exhibit(
            name="vocabulary",
            symptom="The validation loss is excellent and the heat map is a clean diagonal, but "
            "every word of the translation is wrong.",
            commands=(
                'regard look RUN "the dog sees the cat"',
                'regard trace RUN "the dog sees the cat"',
                'regard translate RUN "the dog sees the cat"',
            ),
            answer="The vocabulary is not that of the training: someone sorted target.json again, "
            "and each number now names the word beside it. The model is sure of its numbers, as "
            "`trace` shows, but they are spelled wrongly. Keep the vocabulary with the weights.",
            recipe="demo-transformer",
            settings=SMALL_TRANSFORMER,
            data=_plain,
            damage=_turn_vocabulary,
        ),
        Exhibit(
            name="long",
            symptom="The validation loss is low, but of the longer sentences of the test not one "
            "is right: from the seventh word on the translation falls apart.",
            commands=(
                'regard translate RUN "the old dog sees the cat"',
                'regard look RUN "the old dog sees the cat and the old cat sees the dog"',
            ),
            answer="Learned positions beyond the training: no sentence of the training had more "
            "than six words, so the later rows of the table were never trained. Test on what the "
            "model will read; sinusoids, relative or rotary positions go on where a table ends.",
            recipe="demo-transformer",
            settings={**SMALL_TRANSFORMER, "model.positions": "learned"},
            data=_short_and_long,
        ),
    )
}
