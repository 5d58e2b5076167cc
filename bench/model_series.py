"""The model series: six translators with the same training time, by sentence length.

    python bench/model_series.py --corpus built-in [--runs FOLDER]
    python bench/model_series.py --corpus multi30k [--minutes 20] [--runs FOLDER]
    python bench/model_series.py --corpus bible [--minutes 20] [--only plain,dot]

Trains the models of `regard compare --series`, each for the given minutes on the same pairs with
the same vocabulary (an interrupted training is continued, a finished one is not repeated), and
compares them on the test part with beam search. built-in: the grammar's corpus, 1.7 minutes each by
default. multi30k: raw captions, tested on 2016. bible: World English Bible to Luther 1912, every
30th verse for the test and the one after it for validation.
Writes results/model-series-CORPUS.json and docs/pictures/model-series-CORPUS.png, except with
--set. --only trains the named models without comparing them, so that several processes can share
the work. The data is read from $REGARD_DATA/CORPUS, or ../shared/data/CORPUS.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from regard.cli.compare import length_table, score_table
from regard.corpora.lines import read_lines
from regard.corpora.sources import find_corpus
from regard.pictures.curves import draw_interval_curves
from regard.runs.display import ConsoleDisplay, waiting
from regard.studies.compare import Comparison, compare
from regard.studies.comparison_report import write_comparison
from regard.studies.model_series import ENTRIES, series_recipes, series_runs
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.training import train_many
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
TITLES = {
    "built-in": "The built-in corpus, English to German",
    "multi30k": "Multi30k, English to German",
    "bible": "The Bible, English to German",
}
EVERY, FIRST = 30, 7  # one verse in 30, from this one on, is for the test


def main() -> None:
    """Train, compare and write result file and figure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--corpus", choices=list(TITLES), required=True)
    options.add_argument("--minutes", type=float, help="of training for each model")
    options.add_argument("--data", type=Path, help="folder of the corpus")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/model-series"))
    options.add_argument("--only", help="models to train, with commas between them")
    options.add_argument("--set", action="append", default=[], help="a setting, key=value")
    given = options.parse_args()
    console = Console()
    display = ConsoleDisplay(console)
    runs = given.runs / given.corpus
    files = files_of(given.corpus, given.data or DATA / given.corpus, runs)
    recipes = series_recipes(files, minutes=given.minutes, overrides=given.set)
    if given.only:
        recipes = {name: recipes[name] for name in given.only.split(",")}
        train_many(recipes, runs, display=display)
        return
    train_many(recipes, runs, display=display)
    comparison = compare(series_runs(runs), stage=partial(waiting, console))
    title = TITLES[given.corpus]
    write_comparison(comparison, runs, title=f"From no attention to the Transformer: {title}")
    console.print(score_table(comparison), length_table(comparison))
    figures, details = figures_of(comparison)
    print(json.dumps(figures, indent=1))
    if given.set:
        return
    draw_interval_curves(
        comparison.bands(), PICTURES / f"model-series-{given.corpus}.png", title=title
    )
    first = next(iter(recipes.values()))
    minutes = first.training.minutes or 0.0
    details |= {
        "threads": torch.get_num_threads(),
        "training_pairs": len(read_splits(first.data).train),
    }
    path = write_result(
        f"model-series-{given.corpus}",
        figures | {"training_minutes": minutes},
        command=f"OMP_NUM_THREADS={torch.get_num_threads()} python bench/model_series.py "
        f"--corpus {given.corpus} --minutes {minutes:g}",
        details=details,
    )
    print(f"wrote {path}")


def figures_of(comparison: Comparison) -> tuple[dict[str, float], dict[str, object]]:
    """Return BLEU of each model, overall and by length, and what is worth a note."""
    figures: dict[str, float] = {}
    details: dict[str, object] = {"signatures": comparison.to_dict()["signatures"]}
    names = {entry.title: name for name, entry in ENTRIES.items()}
    for title, each in comparison.contestants.items():
        name = names[title]
        figures[f"{name}_bleu"] = round(each.evaluation.bleu.value, 2)
        for band in each.bands:
            if band.band.score is not None:
                key = f"{name}_bleu_{band.band.low}_{band.band.high}"
                figures[key] = round(band.band.score.value, 2)
        details[name] = rounded(each.row())
    first = comparison.first.bands
    details["sentences_in_bands"] = {band.band.label: band.band.sentences for band in first}
    return figures, details


def rounded(row: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the figures rounded to three decimals."""
    return {key: value if value is None else round(value, 3) for key, value in row.items()}


def files_of(corpus: str, data: Path, runs: Path) -> dict[str, tuple[Path, Path]] | None:
    """Return the files of a corpus by part; none for the built-in one."""
    if corpus == "built-in":
        return None
    folder = data / "raw" if corpus == "multi30k" else bible_parts(data, runs / "data")
    return find_corpus(folder, "en-de")


def bible_parts(data: Path, folder: Path) -> Path:
    """Write the verses that both translations have as train, valid and test; return the folder."""
    if (folder / "test.de").exists():  # written last
        return folder
    names = {"en": "eng-engwebp", "de": "deu-deu1912"}
    verses = [read_lines(data / f"{name}.txt.gz") for name in names.values()]
    both = [
        (source, target)
        for source, target in zip(*verses, strict=True)
        if source.strip() and target.strip() and "<range>" not in (source, target)
    ]
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for number, pair in enumerate(both):
        part = {FIRST: "test", FIRST + 1: "valid"}.get(number % EVERY, "train")
        parts[part].append(pair)
    folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        for side, language in enumerate(names):
            text = "".join(pair[side].strip() + "\n" for pair in pairs)
            (folder / f"{part}.{language}").write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
