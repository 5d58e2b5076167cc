from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from regard.base.errors import RunError, SettingsError
from regard.exchange.ctranslate2 import read_export_record
from regard.models.build import build_translator
from regard.runs.run import Run
from regard.tasks.translation.export import export_argos, export_ctranslate2, learn_shortlist
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe
from regard.text.tokenizers import train_tokenizer
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress

ctranslate2 = pytest.importorskip("ctranslate2")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def subword_run(
    random_transformer_run: Path, toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same with subwords."""
    run = Run.open(
        Path(shutil.copytree(random_transformer_run, tmp_path_factory.mktemp("runs") / "subwords"))
    )
    texts = [
        line
        for side in ("src", "tgt")
        for line in (toy_corpus / f"train.{side}").read_text("utf-8").splitlines()
    ]
    joint = train_tokenizer(texts, kind="sentencepiece", size=330)
    run.save_tokenizers(joint, joint)
    recipe = run.recipe(TranslationRecipe)
    torch.manual_seed(1)
    model = build_translator(recipe.model, source_vocab=joint.size, target_vocab=joint.size)
    with torch.no_grad():
        model.projection.bias[3] = 2.0
    CheckpointStore(run.folder).save_best(model, Progress(), {})
    return run.folder


@pytest.fixture
def run(random_transformer_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(random_transformer_run, tmp_path / "run"))


def test_an_export_can_be_loaded_without_us(run: Path, tmp_path: Path) -> None:
    found = export_ctranslate2(run, output=tmp_path / "out")
    assert found.path == tmp_path / "out"
    assert found.bleu_change is None
    ctranslate2.Translator(str(found.path), intra_threads=1)
    assert export_ctranslate2(run).path == run / "engines" / "ctranslate2-float32"


def test_int8_records_what_it_costs(run: Path) -> None:
    found = export_ctranslate2(run, quantization="int8")
    assert found.path == run / "engines" / "ctranslate2-int8"
    record = read_export_record(found.path)
    assert record["sentences"] == 40
    assert record["bleu_change"] == found.bleu_change
    assert record["bleu"] - record["bleu_float32"] == pytest.approx(found.bleu_change, abs=2e-3)


def test_without_validation_data_it_says_so(run: Path, tmp_path: Path) -> None:
    recipe = run / "recipe.toml"
    text = recipe.read_text("utf-8")
    lost = text.replace("valid.src", "lost.src")
    assert lost != text
    recipe.write_text(lost, encoding="utf-8")
    said: list[str] = []
    found = export_ctranslate2(run, quantization="int8", report=said.append)
    assert found.bleu_change is None
    assert "bleu_change" not in read_export_record(found.path)
    assert said[0].startswith("The change in BLEU was not measured: ")
    assert "lost.src" in said[0]


def test_a_search_that_ctranslate2_lacks_is_not_measured(run: Path) -> None:
    """Torch would search for both exports, and find that nothing changes."""
    model = load(run)
    decoding = model.decoding(min_length=2)
    Run.open(run).rewrite(model.recipe.model_copy(update={"decoding": decoding}))
    said: list[str] = []
    found = export_ctranslate2(run, quantization="int8", report=said.append)
    assert said == [
        "The change in BLEU was not measured: CTranslate2 lacks this run's decoding.min_length."
    ]
    assert found.bleu_change is None
    assert "bleu_change" not in read_export_record(found.path)


def test_what_cannot_be_exported_is_named(toy_run: Path, tmp_path: Path, run: Path) -> None:
    with pytest.raises(SettingsError, match=r"model\.family = 'recurrent'"):
        export_ctranslate2(toy_run, output=tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    with pytest.raises(RunError, match="exists already"):
        export_ctranslate2(run, output=tmp_path / "mine")
    (run / "engines").write_text("in the way")
    with pytest.raises(SettingsError, match=r"Cannot write .*ctranslate2-float32"):
        export_ctranslate2(run)


def test_a_shortlist_is_learned_from_the_training_pairs(subword_run: Path, tmp_path: Path) -> None:
    translator = load(subword_run)
    lines = learn_shortlist(translator, likely=3, frequent=5)
    first, *others = lines
    assert first.startswith("\t")
    assert len(first.split()) == 5
    assert all(1 <= len(line.partition("\t")[2].split(" ")) <= 3 for line in others)
    said: list[str] = []
    found = export_ctranslate2(
        subword_run, output=tmp_path / "out", shortlist=True, report=said.append
    )
    assert said == ["Learning a shortlist from 600 pairs."]
    assert found.bleu_change is not None
    assert (tmp_path / "out" / "vmap.txt").read_text("utf-8").count("\n") > 20


def test_a_shortlist_needs_subwords(run: Path) -> None:
    with pytest.raises(SettingsError, match="A shortlist needs subwords"):
        export_ctranslate2(run, shortlist=True)


def test_a_package_for_argos(subword_run: Path, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.argosmodel"
    assert export_argos(subword_run, source="en", target="de", output=path).path == path
    assert path.is_file()
    with pytest.raises(RunError, match="exists already"):
        export_argos(subword_run, source="en", target="de", output=path)
    export_argos(subword_run, source="en", target="de", output=path, force=True)
    with pytest.raises(SettingsError, match="one SentencePiece model for both languages"):
        export_argos(run, source="en", target="de")
