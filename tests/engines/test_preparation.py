from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TOY_WORDS

from regard.engines import preparation
from regard.engines.preparation import fingerprint, known_patience, prepare_patience
from regard.tasks.translation.model import LoadedTranslator, load

pytest.importorskip("ctranslate2")

TEXTS = TOY_WORDS[:4] * 75


@pytest.fixture
def run(random_transformer_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(random_transformer_run, tmp_path / "run"))


def changed(run: Path, **decoding: Any) -> LoadedTranslator:
    model = load(run)
    model.recipe = model.recipe.model_copy(update={"decoding": model.decoding(**decoding)})
    return model


def test_it_measures_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(run)
    found = prepare_patience(model, run, [*TEXTS, ""])
    assert found is not None
    assert found.sentences == len(TEXTS)  # nothing is to be found out with an empty one
    assert found == known_patience(run, fingerprint(model), model.recipe.decoding)
    monkeypatch.delattr(preparation, "measure_patience")
    assert prepare_patience(model, run, TEXTS) == found


@pytest.mark.parametrize(
    "decoding", [{"beam": 1}, {"method": "mbr"}, {"length_penalty": 3.0}, {"min_length": 2}]
)
def test_there_is_nothing_to_measure(run: Path, decoding: dict[str, Any]) -> None:
    assert prepare_patience(changed(run, **decoding), run, TEXTS) is None
    assert not (run / "engines").exists()


@pytest.mark.parametrize("sentences", [0, 298])
def test_a_few_sentences_show_nothing(run: Path, sentences: int) -> None:
    assert prepare_patience(load(run), run, TEXTS[:sentences]) is None
    assert not (run / "engines").exists()


def test_other_models_have_no_patience(toy_run: Path) -> None:
    assert prepare_patience(load(toy_run), toy_run, TEXTS) is None
    assert not (toy_run / "engines").exists()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [emptied, cut_short, flipped, Path.unlink])
@pytest.mark.parametrize("name", ["model.bin", "config.json", "export.json"])
def test_a_damaged_conversion_is_made_anew(run: Path, name: str, damage: Any) -> None:
    model = load(run)
    with preparation.converted(model, run=run) as folder:
        whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    damage(folder / name)
    with preparation.converted(model, run=run) as again:
        assert again == folder
        assert {path.name: path.read_bytes() for path in again.iterdir()} == whole


def test_a_whole_conversion_is_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(run)
    with preparation.converted(model, run=run):
        pass
    monkeypatch.delattr(preparation, "_write")
    with preparation.converted(model, run=run) as folder:
        assert (folder / "model.bin").is_file()
