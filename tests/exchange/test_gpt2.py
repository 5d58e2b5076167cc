from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.base.errors import RunError, SettingsError
from regard.exchange.formats import ForeignModel, ModelParts, read_foreign
from regard.exchange.hugging_face.gpt2 import config_of, write
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.text.byte_bpe import ByteBpeTokenizer

pytest.importorskip("tokenizers")
TOKENIZER = ByteBpeTokenizer.train(["the cat sat on the mat"], size=265)
SMALL = {"layers": 2, "model_dim": 12, "heads": 3, "context": 10, "activation": "gelu-tanh"}


def small(**options: Any) -> ModelParts:
    torch.manual_seed(1)
    settings = CausalTransformerSettings.model_validate(SMALL | options)
    model = build_language_model(settings, vocab=TOKENIZER.size)
    return ModelParts(model=model.eval(), settings=settings, tokenizers={"text": TOKENIZER})


def read_gpt2(folder: Path) -> ForeignModel:
    return read_foreign(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(small(), tmp_path / "gpt2")
    return tmp_path / "gpt2"


@pytest.mark.parametrize(
    "options", [{}, {"tie": False}, {"activation": "relu", "feed_forward": 20}], ids=str
)
def test_what_was_written_is_read(tmp_path: Path, options: dict[str, Any]) -> None:
    written = small(**options)
    write(written, tmp_path / "gpt2")
    found = read_gpt2(tmp_path / "gpt2")
    assert found.settings == written.settings
    assert found.tokenizers["text"].vocabulary == TOKENIZER.vocabulary
    ours, theirs = (dict(each.model.named_parameters()) for each in (written, found))
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_names_and_shapes_are_those_of_gpt2(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    assert len(tensors) == 4 + 2 * 12
    assert tensors["transformer.h.1.attn.c_attn.weight"].shape == (12, 36)
    assert tensors["transformer.wpe.weight"].shape == (10, 12)
    assert json.loads((folder / "config.json").read_text())["n_layer"] == 2


def test_bare_names_several_files_and_spare_rows(folder: Path) -> None:
    before = read_gpt2(folder)
    path = folder / "model.safetensors"
    tensors = {
        name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()
    }
    tensors["wte.weight"] = torch.cat([tensors["wte.weight"], torch.ones(3, 12)])
    path.unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    change_config(folder, vocab_size=TOKENIZER.size + 3)
    after = read_gpt2(folder)
    for one, other in zip(before.model.parameters(), after.model.parameters(), strict=True):
        assert one.equal(other[: len(one)])
    table = after.model.backbone.embedded.embedding.weight
    assert table[TOKENIZER.size :].equal(torch.ones(3, 12))  # kept, though no token uses them
    text: Any = after.tokenizers["text"]
    assert text.size == TOKENIZER.size + 3
    assert text.encode("the cat") == TOKENIZER.encode("the cat")
    assert text.decode([TOKENIZER.size + 1]) == ""
    write(after, folder / "back")
    back = load_file(folder / "back" / "model.safetensors")
    assert back["transformer.wte.weight"].equal(tensors["wte.weight"])


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_tensors(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


C_FC = "transformer.h.1.mlp.c_fc.weight"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(
            lambda f: change_tensors(f, lambda t: t.pop(C_FC)),
            r"model\.safetensors has no tensor 'transformer\.h\.1\.mlp\.c_fc\.weight'",
            id="missing tensor",
        ),
        pytest.param(
            lambda f: change_tensors(f, lambda t: t.update({C_FC: torch.ones(12, 40)})),
            r"h\.1\.mlp\.c_fc\.weight' has shape \(12, 40\) instead of \(12, 48\)",
            id="misshapen tensor",
        ),
        pytest.param(
            lambda f: (f / "model.safetensors").unlink(), "holds no model", id="missing file"
        ),
        pytest.param(
            lambda f: (f / "model.safetensors").write_bytes(b"short"), "is damaged", id="damaged"
        ),
        pytest.param(lambda f: (f / "config.json").unlink(), "holds no model", id="no config"),
        pytest.param(
            lambda f: (f / "config.json").write_text("{"), "is not JSON", id="config cut short"
        ),
        pytest.param(
            lambda f: (f / "config.json").write_text("[]"), "does not describe", id="config list"
        ),
        pytest.param(
            lambda f: change_config(f, model_type="mine"),
            "model_type 'mine' is not known. Known are: .*gpt2",
            id="another model",
        ),
        pytest.param(
            lambda f: change_config(f, activation_function="mish"),
            "activation_function = 'mish'",
            id="activation",
        ),
        pytest.param(
            lambda f: change_config(f, n_head=5), r"config\.json: .*divisible", id="heads"
        ),
        pytest.param(
            lambda f: change_config(f, vocab_size=100), "rows for 100 only", id="vocabulary"
        ),
        pytest.param(lambda f: (f / "merges.txt").unlink(), r"merges\.txt is missing", id="merges"),
    ],
)
def test_damaged_folders(folder: Path, damage: Callable[[Path], Any], message: str) -> None:
    damage(folder)
    with pytest.raises(RunError, match=message):
        read_gpt2(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="There is no file or folder"):
        read_gpt2(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "options",
    [{"positions": "rotary"}, {"norm": "rms"}, {"activation": "swiglu"}, {"window": 2}],
    ids=lambda options: next(iter(options)),
)
def test_what_gpt2_does_not_have(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"GPT-2 has no model.{next(iter(options))}"):
        config_of(small(**options).settings, TOKENIZER)
