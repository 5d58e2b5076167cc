from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import regard
from regard.base.errors import SettingsError
from regard.corpora.filters import TextPair
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.pair_filter import ModelAlignment, model_filter
from regard.tasks.translation.settings import DataSettings


def shared_letters(sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float64]:
    """A model that expects the letters of the source."""
    return np.array(
        [
            np.mean([0.0 if letter in source else -5.0 for letter in target])
            for source, target in zip(sources, targets, strict=True)
        ]
    )


def test_pairs_are_kept_whose_target_follows_from_the_source() -> None:
    good = [TextPair(chr(40 + n % 80) * 3, chr(40 + n % 80) * 5) for n in range(240)]
    keeps = ModelAlignment(shared_letters, good)
    assert sum(keeps(good)) > 0.95 * len(good)  # some are compared with their own letter
    assert not any(keeps([TextPair("a", "b"), TextPair("x", "y")]))
    with pytest.raises(SettingsError, match=r"needs 200 pairs .* leave out --model"):
        ModelAlignment(shared_letters, good[:9])


def test_a_model_tells_its_own_language_from_wrong_pairs(toy_run: Path, toy_corpus: Path) -> None:
    sides = [(toy_corpus / f"train.{end}").read_text().splitlines() for end in ("src", "tgt")]
    pairs = [TextPair(*sides) for sides in zip(*sides, strict=True)][:300]
    keeps = model_filter(toy_run)(pairs)
    wrong = [TextPair(a.source, b.target) for a, b in zip(pairs, pairs[7:], strict=False)]
    assert sum(keeps(pairs)) > 0.9 * len(pairs)
    assert sum(keeps(wrong)) < 0.2 * len(wrong)


def test_a_corpus_is_filtered_in_a_recipe(tmp_path: Path) -> None:
    rows = ["a dog sleeps\tein Hund schläft", "a dog sleeps\tein Hund schläft", "<b> x\ty z"]
    rows += [f"the cat number {n} sleeps\tdie Katze Nummer {n} schläft" for n in range(10, 40)]
    (tmp_path / "raw.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    settings = DataSettings(  # type: ignore[call-arg]
        train=str(tmp_path / "raw.tsv"), filter={"near_duplicates": False}
    )
    splits = read_splits(settings)
    assert len(splits.train) + len(splits.valid) + len(splits.test) == 31
    assert splits.notes[0].startswith("33 pairs read, 31 kept")
    assert regard.corpus.stats(tmp_path / "raw.tsv").pairs == 33
