"""Other subwords in each epoch, and the same ones after a resumption."""

from __future__ import annotations

from itertools import islice

import pytest

from regard.batching.batch import encode_pairs
from regard.batching.order import BatchOrder, Position, iterate
from regard.batching.resegment import Resegmenter
from regard.corpora.pair import SentencePair
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
    pairs = [SentencePair(text, text.upper()) for text in TEXTS]
    examples = encode_pairs(pairs, tokenizer, tokenizer)
    drawn = Resegmenter(pairs, examples, source=tokenizer, target=tokenizer, alpha=0.1, seed=3,
                        max_length=200)  # fmt: skip
    order = BatchOrder([e.lengths for e in examples], token_budget=400, seed=1)
    count = len(order.batches(0))
    through = list(islice(iterate(order, examples, Position(), drawn=drawn), 2 * count))
    stored = through[2][0]
    again = next(iterate(order, examples, stored, drawn=drawn))
    assert again[1].source.equal(through[3][1].source)
    assert again[1].target_output.equal(through[3][1].target_output)
    rows = range(len(pairs))
    assert [e.source for e in drawn(0, 1, rows)] != [e.source for e in drawn(1, 1, rows)]
    assert tokenizer.decode(drawn(4, 2, [5])[0].target) == pairs[5].target


def test_what_grows_too_long_stays_as_it_was(tokenizer: SentencePieceTokenizer) -> None:
    pairs = [SentencePair(text, text) for text in TEXTS]
    examples = encode_pairs(pairs, tokenizer, tokenizer)
    longest = max(max(e.lengths) for e in examples)
    drawn = Resegmenter(pairs, examples, source=tokenizer, target=tokenizer, alpha=0.01, seed=3,
                        max_length=longest)  # fmt: skip
    found = drawn(0, 0, range(len(pairs)))
    assert max(max(e.lengths) for e in found) <= longest
    assert any(one is other for one, other in zip(found, examples, strict=True))
