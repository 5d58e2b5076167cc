from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError, SettingsError
from regard.scoring.bleu import bleu_by_length, corpus_bleu
from regard.scoring.bootstrap import (
    Interval,
    bands_with_intervals,
    bleu_change,
    bleu_interval,
    paired_bootstrap,
)

WORDS = ["der", "die", "das", "alte", "Hund", "Katze", "schläft", "sieht", "im", "Garten"]


def made(count: int, *, wrong: float, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return outputs with this number of wrong words, and their references."""
    random = Random(seed)
    references = [[random.choice(WORDS) for _ in range(9)] for _ in range(count)]
    outputs = [[w if random.random() > wrong else "falsch" for w in line] for line in references]
    return [" ".join(line) for line in outputs], [" ".join(line) for line in references]


GOOD, REFERENCE = made(60, wrong=0.05)
BAD, _ = made(60, wrong=0.4)


def test_only_a_clear_difference_is_significant():
    found = paired_bootstrap(
        {"bad": BAD, "good": GOOD, "again": list(BAD)}, REFERENCE, baseline="bad", samples=300
    )
    assert list(found) == ["bad", "good", "again"]
    assert found["good"].bleu == pytest.approx(corpus_bleu(GOOD, REFERENCE).value)
    assert found["good"].difference == pytest.approx(found["good"].bleu - found["bad"].bleu)
    assert found["good"].p_value == pytest.approx(1 / 301)
    assert found["bad"].p_value is None
    assert found["again"].difference == 0
    assert found["again"].p_value is not None
    assert found["again"].interval == found["bad"].interval


def test_results_carry_samples_and_seed_and_are_plain_values():
    found = paired_bootstrap({"bad": BAD, "good": GOOD}, REFERENCE, baseline="bad", samples=50)
    plain = found["good"].to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert "bs:50|seed:12345" in plain["signature"]
    again = paired_bootstrap({"bad": BAD, "good": GOOD}, REFERENCE, baseline="bad", samples=50)
    assert again == found


def test_the_tokenizer_reaches_the_signature():
    found = paired_bootstrap(
        {"bad": BAD, "good": GOOD}, REFERENCE, baseline="bad", tokenize="none", samples=20
    )
    assert "tok:none" in found["bad"].signature


def test_an_interval_lies_around_the_score_and_narrows_with_more_sentences():
    whole = bleu_interval(GOOD, REFERENCE, samples=200)
    assert whole.low < corpus_bleu(GOOD, REFERENCE).value < whole.high
    part = bleu_interval(GOOD[:10], REFERENCE[:10], samples=200)
    assert part.high - part.low > whole.high - whole.low


def test_perfect_outputs_have_no_spread():
    found = bleu_interval(REFERENCE, REFERENCE, samples=20)
    assert found.low == pytest.approx(100.0)
    assert found.low <= found.high <= 100.0
    assert Interval.around(100.0 + 1e-9, 0.0) == Interval(100.0, 100.0)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.text("ab .", max_size=12), st.text("ab .", max_size=12)),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_the_texts_an_interval_is_within_the_scale(lines: list[tuple[str, str]]):
    found = bleu_interval([a for a, _ in lines], [b for _, b in lines], samples=10)
    assert 0 <= found.low <= found.high <= 100


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(RegardError, match="60 system outputs cannot be scored against 59"):
        paired_bootstrap({"a": GOOD}, REFERENCE[1:], baseline="a")
    with pytest.raises(SettingsError, match="Unknown baseline 'b'"):
        paired_bootstrap({"a": GOOD}, REFERENCE, baseline="b")
    with pytest.raises(SettingsError, match="unknown BLEU tokenizer 'moses'"):
        paired_bootstrap({"a": GOOD}, REFERENCE, baseline="a", tokenize="moses")
    with pytest.raises(SettingsError, match="unknown BLEU tokenizer 'moses'"):
        bleu_interval(GOOD, REFERENCE, tokenize="moses")


def test_bands_of_lengths_get_their_intervals_and_an_empty_one_none():
    source = ["ein zwei drei"] * 30 + ["ein zwei drei vier fünf"] * 30
    cut = [(1, 3), (4, 9), (10, 20)]
    bands = bleu_by_length(GOOD, REFERENCE, source, bands=cut)
    found = bands_with_intervals(bands, GOOD, REFERENCE, source, samples=100)
    assert [each.band for each in found] == bands
    assert found[0].interval == bleu_interval(GOOD[:30], REFERENCE[:30], samples=100)
    assert found[2].interval is None
    rows = [each.to_dict() for each in found]
    assert rows[0]["bleu_low"] < rows[0]["bleu"] < rows[0]["bleu_high"]
    assert rows[2] == {"low": 10, "high": 20, "sentences": 0, "bleu": None,
                       "bleu_low": None, "bleu_high": None}  # fmt: skip


def test_a_change_of_bleu_has_an_interval_that_one_looping_sentence_widens() -> None:
    reference = [
        f"the {word} house stands near the {word} river" for word in "abcdefghijklmnopqrst"
    ]
    same = bleu_change(reference, reference, reference, samples=100)
    assert (same.bleu, same.difference) == (100, 0)
    assert (same.interval.low, same.interval.high) == (0, 0)
    looping = [*reference[:-1], "the " * 60]
    found = bleu_change(reference, looping, reference, samples=300)
    assert found.difference > 20
    assert found.interval.low == 0  # samples without that sentence show no change at all
    assert found.interval.high > found.difference
