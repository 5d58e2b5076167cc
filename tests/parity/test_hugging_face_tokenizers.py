"""Tokenizers of folders without a `tokenizer.json`: the ids of the original library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tests.parity import hugging_face_models as models
from tests.text.mixed_scripts import mixed_lines
from tests.text.test_imported import sentencepiece_model

from regard.base.errors import RunError
from regard.exchange.formats import ForeignFiles
from regard.exchange.hugging_face import pieces, tokenizers
from regard.exchange.sources import Options
from regard.text.imported import ImportedTokenizer

transformers = pytest.importorskip("transformers")
library = pytest.importorskip("tokenizers")

LINES = [
    *mixed_lines(1_000),
    *("", " ", "tab\there", "a\x00b", "\x07bell", "e\u0301\u0301", "\ufeffbom", "x\u200by"),
    *("👨‍👩‍👧‍👦" * 3, "a" * 2_000, "\u3000wide", "Ⅷ ２ ﬀ", "line\nbreak", ">>fra<< hi"),
]


def files(folder: Path, languages: tuple[str, str] | None = None) -> ForeignFiles:
    return ForeignFiles(weights=folder / "model.safetensors", languages=languages)


def pair(folder: Path, model_type: str, languages: tuple[str, str] | None = None) -> Any:
    options = Options({"model_type": model_type}, "config")
    numbering = tokenizers.pair_ids(options, rows=2_000)
    options.finish()
    return tokenizers.pair_tokenizers(options, files(folder, languages), numbering)[0]


def text(folder: Path, model_type: str, **table: Any) -> ImportedTokenizer:
    options = Options({"model_type": model_type, **table}, "config")
    numbering = tokenizers.text_ids(options, rows=2_000)
    return tokenizers.text_tokenizer(options, files(folder), numbering, closed=model_type == "bert")


def require_same(ours: Any, theirs: Callable[[str], list[int]], end: list[int]) -> None:
    for line in LINES:
        ids = ours.encode(line)
        assert [*(ours.numbering.theirs[number] for number in ids), *end] == theirs(line), line
        assert len(ours.pieces(ids)) == len(ours.word_of_piece(ids)) == len(ids)


def saved(folder: Path, name: str, **options: Any) -> Any:
    """Write a SentencePiece model under its name in a folder; return the library's reader."""
    model = sentencepiece_model(**options)
    (folder / name).write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(model)
    return processor


def m2m100(folder: Path) -> Any:
    """Write the files of an M2M100; return the tokenizer of `transformers`."""
    made = saved(folder, "s.model", unk_id=3, bos_id=0, pad_id=1, eos_id=2)
    listed = [made.id_to_piece(number) for number in range(len(made))][:-20]  # some are unknown
    (folder / "v.json").write_text(json.dumps({piece: n for n, piece in enumerate(listed)}))
    theirs = transformers.M2M100Tokenizer(
        str(folder / "v.json"), str(folder / "s.model"), src_lang="fr", tgt_lang="en"
    )
    theirs.save_pretrained(folder / "saved")
    return theirs


def test_bert_of_a_list_of_pieces(tmp_path: Path) -> None:
    ids = models.library_tokenizer(piece="words").get_vocab()
    (tmp_path / "vocab.txt").write_text("".join(f"{one}\n" for one in sorted(ids, key=ids.get)))
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    ours = text(tmp_path, "bert")
    require_same(ours, lambda line: theirs(line).input_ids, [])
    cat = ours.encode("the cat")
    assert ours.decode(cat) == "the cat"
    assert ours.word_of_piece(cat) == [0, 0, 1, 1]  # the marks are no words
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(RunError, match=r"has no \[UNK\], \[CLS\], \[SEP\], \[PAD\], \[MASK\]"):
        text(tmp_path, "bert")


def test_bart_of_gpt2s_files(tmp_path: Path) -> None:
    made = library.ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made.train_from_iterator(LINES, vocab_size=450, special_tokens=specials)
    made.save_model(str(tmp_path))
    theirs = transformers.BartTokenizer.from_pretrained(tmp_path)
    ours = pair(tmp_path, "bart")
    require_same(ours, lambda line: theirs(line).input_ids, [2])
    assert ours.encode("a <mask> b") == [
        ours.numbering.ours[n] for n in theirs("a <mask> b").input_ids[:-1]
    ]


def test_m2m100_with_its_languages(tmp_path: Path) -> None:
    from transformers.models.m2m_100 import tokenization_m2m_100 as original

    codes = original.FAIRSEQ_LANGUAGE_CODES
    assert {"m2m100": pieces.M2M100.split(), "wmt21": pieces.WMT21.split()} == codes
    theirs = m2m100(tmp_path)
    ours = pair(tmp_path / "saved", "m2m_100")
    require_same(ours, lambda line: theirs(line).input_ids, [2])
    chosen = pair(tmp_path / "saved", "m2m_100", ("fr", "en"))
    assert chosen.prefix == ours.prefix == ("__fr__",)
    assert tokenizers.language_notes(chosen, files(tmp_path, ("fr", "en"))) == []
    bare = ImportedTokenizer(ours.splitter, ours.numbering)
    (note,) = tokenizers.language_notes(bare, files(tmp_path))
    assert "knows 100 languages (__af__ __am__" in note
    (tmp_path / "back").mkdir()
    tokenizers.write_pair_tokenizers(ours, bare, tmp_path / "back", model_type="m2m_100")
    again = transformers.M2M100Tokenizer.from_pretrained(tmp_path / "back")
    require_same(ours, lambda line: again(line).input_ids, [2])


def test_nllb_of_its_sentencepiece_model(tmp_path: Path) -> None:
    made = saved(tmp_path, "sentencepiece.bpe.model", model_type="bpe")
    listed = {"additional_special_tokens": ["eng_Latn", {"content": "fra_Latn"}]}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(listed))
    ours = pair(tmp_path, "m2m_100", ("fra_Latn", "eng_Latn"))
    french = len(made) + 2

    def theirs(line: str) -> list[int]:  # fairseq numbers from one more; <unk> is 3
        return [french, *(n + 1 if n else 3 for n in made.encode(line)), 2]

    require_same(ours, theirs, [2])
    (tmp_path / "back").mkdir()
    tokenizers.write_pair_tokenizers(ours, ours, tmp_path / "back", model_type="m2m_100")
    again = pair(tmp_path / "back", "m2m_100", ("fra_Latn", "eng_Latn"))
    assert again.encode("the cat") == ours.encode("the cat")


def test_pegasus_has_special_tokens_before_its_pieces(tmp_path: Path) -> None:
    made = saved(tmp_path, "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ours = pair(tmp_path, "pegasus")
    require_same(ours, lambda line: [n + 103 for n in made.encode(line)], [])
    assert ours.numbering.unknown == 105
    saved(tmp_path, "spiece.model", unk_id=0, bos_id=1, eos_id=2)
    with pytest.raises(RunError, match="begins with <unk>, <s> instead of <pad>, </s>"):
        pair(tmp_path, "pegasus")


def test_t5_and_llama_have_the_ids_of_their_pieces(tmp_path: Path) -> None:
    made = saved(tmp_path, "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ours = pair(tmp_path, "t5")
    require_same(ours, lambda line: [*made.encode(line), 1], [1])
    spare = ours.numbering.ours[len(made) + 5]  # the tables have more rows
    assert ours.pieces([spare]) == ["<unk>"]
    (tmp_path / "spiece.model").unlink()
    made = saved(tmp_path, "tokenizer.model", model_type="bpe", byte_fallback=True)
    ours = text(tmp_path, "llama", bos_token_id=1, eos_token_id=[2, 5])
    require_same(ours, lambda line: [1, *made.encode(line)], [])
    assert ours.ends == (2, 5)
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": false}')
    assert text(tmp_path, "llama", bos_token_id=1).prefix == ()


def test_marks_after_the_end_of_a_source_are_refused(tmp_path: Path) -> None:
    made = models.library_tokenizer()
    made.post_processor = library.processors.TemplateProcessing(
        single="$A </s> en", special_tokens=[(n, made.token_to_id(n)) for n in ("</s>", "en")]
    )
    made.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(RunError, match="ends a source with </s> en: only the end mark"):
        pair(tmp_path, "mbart")


def test_damaged_lists_of_pieces(tmp_path: Path) -> None:
    saved(tmp_path, "sentencepiece.bpe.model")
    for content, message in (("[]", "not a table of ids"), ('{"a": 1}', "has no <unk>")):
        (tmp_path / "vocab.json").write_text(content)
        with pytest.raises(RunError, match=message):
            pair(tmp_path, "m2m_100")
    (tmp_path / "sentencepiece.bpe.model").unlink()
    (tmp_path / "vocab.txt").write_bytes(b"\xff")
    with pytest.raises(RunError, match="cannot be read"):
        text(tmp_path, "bert")
