"""Folders of Hugging Face as they come: other files beside the weights, and what is wrong there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.parity import hugging_face_models as models
from tests.parity.test_hugging_face_trained import SMALL, TEXTS

import regard
from regard.base.errors import RunError
from regard.exchange.formats import ModelParts, find_weights, read_foreign
from regard.exchange.hugging_face import llama
from regard.exchange.hugging_face.trained import write_trained
from regard.models.build import build_translator
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.models import TransformerSettings
from regard.tasks.translation.export import writer_of
from regard.text.tokenizers import train_tokenizer

pytest.importorskip("transformers")


def made(folder: Path, case: str, **changes: Any) -> Any:
    """Write a random model in a folder, with changes of its options."""
    kind, options, pairs = models.CASES[case]
    return models.random_model(folder, kind, {**options, **changes}, pairs=pairs)


def change(path: Path, **table: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | table))


def test_a_short_table_of_positions_bounds_the_examples_of_a_run(tmp_path: Path) -> None:
    made(tmp_path / "theirs", "BART")  # 128 positions
    run = regard.import_model(tmp_path / "theirs", out=tmp_path / "run").run
    loaded = regard.load(run.folder)
    assert loaded.recipe.batches.max_length == 128
    assert isinstance(loaded.translate("the cat", beam=1).text, str)


def test_what_the_search_of_a_model_is_told(tmp_path: Path) -> None:
    theirs = made(tmp_path / "theirs", "BART")
    told = {"forced_bos_token_id": 4, "num_beams": 3, "length_penalty": 0.5}
    change(tmp_path / "theirs" / "generation_config.json", **told)
    run = regard.import_model(tmp_path / "theirs", out=tmp_path / "run").run
    loaded = regard.load(run.folder)
    assert (loaded.recipe.decoding.beam, loaded.recipe.decoding.length_penalty) == (3, 0.5)
    source, target = loaded.source_tokenizer, loaded.target_tokenizer
    assert target.prefix == ("en",)
    for line in models.LINES[:10]:
        ids = torch.tensor([[source.numbering.theirs[n] for n in source.encode(line)] + [2]])
        generated = theirs.generate(
            ids, forced_bos_token_id=4, forced_eos_token_id=None, max_new_tokens=9, num_beams=1,
            suppress_tokens=[1],
        )  # fmt: skip
        wanted = generated[0, 1:].tolist()
        found = loaded.translate(line, beam=1, max_length=9)
        assert wanted[0] == 4
        text = [target.numbering.ours[n] for n in wanted if n != 2]
        assert found.text.startswith(target.decode(text)[:-1])


def test_any_of_several_marks_ends_a_text(tmp_path: Path) -> None:
    theirs = made(tmp_path / "theirs", "Llama", eos_token_id=[2, *range(20, 200)])
    found = read_foreign(tmp_path / "theirs")
    assert models.compare_texts(theirs, found, count=20).equal == 20
    run = regard.import_model(tmp_path / "theirs", out=tmp_path / "run").run
    loaded = regard.load(run.folder)
    assert {loaded.generate(t, temperature=0, max_tokens=30)[0].reason for t in TEXTS} == {"end"}
    llama.write(found, tmp_path / "back")
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert config["eos_token_id"] == theirs.config.eos_token_id


def test_files_of_a_training_are_no_weights(tmp_path: Path) -> None:
    made(tmp_path / "theirs", "T5")
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
        torch.save({"a": torch.zeros(1)}, tmp_path / "theirs" / name)
    (tmp_path / "theirs" / "more.bin").mkdir()
    assert find_weights(tmp_path / "theirs")[0].name == "model.safetensors"


def test_parts_of_torch_files_with_an_index(tmp_path: Path) -> None:
    made(tmp_path / "theirs", "T5")
    tensors = load_file(tmp_path / "theirs" / "model.safetensors")
    (tmp_path / "theirs" / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"pytorch_model-1.bin": names[:9], "pytorch_model-2.bin": names[9:]}
    for file, part in parts.items():
        halves = {name: tensors[name].to(torch.bfloat16) for name in part}
        torch.save(halves, tmp_path / "theirs" / file)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (tmp_path / "theirs" / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    found = read_foreign(tmp_path / "theirs")
    weight = dict(found.model.named_parameters())["encoder.layers.0.feed_forward.outer.weight"]
    wanted = tensors["encoder.block.0.layer.1.DenseReluDense.wo.weight"]
    assert weight.equal(wanted.to(torch.bfloat16).float())


TRAINED: dict[str, dict[str, Any]] = {
    "waves of ours": {"tie": "all"},
    "learned positions": {"positions": "learned", "max_length": 64},
    "no positions": {"tie": "none", "positions": "none", "output_bias": True},
    "pre-norm": {"tie": "all", "norm_placement": "pre"},
}


@pytest.mark.parametrize("options", TRAINED.values(), ids=TRAINED)
def test_what_was_trained_here_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(2)
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=290)
    settings = TransformerSettings(**(SMALL | options))
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    tokens = {"source": tokenizer, "target": tokenizer}
    write_trained(ModelParts(model=model, settings=settings, tokenizers=tokens), tmp_path / "out")
    found: Any = read_foreign(tmp_path / "out")
    source = torch.tensor([[*tokenizer.encode(TEXTS[0]), 3]])
    target = torch.tensor([[2, *tokenizer.encode(TEXTS[1])]])
    mask = torch.ones_like(source, dtype=torch.bool)
    with torch.no_grad():
        one, other = (
            each.project(each(source, mask, target).features)
            for each in (model.eval(), found.model)
        )
    torch.testing.assert_close(one, other)
    text = found.tokenizers["source"]
    assert [text.encode(line) for line in TEXTS] == [tokenizer.encode(line) for line in TEXTS]
    writer_of(found)(found, tmp_path / "back")
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("out", "back"))
    assert before.keys() - {"final_logits_bias"} == after.keys() - {"final_logits_bias"}
    assert all(torch.equal(before[name], part) for name, part in after.items())


def test_a_language_model_with_sentencepiece_comes_back(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=290)
    settings = CausalTransformerSettings(
        layers=1, model_dim=16, heads=2, positions="rotary", norm="rms", activation="geglu",
        attention_biases="none", feed_forward_biases=False,
    )  # fmt: skip
    model = build_language_model(settings, vocab=tokenizer.size)
    parts = ModelParts(model=model, settings=settings, tokenizers={"text": tokenizer})
    llama.write(parts, tmp_path / "out")
    found: Any = read_foreign(tmp_path / "out")
    text = found.tokenizers["text"]
    assert [text.encode(line) for line in TEXTS] == [tokenizer.encode(line) for line in TEXTS]


def tensors_of(folder: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


SHARED = "shared.weight"
DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a kind that is no name": (
        lambda f: change(f / "config.json", model_type=[]),
        r"model_type \[\] is not known",
    ),
    "whole numbers": (
        lambda f: tensors_of(f, lambda t: t.update({SHARED: t[SHARED].to(torch.int64)})),
        "'shared.weight' holds numbers of the type int64, which are no weights",
    ),
    "a vocabulary that would fill the memory": (
        lambda f: change(f / "config.json", vocab_size=10**7),
        r"vocab_size in .*config\.json is 10,000,000, but 'shared.weight' .* has 403 rows",
    ),
    "a vocabulary larger than any": (
        lambda f: change(f / "config.json", vocab_size=10**12),
        r"config\.json: vocab_size is 1000000000000, more than 16,777,216\.",
    ),
    "no embedding": (
        lambda f: tensors_of(f, lambda t: t.pop(SHARED)),
        "has no matrix 'shared.weight'",
    ),
    "far more layers than weights": (
        lambda f: change(f / "config.json", num_layers=500, d_model=4096, d_kv=1024, d_ff=65536),
        "The configuration describes a model of more than .* MB",
    ),
    "quantised weights": (
        lambda f: change(f / "config.json", quantization_config={"bits": 4}, feed_forward_proj="x"),
        r"quantization_config = \{'bits': 4\} .*; feed_forward_proj = 'x'",
    ),
    "ids and options together": (
        lambda f: change(f / "config.json", eos_token_id=-1, pad_token_id=403, d_kv="x"),
        r"pad_token_id = 403 .*; eos_token_id = -1 .*; d_kv is 'x'",
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_folders(case: str, tmp_path: Path) -> None:
    damage, message = DAMAGES[case]
    made(tmp_path / "theirs", "T5")
    damage(tmp_path / "theirs")
    with pytest.raises(RunError, match=message):
        regard.import_model(tmp_path / "theirs", out=tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_rotations_that_are_no_table(tmp_path: Path) -> None:
    made(tmp_path / "theirs", "Llama")
    change(tmp_path / "theirs" / "config.json", rope_parameters=3, partial_rotary_factor=0.5)
    with pytest.raises(RunError, match=r"rope_parameters = 3 \(a table is expected"):
        read_foreign(tmp_path / "theirs")
    change(tmp_path / "theirs" / "config.json", rope_parameters={}, eos_token_id="x")
    with pytest.raises(RunError, match=r"eos_token_id = 'x' .*; partial_rotary_factor"):
        read_foreign(tmp_path / "theirs")
