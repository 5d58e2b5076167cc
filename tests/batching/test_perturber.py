from __future__ import annotations

from array import array

import pytest

from regard.batching.augmentation import Perturber, Resegmenter
from regard.batching.batch import Example
from regard.batching.order import BatchOrder, BatchPosition, iterate
from regard.corpora.parallel import SentencePair
from regard.text.tokenizers import train_tokenizer

PAIRS = [SentencePair(" ".join(["word"] * (1 + n % 9)) + f" {n}", f"Wort {n}") for n in range(120)]
ALL = dict.fromkeys(
    ["case", "typos", "punctuation", "diacritics", "joined", "markup", "copied"], 0.3
)


def test_a_pair_is_a_function_of_seed_epoch_and_row() -> None:
    one, same, other = (Perturber(PAIRS, ALL, seed=seed) for seed in (1, 1, 2))
    first = [one(3, row) for row in range(len(PAIRS))]
    assert first == [same(3, row) for row in reversed(range(len(PAIRS)))][::-1]
    assert first != [one(4, row) for row in range(len(PAIRS))]
    assert first != [other(3, row) for row in range(len(PAIRS))]
    unchanged = sum(pair is PAIRS[row] for row, pair in enumerate(first))
    assert 2 < unchanged < 40  # 0.7^7 of them
    plain = Perturber(PAIRS, {}, seed=1)
    assert [plain(0, row) for row in range(9)] == PAIRS[:9]


@pytest.mark.parametrize("shares", [ALL, {"joined": 1.0}])
def test_batches_of_changed_texts_resume_exactly_and_stay_small(shares: dict[str, float]) -> None:
    texts = [text for pair in PAIRS for text in (pair.source, pair.target)]
    tokenizer = train_tokenizer(texts, kind="character")
    examples = [
        Example(array("i", tokenizer.encode(p.source)), array("i", tokenizer.encode(p.target)))
        for p in PAIRS
    ]
    order = BatchOrder([one.lengths for one in examples], token_budget=300, seed=1)
    redraw = Resegmenter(
        PAIRS,
        examples,
        source=tokenizer,
        target=tokenizer,
        alpha=0.0,
        seed=1,
        max_length=100,
        perturb=Perturber(PAIRS, shares, seed=1),
    )
    stream = iterate(order, examples, BatchPosition(), redraw=redraw)
    count = 2 * len(order.batches(0))
    found = [next(stream) for _ in range(count)]
    for place in (0, count // 3, count - 2):
        position = found[place][0]
        again = next(iterate(order, examples, position, redraw=redraw))
        assert (again[1].source == found[place + 1][1].source).all()
    sizes = [batch.source.numel() + batch.target_input.numel() for _, batch in found]
    plain = iterate(order, examples, BatchPosition())
    largest = max(
        b.source.numel() + b.target_input.numel() for _, b in (next(plain) for _ in sizes)
    )
    assert max(sizes) <= 2.5 * largest
    assert sum(batch.source.shape[0] for _, batch in found[: count // 2]) == len(PAIRS)
