"""A graph computes what the model does, in onnxruntime, for every option that it can express."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError, RunError, SettingsError
from regard.base.special_tokens import END
from regard.exchange.onnx import files
from regard.exchange.onnx.files import require_onnx, write_onnx
from regard.exchange.onnx.session import OnnxTranslator
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.text.tokenizers import train_tokenizer

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SMALL: dict[str, Any] = {"layers": 2, "model_dim": 32, "heads": 4, "feed_forward": 48}
OPTIONS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "as Llama": {
        "positions": "rotary",
        "key_value_heads": 2,
        "head_norm": True,
        "norm": "rms",
        "norm_placement": "pre",
        "activation": "swiglu",
        "attention_biases": "inputs",
    },
    "as BART": {
        "positions": "learned",
        "learned_offset": 2,
        "embedding_norm": True,
        "activation": "gelu",
        "scaled_embeddings": False,
    },
    "as T5": {
        "positions": "bucketed",
        "score": "dot",
        "norm": "rms",
        "norm_placement": "pre",
        "activation": "geglu-tanh",
        "attention_biases": "none",
        "feed_forward_biases": False,
        "scaled_output": True,
        "tie": "all",
        "head_dim": 6,
    },
    "as Marian's students": {"decoder": "ssru", "tie": "all", "output_bias": True},
    "window, slopes": {"positions": "alibi", "window": 3, "activation": "swish"},
    "no positions": {"positions": "none", "activation": "geglu", "decoder_layers": 1},
}


def model_of(options: dict[str, Any]) -> tuple[Translator[Any], TransformerSettings]:
    torch.manual_seed(1)
    settings = TransformerSettings(**(SMALL | options))
    model = build_translator(settings, source_vocab=285, target_vocab=285).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return model, settings


TEXTS = ["one small cat", "two large dogs", "a bird and a fish"]


def exported(folder: Path, options: dict[str, Any], **more: Any) -> Translator[Any]:
    model, settings = model_of(options)
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=285)
    write_onnx(
        folder,
        model=model,
        settings=settings,
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        **more,
    )
    return model


SOURCE = torch.randint(4, 285, (3, 9), generator=torch.Generator().manual_seed(1))
MASK = torch.arange(9) < torch.tensor([[9], [4], [7]])
TARGET = torch.randint(4, 285, (3, 8), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("options", list(OPTIONS.values()), ids=list(OPTIONS))
@torch.no_grad()
def test_steps_are_those_of_the_model(options: dict[str, Any], tmp_path: Path) -> None:
    model = exported(tmp_path / "onnx", options, weights=True)
    whole = model(SOURCE, MASK, TARGET, with_weights=True)
    logits, found = model.project(whole.features), OnnxTranslator(tmp_path / "onnx")
    state = found.start(found.encode(SOURCE, MASK))
    for position in range(8):
        step = found.step(TARGET[:, position], state, with_weights=True)
        torch.testing.assert_close(step.logits, logits[:, position], rtol=1e-4, atol=2e-5)
        assert whole.attention is not None
        torch.testing.assert_close(step.weights, whole.attention[:, position], rtol=1e-3, atol=1e-5)
        state = step.state
    rows = torch.tensor([2, 0, 2, 1])
    chosen = found.step(torch.full((4,), 9), found.select(state, rows)).logits
    alone = found.step(torch.full((3,), 9), state).logits
    torch.testing.assert_close(chosen, alone[rows], rtol=1e-4, atol=2e-5)


@torch.no_grad()
def test_the_weights_of_every_head_are_outputs_on_request(tmp_path: Path) -> None:
    model = exported(tmp_path / "onnx", {}, weights=True)
    maps = model.head_maps(SOURCE, MASK, TARGET[:, :1])
    found = OnnxTranslator(tmp_path / "onnx")
    encoded = found.encode(SOURCE, MASK)
    assert maps.encoder is not None
    for layer in range(2):
        seen = torch.from_numpy(encoded.summary[f"self_weights.{layer}"])
        torch.testing.assert_close(seen, maps.encoder[layer], rtol=1e-3, atol=1e-5)
    assert {"self_weights.0", "cross_weights.1"} <= set(found.outputs)


@torch.no_grad()
def test_without_weights_there_are_none_to_ask_for(tmp_path: Path) -> None:
    exported(tmp_path / "onnx", {})
    found = OnnxTranslator(tmp_path / "onnx")
    state = found.start(found.encode(SOURCE, MASK))
    with pytest.raises(RegardError, match="export it with --weights"):
        found.step(TARGET[:, 0], state, with_weights=True)


@torch.no_grad()
def test_int8_is_smaller_and_nearly_the_same(tmp_path: Path) -> None:
    wide = {"model_dim": 128, "feed_forward": 256, "positions": "none"}
    model = exported(tmp_path / "float", wide)
    exported(tmp_path / "int8", wide, int8=True)
    sizes = [(tmp_path / kind / "encoder.onnx").stat().st_size for kind in ("float", "int8")]
    assert sizes[1] < 0.4 * sizes[0]
    found = OnnxTranslator(tmp_path / "int8")
    step = found.step(TARGET[:, 0], found.start(found.encode(SOURCE, MASK)))
    logits = model.project(model(SOURCE, MASK, TARGET[:, :1]).features)[:, 0]
    assert torch.corrcoef(torch.stack([step.logits.flatten(), logits.flatten()]))[0, 1] > 0.99


@torch.no_grad()
def test_the_page_shows_code_that_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = exported(tmp_path / "onnx", {})
    page = (tmp_path / "onnx" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = code.replace("path/to/this/folder", str(tmp_path / "onnx")).replace("...", "small dogs")
    space: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), space)  # what a reader would type
    assert capsys.readouterr().out
    ids = SOURCE[0].tolist()
    written = space["translate"](ids, longest=6)
    tokens = torch.tensor([[2, *written]])
    source = torch.tensor([[*ids, END]])
    logits = model.project(model(source, torch.ones_like(source).bool(), tokens).features)[0]
    logits[:, [0, 2]] = -torch.inf
    assert logits.argmax(-1)[: len(written)].tolist() == written


MISTAKES: dict[str, tuple[Any, str]] = {
    "recurrent": (RecurrentSettings(), "not model.family = 'recurrent'"),
    "several": (
        TransformerSettings(positions="relative", encoder="convolutional"),
        "model.encoder = 'convolutional', model.positions = 'relative'",
    ),
    "score": (TransformerSettings(score="additive"), "model.score = 'additive'"),
}


@pytest.mark.parametrize(("settings", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_no_graph_is_made_for_is_named(settings: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        require_onnx(settings)
    assert message in str(caught.value)


def test_missing_packages_and_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install onnx onnxruntime"):
        exported(tmp_path / "onnx", {})
    monkeypatch.undo()
    exported(tmp_path / "onnx", {})
    (tmp_path / "onnx" / "decoder.onnx").unlink()
    with pytest.raises(RunError, match=r"decoder\.onnx is missing"):
        OnnxTranslator(tmp_path / "onnx")
