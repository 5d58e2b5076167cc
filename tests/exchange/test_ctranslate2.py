from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.base.errors import RunError, SettingsError
from regard.base.files import whole_folder
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, SPECIALS
from regard.exchange.ctranslate2 import (
    read_export_record,
    require_exportable,
    require_replaceable,
    token_names,
    write_ctranslate2,
)
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.text.tokenizers import train_tokenizer
from regard.text.vocabulary import Vocabulary
from regard.text.words import CharacterTokenizer, WordTokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

SMALL = {"layers": 2, "model_dim": 32, "heads": 4, "feed_forward": 48}
WORDS = [f" w{number}" for number in range(36)]

EXPORTABLE: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "norm first": {"norm_placement": "pre"},
    "RMS norm": {"norm": "rms"},
    "RMS norm first": {"norm": "rms", "norm_placement": "pre"},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish"},
    "swiglu": {"activation": "swiglu"},
    "learned positions": {"positions": "learned", "max_length": 64},
    "no positions": {"positions": "none"},
    "rotary positions": {"positions": "rotary"},
    "relative positions": {"positions": "relative", "reach": 4},
    "sinusoids of another kind": {
        "sinusoids": "halves",
        "sinusoid_offset": 2,
        "stretched_sinusoids": True,
    },
    "embeddings as they are": {"scaled_embeddings": False},
    "nothing tied, and a bias": {"tie": "none", "output_bias": True},
    "all tied": {"tie": "all"},
    "a shallow decoder": {"layers": 3, "decoder_layers": 1},
    "gated gelu": {"activation": "geglu"},
    "gated gelu by tanh": {"activation": "geglu-tanh"},
    "gelu by tanh": {"activation": "gelu-tanh"},
    "no biases": {"attention_biases": "none", "feed_forward_biases": False},
    "some biases": {"attention_biases": "inputs"},
    "a norm of the embeddings": {"embedding_norm": True, "norm_epsilon": 1e-3},
    "learned positions from the third row": {
        "positions": "learned",
        "max_length": 64,
        "learned_offset": 2,
    },
    "one table for words": {"tie": "inputs"},
    "another layer's attention": {"alignment_layer": 0},
}
NOT_EXPORTABLE = {
    "alibi": ({"positions": "alibi"}, "model.positions = 'alibi'"),
    "window": ({"window": 3}, "model.window = 3"),
    "linear": ({"kernel": "linear"}, "model.kernel = 'linear'"),
    "ssru": ({"decoder": "ssru"}, "model.decoder = 'ssru'"),
    "grouped": ({"key_value_heads": 2}, "model.key_value_heads = 2"),
    "wide heads": ({"head_dim": 16}, "model.head_dim = 16"),
    "bucketed": ({"positions": "bucketed"}, "model.positions = 'bucketed'"),
    "pattern": ({"pattern": "strided"}, "model.pattern = 'strided'"),
    "span": ({"span": 8}, "model.span = 8"),
    "convolutional": ({"encoder": "convolutional"}, "model.encoder = 'convolutional'"),
}


def words() -> WordTokenizer:
    return WordTokenizer(Vocabulary(["", " ", *WORDS]))


def random_model(**chosen: Any) -> tuple[Translator[Any], TransformerSettings]:
    """Return a model in which no bias is zero and no norm is one."""
    torch.manual_seed(1)
    settings = TransformerSettings(**{**SMALL, **chosen})
    size = words().size
    model = build_translator(settings, source_vocab=size, target_vocab=size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return model, settings


def exported(folder: Path, tokenizer: Tokenizer | None = None, **chosen: Any) -> Translator[Any]:
    model, settings = random_model(**{k: v for k, v in chosen.items() if k != "quantization"})
    tokenizer = tokenizer or words()
    write_ctranslate2(
        folder,
        model=model,
        settings=settings,
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        quantization=chosen.get("quantization"),
    )
    return model


def sentences(*, seed: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(4, words().size, length).tolist() for length in (3, 11, 25)]


def log_probabilities(
    model: Translator[Any], source: list[int], target: list[int]
) -> tuple[list[float], np.ndarray]:
    given = torch.tensor([[*source, END]])
    with torch.inference_mode():
        output = model(
            given,
            torch.ones_like(given, dtype=torch.bool),
            torch.tensor([[BEGIN, *target]]),
            with_weights=True,
        )
        found = model.project(output.features).log_softmax(-1)[0]
    assert output.attention is not None
    wanted = torch.tensor([*target, END])
    return found.gather(1, wanted[:, None])[:, 0].tolist(), output.attention[0].numpy()


@pytest.mark.parametrize("case", EXPORTABLE)
def test_plain_ctranslate2_gives_the_same_probabilities(case: str, tmp_path: Path) -> None:
    model = exported(tmp_path / "out", **EXPORTABLE[case])
    names = token_names(words())
    plain = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    sources, targets = sentences(seed=1), sentences(seed=2)
    found = plain.score_batch(
        [[names[i] for i in ids] for ids in sources], [[names[i] for i in ids] for ids in targets]
    )
    for source, target, theirs in zip(sources, targets, found, strict=True):
        ours, _ = log_probabilities(model, source, target)
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize("case", EXPORTABLE)
def test_its_steps_give_them_too_and_the_same_attention(case: str, tmp_path: Path) -> None:
    model = exported(tmp_path / "out", **EXPORTABLE[case])
    names = token_names(words())
    plain = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    source = sentences(seed=3)[1]
    (found,) = plain.translate_batch(
        [[names[i] for i in source]],
        beam_size=1,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=20,
        return_scores=True,
        return_attention=True,
    )
    tokens = [names.index(name) for name in found.hypotheses[0]]
    ours, attention = log_probabilities(model, source, tokens)
    ended = len(tokens) < 20
    total = sum(ours if ended else ours[:-1])
    assert found.scores[0] == pytest.approx(total, abs=1e-3)
    assert len(tokens) > 0
    theirs = np.array(found.attention[0])
    assert theirs == pytest.approx(attention[: len(tokens), : len(source)], abs=1e-4)


@pytest.mark.parametrize("case", NOT_EXPORTABLE)
def test_what_has_no_layer_there_is_named(case: str) -> None:
    chosen, named = NOT_EXPORTABLE[case]
    with pytest.raises(SettingsError, match=r"cannot be exported") as caught:
        require_exportable(TransformerSettings(**{**SMALL, **chosen}))
    assert named in str(caught.value)


def test_a_recurrent_model_cannot_be_exported() -> None:
    with pytest.raises(SettingsError, match=r"no layer for model\.family = 'recurrent'"):
        require_exportable(RecurrentSettings())
    settings = TransformerSettings(**SMALL)
    assert require_exportable(settings) is settings


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "bfloat16"])
def test_quantising_leaves_our_model_as_it_was(quantization: str, tmp_path: Path) -> None:
    before, _ = random_model()
    model = exported(tmp_path / "out", quantization=quantization)
    for (name, parameter), old in zip(model.named_parameters(), before.parameters(), strict=True):
        assert torch.equal(parameter, old), name
    assert read_export_record(tmp_path / "out")["quantization"] == quantization
    ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)


def test_int8_takes_a_quarter_of_the_space(tmp_path: Path) -> None:
    size = {}
    for name, quantization in {"float32": None, "int8": "int8"}.items():
        exported(tmp_path / name, quantization=quantization, positions="rotary", layers=4)
        size[name] = (tmp_path / name / "model.bin").stat().st_size
    assert size["int8"] < 0.4 * size["float32"]


def test_subwords_come_with_their_model_and_a_page(tmp_path: Path) -> None:
    texts = [" ".join(WORDS[i : i + 5]) for i in range(30)]
    tokenizer = train_tokenizer(texts, kind="sentencepiece", size=400)
    settings = TransformerSettings(**SMALL)
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    folder = tmp_path / "out"
    arguments: dict[str, Any] = {"model": model, "settings": settings}
    write_ctranslate2(folder, source_tokenizer=tokenizer, target_tokenizer=tokenizer, **arguments)
    files = {path.name for path in folder.iterdir()}
    assert files == {
        "model.bin",
        "config.json",
        "shared_vocabulary.json",
        "sentencepiece.model",
        "README.md",
        "export.json",
    }
    assert token_names(tokenizer)[:4] == list(SPECIALS)
    assert 'model_file="path/to/this/folder/sentencepiece.model"' in (
        folder / "README.md"
    ).read_text("utf-8")
    other = train_tokenizer(["a few other words"], kind="sentencepiece", size=400)
    model = build_translator(settings, source_vocab=other.size, target_vocab=tokenizer.size)
    write_ctranslate2(
        folder,
        source_tokenizer=other,
        target_tokenizer=tokenizer,
        shortlist=["a b"],
        **{**arguments, "model": model},
    )
    files = {path.name for path in folder.iterdir()}
    assert {"source.model", "target.model", "source_vocabulary.json", "vmap.txt"} <= files
    page = (folder / "README.md").read_text("utf-8")
    assert "source.model" in page
    assert "use_vmap=True" in page


def test_words_and_characters_come_with_their_lists_and_how_to_split(tmp_path: Path) -> None:
    exported(tmp_path / "words")
    listed = json.loads((tmp_path / "words" / "shared_vocabulary.json").read_text("utf-8"))
    assert listed == [*SPECIALS, "", " ", *WORDS]
    assert "split the text yourself" in (tmp_path / "words" / "README.md").read_text("utf-8")
    letters = CharacterTokenizer(Vocabulary([chr(97 + i) for i in range(words().size - 4)]))
    exported(tmp_path / "letters", letters)
    assert "single characters" in (tmp_path / "letters" / "README.md").read_text("utf-8")


def test_a_word_with_the_name_of_a_special_token_has_a_name_of_its_own() -> None:
    names = token_names(WordTokenizer(Vocabulary(["", " ", "</s>", "<unk>"])))
    assert names == [*SPECIALS, "", " ", "</s>#6", "<unk>#7"]


def test_a_tokenizer_without_a_list_of_tokens_is_refused() -> None:
    with pytest.raises(SettingsError, match="NoList has no list of tokens"):
        token_names(NoList())


class NoList:
    size = 5

    def encode(self, text: str) -> list[int]:
        return []

    def decode(self, ids: Any) -> str:
        return ""

    def pieces(self, ids: Any) -> list[str]:
        return []

    def word_of_piece(self, ids: Any) -> list[int]:
        return []

    def save(self, folder: Path, name: str) -> None: ...


def test_only_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    exported(folder)
    (folder / "left-over").touch()
    exported(folder, norm="rms")
    assert not (folder / "left-over").exists()
    (tmp_path / "mine").mkdir()
    require_replaceable(tmp_path / "mine")  # empty
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="not empty and holds no earlier export"):
        exported(tmp_path / "mine")
    with pytest.raises(RunError, match=r"is a file; choose another folder with --output"):
        exported(tmp_path / "mine" / "letter.txt")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    exported(folder)
    with pytest.raises(KeyboardInterrupt), whole_folder(folder) as writing:
        (writing / "model.bin").write_text("half")
        raise KeyboardInterrupt
    assert sorted(tmp_path.iterdir()) == [folder]
    assert read_export_record(folder)["quantization"] == "float32"


def test_a_damaged_record_is_no_record(tmp_path: Path) -> None:
    assert read_export_record(tmp_path) == {}
    (tmp_path / "export.json").write_text("[1")
    assert read_export_record(tmp_path) == {}
    (tmp_path / "export.json").write_text("[1]")
    assert read_export_record(tmp_path) == {}
