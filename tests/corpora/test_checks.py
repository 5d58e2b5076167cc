from __future__ import annotations

from random import Random

import pytest

from regard.corpora.parallel import SentencePair, corpus_warnings, vocabulary_warning

RANDOM = Random(1)
SOURCES = [" ".join(RANDOM.choices(["cat", "dog", "sees", "a"], k=RANDOM.randint(2, 20)))
           for _ in range(200)]  # fmt: skip
GOOD = [SentencePair(text, text.upper()) for text in SOURCES]
SWAPPED = [SentencePair(pair.target, pair.source) for pair in GOOD]
SHUFFLED = [
    SentencePair(p.source, q.target) for p, q in zip(GOOD, GOOD[7:] + GOOD[:7], strict=True)
]
SAME = [SentencePair(text, text) for text in SOURCES]
EVEN = [SentencePair("a b", "c d")] * 100

# Name of the case: training pairs, validation pairs, what is said (None: nothing).
CASES: dict[str, tuple[list[SentencePair], list[SentencePair], str | None]] = {
    "good": (GOOD, GOOD[:20], None),
    "no validation": (GOOD, [], None),
    "too few to tell": (SHUFFLED[:40], SWAPPED[:10], None),
    "all of one length": (EVEN, EVEN, None),
    "shuffled": (SHUFFLED, GOOD[:20], "hardly correlate ("),
    "one file twice": (SAME, SAME[:20], "200 of 200 lines are the same in source and target"),
    "swapped": (GOOD, SWAPPED[:20], "swapped between data.train and data.valid"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_looks_wrong_is_said(case: str) -> None:
    train, valid, message = CASES[case]
    found = corpus_warnings(train, valid)
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


def test_a_vocabulary_larger_than_the_data_supports() -> None:
    words = sum(len(text.split()) for text in SOURCES)
    assert vocabulary_warning(GOOD, size=words // 10, shared=False) == ""
    said = vocabulary_warning(GOOD, size=8_000, shared=False)
    assert f"A vocabulary of 8,000 entries is large for {words:,} words" in said
    assert f"Use at most {words // 10:,}" in said
    assert vocabulary_warning(GOOD, size=words // 5, shared=True) == ""
