"""Constraints, replacements and forced decoding at the level of text, with an untrained model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError, SettingsError
from regard.base.special_tokens import UNKNOWN
from regard.batching.batch import Example
from regard.decoding.constraints.phrases import ImpossibleConstraintsError
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.attention import AttentionMap
from regard.tasks.translation.constraints import ConstraintEncoder, TextConstraints, verbatim_words
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import forced_log_probabilities, with_source_words
from regard.tasks.translation.settings import TranslationRecipe
from regard.text.tokenizers import train_tokenizer

LINES = ["the cat sat on 3 mats", "see http://x.org/a now", "der Hund bellt 3 mal", "die Katze"]
SHORT = {"beam": 3, "max_extra": 6, "max_ratio": 1.0}


@pytest.fixture(scope="module")
def model() -> LoadedTranslator:
    tokenizer = train_tokenizer(LINES, kind="word")
    settings = TransformerSettings(layers=1, model_dim=16, heads=2, feed_forward=16)
    torch.manual_seed(1)
    size = tokenizer.size
    return LoadedTranslator(
        model=build_translator(settings, source_vocab=size, target_vocab=size),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        recipe=TranslationRecipe(model=settings),
    )


def test_a_translation_begins_holds_and_avoids_what_it_is_told_to(model: LoadedTranslator) -> None:
    wanted = TextConstraints(
        prefix="die Ka", required=("der Hund", "bellt"), forbidden=("cat", "sat", "a")
    )
    for found in model.translate(LINES, constraints=wanted, attention=False, **SHORT):
        words = found.text.split()
        assert found.text.startswith("die Ka")
        assert "der Hund" in found.text
        assert re.search(r"\bbellt\b", found.text)
        assert not {"cat", "sat", "a"} & set(words)


def test_each_sentence_has_its_own_constraints(model: LoadedTranslator) -> None:
    wanted = [TextConstraints(prefix="die "), TextConstraints(), TextConstraints(required=("3",))]
    found = model.translate(LINES[:3], constraints=wanted, attention=False, **SHORT)
    assert found[0].text.split()[0] == "die"
    assert re.search(r"\b3\b", found[2].text)
    alone = model.translate(LINES[1], attention=False, **SHORT)
    assert found[1].text == alone.text


def test_placeholders_addresses_and_numbers_are_copied(model: LoadedTranslator) -> None:
    found = model.translate(LINES, copy_verbatim=True, attention=False, **SHORT)
    assert re.search(r"\b3\b", found[0].text)
    assert "http://x.org/a" in found[1].text
    # What the vocabulary cannot write is no obstacle.
    assert model.translate("see {name} 77", copy_verbatim=True, attention=False, **SHORT).text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing here", []),
        ("see https://a.b/c?d=1, or www.x.org.", ["https://a.b/c?d=1", "www.x.org"]),
        ("write to me@x.org!", ["me@x.org"]),
        ("Hi {name}, %s of %(total)d, ${HOME}", ["{name}", "%s", "%(total)d", "${HOME}"]),
        ("<b>3,500.20</b> at 12:30 on 2020-01-02", ["<b>", "3,500.20", "</b>", "12:30",
                                                    "2020-01-02"]),
        ("3 and 3 and B2B", ["3"]),
    ],
)  # fmt: skip
def test_verbatim_words(text: str, words: list[str]) -> None:
    assert verbatim_words(text) == words


MISTAKES: dict[str, tuple[Any, dict[str, Any], type[RegardError], str]] = {
    "a word that cannot be written": (
        TextConstraints(required=("Zebra",)),
        {},
        SettingsError,
        "The required word 'Zebra' cannot be written",
    ),
    "a prefix that cannot be written": (
        TextConstraints(prefix="Zebra "),
        {},
        SettingsError,
        "The prefix 'Zebra' cannot be written",
    ),
    "a prefix beyond the limit": (
        TextConstraints(prefix="die Katze die Katze "),
        {"max_length": 3},
        ImpossibleConstraintsError,
        "a prefix of 4 tokens does not fit into an output of at most 3",
    ),
    "one constraint for four sentences": (
        [TextConstraints()],
        {},
        SettingsError,
        "1 constraints cannot be paired with 4 sentences",
    ),
    "sampling what is required": (
        TextConstraints(required=("Hund",)),
        {"method": "sample"},
        SettingsError,
        "no search for required words",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_impossible_constraints_are_refused(model: LoadedTranslator, case: str) -> None:
    wanted, options, error, message = MISTAKES[case]
    with pytest.raises(error, match=message):
        model.translate(LINES, constraints=wanted, attention=False, **options)


def test_a_refusal_names_the_sentence_in_the_order_of_the_user(model: LoadedTranslator) -> None:
    wanted = [TextConstraints()] * 3 + [TextConstraints(prefix="die Katze die Katze ")]
    with pytest.raises(ImpossibleConstraintsError, match="Sentence 4: ") as caught:
        model.translate(LINES, constraints=wanted, attention=False, max_length=3)
    assert caught.value.index == 3


def test_the_same_constraints_share_their_automaton() -> None:
    encoder = ConstraintEncoder(train_tokenizer(LINES, kind="word"))
    one, other = (encoder.encode(TextConstraints(forbidden=("cat",))) for _ in range(2))
    assert one.automaton is other.automaton
    for number in range(70):
        encoder.encode(TextConstraints(forbidden=(f"cat{number}",)))
    again = encoder.encode(TextConstraints(forbidden=("cat",)))
    assert again.automaton is not one.automaton  # not all are kept
    assert not encoder.encode(TextConstraints())


def test_samples_and_the_least_risk(model: LoadedTranslator) -> None:
    options: dict[str, Any] = {"max_length": 6, "attention": False, "seed": 3}
    drawn = model.translate(LINES[0], method="sample", n_best=3, **options)
    assert len(drawn.alternatives) == 2
    for utility in ("chrf", "bleu"):
        found = model.translate(
            LINES[0], method="mbr", mbr_samples=4, mbr_utility=utility, n_best=2, **options
        )
        every = [found, *found.alternatives]
        assert [one.score for one in every] == sorted((o.score for o in every), reverse=True)
        assert 0 <= found.score <= 100
    with pytest.raises(SettingsError, match=r"n_best \(5\) must lie between 1 and the mbr_samples"):
        model.translate(LINES[0], method="mbr", mbr_samples=4, n_best=5)
    with pytest.raises(SettingsError, match=r"n_best \(0\) must lie between 1"):
        model.translate(LINES[0], method="sample", n_best=0)


def test_forced_decoding_gives_the_probabilities_of_the_search(model: LoadedTranslator) -> None:
    sources = [model.source_tokenizer.encode(line) for line in LINES]
    found = [one for (one,) in model.engine.search(sources, model.decoding(**SHORT))]
    examples = [Example(ids, one.tokens) for ids, one in zip(sources, found, strict=True)]
    values = forced_log_probabilities(model.model, examples)
    for one, each in zip(found, values, strict=True):
        assert len(each) == len(one.tokens) + 1
        assert float(each.sum()) == pytest.approx(one.log_probability, abs=1e-3)


def test_given_translations_are_scored_symbol_by_symbol(model: LoadedTranslator) -> None:
    pairs = model.score_pairs(LINES[:2], LINES[2:])
    for pair, target in zip(pairs, LINES[2:], strict=True):
        assert pair.pieces == (*target.split(), "</s>")
        assert sum(pair.log_probabilities) == pytest.approx(pair.log_probability, abs=1e-3)
        assert pair.score == pytest.approx(pair.log_probability / len(pair.pieces), abs=1e-3)
        assert pair.to_dict()["target"] == target
    with pytest.raises(RegardError, match="1 sources cannot be paired with 2 targets"):
        model.score_pairs(["a"], ["b", "c"])


def attention_map(weights: list[list[float]], words: tuple[int, ...]) -> AttentionMap:
    rows, columns = len(weights), len(weights[0])
    return AttentionMap(
        weights=np.array(weights, dtype=np.float32),
        source=("x",) * columns,
        target=("y",) * rows,
        source_words=words,
        target_words=(0,) * rows,
    )


def test_an_unknown_word_becomes_the_one_it_looks_at() -> None:
    seen = attention_map([[0.1, 0.7, 0.2], [0.6, 0.1, 0.3], [0, 0, 1]], words=(0, 1, -1))
    text = with_source_words("ein <unk>", [9, UNKNOWN], source="Graz Wien", attention=seen)
    assert text == "ein Graz"


@pytest.mark.parametrize("attention", [None, attention_map([[1.0], [1.0]], words=(-1,))])
def test_without_attention_or_words_the_unknown_stays(attention: AttentionMap | None) -> None:
    found = with_source_words("<unk>", [UNKNOWN], source="", attention=attention)
    assert found == "<unk>"


def test_where_symbols_are_letters_a_letter_is_put_in() -> None:
    seen = attention_map([[0.1, 0.8, 0.0, 0.1], [0, 0, 0, 1]], words=(0, 0, 0, -1))
    assert with_source_words("<unk>", [UNKNOWN], source="añb", attention=seen) == "ñ"


def test_unknown_words_are_replaced_without_showing_attention(model: LoadedTranslator) -> None:
    found = model.translate(["zzz cat"], replace_unknown=True, attention=False, **SHORT)[0]
    assert found.attention is None
