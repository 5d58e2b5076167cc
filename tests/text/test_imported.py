from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tests.text.mixed_scripts import mixed_lines

from regard.base.errors import RunError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, PAD, UNKNOWN
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import CodesSplitter, ImportedTokenizer, Numbering
from regard.text.splitters import LibrarySplitter, SentencePieceSplitter
from regard.text.tokenizers import (
    RunningText,
    extend_tokenizer,
    load_tokenizer,
    train_tokenizer,
    unknown_parts,
)

LINES = mixed_lines(1_000)


def sentencepiece_model(**options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES[:500]),
        model_writer=model,
        vocab_size=600,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


MARIAN = {"eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1, "character_coverage": 0.98}
KINDS: dict[str, dict[str, Any]] = {
    "Marian": MARIAN,
    "T5": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "byte_fallback": True},
    "Llama": {"unk_id": 0, "bos_id": 1, "eos_id": 2, "model_type": "bpe", "byte_fallback": True},
    "no normaliser": {**MARIAN, "normalization_rule_name": "identity"},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_sentencepiece_gives_the_ids_of_its_own_library(options: dict[str, Any]) -> None:
    model = sentencepiece_model(**options)
    library = sentencepiece.SentencePieceProcessor()
    library.load_from_serialized_proto(model)
    splitter = SentencePieceSplitter(model)
    numbering = Numbering(
        size=splitter.size, unknown=library.unk_id(), end=library.eos_id(), begin=library.eos_id()
    )
    ours = ImportedTokenizer(splitter, numbering)
    for line in LINES:
        ids, wanted = ours.encode(line), library.encode(line)
        assert [numbering.theirs[number] for number in ids] == wanted
        assert all(number == UNKNOWN or number > END for number in ids)
        if ids and library.unk_id() not in wanted:
            assert ours.decode(ids) == library.decode(wanted).strip()
            words = ours.word_of_piece(ids)
            assert words == sorted(words)
            assert words[-1] == len(library.decode(wanted).split()) - 1
        assert len(ours.pieces(ids)) == len(ids)


def test_the_special_tokens_come_first_and_the_others_keep_their_order() -> None:
    plain = Numbering(size=6, unknown=1, end=0)
    assert plain.theirs == (-1, 1, -1, 0, 2, 3, 4, 5)
    assert plain.never == (PAD, BEGIN)
    padding_first = Numbering(size=6, pad=5, unknown=1, begin=5, end=0)  # MarianMT
    assert padding_first.theirs == (-1, 1, 5, 0, 2, 3, 4)
    assert padding_first.never == (PAD,)
    end_first = Numbering(size=6, pad=1, unknown=3, begin=2, end=2)  # fairseq
    assert end_first.theirs == (1, 3, 2, 2, 0, 4, 5)
    assert end_first.chosen == (1, 3, -1, 2, 0, 4, 5)
    assert end_first.ours[2] == END
    as_they_are = Numbering(size=3, identity=True, end=2)
    assert as_they_are.theirs == (0, 1, 2)
    assert as_they_are.never == ()


def test_decoding_leaves_out_special_tokens_but_the_unknown_one() -> None:
    splitter = SentencePieceSplitter(sentencepiece_model(**MARIAN))
    numbering = Numbering(size=splitter.size, unknown=1, end=0)
    ours = ImportedTokenizer(splitter, numbering)
    assert isinstance(ours, Tokenizer)
    cat = ours.encode("the cat")
    assert ours.decode([BEGIN, PAD, *cat, END]) == "the cat"
    assert ours.decode([*cat, UNKNOWN]) == "the cat <unk>"
    assert ours.pieces([PAD, UNKNOWN, BEGIN, END]) == ["<pad>", "<unk>", "<s>", "</s>"]


def library_bpe(lines: list[str], merges: int) -> tuple[str, Any]:
    learn_bpe = pytest.importorskip("subword_nmt.learn_bpe")
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
    codes = io.StringIO()
    learn_bpe.learn_bpe(io.StringIO("\n".join(lines)), codes, merges, min_frequency=1)
    codes.seek(0)
    return codes.getvalue(), apply_bpe.BPE(codes)


@pytest.mark.parametrize("version", ["0.2", "0.1"])
def test_bpe_codes_give_the_subwords_of_subword_nmt(version: str) -> None:
    text, library = library_bpe(LINES[:600], 300)
    if version == "0.1":
        apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
        text = text.split("\n", 1)[1].replace("</w>\n", "</w>\n")
        library = apply_bpe.BPE(io.StringIO(text))
    seen = dict.fromkeys(t for line in LINES[:600] for t in library.process_line(line).split())
    dictionary = "".join(f"{token} {len(token)}\n" for token in seen)
    splitter = CodesSplitter(text.encode(), dictionary.encode())
    ids = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *seen])}
    ours = ImportedTokenizer(
        splitter, Numbering(size=splitter.size, pad=1, unknown=3, begin=2, end=2)
    )
    for line in LINES:
        pieces = library.process_line(line).split()
        wanted = [ids.get(piece, 3) for piece in pieces]
        found = ours.encode(line)
        assert [ours.numbering.theirs[number] for number in found] == wanted
        if 3 not in wanted and "\u00a0" not in line:
            assert ours.decode(found) == " ".join(line.split())
            assert ours.word_of_piece(found)[-1] == len(line.split()) - 1


def library_tokenizer(kind: str) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    models, before = tokenizers.models, tokenizers.pre_tokenizers
    if kind == "WordPiece":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = tokenizers.normalizers.BertNormalizer()
        made.pre_tokenizer = before.BertPreTokenizer()
        made.decoder = tokenizers.decoders.WordPiece()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=600, special_tokens=special, show_progress=False
        )
    elif kind == "ByteLevel":
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = before.ByteLevel(add_prefix_space=False)
        made.decoder = tokenizers.decoders.ByteLevel()
        special = ["<|endoftext|>", "<|im_start|>"]
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=special,
            initial_alphabet=before.ByteLevel.alphabet(),
            show_progress=False,
        )
    else:
        made = tokenizers.Tokenizer(models.Unigram())
        made.pre_tokenizer = before.Metaspace()
        made.decoder = tokenizers.decoders.Metaspace()
        special = ["<unk>", "<s>", "</s>"]
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(LINES[:600], trainer=trainer)
    first, last = special[-2], special[-1]
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(mark, made.token_to_id(mark)) for mark in (first, last)],
    )
    made.enable_truncation(4)
    made.enable_padding(length=8)
    return made


@pytest.mark.parametrize("kind", ["WordPiece", "ByteLevel", "Metaspace"])
def test_a_tokenizer_json_gives_the_ids_of_its_own_library(kind: str) -> None:
    library = library_tokenizer(kind)
    splitter = LibrarySplitter(library.to_str().encode())
    library.no_truncation()
    library.no_padding()
    ours = ImportedTokenizer(splitter, Numbering(size=splitter.size, identity=True, end=2))
    before, after = splitter.marks()
    for line in LINES:
        whole = library.encode(line).ids
        assert [*before, *ours.encode(line), *after] == whole
        assert ours.decode(ours.encode(line)) == library.decode(whole)
        assert len(ours.word_of_piece(ours.encode(line))) == len(ours.pieces(ours.encode(line)))
    pieces = ours.pieces(ours.encode("the small dogs"))
    assert "".join(pieces).translate(str.maketrans("", "", "␣▁#")) == "thesmalldogs"
    assert RunningText(ours).end == 2


def test_a_prefix_stands_before_every_text_and_adds_none() -> None:
    model = sentencepiece_model(**MARIAN)
    plain = SentencePieceSplitter(model)
    tokens = ["</s>", "<unk>", *(plain.token(n) for n in range(2, plain.size)), ">>fra<<", "<pad>"]
    splitter = SentencePieceSplitter(model, {token: n for n, token in enumerate(tokens)})
    numbering = Numbering(size=len(tokens), unknown=1, end=0, pad=len(tokens) - 1)
    ours = ImportedTokenizer(splitter, numbering, prefix=[">>fra<<"])
    ids = ours.encode("the cat")
    assert ids == [*ours.opening, *ours.plain.encode("the cat")]
    assert ids == ours.plain.encode(">>fra<<the cat")
    assert ours.decode(ids) == "the cat"
    assert ours.pieces(ids)[0] == ">>fra<<"
    assert ours.word_of_piece(ids)[0] == 0
    with pytest.raises(RunError, match="no token '__en__'"):
        ImportedTokenizer(splitter, numbering, prefix=["__en__"])


def saved(folder: Path) -> ImportedTokenizer:
    splitter = CodesSplitter(b"#version: 0.2\nc a\nca t</w>\n", b"cat 3\nc@@ 2\na@@ 1\nt 1\n")
    numbering = Numbering(size=splitter.size, pad=1, unknown=3, begin=2, end=2)
    ours = ImportedTokenizer(splitter, numbering, prefix=["<s>"])
    ours.save(folder, "source")
    return ours


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    ours, found = saved(tmp_path), load_tokenizer(tmp_path, "source")
    assert isinstance(found, ImportedTokenizer)
    assert found.numbering == ours.numbering
    assert found.encode("cat tac") == ours.encode("cat tac")
    assert found.decode(found.encode("cat tac")) == "cat <unk> a<unk>"
    assert extend_tokenizer(found, ["other words"], size=100) is found


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("source.codes", lambda _: "", "is incomplete or changed"),
        ("source.codes", None, "is missing"),
        ("source.json", lambda t: t.replace('"bpe-codes"', '"other"'), "does not describe"),
        ("source.json", lambda t: t.replace('"size": 8', '"size": 10000000'), "vocabulary of 1000"),
        ("source.json", lambda t: t.replace('"pad": 1', '"pad": 90'), "has the id 90"),
        ("source.json", lambda t: t.replace('"<s>"', '"<x>"'), "no token '<x>'"),
    ],
)
def test_damaged_files(tmp_path: Path, file: str, change: Any, message: str) -> None:
    saved(tmp_path)
    path = tmp_path / file
    if change is None:
        path.unlink()
    else:
        path.write_text(change(path.read_text()))
    with pytest.raises(RunError, match=message):
        load_tokenizer(tmp_path, "source")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SentencePieceSplitter(b"nothing"), "not a SentencePiece model"),
        (lambda: SentencePieceSplitter(sentencepiece_model(**MARIAN), {"a": 0}), "no <unk>"),
        (lambda: CodesSplitter(b"#version: 0.2\na b c\n", b"a 1\n"), "not a pair"),
        (lambda: CodesSplitter(b"", b"alone\n"), "line 1 of the dictionary"),
        (lambda: CodesSplitter(b"", b"a 1\na 2\n"), "lists a token twice"),
        (lambda: LibrarySplitter(b"{}"), "not a tokenizer.json"),
        (lambda: SentencePieceSplitter.load({"model": b"", "vocab.json": b"[]"}), "table of ids"),
        (lambda: SentencePieceSplitter.load({"model": b"", "vocab.json": b'{"a": "b"}'}), "an id"),
        (lambda: SentencePieceSplitter.load({"model": b"", "vocab.json": b'{"a": 9999}'}), "9999"),
    ],
)
def test_damaged_foreign_files(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_an_imported_tokenizer_cannot_be_learned() -> None:
    with pytest.raises(SettingsError, match="belongs to an imported model"):
        train_tokenizer(["a"], kind="imported")


@pytest.mark.realdata
def test_the_vocabulary_of_a_published_model(real_data: Path) -> None:
    path = real_data / "weights" / "marian-enpt" / "vocab.enpt.spm"
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    splitter = SentencePieceSplitter(path.read_bytes())
    ours = ImportedTokenizer(splitter, Numbering(size=splitter.size, unknown=1, end=0))
    table = path.with_name("enpt.flores100.greedy.tsv").read_text(encoding="utf-8")
    for line in [*LINES, *(cell for row in table.splitlines() for cell in row.split("\t")[:2])]:
        assert [ours.numbering.theirs[n] for n in ours.encode(line)] == library.encode(line)
    assert json.loads(json.dumps(ours.pieces(ours.encode("Olá"))))


@pytest.mark.parametrize("identity", [False, True])
def test_unknown_words_are_found_by_either_numbering(identity: bool) -> None:
    splitter = SentencePieceSplitter(sentencepiece_model(**MARIAN))
    numbering = Numbering(size=splitter.size, unknown=1, end=0, identity=identity)
    ours = ImportedTokenizer(splitter, numbering)
    text = "the ⚙⚙ cat"
    assert unknown_parts(ours, text, ours.encode(text)) == ("⚙⚙",)
    assert unknown_parts(ours, "the cat", ours.encode("the cat")) == ()


def test_a_panic_of_the_library_is_an_error() -> None:
    """What its Rust code raises is no Exception, so nothing else would catch it."""
    pytest.importorskip("tokenizers")
    table = json.loads(ByteBpeTokenizer.train(["the cat"], size=260).description())
    splitter = LibrarySplitter(json.dumps(table | {"normalizer": [""]}).encode())
    with pytest.raises(RunError, match=r"tokenizer\.json contradicts itself: index out"):
        splitter.encode("the cat 猫")
