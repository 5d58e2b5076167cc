"""The comparison as files: a page, a figure, and the numbers behind them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import pstdev
from typing import Any

from regard.pictures import curves, report
from regard.pictures.canvas import Records, json_text, write_records, write_text
from regard.scoring.bleu import sentence_chrf
from regard.scoring.bootstrap import BandWithInterval
from regard.studies.compare import Comparison, Contestant
from regard.tasks.translation.settings import TranslationRecipe

SHOWN_SAMPLES = 8
LONGEST_SAMPLE = 40
# Long enough to show word order, short enough for a readable heat map.
MAP_WORDS = range(6, 13)
PAGE = "comparison.html"
FIGURES = ("by-length.png", "by-length.svg", "by-length.pdf")
COMPARED_TABLES = ("tokenizer", "model", "batches", "training", "decoding")


def write_comparison(comparison: Comparison, folder: Path, *, title: str) -> list[Path]:
    """Write page, figure and numbers into a folder; return their paths, the page first."""
    paths = [folder / PAGE]
    report.write_page(paths[0], title=title, sections=list(_sections(comparison)))
    for name in FIGURES:
        paths.append(folder / name)
        curves.draw_interval_curves(comparison.bands(), paths[-1])
    paths += [folder / name for name in ("by-length.csv", "comparison.csv", "comparison.json")]
    curves.write_interval_curves(comparison.bands(), paths[-3])
    rows = comparison.rows()
    write_records(Records(tuple(rows[0]), [list(row.values()) for row in rows]), paths[-2])
    write_text(paths[-1], json_text(comparison.to_dict()))
    return paths


def most_different(comparison: Comparison, count: int) -> list[int]:
    """Return the indices of the sentences on which the models differ most, without long ones.

    The measure is the standard deviation of sentence chrF: a sentence on which half of the models
    fail ranks higher than one on which a single model fails.
    """
    readable = [
        row
        for row, pair in enumerate(comparison.pairs)
        if len(pair.source.split()) <= LONGEST_SAMPLE
    ]
    contestants = list(comparison.contestants.values())
    spread = {row: pstdev(_sentence_scores(contestants, row)) for row in readable}
    return sorted(readable, key=lambda row: -spread[row])[:count]


def _sentence_scores(contestants: Sequence[Contestant], row: int) -> list[float]:
    """Return the chrF of each model on one sentence."""
    return [
        sentence_chrf(each.outputs[row], each.evaluation.pairs[row].target) for each in contestants
    ]


def _sections(comparison: Comparison) -> Iterator[report.Section]:
    yield from _scores(comparison)
    yield from _lengths(comparison)
    yield report.Heading("Where the models differ most")
    yield _samples(comparison, most_different(comparison, SHOWN_SAMPLES))
    yield from _attention(comparison)
    histories = {name: each.history for name, each in comparison.contestants.items()}
    if any(histories.values()):
        yield report.Heading("Learning")
        drawn = curves.learning_curves_svg(histories, against="minutes")
        yield report.Picture("Loss and validation BLEU over the minutes of training", drawn)
    yield from _settings(comparison)


def _scores(comparison: Comparison) -> Iterator[report.Section]:
    rows, first = comparison.rows(), comparison.first
    aligned = any(row["alignment_error_rate"] is not None for row in rows)
    gold = "; alignment error in percent, lower is better" if aligned else ""
    yield report.Heading(f"Scores on {len(comparison.pairs):,} sentences")
    yield report.Table(
        f"BLEU and chrF from 0 to 100, higher is better{gold}. Differences are from "
        f"“{comparison.baseline}”.",
        ["model", "BLEU", "±", "difference", "p", "chrF", *(["alignment error"] * aligned)],
        [_score_row(row, aligned=aligned) for row in rows],
    )
    yield report.Paragraph(
        "±: half the 95 % confidence interval of BLEU (bootstrap over the test sentences). p: the "
        "probability of a difference this large by chance (paired bootstrap). "
        f"Signatures: BLEU {first.paired.signature}; chrF {first.evaluation.chrf.signature}."
    )
    if comparison.general_pairs:
        yield report.Table(
            f"General sentences ({len(comparison.general_pairs):,}), on which forgetting is seen.",
            ["model", "BLEU", "±", "difference", "p"],
            [_general_cells(row) for row in rows],
        )
    yield report.Table(
        "Cost. All speeds were measured in turn with the same engine; the last column is relative "
        f"to “{comparison.baseline}”.",
        [
            "model",
            "parameters",
            "minutes of training",
            "updates",
            "sentences per second",
            "relative",
        ],
        [_cost_row(row) for row in rows],
    )


def _score_row(row: dict[str, Any], *, aligned: bool) -> list[str | int | float | None]:
    """Return the scores of a model for the page."""
    p_value = row["p_value"]
    return [
        row["model"],
        row["bleu"],
        (row["bleu_high"] - row["bleu_low"]) / 2,
        None if p_value is None else row["difference"],
        None if p_value is None else f"{p_value:.3f}",
        row["chrf"],
        *([row["alignment_error_rate"]] * aligned),
    ]


def _general_cells(row: dict[str, Any]) -> list[str | int | float | None]:
    """Return the scores of a model on general sentences for the page."""
    p_value = row["general_p_value"]
    return [
        row["model"],
        row["general_bleu"],
        (row["general_bleu_high"] - row["general_bleu_low"]) / 2,
        None if p_value is None else row["general_difference"],
        None if p_value is None else f"{p_value:.3f}",
    ]


def _cost_row(row: dict[str, Any]) -> list[str | int | float | None]:
    """Return the cost of a model for the page."""
    return [
        row["model"],
        row["parameters"],
        row["training_minutes"],
        row["updates"],
        row["sentences_per_second"],
        row["speed_ratio"],
    ]


def _lengths(comparison: Comparison) -> Iterator[report.Section]:
    yield report.Heading("Short and long sentences")
    bands = comparison.bands()
    yield report.Picture(
        "BLEU by the length of the source sentence", curves.interval_curves_svg(bands)
    )
    first = [one.band for one in comparison.first.bands]
    yield report.Table(
        "The same as numbers, by words in the source sentence",
        ["model", *(band.label for band in first)],
        [
            ["number of sentences", *(band.sentences for band in first)],
            *([name, *map(_value, each)] for name, each in bands.items()),
        ],
    )


def _value(band: BandWithInterval) -> float | None:
    return band.band.score.value if band.band.score else None


def _samples(comparison: Comparison, rows: Sequence[int]) -> report.Samples:
    return report.Samples(
        [
            report.Sample(
                comparison.pairs[row].source,
                comparison.pairs[row].target,
                {name: each.outputs[row] for name, each in comparison.contestants.items()},
            )
            for row in rows
        ]
    )


def _attention(comparison: Comparison) -> Iterator[report.Section]:
    """Yield one sentence with the attention of every model that has attention."""
    attending = {n: each for n, each in comparison.contestants.items() if each.model.attends}
    fitting = [
        row for row, pair in enumerate(comparison.pairs) if len(pair.source.split()) in MAP_WORDS
    ]
    if not attending or not fitting:
        return
    # A sentence that all models translate well; among equals, the longest.
    models = list(attending.values())
    chosen = max(
        fitting,
        key=lambda row: (
            round(min(_sentence_scores(models, row))),
            len(comparison.pairs[row].source),
        ),
    )
    yield report.Heading("The attention of each model on one sentence")
    for name, each in attending.items():
        translation = each.model.translate(comparison.pairs[chosen].source)
        if translation.attention is not None and translation.text:
            seen = translation.by_word()
            yield report.HoverMap(seen.source, seen.target, seen.weights, name)


def _settings(comparison: Comparison) -> Iterator[report.Section]:
    """Yield the settings in which the recipes differ."""
    recipes = {name: each.model.recipe for name, each in comparison.contestants.items()}
    chosen = {name: _chosen(recipe) for name, recipe in recipes.items()}
    keys = dict.fromkeys(key for settings in chosen.values() for key in settings)
    values = {key: [_setting(recipe, key) for recipe in recipes.values()] for key in keys}
    rows = [[key, *each] for key, each in values.items() if any(v != each[0] for v in each)]
    yield report.Heading("Differences between the recipes")
    if rows:
        yield report.Table("Settings that differ", ["setting", *recipes], rows)
    else:
        yield report.Paragraph("The recipes are the same.")


def _chosen(recipe: TranslationRecipe) -> list[str]:
    """Return the dotted names of the settings that differ from their defaults."""
    return [
        f"{table}.{key}"
        for table in COMPARED_TABLES
        for key, field in type(getattr(recipe, table)).model_fields.items()
        if key == "family" or getattr(getattr(recipe, table), key) != field.default
    ]


def _setting(recipe: TranslationRecipe, key: str) -> str | None:
    """Return a setting as text; None where this kind of model does not have it."""
    table, _, name = key.partition(".")
    value = getattr(getattr(recipe, table), name, None)
    return None if value is None else str(value)
