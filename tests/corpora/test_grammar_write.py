"""Writing the grammar's corpus to files."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import config

from regard.base.errors import RegardError, RunError, SettingsError
from regard.corpora.alignments import format_alignment, read_alignments
from regard.corpora.grammar import PAIRS, generate, write_corpus
from regard.corpora.parallel import SentencePair


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    """Lift the run-time check of types, which takes a hundred times as long as the sentences."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


FILES = {
    f"{split}.{suffix}"
    for split in ("train", "valid", "test")
    for suffix in ("en", "de", "align", "antecedents")
}


def test_files_hold_what_generate_returns(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    write_corpus(
        folder, pair="en-de", size=15, valid_size=3, test_size=2, max_words=20, words="small",
        seed=3,
    )  # fmt: skip
    assert {path.name for path in folder.iterdir()} == FILES
    for split, size in (("train", 15), ("valid", 3), ("test", 2)):
        pairs = generate(
            pair="en-de", split=split, size=size, max_words=20, words="small", seed=3
        )  # type: ignore[arg-type]  # fmt: skip

        def lines(suffix: str, split: str = split) -> list[str]:
            return (folder / f"{split}.{suffix}").read_bytes().decode("utf-8").split("\n")

        assert lines("en") == [*(pair.source for pair in pairs), ""]
        assert lines("de") == [*(pair.target for pair in pairs), ""]
        assert lines("antecedents") == [*(format_alignment(p.antecedents) for p in pairs), ""]
        assert read_alignments(folder / f"{split}.align") == [pair.alignment for pair in pairs]


def test_bytes_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_corpus(
            tmp_path / name, pair="en-de", size=8, valid_size=2, test_size=2, max_words=30,
            seed=seed,
        )  # fmt: skip
    a, b, c = ({file: (tmp_path / name / file).read_bytes() for file in FILES} for name in "abc")
    assert a == b
    assert a != c
    assert not any(b"\r" in content for content in a.values())


def test_a_corpus_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "valid.align").write_text("0-0\n")
    with pytest.raises(RunError, match=r"valid\.align exists already\. Choose another folder"):
        write_corpus(tmp_path, pair="en-de", size=3, valid_size=1, test_size=1)
    assert [path.name for path in tmp_path.iterdir()] == ["valid.align"]


def test_an_unknown_pair_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no pair 'en-xx'; it has: .*en-de"):
        write_corpus(tmp_path / "out", pair="en-xx", size=3)
    assert not (tmp_path / "out").exists()
    assert "en-de" in PAIRS


@pytest.mark.parametrize(("low", "high"), [(2, 10), (10, 9)])
def test_lengths_that_cannot_be_drawn_are_refused(low: int, high: int) -> None:
    with pytest.raises(SettingsError, match=f"Sentences of {low} to {high} words cannot be drawn"):
        generate(pair="en-de", split="train", size=1, min_words=low, max_words=high)


def test_too_few_sentences_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["regard.corpora.grammar.generate"], "PATIENCE", 60)
    with pytest.raises(RegardError, match=r"found only \d+ different valid sentences of 3 to 3"):
        generate(pair="en-de", split="valid", size=100_000, max_words=3, words="small")


@pytest.mark.parametrize("pair", PAIRS)
def test_the_styles_have_the_same_sentences(pair: str) -> None:
    plain, written, mixed = (
        generate(pair=pair, split="train", size=60, seed=2, style=style)  # type: ignore[arg-type]
        for style in ("plain", "written", "mixed")
    )
    for one, other in zip(plain, written, strict=True):
        for before, after in ((one.source, other.source), (one.target, other.target)):
            assert after == f"{before[0].upper()}{before[1:]}.".replace(" ,", ",")
        assert _linked(other) == _linked(one) - {link for link in _linked(one) if "," in link}
        assert [_words(other.source)[b] for _, b in other.antecedents] == [
            one.source.split()[b] for _, b in one.antecedents
        ]
    for each, one, other in zip(mixed, plain, written, strict=True):
        assert each in (one, other)
    assert 15 < sum(each in plain for each in mixed) < 45


def _words(text: str) -> list[str]:
    words = text.replace(",", "").removesuffix(".").split()
    return [words[0].lower(), *words[1:]]


def _linked(pair: SentencePair) -> set[tuple[str, str]]:
    """Return the linked words, as they are written in mid-sentence."""
    plain = "." not in pair.source
    source, target = (
        side.split() if plain else _words(side) for side in (pair.source, pair.target)
    )
    return {(source[s].lower(), target[t].lower()) for s, t in pair.alignment or ()}
