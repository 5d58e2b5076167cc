from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures.labels import (
    RIGHT_TO_LEFT_MARK,
    begins_right_to_left,
    reads_right_to_left,
    with_direction,
)


@pytest.mark.parametrize(
    ("words", "mirrored"),
    [
        pytest.param(["cats", "like"], False, id="Latin"),
        pytest.param(["חתולים", "לא"], True, id="Hebrew"),
        pytest.param(["القطط", "(123)"], True, id="Arabic with a number"),
        pytest.param(["ߒߞߏ"], True, id="N'Ko"),
        pytest.param(["猫", "は"], False, id="Japanese"),
        pytest.param(["كلب", "international"], False, id="one Arabic word in English"),
        pytest.param(["12", "!"], False, id="no letters"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_most_letters_decide_the_direction(words: list[str], mirrored: bool) -> None:
    assert reads_right_to_left(words) is mirrored


def test_the_first_letter_decides_for_a_text() -> None:
    assert begins_right_to_left("(12) כלב dog")
    assert not begins_right_to_left("dog כלב")
    assert not begins_right_to_left("12 .")


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=20))
def test_marks_are_all_that_is_added(text: str) -> None:
    assert with_direction(text).strip(RIGHT_TO_LEFT_MARK) == text.strip(RIGHT_TO_LEFT_MARK)
