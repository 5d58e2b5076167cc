"""Models that were trained here give the same outputs in `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import SettingsError
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.exchange.formats import ModelParts
from regard.exchange.hugging_face import llama
from regard.exchange.hugging_face.trained import require_writable, write_trained
from regard.models.build import build_translator
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.models import (
    RecurrentSettings,
    TransformerSettings,
)
from regard.text.tokenizers import train_tokenizer

transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

TEXTS = ["one small cat sleeps", "two large dogs run", "a bird and a fish", "dogs see a small bird"]
SMALL: dict[str, Any] = {"layers": 2, "model_dim": 32, "heads": 4, "feed_forward": 48}
CASES: dict[str, dict[str, Any]] = {
    "MarianMT": {"tie": "all"},
    "MarianMT, target tied, learned positions": {
        "positions": "learned",
        "max_length": 64,
        "activation": "gelu",
        "decoder_layers": 1,
    },
    "MarianMT, nothing tied": {"tie": "none", "output_bias": True, "positions": "none"},
    "Pegasus": {"tie": "all", "norm_placement": "pre", "output_bias": True, "activation": "swish"},
}


def some_biases(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_generate_gives_our_output(options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(2)
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=290)
    settings = TransformerSettings(**(SMALL | options))
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    some_biases(model.eval())
    parts = ModelParts(
        model=model, settings=settings, tokenizers={"source": tokenizer, "target": tokenizer}
    )
    write_trained(parts, tmp_path / "out")
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    split = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    rows = split(TEXTS, return_tensors="pt", padding=True)
    encoded = [tokenizer.encode(text) for text in TEXTS]
    assert rows["input_ids"][0][rows["attention_mask"][0] == 1].tolist() == [*encoded[0], END]
    generated = theirs.generate(**rows, max_new_tokens=12)[:, 1:].tolist()
    batch, mask = padded(encoded, after=END)
    found = greedy_search(model, batch, mask, rules=Rules(limits=torch.full((4,), 13)))
    for (one,), other in zip(found, generated, strict=True):
        ids = other[: other.index(END)] if END in other else other
        assert list(one.tokens)[:12] == ids


def test_a_model_like_llama_is_written_as_one(tmp_path: Path) -> None:
    torch.manual_seed(2)
    tokenizer = train_tokenizer(TEXTS, kind="byte-bpe", size=280)
    settings = CausalTransformerSettings(
        layers=2, model_dim=32, heads=4, key_value_heads=2, positions="rotary", norm="rms",
        activation="swiglu", attention_biases="none", feed_forward_biases=False,
    )  # fmt: skip
    model = build_language_model(settings, vocab=tokenizer.size).eval()
    llama.write(
        ModelParts(model=model, settings=settings, tokenizers={"text": tokenizer}), tmp_path / "out"
    )
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    split = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = tokenizer.encode("a small bird")
    assert split("a small bird")["input_ids"] == ids
    assert split.decode(ids) == "a small bird"
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits
        found = model.project(model(torch.tensor([ids])).features)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


MISTAKES: dict[str, tuple[Any, str]] = {
    "recurrent": (RecurrentSettings(), "a recurrent model cannot be written as one"),
    "pre-norm with two vocabularies": (
        TransformerSettings(norm_placement="pre"),
        "Pegasus (the form of pre-norm models) has no model.tie = 'target'",
    ),
    "several": (
        TransformerSettings(norm="rms", positions="rotary"),
        "MarianMT has no model.norm = 'rms', model.positions = 'rotary'",
    ),
}


@pytest.mark.parametrize(("settings", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_they_do_not_have_is_named(settings: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        require_writable(settings)
    assert message in str(caught.value)


def test_llama_names_what_it_does_not_have() -> None:
    settings = CausalTransformerSettings(positions="learned", norm="layer")
    parts = ModelParts(model=torch.nn.Identity(), settings=settings)
    with pytest.raises(SettingsError, match=r"Llama has no model\.positions = 'learned'"):
        llama.require_llama(parts)
