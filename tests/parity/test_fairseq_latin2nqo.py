"""A fairseq Transformer that others trained gives its own greedy outputs, symbol for symbol."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.base.special_tokens import END, UNKNOWN
from regard.batching.batch import padded
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.exchange.fairseq import fill_translator
from regard.models.build import TransformerPlan

# Their <s>, <pad>, </s>, <unk> in our order; their decoder begins with the end mark.
SPECIALS = [1, 3, 2, 2]


def read_merges(path: Path) -> dict[tuple[str, str], int]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return {tuple(line.split(" ")): rank for rank, line in enumerate(lines)}  # type: ignore[misc]


def split_word(word: str, merges: dict[tuple[str, str], int]) -> list[str]:
    """Byte-pair encoding (Sennrich et al. 2016): join the pair that was learned first."""
    parts = [*word[:-1], word[-1] + "</w>"]
    while len(parts) > 1:
        pairs = list(itertools.pairwise(parts))
        best = min(pairs, key=lambda pair: merges.get(pair, len(merges)))
        if best not in merges:
            break
        joined: list[str] = []
        for part in parts:
            if joined and (joined[-1], part) == best:
                joined[-1] += part
            else:
                joined.append(part)
        parts = joined
    return [*(part + "@@" for part in parts[:-1]), parts[-1].removesuffix("</w>")]


def read_symbols(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return ["<pad>", "<unk>", "<s>", "</s>", *(line.rsplit(" ", 1)[0] for line in lines)]


@pytest.mark.realdata
def test_greedy_outputs_equal_the_reference(real_data: Path) -> None:
    folder = real_data / "weights" / "latin2nqo"
    arrays = np.load(folder / "latin2nqo_001.35.npz")
    tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    source_symbols, target_symbols = (
        read_symbols(folder / f"dict.{side}.txt") for side in ("roman", "nqo")
    )
    model = TransformerPlan(
        layers=5,
        decoder_layers=5,
        model_dim=128,
        heads=8,
        feed_forward=512,
        norm_placement="pre",
        sinusoids="halves",
        sinusoid_offset=2,
        stretched_sinusoids=True,
    ).translator(source_vocab=len(source_symbols), target_vocab=len(target_symbols))
    fill_translator(model, tensors)
    with torch.no_grad():
        for side in ("encoder", "decoder"):
            table = tensors[f"{side}.embed_tokens.weight"]
            rows = torch.tensor([*SPECIALS, *range(4, len(table))])
            model.get_submodule(f"{side}.embedded.embedding").weight.copy_(table[rows])
    model.eval()

    merges = read_merges(folder / "bpe.code")
    ids = {symbol: number for number, symbol in enumerate(source_symbols)}
    lines = (folder / "reference_greedy.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    sources = [
        [ids.get(part, UNKNOWN) for word in source.split() for part in split_word(word, merges)]
        for source, _ in pairs
    ]
    batch, mask = padded(sources, after=END)
    found = greedy_search(model, batch, mask, rules=Rules(limits=torch.full((len(pairs),), 200)))
    for (hypothesis,), (_, expected) in zip(found, pairs, strict=True):
        text = " ".join(target_symbols[symbol] for symbol in hypothesis.tokens)
        assert text.replace("@@ ", "") == expected
