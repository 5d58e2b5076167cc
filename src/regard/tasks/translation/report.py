"""The report of one or several trained runs: scores, curves, attention, translations, recipe."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.models.inspection import parameter_count
from regard.pictures import report
from regard.pictures.curves import length_curves_svg
from regard.runs.film import film_of
from regard.runs.report import learning_section, making_section
from regard.scoring.bleu import Interval
from regard.tasks.translation.evaluation import Evaluation, TrainedTranslator
from regard.training.progress import read_metrics

SHOWN_MAPS = 3
SHOWN_SAMPLES = 4


def write_report(trained: TrainedTranslator, path: Path, *, title: str) -> None:
    """Write the HTML report of one training."""
    report_runs({trained.run.folder.name: trained}, path, title=title)


def report_runs(runs: Mapping[str, TrainedTranslator], path: Path, *, title: str) -> None:
    """Write one HTML file about these runs, which were tested on the same sentences."""
    report.write_page(path, title=title, sections=list(_sections(runs)))


def _sections(runs: Mapping[str, TrainedTranslator]) -> Iterator[report.Section]:
    tested = {name: run.evaluation for name, run in runs.items() if run.evaluation is not None}
    if tested:
        yield from _scores(runs, tested)
        for each in tested.values():
            yield from each.forgetting.sections() if each.forgetting else ()
        yield from _attention(runs, tested)
        yield from _films(runs)
        yield from _translations(runs, tested)
    yield from learning_section({name: read_metrics(run.run.metrics) for name, run in runs.items()})
    for name, trained in runs.items():
        yield from making_section(name, trained.model.model, trained.model.recipe)


def _scores(
    runs: Mapping[str, TrainedTranslator], tested: Mapping[str, Evaluation]
) -> Iterator[report.Section]:
    first = next(iter(tested.values()))
    yield report.Heading(f"Scores on the {first.part} set")
    if first.part != "test":
        yield report.Paragraph(
            "There is no test part, so these are the sentences by which the best model was chosen: "
            "the scores are a little too high. Name a test part with data.test to know better."
        )
    aligned = any(each.alignment for each in tested.values())
    yield report.Table(
        "BLEU and chrF from 0 to 100 with 95 % intervals, higher is better; "
        f"{len(first.pairs):,} sentences, {first.search}",
        ["model", "BLEU", "", "chrF", "", *(["alignment error %"] if aligned else []),
         "parameters", "minutes of training"],
        [
            [
                name,
                each.bleu.value,
                _interval(each.intervals[0]),
                each.chrf.value,
                _interval(each.intervals[1]),
                *([each.alignment.value if each.alignment else None] if aligned else []),
                parameter_count(runs[name].model.model),
                runs[name].minutes,
            ]
            for name, each in tested.items()
        ],
    )  # fmt: skip
    yield report.Paragraph(
        f"Signatures: BLEU {first.bleu.signature}; chrF {first.chrf.signature}.", small=True
    )
    yield report.Picture(
        "BLEU by the length of the source sentence",
        length_curves_svg({name: each.bands for name, each in tested.items()}),
    )


def _interval(found: Interval) -> str:
    return f"{found.low:.1f}–{found.high:.1f}"


def _attention(
    runs: Mapping[str, TrainedTranslator], tested: Mapping[str, Evaluation]
) -> Iterator[report.Section]:
    attending = [name for name in tested if runs[name].model.attends]
    if not attending:
        return
    yield report.Heading("What attention looks at")
    for name in attending:
        sources = [pair.source for pair in _spread(tested[name], SHOWN_MAPS)]
        for maps in _maps(runs, {name: tested[name]}, sources):
            yield from maps


def _films(runs: Mapping[str, TrainedTranslator]) -> Iterator[report.Section]:
    """Yield how the attention of filmed trainings came about."""
    for name, trained in runs.items():
        frames = film_of(trained.run.folder)
        if len(frames) < 2:
            continue
        yield report.Heading(f"How attention was learned: {name}")
        for place, text in enumerate(frames[-1]["texts"]):
            maps = [
                (f"update {frame['step']:,}", frame["texts"][place]["reference"]["weights"])
                for frame in frames
            ]
            gold = text["reference"]
            yield report.FilmStrip(gold["source"], gold["target"], maps, text["text"])


def _spread(evaluation: Evaluation, count: int) -> list[Any]:
    """Return test pairs of growing length, none too long to read."""
    ordered = sorted(evaluation.pairs, key=lambda pair: len(pair.source.split()))
    readable = [pair for pair in ordered if len(pair.source.split()) <= 25] or ordered[:count]
    step = max(1, len(readable) // (count + 1))
    return [readable[min(len(readable) - 1, step * (i + 1))] for i in range(count)]


def _translations(
    runs: Mapping[str, TrainedTranslator], tested: Mapping[str, Evaluation]
) -> Iterator[report.Section]:
    """Yield the sentences that the last model does best and worst, as all models translate them."""
    last = list(tested.values())[-1]
    yield report.Heading(f"Best translations{_of(last)}")
    yield from _samples(runs, tested, last.best(SHOWN_SAMPLES), last.sentence_scores)
    yield report.Heading(f"Worst translations{_of(last)}")
    yield from _samples(runs, tested, last.worst(SHOWN_SAMPLES), last.sentence_scores)


def _of(evaluation: Evaluation) -> str:
    """Return which sentences were translated, where it is not the test set."""
    return "" if evaluation.part == "test" else f" of the {evaluation.part} set"


def _samples(
    runs: Mapping[str, TrainedTranslator],
    tested: Mapping[str, Evaluation],
    rows: Sequence[int],
    scores: Sequence[float],
) -> Iterator[report.Section]:
    """Yield each sentence with its translations, and folded below it what they attended to."""
    pairs = next(iter(tested.values())).pairs
    maps = _maps(runs, tested, [pairs[row].source for row in rows])
    for place, row in enumerate(rows):
        outputs = {name: each.translations[row].text for name, each in tested.items()}
        note = f"chrF {scores[row]:.1f}"
        yield report.Samples([report.Sample(pairs[row].source, pairs[row].target, outputs, note)])
        if maps[place]:
            yield report.Fold("What each word attends to", maps[place])


def _maps(
    runs: Mapping[str, TrainedTranslator], tested: Mapping[str, Evaluation], sources: Sequence[str]
) -> list[list[report.HoverMap]]:
    """Return for each sentence the heat maps of all models that have attention."""
    found: list[list[report.HoverMap]] = [[] for _ in sources]
    for name, evaluation in tested.items():
        model = runs[name].model
        if not model.attends:
            continue
        for place, translation in enumerate(model.translate(sources, beam=evaluation.beam)):
            if translation.attention is not None and translation.text.strip():
                seen = translation.by_word()
                found[place].append(report.HoverMap(seen.source, seen.target, seen.weights, name))
    return found
