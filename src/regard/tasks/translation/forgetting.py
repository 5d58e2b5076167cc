"""What fine-tuning gained in the domain and lost outside: the same tests before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.base.files import read_json, write_json
from regard.corpora.parallel import SentencePair
from regard.pictures import report
from regard.runs.run import Run
from regard.scoring.bleu import Interval, bleu_interval, chrf_interval, corpus_bleu, corpus_chrf
from regard.scoring.bootstrap import bleu_change, paired_bootstrap
from regard.tasks.translation.evaluation import Evaluation, TrainedTranslator
from regard.tasks.translation.fine_tuning import General
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from regard.training.progress import Observers

FILE = "fine-tuning.json"  # in the run: what its first model made of both tests, and the table
DOMAIN, GENERAL = "in domain", "general"
SURE = 0.05  # a difference whose p-value is below is no chance
TEXT = 2  # columns of the table that are words


@dataclass(frozen=True)
class Quality:
    """The scores of one output, with 95 % intervals."""

    bleu: float
    bleu_interval: Interval
    chrf: float
    chrf_interval: Interval

    @classmethod
    def of(cls, outputs: Sequence[str], references: Sequence[str]) -> Quality:
        """Score outputs."""
        return cls(
            corpus_bleu(outputs, references).value,
            bleu_interval(outputs, references),
            corpus_chrf(outputs, references).value,
            chrf_interval(outputs, references),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        bleu, chrf = self.bleu_interval, self.chrf_interval
        return {
            "bleu": self.bleu,
            "bleu_interval": [bleu.low, bleu.high],
            "chrf": self.chrf,
            "chrf_interval": [chrf.low, chrf.high],
        }


@dataclass(frozen=True)
class QualityChange:
    """The quality on one test before and after fine-tuning, and whether the change is chance."""

    name: str
    origin: str
    sentences: int
    before: Quality
    after: Quality
    interval: Interval
    """Of the difference in BLEU, by paired resampling."""
    p_value: float

    @classmethod
    def of(
        cls, name: str, origin: str, pairs: Sequence[SentencePair], outputs: Sequence[Sequence[str]]
    ) -> QualityChange:
        """Compare the outputs before with those after, on the same sentences."""
        before, after = outputs
        references = [pair.target for pair in pairs]
        paired = paired_bootstrap({"before": before, "after": after}, references, baseline="before")
        return cls(
            name,
            origin,
            len(pairs),
            Quality.of(before, references),
            Quality.of(after, references),
            bleu_change(after, before, references).interval,
            paired["after"].p_value or 0.0,
        )

    @property
    def difference(self) -> float:
        """The BLEU that was gained."""
        return self.after.bleu - self.before.bleu

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "test": self.name,
            "origin": self.origin,
            "sentences": self.sentences,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "bleu_difference": self.difference,
            "bleu_difference_interval": [self.interval.low, self.interval.high],
            "chrf_difference": self.after.chrf - self.before.chrf,
            "p_value": self.p_value,
        }


@dataclass(frozen=True)
class Forgetting:
    """The tests of a fine-tuned run: in the domain and, if there is one, a general one."""

    start: str
    changes: tuple[QualityChange, ...]
    search: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        tests = [change.to_dict() for change in self.changes]
        return {"start": self.start, "search": self.search, "tests": tests}

    def lines(self) -> list[str]:
        """Return the table as a person reads it, with a sentence of what it means."""
        rows = [["", "", "before", "after", "difference", "p"]]
        rows += [[name, measure, *cells] for name, measure, *cells in self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join(
                f"{cell:<{width}}" if place < TEXT else f"{cell:>{width}}"
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return [
            f"Fine-tuned from {self.start}, {self.search}; 95 % intervals",
            *table,
            *self._told(),
        ]

    def _rows(self) -> Iterator[list[str]]:
        """Yield a row of cells for each measure of each test."""
        for one in self.changes:
            before, after, p = one.before, one.after, f"{one.p_value:.3f}"
            difference = (
                f"{one.difference:+.1f} [{one.interval.low:+.1f}, {one.interval.high:+.1f}]"
            )
            bleu = (_cell(each.bleu, each.bleu_interval) for each in (before, after))
            yield [one.name, "BLEU", *bleu, difference, p]
            chrf = (_cell(each.chrf, each.chrf_interval) for each in (before, after))
            yield ["", "chrF", *chrf, f"{after.chrf - before.chrf:+.1f}", ""]

    def _told(self) -> list[str]:
        told = [f"{one.name}: {one.sentences:,} sentences, {one.origin}" for one in self.changes]
        general = [one for one in self.changes if one.name == GENERAL]
        if not general:
            told.append(f"{GENERAL}: no test, so what was forgotten is not known (--general-test)")
        elif general[0].difference < 0 and general[0].p_value < SURE:
            told.append(
                "The model has lost quality outside the domain. To lose less: mix general pairs in "
                "(--mix), train adapters (--set training.adapter_rank=8), or stop earlier."
            )
        return told

    def sections(self) -> list[report.Section]:
        """Return the table for a report."""
        return [
            report.Heading("Before and after fine-tuning"),
            report.Table(
                f"The same sentences, translated by {self.start} and by this run "
                f"({self.search}); 95 % intervals, p by the paired bootstrap",
                ["test", "measure", "before", "after", "difference", "p"],
                list(self._rows()),
            ),
            *(report.Paragraph(line) for line in self._told()),
        ]


def _cell(value: float, interval: Interval) -> str:
    return f"{value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


class BeforeFineTuning(Observers):
    """Translates the tests with the first model when a training begins, and keeps the outputs.

    So a run does not need the folder that it started from once it has begun.
    """

    def __init__(
        self,
        run: Run,
        recipe: TranslationRecipe,
        tests: Mapping[str, tuple[str, Sequence[SentencePair]]],
        *,
        say: Callable[[str], None],
    ):
        super().__init__([])
        self._run = run
        self._recipe = recipe
        self._tests = tests
        self._say = say

    def starting(self, start: Any) -> None:
        """Translate, unless that was done before the training was stopped."""
        path, folder = self._run.folder / FILE, self._recipe.training.start_from
        if path.exists() or folder is None:
            return
        model = load(folder)
        model.recipe = self._recipe  # the same search before and after
        record: dict[str, Any] = {"start": folder, "tests": {}}
        for name, (origin, pairs) in self._tests.items():
            if not pairs:
                continue
            outputs = translated(model, pairs, beam=None)
            references = [pair.target for pair in pairs]
            sources = [pair.source for pair in pairs]
            rows = [list(row) for row in zip(sources, references, outputs, strict=True)]
            record["tests"][name] = {"origin": origin, "rows": rows}
            bleu = corpus_bleu(outputs, references).value
            self._say(f"Before fine-tuning, {name}: BLEU {bleu:.1f} ({len(pairs):,} sentences)")
        write_json(path, record)


def before_fine_tuning(
    run: Run,
    recipe: TranslationRecipe,
    domain: tuple[str, Sequence[SentencePair]],
    general: General,
    *,
    say: Callable[[str], None],
) -> BeforeFineTuning:
    """Return what tests the first model on the domain and on the general pairs."""
    tests = {DOMAIN: domain, GENERAL: (general.test_of, general.test)}
    return BeforeFineTuning(run, recipe, tests, say=say)


def translated(
    model: LoadedTranslator, pairs: Sequence[SentencePair], *, beam: int | None
) -> list[str]:
    """Return the translations of the sources."""
    found = model.translate([pair.source for pair in pairs], beam=beam, attention=False)
    return [one.text for one in found]


def forgetting(trained: TrainedTranslator, evaluation: Evaluation) -> Forgetting | None:
    """Return the table of a fine-tuned run, which it keeps; None if it began with no other.

    `evaluation` is that of the domain's test, or of a few of its sentences if the model has hardly
    learned.
    """
    path = trained.run.folder / FILE
    if not path.exists():
        return None
    record = _record(path)
    beam = None if evaluation.beam == trained.model.recipe.decoding.beam else evaluation.beam
    domain = {
        pair.source: output.text
        for pair, output in zip(evaluation.pairs, evaluation.translations, strict=True)
    }
    changes = []
    for name, test in record["tests"].items():
        rows = [row for row in test["rows"] if name != DOMAIN or row[0] in domain]
        pairs = [SentencePair(source, target) for source, target, _ in rows]
        before = [output for _, _, output in rows]
        if name == DOMAIN:
            after = [domain[pair.source] for pair in pairs]
        else:
            after = translated(trained.model, pairs, beam=beam)
        changes.append(QualityChange.of(name, test["origin"], pairs, (before, after)))
    found = Forgetting(record["start"], tuple(changes), evaluation.search)
    write_json(path, {**record, "table": found.to_dict()})
    return found


def kept_tests(folder: Path) -> dict[str, list[SentencePair]]:
    """Return the tests that a fine-tuned run has kept, by name; none of any other run."""
    path = folder / FILE
    tests = _record(path)["tests"] if path.exists() else {}
    return {
        name: [SentencePair(source, target) for source, target, _ in test["rows"]]
        for name, test in tests.items()
    }


def _record(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(path, owner="run")
    tests = found.get("tests") if isinstance(found, dict) else None
    whole = isinstance(tests, dict) and all(
        isinstance(test, dict)
        and isinstance(test.get("rows"), list)
        and all(
            isinstance(row, list) and len(row) == 3 and all(isinstance(x, str) for x in row)
            for row in test["rows"]
        )
        for test in tests.values()
    )
    if not whole:
        raise RunError(f"{path} is not what a fine-tuning has recorded. Remove it, or train again.")
    return found
