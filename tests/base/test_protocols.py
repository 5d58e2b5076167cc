from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.protocols import StepDecoder, Tokenizer
from regard.base.special_tokens import BEGIN, END, PAD, SPECIALS, UNKNOWN
from regard.models.build import build_translator
from regard.settings.models import RecurrentSettings
from regard.text.tokenizers import TokenizerKind, load_tokenizer, train_tokenizer


def test_the_special_tokens_come_first() -> None:
    assert (PAD, UNKNOWN, BEGIN, END) == (0, 1, 2, 3)
    assert len(SPECIALS) == 4


@pytest.mark.parametrize("kind", ["character", "word", "sentencepiece"])
def test_every_tokenizer_keeps_the_protocol(kind: TokenizerKind, tmp_path: Path) -> None:
    trained = train_tokenizer(["a b c", "c b a"], kind=kind, size=300)
    trained.save(tmp_path, "side")
    assert isinstance(trained, Tokenizer)
    assert isinstance(load_tokenizer(tmp_path, "side"), Tokenizer)


def test_the_translator_is_a_step_decoder() -> None:
    settings = RecurrentSettings(hidden=4, embedding=4)
    assert isinstance(build_translator(settings, source_vocab=6, target_vocab=6), StepDecoder)
