"""Other subwords in each epoch, and the same ones after a resumption."""

from __future__ import annotations

from itertools import islice
from random import Random

import numpy as np
import pytest

from regard.batching.augmentation import Resegmenter
from regard.batching.batch import encode_pairs
from regard.batching.order import TOGETHER, BatchOrder, BatchPosition, iterate
from regard.corpora.parallel import SentencePair
from regard.text.sentencepiece import SPACE_MARK, SentencePieceTokenizer

TEXTS = [f"the {size} {colour} dog barks loudly at the sleeping cats" for size in
         ("small", "large", "old") for colour in ("brown", "black", "white")] * 3  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(TEXTS, size=330)


def test_sampled_ids_spell_the_text_and_follow_the_seed(tokenizer: SentencePieceTokenizer) -> None:
    texts = [*TEXTS, f"a {SPACE_MARK} mark", ""]
    found = [tokenizer.sample(texts, alpha=0.1, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert [tokenizer.decode(ids) for ids in found[2]] == texts
    assert found[0][: len(TEXTS)] != [tokenizer.encode(text) for text in TEXTS]


def test_batches_are_drawn_anew_and_again_alike(tokenizer: SentencePieceTokenizer) -> None:
    pairs = [SentencePair(text, text.upper()) for text in TEXTS * 70]
    examples = encode_pairs(pairs, tokenizer, tokenizer)
    redraw = Resegmenter(pairs, examples, source=tokenizer, target=tokenizer, alpha=0.1, seed=3,
                         max_length=200)  # fmt: skip
    order = BatchOrder([e.lengths for e in examples], token_budget=400, seed=1)
    count = len(order.batches(0))
    assert count > TOGETHER + 2
    through = list(islice(iterate(order, examples, BatchPosition(), redraw=redraw), 2 * count))
    for stop in (0, TOGETHER - 2, TOGETHER - 1, TOGETHER, count - 2, count - 1):
        position, again = next(iterate(order, examples, through[stop][0], redraw=redraw))
        assert position == through[stop + 1][0]
        assert again.source.equal(through[stop + 1][1].source)
        assert again.target_output.equal(through[stop + 1][1].target_output)
    plain = iterate(order, examples, BatchPosition())
    half = iterate(
        order, examples, BatchPosition(), redraw=redraw, redraws=iter([True, False]).__next__
    )
    assert next(half)[1].source.equal(through[0][1].source)
    next(plain)
    assert next(half)[1].source.equal(next(plain)[1].source)
    rows = [range(len(pairs))]
    assert [e.source for e in redraw(0, 0, rows)[0]] != [e.source for e in redraw(1, 0, rows)[0]]
    assert tokenizer.decode(redraw(4, 2, [[5]])[0][0].target) == pairs[5].target


def test_an_epoch_has_every_pair_once_in_batches_that_pad_little(
    tokenizer: SentencePieceTokenizer,
) -> None:
    random = Random(1)
    words = [text.split() for text in TEXTS]
    texts = [" ".join(random.choice(words)[: random.randint(1, 9)]) for _ in range(2_000)]
    pairs = [SentencePair(text, text) for text in texts]
    examples = encode_pairs(pairs, tokenizer, tokenizer)
    redraw = Resegmenter(pairs, examples, source=tokenizer, target=tokenizer, alpha=0.1, seed=3,
                         max_length=200)  # fmt: skip
    order = BatchOrder([e.lengths for e in examples], token_budget=1000, seed=1)
    batches = order.batches(1)
    found = redraw(1, 0, batches)
    assert [len(batch) for batch in found] == [len(batch) for batch in batches]
    assert sorted(tokenizer.decode(e.source) for batch in found for e in batch) == sorted(texts)
    grown = sum(sum(e.lengths) for batch in found for e in batch)
    assert grown > 1.05 * sum(sum(e.lengths) for e in examples)
    padded = sum(
        len(batch) * sum(max(e.lengths[side] for e in batch) for side in (0, 1)) for batch in found
    )
    assert 1 - grown / padded < 0.12
    # Short batches are where short ones were.
    before = [max(max(examples[row].lengths) for row in batch) for batch in batches]
    after = [max(max(e.lengths) for e in batch) for batch in found]
    ranks = np.argsort(before, kind="stable")
    assert [after[number] for number in ranks] == sorted(after)


def test_what_grows_too_long_stays_as_it_was(tokenizer: SentencePieceTokenizer) -> None:
    pairs = [SentencePair(text, text) for text in TEXTS]
    examples = encode_pairs(pairs, tokenizer, tokenizer)
    longest = max(max(e.lengths) for e in examples)
    redraw = Resegmenter(pairs, examples, source=tokenizer, target=tokenizer, alpha=0.01, seed=3,
                         max_length=longest)  # fmt: skip
    found = redraw(0, 0, [range(len(pairs))])[0]
    assert max(max(e.lengths) for e in found) <= longest
    assert any(one is other for one in found for other in examples)
