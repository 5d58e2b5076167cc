"""Every layout of Hugging Face: the same logits, the same outputs, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.base.errors import RunError
from regard.exchange.formats import read_foreign
from regard.exchange.hugging_face import architecture

transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from tests.parity import hugging_face_models as models  # noqa: E402

LONGER = ("Llama 3", "Llama, all biases")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(each, marks=pytest.mark.slow) if each in LONGER else each
        for each in models.CASES
    ],
)
def test_logits_outputs_and_tensors_are_equal(case: str, tmp_path: Path) -> None:
    kind, options, pairs = models.CASES[case]
    theirs = models.random_model(tmp_path / "theirs", kind, options, pairs=pairs)
    found = read_foreign(tmp_path / "theirs")
    compared = (models.compare_pairs if pairs else models.compare_texts)(theirs, found)
    assert compared.difference < 1e-5
    assert compared.equal == compared.total == 50
    write = architecture(theirs.config.model_type).write
    assert write is not None
    write(found, tmp_path / "back")
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("theirs", "back"))
    kept = {n: part for n, part in before.items() if found.leftovers.get(n) is None}
    assert kept.keys() == after.keys()
    assert [n for n in kept if not torch.equal(kept[n], after[n])] == []
    again = type(theirs).from_pretrained(tmp_path / "back").eval()
    ids = torch.tensor([[5, 7, 9, 2]])
    given = {"input_ids": ids} | ({"decoder_input_ids": ids} if pairs else {})
    with torch.no_grad():
        one, other = (model(**given).logits for model in (theirs, again))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    counts = [sum(p.numel() for p in model.parameters()) for model in (theirs, again)]
    assert counts[0] == counts[1]
    if not pairs:
        ours: Any = found.model
        assert sum(p.numel() for p in ours.parameters()) == counts[0]


def test_bert_guesses_the_same_and_goes_back(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    tokenizer = models.library_tokenizer(piece="words")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    torch.manual_seed(3)
    theirs = transformers.BertForMaskedLM(config).eval()
    theirs.save_pretrained(folder)
    found = read_foreign(folder)
    text: Any = found.tokenizers["text"]
    ours: Any = found.model
    for line in models.LINES[:50]:
        ids = torch.tensor([text.encode(line)[:60]])
        assert ids[0].tolist() == tokenizer.encode(line).ids[:60]
        with torch.no_grad():
            expected = theirs(input_ids=ids).logits
            torch.testing.assert_close(
                ours.project(ours(ids).features), expected, rtol=1e-5, atol=1e-5
            )
    assert found.settings.mask_token == tokenizer.token_to_id("[MASK]")  # type: ignore[attr-defined]
    counts = [sum(p.numel() for p in model.parameters()) for model in (ours, theirs)]
    assert counts[0] == counts[1]
    write = architecture("bert").write
    assert write is not None
    write(found, tmp_path / "back")
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("theirs", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    run = regard.import_model(folder, out=tmp_path / "run").run
    assert regard.load(run.folder).heads("the cat").weights.shape[:2] == (2, 4)


def test_a_run_of_a_language_model_generates(tmp_path: Path) -> None:
    kind, options, _ = models.CASES["Llama 3"]
    models.random_model(tmp_path / "theirs", kind, options, pairs=False)
    run = regard.import_model(tmp_path / "theirs", out=tmp_path / "run").run
    (found,) = regard.load(run.folder).generate("the cat", max_tokens=5, temperature=0)
    assert found.tokens <= 5


def test_a_model_of_many_languages_needs_known_marks(tmp_path: Path) -> None:
    kind, options, _ = models.CASES["M2M100"]
    models.random_model(tmp_path / "theirs", kind, options, pairs=True)
    found = regard.import_model(tmp_path / "theirs", out=tmp_path / "run", languages=("en", "fr"))
    translated = regard.load(found.run.folder).translate("the cat", beam=1)
    assert isinstance(translated.text, str)
    with pytest.raises(RunError, match="no mark for the language 'xx'"):
        regard.import_model(tmp_path / "theirs", out=tmp_path / "x", languages=("en", "xx"))


MISTAKES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "Llama": (
        "Llama 3",
        {"hidden_act": "relu", "rope_parameters": {"rope_type": "yarn"}},
        ["hidden_act = 'relu'", "rope_type = 'yarn'"],
    ),
    "BART": (
        "BART",
        {"activation_function": "tanh", "decoder_attention_heads": 2},
        ["activation_function = 'tanh'", "(must be equal)"],
    ),
    "T5": ("T5", {"feed_forward_proj": "tanh", "d_kv": 0}, ["feed_forward_proj", "d_kv is 0"]),
    "ids": ("BART", {"pad_token_id": 9999}, ["pad_token_id = 9999 (must be one of its ids)"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_unsupported_options_are_told_at_once(case: str, tmp_path: Path) -> None:
    name, changes, messages = MISTAKES[case]
    kind, options, pairs = models.CASES[name]
    models.random_model(tmp_path / "theirs", kind, options, pairs=pairs)
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(RunError) as caught:
        regard.import_model(tmp_path / "theirs", out=tmp_path / "run")
    assert all(message in str(caught.value) for message in messages)
    assert not (tmp_path / "run").exists()


def test_without_a_tokenizer_the_files_are_named(tmp_path: Path) -> None:
    kind, options, pairs = models.CASES["T5"]
    models.random_model(tmp_path / "theirs", kind, options, pairs=pairs)
    (tmp_path / "theirs" / "tokenizer.json").unlink()
    with pytest.raises(RunError, match="has no tokenizer; one of tokenizer"):
        read_foreign(tmp_path / "theirs")


def test_an_imported_bert_says_what_it_can_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from regard.cli.app import main

    folder = tmp_path / "theirs"
    folder.mkdir()
    tokenizer = models.library_tokenizer(piece="words")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size() + 5, hidden_size=8, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=8, max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    with pytest.raises(SystemExit) as stop:
        main(["import", str(folder), "--out", str(tmp_path / "run")])
    assert not stop.value.code
    assert f"try: regard look {tmp_path / 'run'}" in capsys.readouterr().err
