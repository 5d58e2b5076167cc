from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import DataError
from regard.tasks.translation.constraints import (
    TextConstraints,
    TranslationConstraints,
    read_terms,
)


def test_no_constraints() -> None:
    assert not TranslationConstraints()
    assert TranslationConstraints().for_sentence("a cat") == TextConstraints()


def test_the_same_for_all() -> None:
    constraints = TranslationConstraints(prefix="Die", required=("Hund",), forbidden=("Katze",))
    assert constraints
    assert constraints.for_sentence("x") == TextConstraints("Die", ("Hund",), ("Katze",))
    assert constraints.to_dict()["required"] == ["Hund"]


@pytest.mark.parametrize(
    ("text", "required"),
    [
        pytest.param("The cat sat.", ("Katze",), id="a word"),
        pytest.param("Cats sat.", (), id="only whole words"),
        pytest.param("a CAT food bowl, a cat", ("Futter", "Katze"), id="the longest, any case"),
        pytest.param("C++ (cat)", ("C++", "Katze"), id="marks"),
    ],
)
def test_terms(text: str, required: tuple[str, ...]) -> None:
    constraints = TranslationConstraints(terms={"cat": "Katze", "cat food": "Futter", "c++": "C++"})
    assert constraints.for_sentence(text).required == required


def test_list_of_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# animals\ncat\tKatze\tnoun\n\ndog \t Hund\n", encoding="utf-8")
    assert read_terms(path) == {"cat": "Katze", "dog": "Hund"}
    path.write_text("cat\tKatze\ndog\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"terms\.tsv, line 2: a term without a translation"):
        read_terms(path)
