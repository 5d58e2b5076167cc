from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import DataError, SettingsError
from regard.corpora import store
from regard.corpora.store import StoredSequence, StoreError
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.language_modelling import answers
from regard.tasks.language_modelling.answers import AnswerData, prepare_answers
from regard.tasks.language_modelling.model import TrainedLanguageModel
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.language_modelling.training import train_language_model
from regard.training.checkpoint import read_state

CAPITALS = {"fr": "paris", "it": "rome", "gb": "london", "de": "berlin"}
SMALL = [
    "model.layers=1", "model.heads=2", "model.model_dim=32", "model.context=24",
    "training.warmup=5", "training.learning_rate=0.01", "training.batch_size=8",
    "training.validate_every=100", "decoding.max_tokens=12", "decoding.prompt=fr",
]  # fmt: skip


def recipe_of(pairs: Path, *overrides: str) -> LanguageModelRecipe:
    given = [f"data.pairs={pairs}", *SMALL, *overrides]
    return expect(find_recipe("gpt-nano", overrides=given), LanguageModelRecipe)


def train(recipe: LanguageModelRecipe, folder: Path) -> TrainedLanguageModel:
    return train_language_model(recipe, open_run(folder, recipe, resume=False))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "capitals.tsv"
    rows = [f"{country}\t{city}\n" for country, city in CAPITALS.items()] * 20
    path.write_text("".join(rows), encoding="utf-8")
    return path


def test_answers_are_learned_and_given(pairs: Path, tmp_path: Path) -> None:
    trained = train(recipe_of(pairs, "training.steps=120"), tmp_path / "run")
    assert set(trained.metrics) == {"loss", "perplexity"}
    assert trained.metrics["loss"] < 0.3
    for country, city in CAPITALS.items():
        (answer,) = trained.model.generate(country, temperature=0.0)
        assert (answer.text, answer.reason) == (city, "stop")
    more = recipe_of(
        pairs, f"training.start_from={tmp_path / 'run'}", "training.steps=1", f"data.valid={pairs}"
    )
    again = train(more, tmp_path / "more")
    assert again.metrics["loss"] < 0.5


def test_what_cannot_be_learned(pairs: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 pairs are too few to hold some out"):
        train(recipe_of(few), tmp_path / "run")
    with pytest.raises(SettingsError, match="text and pairs exclude each other"):
        recipe_of(pairs, "data.text=a.txt")


def test_a_part_of_the_answers_is_validated_and_all_of_them_at_the_end(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int | None] = []
    validation = AnswerData.validation

    def watched(data: AnswerData, recipe: Any, *, most: int | None) -> Any:
        found = list(validation(data, recipe, most=most))
        seen.append(sum(len(batch.tokens) for batch in found))
        return found

    monkeypatch.setattr(AnswerData, "validation", watched)
    trained = train(
        recipe_of(pairs, "training.steps=2", "training.validate_tokens=12"), tmp_path / "run"
    )
    part, whole = dict.fromkeys(seen)  # each may be read more than once
    assert 1 <= part < whole == 8  # answers
    kept = read_state(trained.run.folder / "best")["metrics"]
    assert trained.metrics["loss"] != kept["loss"]


def test_answers_of_a_store_are_those_of_memory(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    found = {}
    for name, most in (("memory", 1_000), ("stored", 20), ("again", 20)):
        monkeypatch.setattr(store, "MOST_IN_MEMORY", most)
        recipe = recipe_of(pairs, "model.context=5", "tokenizer.kind=character")
        folder = tmp_path / ("memory" if name == "memory" else "stored")
        run = open_run(folder, recipe, resume=name == "again")
        if name == "again":
            monkeypatch.setattr(answers, "write_rows", None)  # it is opened, not written
        found[name] = prepare_answers(run, recipe)
    memory = found["memory"]
    assert isinstance(memory.train, list)
    for name in ("stored", "again"):
        stored = found[name]
        assert isinstance(stored.train, StoredSequence)
        assert list(stored.train) == memory.train
        assert stored.lengths.tolist() == memory.lengths.tolist()
        assert (stored.valid, stored.digest) == (memory.valid, memory.digest)
    stored.train.store.made_of["size"] = 3
    with pytest.raises(StoreError, match="a token has the id"):
        list(stored.train)


def test_a_stored_training_resumes_to_the_same_weights(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    changes = ["training.schedule=constant", "training.validate_every=3"]
    train(recipe_of(pairs, "training.steps=6", *changes), tmp_path / "memory")
    monkeypatch.setattr(store, "MOST_IN_MEMORY", 20)
    train(recipe_of(pairs, "training.steps=3", *changes), tmp_path / "stored")
    regard.train(resume=tmp_path / "stored", set=["training.steps=6"], progress=False)
    one, other = (
        (tmp_path / name / "best" / "model.safetensors").read_bytes()
        for name in ("memory", "stored")
    )
    assert one == other
    assert (tmp_path / "stored" / "data" / "train" / "values").is_file()
