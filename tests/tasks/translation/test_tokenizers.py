"""One vocabulary or two, and how large they are where nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.corpora.parallel import SentencePair
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.examples import learn_tokenizers, run_tokenizers, supported_size
from regard.tasks.translation.settings import TokenizerSettings, TranslationRecipe

PAIRS = [SentencePair("a small dog", "ein kleiner hund"), SentencePair("the dog", "der hund")] * 9


@pytest.mark.parametrize(
    ("pairs", "entries"), [(10, 1_000), (900, 1_800), (30_000, 10_380), (10_000_000, 32_000)]
)
def test_the_size_follows_from_the_data(pairs: int, entries: int) -> None:
    assert supported_size(pairs=pairs, characters=0) == entries
    assert supported_size(pairs=pairs, characters=70) == entries + 70


def test_a_script_of_many_characters_fits_into_the_size_that_is_chosen() -> None:
    texts = ["".join(chr(0x4E00 + 20 * row + i) for i in range(20)) for row in range(100)]
    pairs = [SentencePair(text, text) for text in texts]
    source, _ = learn_tokenizers(TokenizerSettings(), pairs)
    assert 2_000 < source.size <= 3_000


@pytest.mark.parametrize("kind", ["character", "word", "sentencepiece"])
def test_a_shared_vocabulary_knows_both_languages(kind: str) -> None:
    settings = TokenizerSettings(kind=kind, shared=True)
    source, target = learn_tokenizers(settings, PAIRS)
    assert source is target
    for text in (PAIRS[0].source, PAIRS[0].target):
        assert source.decode(source.encode(text)) == text
    apart = learn_tokenizers(TokenizerSettings(kind=kind), PAIRS)
    assert apart[0] is not apart[1]


def test_a_shared_vocabulary_is_saved_for_both_sides(tmp_path: Path) -> None:
    recipe = expect(find_recipe("transformer-tiny"), TranslationRecipe)
    run = open_run(tmp_path / "run", recipe, resume=False)
    source, target = run_tokenizers(run, recipe, PAIRS)
    assert source.size == target.size
    files = [(tmp_path / "run" / f"{side}.model").read_bytes() for side in ("source", "target")]
    assert files[0] == files[1]
    again, _ = run_tokenizers(run, recipe, [])  # nothing is learned twice
    assert again.encode("ein hund") == target.encode("ein hund")
