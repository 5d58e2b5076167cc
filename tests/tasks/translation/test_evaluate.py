from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.base.errors import RegardError
from regard.corpora.parallel import SentencePair, read_parallel
from regard.models.build import build_translator
from regard.runs.run import Run
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.evaluation import TrainedTranslator, align, evaluate
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.report import write_report


@pytest.fixture(scope="module")
def model(toy_run: Path) -> LoadedTranslator:
    loaded: LoadedTranslator = regard.load(toy_run)
    return loaded


@pytest.fixture(scope="module")
def pairs(toy_corpus: Path) -> list[SentencePair]:
    """Test pairs with their gold alignment: word by word."""
    plain = read_parallel(toy_corpus / "test.src", toy_corpus / "test.tgt")
    return [
        SentencePair(p.source, p.target, tuple((i, i) for i in range(len(p.source.split()))))
        for p in plain
    ]


@pytest.fixture(scope="module")
def plain_model(model: LoadedTranslator) -> LoadedTranslator:
    """A translator without attention, which has learned nothing."""
    settings = model.recipe.model.model_copy(update={"attention": "none"})
    sizes = {"source_vocab": model.source_tokenizer.size,
             "target_vocab": model.target_tokenizer.size}  # fmt: skip
    return LoadedTranslator(
        model=build_translator(settings, **sizes),
        source_tokenizer=model.source_tokenizer,
        target_tokenizer=model.target_tokenizer,
        recipe=model.recipe.model_copy(update={"model": settings}),
    )


def test_a_good_model_scores_well(model: LoadedTranslator, pairs: list[SentencePair]) -> None:
    found = evaluate(model, pairs, bands=[(1, 4), (5, 9)])
    assert found.bleu.value > 50
    assert found.chrf.value > 50
    assert sum(band.sentences for band in found.bands) == len(pairs)
    assert found.alignment is not None
    assert found.alignment.value < 30
    plain = found.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["bleu"]["signature"]


def test_without_gold_or_attention_there_is_no_alignment_score(
    model: LoadedTranslator, plain_model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    bare = [SentencePair(pair.source, pair.target) for pair in pairs[:4]]
    assert evaluate(model, bare).alignment is None
    assert evaluate(plain_model, pairs[:4], beam=1).to_dict()["alignment_error_rate"] is None


def test_aligning_what_the_model_says_gives_the_attention_of_its_search(
    model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    translations = model.translate([pair.source for pair in pairs])
    maps = align(model, [SentencePair(t.source, t.text) for t in translations])
    for found, translation in zip(maps, translations, strict=True):
        assert translation.attention is not None
        assert found.target == translation.attention.target
        np.testing.assert_allclose(found.weights, translation.attention.weights, atol=1e-4)


def test_a_model_without_attention_cannot_align(plain_model: LoadedTranslator) -> None:
    with pytest.raises(RegardError, match="no attention to align by"):
        align(plain_model, [SentencePair("badal", "LADAB")])


def test_a_test_shows_itself_in_a_notebook(
    model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    shown = evaluate(model, pairs[:5])._repr_html_()
    for part in ("BLEU", "chrF", "AER", "tok:13a", "words in the source sentence"):
        assert part in shown


def test_the_end_of_a_training_shows_scores_samples_and_what_to_type(toy_run: Path) -> None:
    model = load(toy_run)
    pairs = read_splits(model.recipe.data).test
    told: list[tuple[int, float]] = []
    found = evaluate(model, pairs, watch=lambda done, share: told.append((done, share)))
    assert [done for done, _ in told] == list(range(1, len(pairs) + 1))
    assert told[-1][1] == 1.0
    trained = TrainedTranslator(Run.open(toy_run), model, found)
    lines = trained.lines()
    (low, high), _ = ((each.low, each.high) for each in found.intervals)
    assert low <= found.bleu.value <= high
    assert lines[0].startswith(f"BLEU {found.bleu.value:.1f} [{low:.1f}, {high:.1f}]   chrF ")
    assert lines[1] == f"({len(pairs)} test sentences, {found.search}; 95 % intervals)"
    best, worst = lines.index("Best translations (chrF)"), lines.index("Worst translations (chrF)")
    assert best < worst
    scores = found.sentence_scores
    assert [scores[row] for row in found.worst(3)] == sorted(scores)[:3]
    assert scores[found.best(1)[0]] == max(scores)
    assert any(command.startswith("regard translate ") for command in trained.next_commands())
    assert "95 % intervals" not in "".join(replace(trained, evaluation=None).lines())


def test_validation_stands_in_for_a_missing_test_part(toy_run: Path, tmp_path: Path) -> None:
    model = load(toy_run)
    pairs = read_splits(model.recipe.data).valid[:6]
    found = replace(evaluate(model, pairs, beam=1), part="validation")
    trained = TrainedTranslator(Run.open(toy_run), model, found)
    assert "6 validation sentences, greedy search" in trained.lines()[1]
    record = trained.to_dict()
    assert record["test"] is None
    assert record["validation"]["search"] == {"beam": 1}
    assert record["validation"]["sentences"] == 6
    write_report(trained, tmp_path / "report.html", title="no test")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for said in ("Scores on the validation set", "There is no test part", "What attention looks at",
                 "Best translations of the validation set", "BLEU by the length"):  # fmt: skip
        assert said in page


def test_a_terminal_shows_what_a_good_translation_attends_to(toy_run: Path) -> None:
    model = load(toy_run)
    found = evaluate(model, read_splits(model.recipe.data).test[:8])
    pairs = [replace(pair, source=" ".join([pair.source] * 5)) for pair in found.pairs]
    trained = TrainedTranslator(Run.open(toy_run), model, replace(found, pairs=pairs))
    drawn = trained.drawn(100)
    assert drawn is not None
    assert drawn.plain.startswith("What each word of a good translation attends to\n\n")
    assert any(pair.source.split()[0] in drawn.plain for pair in pairs)
    assert replace(trained, evaluation=None).drawn(100) is None
