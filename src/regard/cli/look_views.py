"""What `regard look` can show of each task: a table of views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from regard.base.errors import RegardError, SettingsError
from regard.cli.options import print_json

if TYPE_CHECKING:
    from regard.recipes.attention_heads import AttentionHeads

TRANSLATE, LANGUAGE_MODEL, FORECAST = "translate", "language-model", "forecast"
CLASSIFY_NODES, CLASSIFY_TEXT = "classify-nodes", "classify-text"


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked for on the command line."""

    run: Path | None = None
    text: str | None = None
    out: Path | None = None
    pieces: bool = False
    part: str | None = None
    layer: int | None = None
    head: int | None = None
    word: str | None = None
    arcs: bool = False
    curves: bool = False
    positions: str | None = None
    node: str | None = None
    embeddings: str | None = None
    json: bool = False

    @property
    def folder(self) -> Path:
        """The run that was named."""
        if self.run is None:
            raise SettingsError("Name a run to look at, as runs/demo/attention.")
        return self.run

    @property
    def sentence(self) -> str:
        """The text that was given."""
        if self.text is None:
            raise SettingsError("Give a sentence to look at.")
        return self.text


def view_of(question: Question) -> Callable[[Question], None]:
    """Return what answers a question, or say what the run can show instead."""
    asked = [name for name in PICTURES if getattr(question, name)]
    if len(asked) > 1:
        names = " and ".join(f"--{name}" for name in asked)
        raise SettingsError(f"{names} are different pictures: ask for one of them.")
    if asked and asked[0] in ANY_TASK:
        return ANY_TASK[asked[0]]
    from regard.recipes.run import Run

    task = Run.open(question.folder).task
    heads = question.part is not None or question.layer is not None or question.head is not None
    name = asked[0] if asked else "heads" if heads and (task, "heads") in VIEWS else "map"
    if (task, name) not in VIEWS:
        known = [other for of, other in VIEWS if of == task and other in PICTURES]
        shown = ", ".join(f"--{other}" for other in (*known, *ANY_TASK))
        raise SettingsError(
            f"The run at {question.folder} is of the task {task!r} and has no --{name}; it can "
            f"show {shown}."
        )
    return VIEWS[task, name]


def answer(
    question: Question,
    record: dict[str, Any],
    save: Callable[[Path], None],
    *,
    text: str = "",
    show: Callable[[], None] | None = None,
) -> None:
    """Write the file that is wanted, then print JSON, or what a person reads."""
    if question.out is None and not question.json and show is None:
        raise SettingsError("Name a picture to write with --out, or ask for --json.")
    if question.out is not None:
        save(question.out)
    if question.json:
        print_json(record)
    elif question.out is not None:
        typer.echo(f"{text}\nWrote {question.out}" if text else f"Wrote {question.out}")
    elif show is not None:
        show()


def _sentence(question: Question) -> None:
    """Show which source words each target word attends to."""
    from regard.pictures.heat_map import write_map
    from regard.recipes.loaded import load

    model = load(question.folder)
    if not model.attends:
        raise RegardError(f"The model of {question.folder} has no attention to look at.")
    translation = model.translate(question.sentence)
    if translation.attention is None:
        raise RegardError("There is nothing to translate: the text is empty.")
    seen = translation.attention if question.pieces else translation.by_word()

    def show() -> None:
        from rich.console import Console

        from regard.pictures.terminal import terminal_heat_map

        console = Console()
        width = console.width
        console.print(
            terminal_heat_map(
                seen.weights, source=seen.source, target=seen.target, console_width=width
            )
        )
        typer.echo(translation.text)

    answer(
        question,
        {**translation.to_dict(), "attention": seen.to_dict()},
        lambda path: write_map(seen.weights, source=seen.source, target=seen.target, path=path),
        text=translation.text,
        show=show,
    )


def _translator_heads(question: Question, *, part: str = "across") -> tuple[str, AttentionHeads]:
    from regard.recipes.attention_heads import translator_heads
    from regard.recipes.loaded import load

    return translator_heads(
        load(question.folder),
        question.sentence,
        part=question.part or part,
        pieces=question.pieces,
    )


def _text_heads(question: Question, *, part: str = "") -> tuple[str, AttentionHeads]:
    from regard.recipes.attention_heads import text_heads
    from regard.recipes.loaded_language_model import load_language_model

    if question.part is not None:
        raise SettingsError("--part is for translators: a language model has one part only.")
    return "", text_heads(load_language_model(question.folder).heads(question.sentence))


def _heads(heads_of: Callable[..., tuple[str, AttentionHeads]], question: Question) -> None:
    """Show all heads, those of a layer, or one."""
    from regard.recipes.head_pictures import draw_heads

    said, heads = heads_of(question)
    heads.check(question.layer, question.head)
    save = partial(_at, draw_heads, heads, layer=question.layer, head=question.head)
    record = {"text": said, **heads.to_dict()} if said else _symbols(heads)
    answer(question, record, save, text=said)


def _word(heads_of: Callable[..., tuple[str, AttentionHeads]], question: Question) -> None:
    """Show what one word of the text looks at."""
    from regard.pictures.arcs import draw_arcs
    from regard.recipes.head_pictures import gazes

    said, heads = heads_of(question, part="encoder")
    found = gazes(heads, question.word or "", layer=question.layer, head=question.head)
    record = {
        "words": list(heads.source),
        "place": found[0].place,
        "seen": [{"of": gaze.note, "weights": gaze.weights.tolist()} for gaze in found],
    }

    def show() -> None:
        for gaze in found:
            ranked = sorted(zip(gaze.weights.tolist(), gaze.words, strict=True), reverse=True)
            strongest = ", ".join(f"{word} {weight:.2f}" for weight, word in ranked[:4])
            typer.echo(f"{gaze.note}: {strongest}")

    answer(question, record, partial(draw_arcs, found), text=said, show=show)


def _arcs(heads_of: Callable[..., tuple[str, AttentionHeads]], question: Question) -> None:
    """Show the self-attention of the whole text."""
    from regard.recipes.head_pictures import draw_sentence

    said, heads = heads_of(question, part="encoder")
    seen = heads.of(question.layer, question.head)
    save = partial(_at, draw_sentence, heads, layer=question.layer, head=question.head)
    answer(question, seen.to_dict(), save, text=said)


def _graph(question: Question) -> None:
    """Show what a node attends to, the attention of all edges, or all nodes."""
    from regard.cli.node_classification import look, print_look

    found = look(
        question.folder,
        node=question.node,
        layer=question.layer or 0,
        head=question.head,
        embeddings=question.embeddings,
        out=question.out,
    )
    (print_json if question.json else print_look)(found)


def _series(question: Question) -> None:
    """Show a series with the forecasts of its test windows."""
    from regard.recipes.forecast import TrainedForecaster, load_forecaster, measure_forecaster
    from regard.recipes.forecast_picture import draw_trained
    from regard.recipes.run import Run
    from regard.recipes.series import read_windows

    model = load_forecaster(question.folder)
    windows = read_windows(model.recipe.data)
    score = measure_forecaster(model, windows)
    trained = TrainedForecaster(Run.open(question.folder), model, windows, score)
    answer(question, score.to_dict(), partial(draw_trained, trained))


def _confusion(question: Question) -> None:
    """Show which label a classifier takes for which, as its test found."""
    import json

    import numpy as np

    from regard.base.errors import RunError
    from regard.pictures.heat_map import draw_confusion

    path = question.folder / "test.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        counts = np.array(record["confusion"], dtype=np.int64)
        labels = [str(label) for label in record["labels"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is missing or damaged: train again.") from error
    answer(question, record, lambda out: draw_confusion(counts, labels=labels, path=out))


def _curves(question: Question) -> None:
    """Show how the training went."""
    from regard.pictures.curves import draw_learning_curves
    from regard.recipes.learning import histories_of

    found = histories_of(question.folder)
    answer(question, found, partial(draw_learning_curves, found))


def _positions(question: Question) -> None:
    """Show how positions are told to a model."""
    from regard.recipes.position_pictures import positions_of

    found = positions_of(question.positions or "", question.run, layer=question.layer)
    answer(question, found.to_dict(), found.save)


def _at(draw: Callable[..., None], what: Any, path: Path, **options: Any) -> None:
    """Draw to a path that is known last."""
    draw(what, path, **options)


def _symbols(heads: AttentionHeads) -> dict[str, Any]:
    """Return a language model's heads; source and target are the same symbols."""
    return {"pieces": list(heads.source), "weights": heads.weights.tolist()}


# Options that ask for a picture of their own.
PICTURES = ("node", "embeddings", "positions", "curves", "word", "arcs")
ANY_TASK: dict[str, Callable[[Question], None]] = {"positions": _positions, "curves": _curves}
VIEWS: dict[tuple[str, str], Callable[[Question], None]] = {
    (TRANSLATE, "map"): _sentence,
    (TRANSLATE, "heads"): partial(_heads, _translator_heads),
    (TRANSLATE, "word"): partial(_word, _translator_heads),
    (TRANSLATE, "arcs"): partial(_arcs, _translator_heads),
    (LANGUAGE_MODEL, "map"): partial(_heads, _text_heads),
    (LANGUAGE_MODEL, "heads"): partial(_heads, _text_heads),
    (LANGUAGE_MODEL, "word"): partial(_word, _text_heads),
    (LANGUAGE_MODEL, "arcs"): partial(_arcs, _text_heads),
    (CLASSIFY_NODES, "map"): _graph,
    (CLASSIFY_NODES, "node"): _graph,
    (CLASSIFY_NODES, "embeddings"): _graph,
    (FORECAST, "map"): _series,
    (CLASSIFY_TEXT, "map"): _confusion,
}
