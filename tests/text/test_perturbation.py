from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.translation.settings import AugmentationSettings
from regard.text.perturbation import (
    KINDS,
    OF_SOURCE,
    changed_case,
    changed_punctuation,
    perturbed,
    with_copied,
    with_markup,
    with_typos,
    without_diacritics,
)

PAIR = ("Peter saw 317 dogs, yes.", "Peter sah 317 Hunde, ja.")


def outcomes(change: object, text: object) -> set[object]:
    return {change(text, Random(seed)) for seed in range(200)}  # type: ignore[operator]


def test_case() -> None:
    assert outcomes(changed_case, "a Dog") == {"A DOG", "a dog", "A Dog"}


def test_typos_are_few_and_of_four_kinds() -> None:
    found = outcomes(with_typos, "dog")
    assert {"odg", "dgo"} <= found  # swapped
    assert {"og", "dg", "do"} <= found  # dropped
    assert {"ddog", "doog", "dogg"} <= found  # doubled
    assert {"sog", "fog", "dig", "dpg"} <= found  # its neighbours on the keyboard
    assert outcomes(with_typos, "12 !") == {"12 !"}
    long = "many letters " * 20
    assert all(abs(len(str(one)) - len(long)) < 12 for one in outcomes(with_typos, long))


def test_punctuation() -> None:
    assert outcomes(changed_punctuation, "No, no.") == {"No no", "No, no", "No, no..", "No, no..."}
    assert "no" in outcomes(changed_punctuation, "no")
    assert {"no.", "no!", "no ."} <= outcomes(changed_punctuation, "no")
    assert outcomes(changed_punctuation, "...") >= {"..."}


@pytest.mark.parametrize(
    ("text", "plain"),
    [("über Straße", "uber Strasse"), ("déjà Øst łza", "deja Ost lza"), ("a", "a")],
)
def test_diacritics(text: str, plain: str) -> None:
    assert without_diacritics(text) == plain


def test_markup_is_the_same_on_both_sides() -> None:
    for seed in range(50):
        source, target = with_markup(PAIR, Random(seed))
        tag = source[source.index("<") + 1 : source.index(">")]
        for text, plain in ((source, PAIR[0]), (target, PAIR[1])):
            assert text.replace(f"<{tag}>", "").replace(f"</{tag}>", "") == plain
            assert text.index(f"<{tag}>") < text.index(f"</{tag}>")
    around = {with_markup(PAIR, Random(seed))[0].partition(">")[2][:1] for seed in range(50)}
    assert {"P", "3"} <= around


def test_names_and_numbers_are_copied() -> None:
    changed = set()
    for seed in range(50):
        source, target = (text.split() for text in with_copied(PAIR, Random(seed)))
        new = [word for word in source if word not in PAIR[0].split()]
        assert len(new) == 1
        assert new[0] in target
        changed.add(source.index(new[0]))
    assert changed == {0, 2}
    source, target = with_copied(("a dog", "ein Hund"), Random(1))
    assert source.removeprefix("a dog") == target.removeprefix("ein Hund") != ""


def test_lines_are_joined() -> None:
    found = perturbed(("a", "b"), {"joined": 1.0}, Random(1), other=lambda: ("c", "d"))
    assert found == ("a c", "b d")


def test_shares_are_kept() -> None:
    changed = [perturbed(PAIR, {"case": 0.3}, Random(n), other=lambda: PAIR) != PAIR
               for n in range(2_000)]  # fmt: skip
    assert 0.25 < sum(changed) / 2_000 < 0.35
    assert perturbed(PAIR, {}, Random(1), other=lambda: PAIR) == PAIR
    assert set(AugmentationSettings.model_fields) == set(KINDS)


@given(st.tuples(st.text(), st.text()), st.integers(0, 99))
def test_any_text_can_be_changed_and_the_target_stays_clean(
    texts: tuple[str, str], seed: int
) -> None:
    every = dict.fromkeys(KINDS, 1.0)
    first = perturbed(texts, every, Random(seed), other=lambda: PAIR)
    assert first == perturbed(texts, every, Random(seed), other=lambda: PAIR)
    only_source = dict.fromkeys(OF_SOURCE, 1.0)
    assert perturbed(texts, only_source, Random(seed), other=lambda: PAIR)[1] == texts[1]
