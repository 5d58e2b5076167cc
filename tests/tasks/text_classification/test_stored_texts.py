"""Labelled texts that are too many for memory: the same training, from a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import regard
from regard.base.errors import DataError
from regard.batching import tokenising
from regard.corpora import labelled_store, store
from regard.corpora.cache import Told
from regard.corpora.labelled import held_rows
from regard.corpora.store import StoredSequence, StoreError
from regard.runs.run import Run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.text_classification import training
from regard.tasks.text_classification.data import LabelledSplits, read_labelled_splits
from regard.tasks.text_classification.settings import LabelledSettings, TextClassificationRecipe
from regard.text.tokenizers import RunningText, train_tokenizer

WORDS = {"good": ["fine", "great", "lovely"], "bad": ["poor", "awful", "dull"], "odd": ["hm"]}
SMALL = ["model.layers=1", "model.heads=1", "model.model_dim=8", "model.context=16",
         "tokenizer.kind=character", "training.epochs=2", "training.tokens=600"]  # fmt: skip


def lines(seed: int, count: int) -> list[str]:
    random, found = Random(seed), []
    for number in range(count):
        label = random.choices([*WORDS], weights=[5, 4, 1])[0]
        text = " ".join(random.choices(["a", "the", "film", *WORDS[label]], k=random.randint(1, 7)))
        found.append(f"{text} {number}\t{label}\n")
    return found


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 300 texts, and a limit that makes them too many for memory."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(tokenising, "BLOCK_PAIRS", 64)
    path = tmp_path / "texts.tsv"
    path.write_text("text\tlabel\n" + "".join(lines(1, 300)), encoding="utf-8")
    return path


def read(corpus: Path, told: Told | None = None, **options: Any) -> LabelledSplits:
    return read_labelled_splits(LabelledSettings(train=(str(corpus),), **options), told)


def in_memory(corpus: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> LabelledSplits:
    with monkeypatch.context() as patch:
        patch.setattr(store, "MOST_IN_MEMORY", 1000)
        return read(corpus, **options)


@pytest.mark.parametrize("options", [{}, {"share": 0.3}, {"hold_out_test": 0, "seed": 4}])
def test_a_store_holds_what_memory_would(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    plain, stored = in_memory(corpus, monkeypatch, **options), read(corpus, **options)
    assert isinstance(plain.train, list)
    assert isinstance(stored.train, StoredSequence)
    for found in (stored, read(corpus, **options)):  # built, then opened
        assert list(found.train) == plain.train
        assert (found.valid, found.test, found.labels) == (plain.valid, plain.test, plain.labels)
        assert (found.notes, found.warnings) == (plain.notes, plain.warnings)
        assert found.fingerprint() == plain.fingerprint()
    assert stored.train.lengths().shape == (len(plain.train), 2)


def test_parts_in_other_files(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, seed in (("valid", 2), ("test", 3)):
        corpus.with_name(f"{part}.tsv").write_text("".join(lines(seed, 20)), encoding="utf-8")
    options = {part: (str(corpus.with_name(f"{part}.tsv")),) for part in ("valid", "test")}
    plain, stored = in_memory(corpus, monkeypatch, **options), read(corpus, **options)
    assert list(stored.train) == plain.train
    assert (stored.valid, stored.test) == (plain.valid, plain.test)
    corpus.with_name("test.tsv").write_text("a film\tgod\n" * 3, encoding="utf-8")
    with pytest.raises(DataError, match=r"no training text has the label 'god'"):
        read(corpus, **options)


def test_what_is_held_out_of_a_large_corpus_is_bounded(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled_store, "MOST_HELD_OUT", 12)
    splits = read(corpus)
    assert (len(splits.valid), len(splits.test)) == (12, 12)
    assert {one.label for one in splits.valid} == {*WORDS}
    assert len(splits.train) == 276


def test_a_row_without_a_label_far_behind_is_named(corpus: Path) -> None:
    corpus.write_text("text\tlabel\n" + "".join(lines(1, 250)) + "no label\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"texts\.tsv, line 252: there are 1 columns instead of 2"):
        read(corpus)
    corpus.write_text("fine\tgood\n" * 250, encoding="utf-8")
    with pytest.raises(DataError, match="every text has the label"):
        read(corpus)
    assert not list(corpus.parent.rglob("store.json"))


def told_by(corpus: Path) -> list[str]:
    said: list[str] = []
    assert len(read(corpus, Told(say=said.append)).train) > 200
    return said


def test_a_changed_file_and_a_damaged_store_are_read_again(corpus: Path) -> None:
    assert told_by(corpus) == told_by(corpus) == []
    with corpus.open("a", encoding="utf-8") as file:
        file.write("one more\tgood\n")
    assert told_by(corpus) == [f"{corpus} has changed: the corpus is read again."]
    for name in ("texts/values", "parts/values", "texts/store.json"):
        (damaged,) = corpus.parent.glob(f"cache/corpora/*/labelled/{name}")
        damaged.write_bytes(damaged.read_bytes()[:-2])
        (line,) = told_by(corpus)
        assert line.startswith("The stored corpus is damaged (")
    (header,) = corpus.parent.glob("cache/corpora/*/labelled/texts/store.json")
    header.write_text(header.read_text().replace('"warnings"', '"warning"'))
    assert "it does not say what it was made of" in told_by(corpus)[0]


def recipe_of(corpus: Path, *changes: str) -> TextClassificationRecipe:
    overrides = [f"data.train={corpus}", *SMALL, *changes]
    return expect(find_recipe("text-classifier", overrides=overrides), TextClassificationRecipe)


def weights(folder: Path) -> bytes:
    return (folder / "best" / "model.safetensors").read_bytes()


def test_a_resumed_training_from_a_store_is_one_from_memory(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = corpus.parent

    def train(name: str, epochs: int) -> None:
        changes = [*SMALL, f"training.epochs={epochs}", "training.schedule=constant"]
        out = folder / name
        regard.train("text-classifier", data=str(corpus), out=out, set=changes, progress=False)

    train("stored", 1)

    def no_more(*_: object, **__: object) -> None:
        raise AssertionError("it was tokenised again")

    with monkeypatch.context() as patch:
        patch.setattr(training, "write_labelled", no_more)
        regard.train(resume=folder / "stored", set=["training.epochs=2"], progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(store, "MOST_IN_MEMORY", 1000)
        train("memory", 2)
    assert not (folder / "memory" / "data").exists()
    assert weights(folder / "stored") == weights(folder / "memory")
    tests = [json.loads((folder / name / "test.json").read_text()) for name in ("stored", "memory")]
    assert tests[0] == tests[1]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (
            lambda header: {**header, "made_of": {**header["made_of"], "context": 5}},
            "of other data",
        ),
        (lambda header: {**header, "rows": 5}, "are damaged"),
    ],
)
def test_tokens_that_do_not_fit_are_made_again(
    corpus: Path, forge: Callable[[dict[str, Any]], dict[str, Any]], said: str
) -> None:
    recipe, splits = recipe_of(corpus), read(corpus)
    run, told = Run.create(corpus.parent / "run", recipe), list[str]()
    text = RunningText(train_tokenizer((one.text for one in splits.train), kind="character"))
    text.tokenizer.save(run.folder, "tokenizer")

    def tokens() -> Any:
        return training._training_texts(run, recipe, text, splits, Told(say=told.append))

    found, lengths = tokens()
    assert lengths.tolist() == [len(one.ids) for one in found]
    assert [splits.labels[one.label] for one in found] == [one.label for one in splits.train]
    header = run.folder / "data" / "train" / "store.json"
    before = header.read_text()
    header.write_text(json.dumps(forge(json.loads(before))))
    tokens()
    assert (len(told), said in told[0], header.read_text()) == (1, True, before)
    found.store.made_of["sizes"] = [text.size, 1]
    with pytest.raises(StoreError, match="a token or a label that is not known"):
        list(found)


def test_every_class_is_held_out_in_its_share() -> None:
    labels = np.array([0] * 70 + [1] * 25 + [2] * 4 + [3], np.int32)
    held = held_rows(labels, share=0.2, seed=1)
    assert np.bincount(labels[held], minlength=4).tolist() == [14, 5, 1, 0]
    assert sorted(set(held.tolist())) == held.tolist()
    assert held.tolist() != held_rows(labels, share=0.2, seed=2).tolist()
    assert len(held_rows(labels, share=0.2, seed=1, most=10)) == 10
