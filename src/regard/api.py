"""What the commands do, as functions: compare, score, forecast; results show themselves.

`train` and `load` are in `regard.tasks`, which knows the tasks; corpora are in `regard.data`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from regard.base.errors import SettingsError

if TYPE_CHECKING:
    from regard.runs.display import Display
    from regard.scoring.bleu import Band
    from regard.scoring.measures import Score
    from regard.studies.compare import Comparison
    from regard.tasks.forecasting.model import TrainedForecaster
    from regard.tasks.interventions import Effect
    from regard.tasks.translation.explanations import Explanation

# A file of lines, or the lines themselves.
Lines: TypeAlias = "str | Path | Sequence[str]"


@dataclass(frozen=True)
class TranslationScores:
    """BLEU and chrF of translations, and BLEU by the length of the source if that was asked for."""

    bleu: Score
    chrf: Score
    by_length: tuple[Band, ...] = ()
    uncomposed: tuple[int, int] = (0, 0)
    """Outputs and references that were not in Unicode's composed form, and were normalised."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found: dict[str, Any] = {"bleu": self.bleu.to_dict(), "chrf": self.chrf.to_dict()}
        if self.by_length:
            found["by_length"] = [band.to_dict() for band in self.by_length]
        if any(self.uncomposed):
            found["uncomposed"] = dict(zip(("system", "reference"), self.uncomposed, strict=True))
        return found

    def __str__(self) -> str:
        lines = [str(self.bleu), str(self.chrf)]
        if self.by_length:
            lines += ["", "words   sentences    BLEU"]
        for band in self.by_length:
            value = f"{band.score.value:7.2f}" if band.score else "      -"
            lines.append(f"{band.label:<8}{band.sentences:>9} {value}")
        if any(self.uncomposed):
            system, reference = self.uncomposed
            lines.append(
                f"Note: {system:,} translations and {reference:,} references were not in Unicode's "
                "composed form (NFC). Both sides were normalised before scoring."
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from regard.pictures.curves import length_curves_svg
        from regard.pictures.svg import notebook_lines, notebook_picture

        shown = notebook_lines(("BLEU", str(self.bleu)), ("chrF", str(self.chrf)))
        if not any(band.score for band in self.by_length):
            return shown
        drawn = length_curves_svg({"translations": list(self.by_length)})
        return shown + notebook_picture(drawn, label="BLEU by sentence length")


def compare(
    runs: Mapping[str, str | Path] | Iterable[str | Path],
    *,
    test: tuple[str | Path, str | Path] | None = None,
    baseline: str | None = None,
    tokenize: str = "13a",
    out: str | Path | None = None,
    title: str = "Comparison of translators",
    progress: bool | Display = True,
) -> Comparison:
    """Compare trained translators on one test set: scores, certainty, speed and size.

    The runs are folders, or folders by name. The test set is the one that the runs share, or two
    files. The baseline, by name or folder, is the first run unless it is named; one that is not
    among the runs is added. With `out`, a page with pictures and the figures go to that folder.
    """
    from regard.runs.display import display_of
    from regard.studies import compare as study
    from regard.studies.comparison_report import write_comparison

    display = display_of(progress)
    if isinstance(runs, Mapping):
        named = {name: Path(folder) for name, folder in runs.items()}
    else:
        named = study.named_runs(_with_baseline([Path(run) for run in runs], baseline))
    found = study.compare(
        named,
        test=None if test is None else (Path(test[0]), Path(test[1])),
        baseline=baseline_name(baseline, named),
        tokenize=tokenize,
        stage=display.waiting,
    )
    if out is not None:
        with display.waiting("Writing ..."):
            write_comparison(found, Path(out), title=title)
    return found


def _with_baseline(runs: list[Path], baseline: str | None) -> list[Path]:
    """Return the runs; a baseline that is not among them comes first."""
    known = {run.resolve() for run in runs} | {Path(run.name) for run in runs}
    if baseline is not None and not {Path(baseline), Path(baseline).resolve()} & known:
        return [Path(baseline), *runs]
    return runs


def baseline_name(given: str | None, runs: Mapping[str, Path]) -> str | None:
    """Return the name of a baseline that is given by its name, its folder's name or its path."""
    for name, folder in runs.items():
        if given is not None and Path(given).resolve() == folder.resolve():
            return name
    for name, folder in runs.items():
        if given == folder.name:
            return name
    return given


def score(
    system: Lines,
    reference: Lines,
    *,
    source: Lines | None = None,
    by_length: bool = False,
    tokenize: str = "13a",
) -> TranslationScores:
    """Score translations against references with sacreBLEU, signatures included.

    Each is a file with a sentence a line, or a list of sentences. `by_length` adds BLEU by the
    number of source words, for which the sources must be given.
    """
    from regard.scoring.bleu import Composed, bleu_by_length, corpus_bleu, corpus_chrf

    if by_length and source is None:
        raise SettingsError("--by-length needs the source sentences: give --source FILE.")
    outputs, references = _lines(system), _lines(reference)
    bands: tuple[Band, ...] = ()
    if by_length and source is not None:
        bands = tuple(bleu_by_length(outputs, references, _lines(source), tokenize=tokenize))
    return TranslationScores(
        corpus_bleu(outputs, references, tokenize=tokenize),
        corpus_chrf(outputs, references),
        bands,
        Composed.of(outputs, references).changed,
    )


def score_alignments(
    system: str | Path,
    gold: str | Path,
    *,
    reverse: str | Path | None = None,
    symmetrise: str = "grow-diag-final-and",
    gold_first: int = 0,
) -> Score:
    """Return the alignment error rate of a file of word alignments, of one direction or of two.

    `gold_first` is the number of the first word in the gold file, 0 or 1.
    """
    from regard.corpora.alignments import read_alignments, read_gold
    from regard.scoring.alignment import alignment_error_rate, symmetrise_all

    found = [frozenset(links) for links in read_alignments(Path(system))]
    if reverse is not None:
        back = [{(s, t) for t, s in links} for links in read_alignments(Path(reverse))]
        found = symmetrise_all(found, back, method=symmetrise)
    marked = read_gold(Path(gold), first=gold_first)
    return alignment_error_rate(
        found, [line.sure for line in marked], [line.possible for line in marked]
    )


def forecast(
    data: str | Path | Sequence[float],
    *,
    column: str | None = None,
    inputs: Sequence[str] = (),
    dates: str | None = None,
    decimal: Literal["auto", "point", "comma"] = "auto",
    gaps: Literal["refuse", "interpolate", "drop"] = "refuse",
    season: int | None = None,
    window: int = 20,
    horizon: int = 1,
    attention: str = "softmax",
    out: str | Path,
    set: Mapping[str, Any] | Iterable[str] = (),
    progress: bool | Display = True,
) -> TrainedForecaster:
    """Train on a series and see how well it can be forecast; the end of the series is the test.

    `data` is a CSV file, of which `column` names a column, or the numbers themselves. `inputs` are
    further columns that the model reads, `dates` their dates (by default found by itself).
    `season` is the number of steps after which the series repeats, for the seasonal baseline.
    """
    from regard.runs.display import display_of
    from regard.tasks import overrides_of
    from regard.tasks.forecasting.data import recipe_for
    from regard.tasks.forecasting.training import train

    from_file = isinstance(data, str | Path)
    recipe = recipe_for(
        Path(str(data)) if from_file else None,
        column=column,
        inputs=list(inputs) or None,
        dates=dates,
        decimal=decimal,
        gaps=gaps,
        season=season,
        window=window,
        horizon=horizon,
        attention=attention,
        overrides=overrides_of(set),
    )
    title = Path(str(data)).name if from_file else "series"
    return train(
        recipe,
        Path(out),
        title=title,
        data=None if from_file else data,
        display=display_of(progress),
    )


def intervene(
    run: Any,
    text: str,
    *,
    off: Sequence[str] = (),
    mean: Sequence[str] = (),
    skip: Sequence[str] = (),
    force: Sequence[str] = (),
    move: Sequence[str] = (),
    hide: Sequence[str] = (),
    swap: Sequence[str] = (),
    patch: Sequence[str] = (),
    other: str | None = None,
) -> Effect:
    """Change what a model attends to, decode anew, and return both outputs.

    `run` is a folder or a loaded model. `off` and `mean` name heads as "[PART.]LAYER[.HEAD]", which
    get no context or their mean; `skip` whole layers, as "encoder.0". `force="2=dogs"` puts all
    weight of a step on a word, `move="2=dogs:cats"` moves it, `hide="dogs"` takes it away, `swap=
    "cats=dogs"` exchanges values, and `patch="dogs=horses"` takes a state from the text `other`.
    Each of the last five may end in a place, as `hide="dogs@1.3"`.

    >>> regard.intervene("runs/mine", "cats do not like dogs", swap=["cats=dogs"])
    """
    from regard.runs.report import kept_examples
    from regard.tasks import load, task_of
    from regard.tasks.interventions import InterventionRequest

    folder = Path(run) if isinstance(run, str | Path) else None
    loaded = run if folder is None else load(folder)
    task = task_of(loaded.recipe.task)
    if task.intervene is None:
        raise SettingsError(f"A run of the task {loaded.recipe.task!r} takes no interventions.")
    request = InterventionRequest(
        off=off,
        mean=mean,
        skip=skip,
        force=force,
        move=move,
        hide=hide,
        swap=swap,
        patch=patch,
        other=other,
        examples=() if folder is None else kept_examples(folder),
    )
    found: Effect = task.intervene(loaded, text, request)
    return found


def explain(
    run: Any,
    text: str,
    *,
    target: str | None = None,
    methods: Sequence[str] | None = None,
) -> list[Explanation]:
    """Return which source words decided on each word of a translation, by several methods.

    `run` is a folder or a loaded translator; `target` is a translation to explain, by default the
    model's own; `methods` are those of `regard.tasks.translation.explanations`, by default all.
    """
    from regard.tasks import load
    from regard.tasks.translation.explanations import explain_translation, methods_of
    from regard.tasks.translation.model import LoadedTranslator

    loaded = load(run) if isinstance(run, str | Path) else run
    if not isinstance(loaded, LoadedTranslator):
        raise SettingsError("Explanations are those of translations: give a run of a translator.")
    if target is None:
        target = loaded.translate(text, attention=False).text
    return [
        explain_translation(loaded, text, target, method=method)
        for method in methods or (methods_of(loaded) if loaded.attends else ("attention",))
    ]


def _lines(given: Lines) -> list[str]:
    from regard.corpora.lines import read_lines

    return list(read_lines(Path(given)) if isinstance(given, str | Path) else given)
