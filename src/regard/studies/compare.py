"""Comparison of translators on one test set: scores, significance tests and speed."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from regard.base.errors import RunError, SettingsError
from regard.corpora.parallel import SentencePair
from regard.models.inspection import parameter_count
from regard.runs.run import Run
from regard.scoring import bootstrap
from regard.scoring.bleu import SAMPLES, require_tokenizer
from regard.settings.recipe import require_known
from regard.studies.common_test import common_test, family_tests, require_like
from regard.tasks.translation.evaluation import Evaluation, evaluate
from regard.tasks.translation.forgetting import DOMAIN, GENERAL, translated
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from regard.training.progress import read_metrics

WARM_UP = 4


def speeds_in_turn(
    models: Mapping[str, LoadedTranslator], sources: Sequence[str], *, rounds: int
) -> dict[str, list[float]]:
    """Return the sentences per second of each model in every round, after a short warm-up.

    The models take turns, so that changes in the load of the machine affect all of them.
    """
    for model in models.values():
        model.translate(sources[:WARM_UP], attention=False)
    speeds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            began = time.perf_counter()
            model.translate(sources, attention=False, scores=False)
            speeds[name].append(len(sources) / (time.perf_counter() - began))
    return speeds


def speed_ratio(speeds: Sequence[float], baseline: Sequence[float]) -> float:
    """Return the speed relative to the baseline: the ratio of the medians over the rounds."""
    return median(speeds) / median(baseline)


def spread_sample(sources: Sequence[str], count: int) -> list[str]:
    """Return `count` sentences of all lengths, from short to long."""
    ordered = sorted(sources, key=lambda source: len(source.split()))
    if len(ordered) <= count:
        return ordered
    return [ordered[place * len(ordered) // count] for place in range(count)]


# A context manager for each stage of the work; its argument says what is done next.
Stage: TypeAlias = Callable[[str], AbstractContextManager[None]]

ROUNDS = 7
TIMED_SENTENCES = 48


def silent_stage(message: str) -> AbstractContextManager[None]:
    """Return a stage that shows nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Contestant:
    """One model of a comparison and its results."""

    run: Run
    model: LoadedTranslator
    evaluation: Evaluation
    bands: list[bootstrap.BandWithInterval]
    paired: bootstrap.PairedResult
    speeds: list[float]
    speed_ratio: float
    general: bootstrap.PairedResult | None = None
    """On general sentences, where fine-tuned runs are compared."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of the training."""
        return read_metrics(self.run.metrics)

    @property
    def outputs(self) -> list[str]:
        """The translations of the test sentences."""
        return texts_of(self.evaluation)

    def row(self) -> dict[str, Any]:
        """Return the figures of this model, by column name."""
        found, history = self.evaluation, self.history
        return {
            "bleu": found.bleu.value,
            "bleu_low": self.paired.interval.low,
            "bleu_high": self.paired.interval.high,
            "difference": self.paired.difference,
            "p_value": self.paired.p_value,
            "chrf": found.chrf.value,
            "alignment_error_rate": found.alignment.value if found.alignment else None,
            "parameters": parameter_count(self.model.model),
            "training_minutes": history[-1]["seconds"] / 60 if history else None,
            "updates": history[-1]["step"] if history else None,
            "sentences_per_second": median(self.speeds),
            "speed_ratio": self.speed_ratio,
            **({} if self.general is None else _general_row(self.general)),
        }


def _general_row(found: bootstrap.PairedResult) -> dict[str, Any]:
    """Return the figures on general sentences, by column name."""
    return {
        "general_bleu": found.bleu,
        "general_bleu_low": found.interval.low,
        "general_bleu_high": found.interval.high,
        "general_difference": found.difference,
        "general_p_value": found.p_value,
    }


@dataclass(frozen=True)
class Comparison:
    """The results of several models on the same pairs, in the given order."""

    contestants: dict[str, Contestant]
    baseline: str
    pairs: list[SentencePair]
    general_pairs: list[SentencePair] = field(default_factory=list)
    """General sentences besides, where fine-tuned runs are compared."""

    @property
    def first(self) -> Contestant:
        """The baseline, for what all models share: signatures and length bands."""
        return self.contestants[self.baseline]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of figures for each model."""
        return [{"model": name, **each.row()} for name, each in self.contestants.items()]

    def bands(self) -> dict[str, list[bootstrap.BandWithInterval]]:
        """Return BLEU by sentence length of each model."""
        return {name: each.bands for name, each in self.contestants.items()}

    def _repr_html_(self) -> str:
        from regard.pictures.curves import interval_curves_svg
        from regard.pictures.svg import notebook_lines, notebook_picture

        lines = notebook_lines(
            *(
                (row["model"], f"BLEU {row['bleu']:.1f}, chrF {row['chrf']:.1f}")
                for row in self.rows()
            )
        )
        return lines + notebook_picture(interval_curves_svg(self.bands()), label="BLEU by length")

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the translations as plain values."""
        return {
            "baseline": self.baseline,
            "sentences": len(self.pairs),
            "general_sentences": len(self.general_pairs),
            "signatures": {
                "bleu": self.first.evaluation.bleu.signature,
                "chrf": self.first.evaluation.chrf.signature,
                "paired_bootstrap": self.first.paired.signature,
            },
            "models": {
                name: {
                    "run": str(each.run.folder),
                    "title": each.model.recipe.title,
                    **each.row(),
                    "speeds": each.speeds,
                    "by_length": [band.to_dict() for band in each.bands],
                }
                for name, each in self.contestants.items()
            },
        }


def compare(
    runs: Mapping[str, Path],
    *,
    test: tuple[Path, Path] | None = None,
    baseline: str | None = None,
    tokenize: str = "13a",
    rounds: int = ROUNDS,
    samples: int = SAMPLES,
    stage: Stage = silent_stage,
) -> Comparison:
    """Translate one test set with all runs and compare scores and speed.

    The test set is that of the runs, unless `test` names two files. Fine-tuned runs and the one
    that they started from are compared on the tests that they kept: of their domain, and a general
    one. Speed is measured with the torch engine on a sample of the test sentences, in `rounds`.
    Confidence intervals and p-values come from `samples` resampled test sets. The baseline is the
    first run unless it is named.
    """
    if len(runs) < 2:
        raise SettingsError(f"A comparison needs two runs or more, not {len(runs)}.")
    baseline = next(iter(runs)) if baseline is None else baseline
    require_known(baseline, runs, what="baseline")
    require_tokenizer(tokenize)
    recipes = {name: translator_recipe(folder) for name, folder in runs.items()}
    with stage("Reading the test set ..."):
        kept = {} if test is not None else family_tests(runs, recipes)
        pairs = kept[DOMAIN] if kept else common_test(recipes, test)
    models = {name: load(folder) for name, folder in runs.items()}
    evaluations = {}
    for name, model in models.items():
        with stage(f"Translating {len(pairs):,} sentences: {name} ..."):
            evaluations[name] = evaluate(model, pairs, tokenize=tokenize)
        require_like(name, texts_of(evaluations[name]), [pair.target for pair in pairs])
    with stage("Measuring speeds ..."):
        sample = spread_sample([pair.source for pair in pairs], TIMED_SENTENCES)
        speeds = speeds_in_turn(models, sample, rounds=rounds)
    with stage("Resampling the test set ..."):
        sure, paired = _certainty(
            evaluations, pairs, baseline=baseline, tokenize=tokenize, samples=samples
        )
    general = kept.get(GENERAL, [])
    with stage(f"Translating {len(general):,} general sentences ..."):
        outside = _outside(models, general, baseline=baseline, tokenize=tokenize, samples=samples)
    contestants = {
        name: Contestant(
            run=Run.open(folder),
            model=models[name],
            evaluation=evaluations[name],
            bands=sure[name],
            paired=paired[name],
            speeds=speeds[name],
            speed_ratio=speed_ratio(speeds[name], speeds[baseline]),
            general=outside.get(name),
        )
        for name, folder in runs.items()
    }
    return Comparison(contestants, baseline, pairs, general)


def _outside(
    models: Mapping[str, LoadedTranslator],
    pairs: Sequence[SentencePair],
    *,
    baseline: str,
    tokenize: str,
    samples: int,
) -> dict[str, bootstrap.PairedResult]:
    """Return the paired test on general sentences, if there are any."""
    if not pairs:
        return {}
    return bootstrap.paired_bootstrap(
        {name: translated(model, pairs, beam=None) for name, model in models.items()},
        [pair.target for pair in pairs],
        baseline=baseline,
        tokenize=tokenize,
        samples=samples,
    )


def texts_of(evaluation: Evaluation) -> list[str]:
    """Return the translations that were scored."""
    return [translation.text for translation in evaluation.translations]


def named_runs(folders: Sequence[Path]) -> dict[str, Path]:
    """Return runs by name: the shortest ends of their paths that are distinct."""
    places = [folder.resolve() for folder in folders]
    for place, folder in zip(places, folders, strict=True):
        if places.count(place) > 1:
            raise SettingsError(f"{folder} is given more than once: compare it with another run.")
    for depth in range(1, 1 + max((len(place.parts) for place in places), default=0)):
        names = ["/".join(place.parts[-depth:]) for place in places]
        if len(set(names)) == len(names):
            return dict(zip(names, folders, strict=True))
    return {}


def translator_recipe(folder: Path) -> TranslationRecipe:
    """Return the recipe of a run; refuse runs that are not translators."""
    run = Run.open(folder)
    if run.task != "translate":
        raise RunError(f"{folder} is a run of the task {run.task!r}: compare takes translators.")
    return run.recipe(TranslationRecipe)


def _certainty(
    evaluations: Mapping[str, Evaluation],
    pairs: Sequence[SentencePair],
    *,
    baseline: str,
    tokenize: str,
    samples: int,
) -> tuple[dict[str, list[bootstrap.BandWithInterval]], dict[str, bootstrap.PairedResult]]:
    """Return the intervals of BLEU by length, and the paired test against the baseline."""
    sources, references = [p.source for p in pairs], [p.target for p in pairs]
    outputs = {name: texts_of(each) for name, each in evaluations.items()}
    paired = bootstrap.paired_bootstrap(
        outputs, references, baseline=baseline, tokenize=tokenize, samples=samples
    )
    sure = {
        name: bootstrap.bands_with_intervals(
            each.bands, outputs[name], references, sources, tokenize=tokenize, samples=samples
        )
        for name, each in evaluations.items()
    }
    return sure, paired
