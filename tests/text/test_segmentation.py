from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import pytest

from regard.base.errors import SettingsError
from regard.text.segmentation import SegmentationSampler
from regard.text.sentencepiece import SentencePieceTokenizer

TEXTS = ["a low lower lowest slow", "new newer newest", "wide wider widest window", "  two  spaces"]
SCORES = {"▁": -3.0, "a": -2.0, "b": -2.5, "ab": -3.2, "▁a": -2.2, "▁ab": -4.0, "ba": -3.0}
IDS = {piece: number for number, piece in enumerate(SCORES, 10)}


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(TEXTS * 5, size=330)


def sampler(alpha: float) -> SegmentationSampler:
    return SegmentationSampler(SCORES, IDS, mark="▁", first_byte=100, alpha=alpha)


def segmentations(word: str) -> dict[tuple[int, ...], float]:
    """Return all segmentations of a word by brute force, with their log-probabilities."""
    found = {}
    for cuts in product([False, True], repeat=len(word) - 1):
        pieces = [word[0]]
        for letter, cut in zip(word[1:], cuts, strict=True):
            if cut:
                pieces.append(letter)
            else:
                pieces[-1] += letter
        if all(piece in SCORES for piece in pieces):
            found[tuple(IDS[p] for p in pieces)] = sum(SCORES[p] for p in pieces)
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_every_segmentation_is_drawn_as_often_as_its_probability_says(alpha: float) -> None:
    wanted = segmentations("▁aba")
    total = sum(math.exp(alpha * score) for score in wanted.values())
    random, draws = Random(1), 20_000
    one = sampler(alpha)
    found = Counter(tuple(one.draw("▁aba", random)) for _ in range(draws))
    assert set(found) == set(wanted)
    for ids, score in wanted.items():
        share = math.exp(alpha * score) / total
        assert found[ids] / draws == pytest.approx(share, abs=4 * math.sqrt(share / draws))


def test_a_large_alpha_draws_the_most_likely_one(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.sample(TEXTS, alpha=500.0, seed=1) == [
        tokenizer.encode(text) for text in TEXTS
    ]


def test_characters_without_a_subword_become_bytes(tokenizer: SentencePieceTokenizer) -> None:
    text = "lowé 東"
    for ids in tokenizer.sample([text] * 20, alpha=0.1, seed=1):
        assert tokenizer.decode(ids) == text
    assert sampler(1.0).draw("é", Random(1)) == [100 + 0xC3, 100 + 0xA9]


def test_empty_texts_and_marks(tokenizer: SentencePieceTokenizer) -> None:
    texts = ["", "a▁b"]
    assert tokenizer.sample(texts, alpha=0.1, seed=1) == [tokenizer.encode(text) for text in texts]


def test_the_same_seed_draws_the_same_in_every_process(
    tokenizer: SentencePieceTokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path, "text")
    code = (
        "import sys; from pathlib import Path;"
        "from regard.text.sentencepiece import SentencePieceTokenizer as T;"
        f"t = T.load(Path(sys.argv[1]), 'text'); print(t.sample({TEXTS!r} * 5, alpha=0.2, seed=7))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    drawn = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    ]
    here = tokenizer.sample(TEXTS * 5, alpha=0.2, seed=7)
    assert drawn == [str(here)] * 2
    assert here != tokenizer.sample(TEXTS * 5, alpha=0.2, seed=8)


def test_subwords_may_reach_across_words() -> None:
    scores = {**SCORES, "a▁b": -1.0}
    ids = {piece: number for number, piece in enumerate(scores, 10)}
    across = SegmentationSampler(scores, ids, mark="▁", first_byte=100, alpha=50.0)
    assert across.draw("a▁b", Random(1)) == [ids["a▁b"]]


def test_a_vocabulary_of_bpe_is_refused() -> None:
    bpe = SentencePieceTokenizer.train(TEXTS * 5, size=330, model_type="bpe")
    with pytest.raises(SettingsError, match="needs a unigram vocabulary"):
        bpe.sample(["low"], alpha=0.1, seed=1)


def test_a_very_long_word_is_drawn_in_bounded_memory() -> None:
    found = sampler(0.5).draw("▁" + "ab" * 20_000, Random(1))
    assert len(found) > 10_000
