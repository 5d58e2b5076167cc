"""Several corpora in one training, by weights and temperature."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import SettingsError
from regard.batching.order import BatchOrder, MixedRows
from regard.corpora import store
from regard.runs.run import Run, finish_or_start
from regard.settings.recipe import expect, validate
from regard.tasks import find_recipe
from regard.tasks.translation import examples as task_examples
from regard.tasks.translation.data import Splits, given_splits, read_splits, sizes_without
from regard.tasks.translation.settings import DataSettings, TranslationRecipe


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A large table, a small one, and one of two line files."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    sizes = {"large": 300, "small": 30}
    for name, size in sizes.items():
        text = "".join(f"{name} {row}\t{name} {row} too\n" for row in range(size))
        (tmp_path / f"{name}.tsv").write_text(text)
    for side in ("en", "de"):
        (tmp_path / f"lines.{side}").write_text("".join(f"{side} {row}\n" for row in range(60)))
    lines = ",".join(str(tmp_path / f"lines.{side}") for side in ("en", "de"))
    return [str(tmp_path / "large.tsv"), str(tmp_path / "small.tsv"), lines]


def read(corpora: list[str], **options: object) -> Splits:
    table = {"train": corpora, "hold_out": 20, "hold_out_test": 10, **options}
    return read_splits(validate(table, DataSettings, origin="test"))


def of(splits: Splits) -> Counter[str]:
    return Counter(pair.target.split()[0] for pair in splits.train)


@pytest.mark.parametrize("most", [100, 1000])
def test_the_sizes_of_corpora_are_known(
    corpora: list[str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(store, "MOST_IN_MEMORY", most)
    splits = read(corpora, weights=[1, 2, 1])
    counts = of(splits)
    assert splits.corpora == (counts["large"], counts["small"], counts["de"])
    assert sum(splits.corpora) == 390 - 30
    assert read(corpora, temperature=5.0).corpora == splits.corpora


def test_without_weights_there_is_one_corpus(corpora: list[str]) -> None:
    assert read(corpora[:2]).corpora == ()


def test_rows_that_are_gone_count_for_their_corpus() -> None:
    assert sizes_without([3, 2, 4], [8, 0, 3, 4]) == (2, 0, 3)
    assert sizes_without([], []) == ()


def test_an_epoch_has_each_corpus_in_its_share() -> None:
    mixture = MixedRows((6, 2, 10), (6, 5, 3), seed=1)
    rows = mixture.rows(0)
    counts = Counter(rows.tolist())
    assert [counts[row] for row in range(6)] == [1] * 6
    assert sorted(counts[row] for row in (6, 7)) == [2, 3]
    assert sum(counts[row] for row in range(8, 18)) == 3
    assert max(counts[row] for row in range(8, 18)) == 1
    assert (rows == mixture.rows(0)).all()
    assert any((rows != mixture.rows(epoch)).any() for epoch in (1, 2, 3))
    order = BatchOrder(np.full((18, 2), 4), token_budget=24, seed=1, mixture=mixture)
    for epoch in (0, 1):
        found = sorted(row for batch in order.batches(epoch) for row in batch)
        assert found == sorted(mixture.rows(epoch).tolist())


def prepared(folder: Path, corpora: list[str], *changes: str) -> BatchOrder:
    files = ",".join(f"'{one}'" for one in corpora)
    overrides = [f"data.train=[{files}]", "batches.tokens=100", *changes]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    run: Run = finish_or_start(folder / "run", recipe)
    splits = read_splits(recipe.data)
    tokenizers = task_examples.run_tokenizers(run, recipe, splits.train)
    train = task_examples.training_examples(run, recipe, splits, tokenizers)
    order = task_examples.order_of(recipe, splits, train)
    facts = task_examples.data_facts(recipe, splits, tokenizers, train, order).facts
    assert any(fact.name == "mixture" and "%" in fact.text for fact in facts)
    return order


def test_weights_and_temperature_decide_the_shares(corpora: list[str], tmp_path: Path) -> None:
    mixture = prepared(tmp_path, corpora[:2], "data.weights=[1,3]").mixture
    assert mixture is not None
    assert mixture.taken == (mixture.sizes[0], 3 * mixture.sizes[1])
    other = prepared(tmp_path / "warm", corpora[:2], "data.temperature=100").mixture
    assert other is not None
    assert other.taken[1] / sum(other.taken) == pytest.approx(0.5, abs=0.02)


def test_corpora_are_given_apart_from_their_weights(corpora: list[str]) -> None:
    recipe = find_recipe("transformer-tiny", overrides=["data.weights=[1,3]"])
    settings = expect(recipe, TranslationRecipe)
    _, splits = given_splits(settings, corpora[:2])
    assert len(splits.corpora) == 2
    with pytest.raises(SettingsError, match="there are 3 corpora in train and 2 weights"):
        given_splits(settings, corpora)
    with pytest.raises(SettingsError, match=r"mix files; pairs from memory are one corpus"):
        given_splits(settings, [("a", "b")] * 20)


def test_a_corpus_without_a_usable_pair_is_named(corpora: list[str], tmp_path: Path) -> None:
    long = tmp_path / "long.tsv"
    long.write_text("many words in here and there\tand there as well\n" * 11)
    with pytest.raises(SettingsError, match=r"long\.tsv has no pair to train on; leave it out"):
        prepared(
            tmp_path,
            [corpora[0], str(long)],
            "data.weights=[1,1]",
            "tokenizer.kind=word",
            "batches.max_length=5",
        )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"weights": [1, 2, 3]}, "there are 2 corpora in train and 3 weights; give one for each"),
        ({"weights": [1, 0]}, "weights must be above 0"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": 2, "filter": {}}, "filter and a mixture exclude each other"),
    ],
)
def test_bad_mixtures_are_refused(table: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        validate({"train": ["a.tsv", "b.tsv"], **table}, DataSettings, origin="test")
