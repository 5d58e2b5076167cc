"""`regard train auto`: what is chosen for which data and time, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regard.corpora.parallel import SentencePair
from regard.tasks.translation.auto import PairStatistics, choose, measured_speed, statistics
from regard.tasks.translation.settings import TranslationRecipe

# One core of a laptop of 2020; multiplications of a forward pass a second.
LAPTOP = 1.5e10
SENTENCES = PairStatistics(
    pairs=29_000,
    source_words=12.0,
    target_words=11.0,
    source_characters=60.0,
    target_characters=66.0,
    characters=80,
)
WORDS = replace(
    SENTENCES,
    source_words=1.0,
    target_words=1.0,
    source_characters=7.5,
    target_characters=6.4,
    characters=60,
)


def chosen(found: PairStatistics, minutes: float = 10.0, speed: float = LAPTOP) -> dict[str, Any]:
    table, reasons = choose(found, minutes=minutes, speed=speed)
    assert 2 <= len(reasons) <= 5
    TranslationRecipe.model_validate(table)  # a recipe like any other
    return table


def test_the_choice_depends_on_nothing_but_data_time_and_speed() -> None:
    assert choose(SENTENCES, minutes=10.0, speed=LAPTOP) == choose(
        SENTENCES, minutes=10.0, speed=LAPTOP
    )


def test_fewer_pairs_get_fewer_subwords_and_more_regularisation() -> None:
    few, many = (chosen(replace(SENTENCES, pairs=pairs)) for pairs in (2_000, 170_000))
    assert few["tokenizer"]["size"] < many["tokenizer"]["size"]
    assert few["model"]["dropout"] > many["model"]["dropout"]


def test_words_are_learned_by_character_and_sentences_by_subword() -> None:
    words = chosen(WORDS)
    assert words["tokenizer"] == {"kind": "character", "shared": True}
    assert words["training"]["select"] == "loss"  # BLEU counts words, of which there is one
    assert chosen(SENTENCES)["tokenizer"]["kind"] == "sentencepiece"
    spaced = replace(WORDS, target_words=6.0, target_characters=18.0)
    assert chosen(spaced)["tokenizer"]["kind"] == "character"
    unspaced = replace(WORDS, source_characters=25.0)
    assert chosen(replace(unspaced, target_words=11.0))["tokenizer"]["kind"] == "sentencepiece"


def test_more_time_or_speed_means_larger_batches_and_then_larger_models() -> None:
    corpus = replace(SENTENCES, pairs=1_000_000)
    by_time = [chosen(corpus, minutes=minutes) for minutes in (1.0, 10.0, 1_000.0, 1e6)]
    assert [table["batches"]["tokens"] for table in by_time] == sorted(
        table["batches"]["tokens"] for table in by_time
    )
    widths = [table["model"]["model_dim"] for table in by_time]
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (128, 512)
    assert chosen(corpus, minutes=100.0) | {"title": ""} != chosen(corpus) | {"title": ""}
    faster = chosen(corpus, speed=10 * LAPTOP)["model"]
    assert faster == chosen(corpus, minutes=100.0)["model"]
    assert chosen(replace(SENTENCES, pairs=5_000), minutes=1e4)["model"]["model_dim"] == 128


def test_the_learning_rate_fits_batch_and_time() -> None:
    short, long = chosen(SENTENCES, minutes=0.5), chosen(SENTENCES, minutes=60.0)
    assert short["training"]["learning_rate"] < long["training"]["learning_rate"]
    assert short["training"]["warmup"] < long["training"]["warmup"]
    assert short["training"]["minutes"] == 0.5


def test_the_title_and_the_reasons_name_what_was_chosen() -> None:
    table, reasons = choose(SENTENCES, minutes=10.0, speed=LAPTOP)
    assert table["title"] == "auto: 29,000 pairs in 10 minutes"
    shown = "\n".join(reasons)
    assert f"{table['tokenizer']['size']:,} subwords" in shown
    assert f"dropout {table['model']['dropout']}" in shown
    assert f"{table['batches']['tokens']:,} tokens" in shown
    assert f"learning rate {table['training']['learning_rate']}" in shown
    assert "characters" in choose(WORDS, minutes=10.0, speed=LAPTOP)[1][0]


def test_statistics_are_means_over_the_pairs() -> None:
    found = statistics([SentencePair("a b c", "xy"), SentencePair("a", "x z")])
    assert found == PairStatistics(
        pairs=2,
        source_words=2.0,
        target_words=1.5,
        source_characters=3.0,
        target_characters=2.5,
        characters=7,
    )


@pytest.mark.parametrize("found", [SENTENCES, WORDS], ids=["sentences", "words"])
def test_the_speed_is_measured(found: PairStatistics) -> None:
    assert 1e7 < measured_speed(found) < 1e14
