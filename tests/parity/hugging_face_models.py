"""Random models of `transformers` with tokenizer files, and how far ours is from each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tests.text.mixed_scripts import mixed_lines

from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.exchange.formats import ForeignModel

LINES = [line for line in mixed_lines(1_000) if line.strip()]
SIZES: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 128,
    "init_std": 0.1,
}
CAUSAL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "eos_token_id": 2,
    "bos_token_id": 0,
}
T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 6,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
}
LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
# Architecture, options, and whether the model maps a source to a target.
CASES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "BART": ("Bart", {**SIZES, "pad_token_id": 1, "decoder_start_token_id": 2}, True),
    "mBART": (
        "MBart",
        {**SIZES, "pad_token_id": 1, "decoder_start_token_id": 2, "scale_embedding": True},
        True,
    ),
    "Pegasus": ("Pegasus", {**SIZES, "pad_token_id": 1, "eos_token_id": 2}, True),
    "M2M100": ("M2M100", {**SIZES, "pad_token_id": 1, "eos_token_id": 2}, True),
    "T5": ("T5", T5, True),
    "T5 1.1": (
        "T5",
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        True,
    ),
    "Llama": ("Llama", CAUSAL, False),
    "Llama 3": (
        "Llama",
        {**CAUSAL, "rope_parameters": LLAMA_3, "tie_word_embeddings": True},
        False,
    ),
    "Llama, all biases": ("Llama", {**CAUSAL, "attention_bias": True, "mlp_bias": True}, False),
    "Qwen2": ("Qwen2", CAUSAL, False),
    "Qwen3": ("Qwen3", {**CAUSAL, "head_dim": 12}, False),
}
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "en", "fr"]


def library_tokenizer(*, begin: str | None = "<s>", piece: str = "bytes") -> Any:
    """Return a tokenizer of the package `tokenizers` with a few hundred entries."""
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE()
        if piece == "bytes"
        else tokenizers.models.WordPiece(unk_token="[UNK]")
    )
    if piece == "bytes":
        made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = tokenizers.decoders.ByteLevel()
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=400, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
        )
        marks = ("<s>", "</s>")
    else:
        made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        made.decoder = tokenizers.decoders.WordPiece()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=500,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            show_progress=False,
        )
        marks = ("[CLS]", "[SEP]")
    made.train_from_iterator(LINES, trainer=trainer)
    if begin is not None:
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{marks[0]} $A {marks[1]}",
            special_tokens=[(mark, made.token_to_id(mark)) for mark in marks],
        )
    return made


def random_model(folder: Path, kind: str, options: dict[str, Any], *, pairs: bool) -> Any:
    """Write a random model with its tokenizer; return the model."""
    folder.mkdir()
    begin = None if kind in ("T5", "Pegasus") else "<s>"
    tokenizer = library_tokenizer(begin=begin)
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = tokenizer.get_vocab_size() + 3  # tables are often larger than the vocabulary
    config = getattr(transformers, f"{kind}Config")(vocab_size=rows, **options)
    ending = "ForConditionalGeneration" if pairs else "ForCausalLM"
    torch.manual_seed(6)
    model = getattr(transformers, kind + ending)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # no bias is zero and no norm is one
                parameter += 0.1 * torch.randn_like(parameter)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return model


@dataclass(frozen=True)
class Comparison:
    """How our model compares with theirs."""

    difference: float
    """The greatest difference of a logit."""
    equal: int
    total: int
    """How many greedy outputs are equal, of how many."""


def compare_pairs(theirs: Any, found: ForeignModel, *, count: int = 50) -> Comparison:
    """Compare logits and greedy outputs of an encoder-decoder."""
    ours: Any = found.model
    source: Any = found.tokenizers["source"]
    target: Any = found.tokenizers["target"]
    encoded = [[*source.encode(line), END] for line in LINES[:count]]
    numbers = [[source.numbering.theirs[token] for token in ids] for ids in encoded]
    worst, config = 0.0, theirs.config
    generator = torch.Generator().manual_seed(1)
    for ids, their_ids in zip(encoded[:10], numbers, strict=False):
        later = torch.randint(6, target.numbering.size, (1, 9), generator=generator)
        begun = torch.cat([torch.tensor([[config.decoder_start_token_id]]), later], 1)
        read = torch.tensor([[_begin(target, int(n), place) for place, n in enumerate(begun[0])]])
        batch = torch.tensor([ids])
        with torch.no_grad():
            expected = theirs(input_ids=torch.tensor([their_ids]), decoder_input_ids=begun).logits
            mask = torch.ones_like(batch, dtype=torch.bool)
            logits = ours.project(ours(batch, mask, read).features)
        ours_of = {n: place for place, n in enumerate(target.numbering.chosen) if n >= 0}
        columns = [ours_of[n] for n in range(expected.shape[-1])]
        worst = max(worst, float((logits[..., columns] - expected).abs().max()))
    pad = config.pad_token_id
    width = max(map(len, numbers))
    rows = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in numbers])
    with torch.no_grad():
        generated = theirs.generate(
            input_ids=rows,
            attention_mask=(torch.arange(width) < torch.tensor([[len(i)] for i in numbers])).long(),
            do_sample=False,
            num_beams=1,
            max_new_tokens=16,
            forced_eos_token_id=None,
            suppress_tokens=sorted({pad, config.decoder_start_token_id} - {config.eos_token_id}),
        ).tolist()
    batch, mask = padded([ids[:-1] for ids in encoded], after=END)
    outputs = greedy_search(ours, batch, mask, rules=Rules(limits=torch.full((count,), 17)))
    written = [[target.numbering.theirs[n] for n in one.tokens] for (one,) in outputs]
    wanted = [_until_end(row[1:], config.eos_token_id, pad) for row in generated]
    equal = sum(one[:16] == other for one, other in zip(written, wanted, strict=True))
    return Comparison(worst, equal, count)


def _begin(target: Any, number: int, place: int) -> int:
    """Return our id of theirs; the first one is what a decoder begins with."""
    return 2 if place == 0 else int(target.numbering.ours[number])


def _until_end(row: list[int], end: int, pad: int) -> list[int]:
    return row[: row.index(end)] if end in row else [n for n in row if n != pad]


def compare_texts(theirs: Any, found: ForeignModel, *, count: int = 50) -> Comparison:
    """Compare logits and greedy continuations of a language model."""
    ours: Any = found.model
    tokenizer: Any = found.tokenizers["text"]
    worst, equal = 0.0, 0
    for line in LINES[:count]:
        ids = tokenizer.encode(line)[:20]
        batch = torch.tensor([ids])
        with torch.no_grad():
            expected = theirs(input_ids=batch).logits
            logits = ours.project(ours(batch).features)
            worst = max(worst, float((logits - expected).abs().max()))
            generated = theirs.generate(
                input_ids=batch,
                attention_mask=torch.ones_like(batch),
                do_sample=False,
                num_beams=1,
                max_new_tokens=16,
                pad_token_id=1,
            )[0, len(ids) :].tolist()
            step, written = ours.read(batch, ours.start(1)), []
            while len(written) < 16:
                written.append(int(step.logits[0].argmax()))
                if written[-1] in tokenizer.ends:
                    break
                step = ours.step(torch.tensor([written[-1]]), step.state)
        equal += written == generated
    return Comparison(worst, equal, count)
