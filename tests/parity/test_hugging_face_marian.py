"""With the same weights, the model gives what Hugging Face's MarianMT gives, and goes back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file
from tests.text.mixed_scripts import mixed_lines

import regard
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.exchange.formats import ForeignModel, ModelParts, read_foreign
from regard.exchange.hugging_face.marian import write
from regard.text.imported import ImportedTokenizer

transformers = pytest.importorskip("transformers")

LINES = mixed_lines(1_000)


def spm(lines: list[str], size: int) -> tuple[bytes, list[str]]:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        character_coverage=0.98,  # so that some characters are unknown
        hard_vocab_limit=False,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(model.getvalue())
    return model.getvalue(), [processor.id_to_piece(number) for number in range(3, len(processor))]


def marian_folder(folder: Path, *, shared: bool, **options: Any) -> Any:
    """A random model of `transformers`, with its tokenizer files."""
    folder.mkdir()
    (source, pieces), (target, others) = spm(LINES[:700], 330), spm(LINES[300:], 310)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    lists = [[*pieces, *others]] if shared else [pieces, others]
    sizes = []
    for name, each in zip(("vocab.json", "target_vocab.json"), lists, strict=False):
        tokens = dict.fromkeys(["</s>", "<unk>", *each, ">>fra<<", "<pad>"])
        if not shared:  # both sides must have the same id of the padding
            tokens = dict.fromkeys(["</s>", "<unk>", "<pad>", *each])
        sizes.append(len(tokens))
        (folder / name).write_text(json.dumps({t: n for n, t in enumerate(tokens)}))
    pad = sizes[0] - 1 if shared else 2
    config = transformers.MarianConfig(
        vocab_size=sizes[0],
        decoder_vocab_size=sizes[-1],
        share_encoder_decoder_embeddings=shared,
        d_model=32,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=128,
        scale_embedding=True,
        init_std=0.1,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=None,
        **options,
    )
    torch.manual_seed(6)
    model = transformers.MarianMTModel(config).eval()
    model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    tokenizer_config = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not shared}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return model


def tokenizers_of(found: ForeignModel) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    source, target = found.tokenizers["source"], found.tokenizers["target"]
    assert isinstance(source, ImportedTokenizer)
    assert isinstance(target, ImportedTokenizer)
    return source, target


CASES = {
    "one vocabulary": {"shared": True, "encoder_layers": 2, "decoder_layers": 2},
    "two vocabularies, unequal depths": {
        "shared": False,
        "encoder_layers": 3,
        "decoder_layers": 1,
        "activation_function": "relu",
    },
    "untied": {
        "shared": False,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "activation_function": "swish",
        "tie_word_embeddings": False,
    },
}


def source_ids(found: ForeignModel) -> tuple[list[list[int]], list[list[int]]]:
    """Fifty sentences in our ids and in theirs, with the end mark."""
    source, _ = tokenizers_of(found)
    lines = [line for line in LINES if line.strip()][:50]
    encoded = [[*source.encode(line), END] for line in lines]
    return encoded, [[source.numbering.theirs[token] for token in ids] for ids in encoded]


@torch.no_grad()
def logits_difference(found: ForeignModel, theirs: Any) -> float:
    """The greatest difference of a logit, given random targets; added rows must have no mass."""
    ours: Any = found.model
    _, target = tokenizers_of(found)
    worst = 0.0
    for ids, their_ids in list(zip(*source_ids(found), strict=True))[:10]:
        decoder_ids = torch.randint(2, theirs.config.decoder_vocab_size - 1, (1, 9))
        begun = torch.cat([torch.tensor([[theirs.config.decoder_start_token_id]]), decoder_ids], 1)
        read = torch.tensor([[target.numbering.ours[int(n)] for n in begun[0]]])
        batch = torch.tensor([ids])
        expected = theirs(input_ids=torch.tensor([their_ids]), decoder_input_ids=begun).logits
        mask = torch.ones_like(batch, dtype=torch.bool)
        logits = ours.project(ours(batch, mask, read).features)
        columns = [target.numbering.ours[n] for n in range(expected.shape[-1])]
        worst = max(worst, float((logits[..., columns] - expected).abs().max()))
        never = logits.log_softmax(-1).exp()[..., list(target.numbering.never)]
        assert float(never.sum()) == 0
    return worst


@torch.no_grad()
def equal_outputs(found: ForeignModel, theirs: Any) -> int:
    """How many of fifty greedy outputs are those of `generate`."""
    ours: Any = found.model
    _, target = tokenizers_of(found)
    encoded, numbers = source_ids(found)
    width, pad = max(map(len, numbers)), theirs.config.pad_token_id
    rows = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in numbers])
    generated = theirs.generate(
        input_ids=rows,
        attention_mask=(rows != pad).long(),
        do_sample=False,
        num_beams=1,
        max_new_tokens=16,
        bad_words_ids=[[pad]],
    ).tolist()
    batch, mask = padded([ids[:-1] for ids in encoded], after=END)
    limits = torch.full((len(encoded),), 17)
    outputs = greedy_search(ours, batch, mask, rules=Rules(limits=limits))
    found_ids = [[target.numbering.theirs[n] for n in one.tokens] for (one,) in outputs]
    special = (theirs.config.eos_token_id, pad)
    wanted_ids = [[n for n in row if n not in special] for row in generated]
    return sum(one == other for one, other in zip(found_ids, wanted_ids, strict=True))


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_logits_outputs_and_tensors_equal_marian(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs = marian_folder(tmp_path / "theirs", **options)
    found = read_foreign(tmp_path / "theirs")
    ours: Any = found.model
    source, target = tokenizers_of(found)
    assert logits_difference(found, theirs) < 1e-5
    assert equal_outputs(found, theirs) == 50

    parameters = sum(p.numel() for p in theirs.parameters()) + theirs.final_logits_bias.numel()
    sides = {"source": source, "target": target}
    if options["shared"]:
        del sides["source"]
    added = sum(32 * (side.size - side.numbering.size) for side in sides.values())
    added += target.size - target.numbering.size
    added += 0 if options.get("tie_word_embeddings", True) else 32
    positions = 2 * 128 * 32  # theirs are a table
    assert sum(p.numel() for p in ours.parameters()) == parameters + added - positions

    write(found, tmp_path / "back")
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("theirs", "back"))
    before = {name: part for name, part in before.items() if "embed_positions" not in name}
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "back").eval()
    rows = torch.tensor(source_ids(found)[1][:1])
    with torch.no_grad():
        torch.testing.assert_close(
            again(input_ids=rows, decoder_input_ids=rows % 300).logits,
            theirs(input_ids=rows, decoder_input_ids=rows % 300).logits,
        )


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("shared", [True, False])
def test_ids_equal_those_of_their_tokenizer(tmp_path: Path, shared: bool) -> None:
    marian_folder(tmp_path / "theirs", shared=shared, encoder_layers=1, decoder_layers=1)
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "theirs")
    source, target = tokenizers_of(read_foreign(tmp_path / "theirs"))
    tagged = [f">>fra<< {line}" for line in LINES[:20]] if shared else []
    for line in [*LINES, *tagged]:
        wanted = theirs(line)["input_ids"][:-1]
        assert [source.numbering.theirs[n] for n in source.encode(line)] == wanted
        wanted = theirs(text_target=line)["input_ids"][:-1]
        ids = target.encode(line)
        assert [target.numbering.theirs[n] for n in ids] == wanted
        if "<unk>" not in target.pieces(ids):
            pieces = theirs.spm_target.encode(line, out_type=str)
            assert target.decode(ids) == theirs.spm_target.decode_pieces(pieces)


def test_a_run_of_it_translates(tmp_path: Path) -> None:
    marian_folder(tmp_path / "theirs", shared=True, encoder_layers=1, decoder_layers=1)
    found = regard.import_model(tmp_path / "theirs", out=tmp_path / "run")
    assert any(">>fra<<" in note for note in found.notes)
    tagged = regard.import_model(tmp_path / "theirs", out=tmp_path / "fra", languages=("en", "fra"))
    assert not tagged.notes
    ours, fixed = regard.load(tmp_path / "run"), regard.load(tmp_path / "fra")
    assert fixed.source_tokenizer.pieces(fixed.source_tokenizer.encode("cat"))[0] == ">>fra<<"
    text = "the cat sat"
    assert fixed.translate(text).text == ours.translate(f">>fra<<{text}").text
    with pytest.raises(regard.RunError, match="no token '>>deu<<'"):
        regard.import_model(tmp_path / "theirs", out=tmp_path / "no", languages=("en", "deu"))
    assert not (tmp_path / "no").exists()
    parts = ModelParts(
        model=ours.model,
        settings=ours.recipe.model,
        tokenizers={"source": ours.source_tokenizer, "target": ours.target_tokenizer},
    )
    write(parts, tmp_path / "back")
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("theirs", "back"))
    assert all(torch.equal(before[name], part) for name, part in after.items())
