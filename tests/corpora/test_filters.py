from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from regard.base.errors import DataError, RunError, SettingsError
from regard.corpora import blocks
from regard.corpora.cleaning import Account, filter_corpus, filter_pairs
from regard.corpora.filters import (
    FilterSettings,
    LanguageCheck,
    Scripts,
    TextPair,
    WordAlignment,
    choose_filters,
    drawn_sample,
)
from regard.corpora.grammar import generate

GOOD = TextPair("the dog sleeps in the old house", "der Hund schläft in dem alten Haus")


@pytest.fixture(scope="module")
def corpus() -> list[TextPair]:
    made = generate(split="train", size=600, pair="en-de", words="small", max_words=16, seed=1)
    return [TextPair(one.source, one.target) for one in made]


# What is dropped, by the filter that is meant for it.
BAD = {
    "empty": TextPair("a dog", "  "),
    "control characters": TextPair("a dog\x02 sleeps", "ein Hund schläft"),
    "length": TextPair("a " * 201, "ein " * 201),
    "ratio": TextPair("a dog", "ein Hund " * 9),
    "identical sides": TextPair("The dog sleeps!", "the dog, sleeps"),
    "markup": TextPair("a <b>dog</b>", "ein Hund"),
    "numbers": TextPair("in 1984 he slept", "1989 schlief er"),
    "script": TextPair("the dog sleeps", "собака спит в доме"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_each_filter_drops_what_it_is_meant_for(name: str, corpus: list[TextPair]) -> None:
    settings = FilterSettings(alignment=False)  # type: ignore[call-arg]
    filters = choose_filters(settings, corpus)
    account = Account()
    assert list(filter_pairs([GOOD, BAD[name], GOOD], filters, account)) == [GOOD]
    assert account.dropped == {name: 1, "duplicates": 1}
    assert (account.read, account.kept) == (3, 1)
    assert account.examples[name] == [BAD[name]]
    assert f"1  {name}" in str(account)
    assert Account.from_dict(account.to_dict()) == account


@pytest.mark.parametrize(
    "pair",
    [
        TextPair("It costs 1,000.50 euros", "Es kostet 1.000,50 Euro"),
        TextPair("3 < 4 & 5", "3 < 4 & 5 gilt"),
        TextPair("a café — “so”", "ein Café – »so«"),
        TextPair("two dogs", "2 Hunde"),
    ],
)
def test_good_pairs_are_kept(pair: TextPair, corpus: list[TextPair]) -> None:
    settings = FilterSettings(alignment=False)  # type: ignore[call-arg]
    assert list(filter_pairs([pair], choose_filters(settings, corpus), Account())) == [pair]


def test_copies_are_dropped_whatever_their_case_and_digits(corpus: list[TextPair]) -> None:
    settings = FilterSettings(alignment=False)  # type: ignore[call-arg]
    copies = [
        TextPair("Page 12 of it", "Seite 12 davon"),
        TextPair("Page 12 of it", "Seite 12 davon"),
        TextPair("PAGE 13, of it!", "Seite 13 davon."),
    ]
    account = Account()
    assert len(list(filter_pairs(copies, choose_filters(settings, corpus), account))) == 1
    assert account.dropped == {"duplicates": 1, "near-duplicates": 1}


def test_filters_can_be_switched_off(corpus: list[TextPair]) -> None:
    off = {name: 0 if name in ("min_words", "max_words", "max_ratio") else False
           for name in FilterSettings.model_fields if name not in ("sample", "seed")}  # fmt: skip
    filters = choose_filters(FilterSettings(**off), corpus, pair="en-de")  # type: ignore[arg-type]
    assert list(filters.single) == ["empty"]
    assert not filters.copies


def test_a_sample_is_drawn_from_all_pairs_by_seed() -> None:
    pairs = [TextPair(str(number), "") for number in range(1_000)]
    found = drawn_sample(pairs, 100, seed=1)
    assert len(set(found)) == 100
    assert found == drawn_sample(pairs, 100, seed=1) != drawn_sample(pairs, 100, seed=2)
    assert 350 < sum(int(pair.source) for pair in found) / 100 < 650
    assert drawn_sample(pairs[:5], 100, seed=1) == pairs[:5]


def test_wrong_translations_are_told_from_right_ones(corpus: list[TextPair]) -> None:
    draw = random.Random(1)
    wrong = [TextPair(draw.choice(corpus).source, draw.choice(corpus).target) for _ in range(60)]
    keeps = WordAlignment.of([*corpus, *wrong])
    assert sum(map(keeps, wrong)) < 0.25 * len(wrong)
    assert sum(map(keeps, corpus)) > 0.9 * len(corpus)


def test_scripts_are_learned(corpus: list[TextPair]) -> None:
    assert Scripts.of(corpus).expected == ("LATIN", "LATIN")
    assert Scripts.of([]).expected == ("", "")


def test_languages() -> None:
    pytest.importorskip("py3langid")
    keeps = LanguageCheck.of("en-de")
    english = "The children are playing in the garden behind the house."
    german = "Die Kinder spielen im Garten hinter dem Haus."
    assert keeps(TextPair(english, german))
    assert not keeps(TextPair(german, english))
    assert keeps(TextPair("Hund", "dog"))  # too short to tell
    with pytest.raises(SettingsError, match="give the two languages, as en-de"):
        LanguageCheck.of("en")
    with pytest.raises(SettingsError, match="does not know the language 'xx'"):
        LanguageCheck.of("en-xx")


def test_a_corpus_through_the_filters(tmp_path: Path, corpus: list[TextPair]) -> None:
    rows = [*corpus, corpus[0], BAD["markup"]]
    (tmp_path / "raw.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    account = filter_corpus(
        tmp_path / "raw.tsv", out=tmp_path / "clean.tsv", set={"alignment": False}
    )
    assert account.read == account.kept + sum(account.dropped.values()) == len(rows)
    assert account.dropped["duplicates"] >= 1
    kept = (tmp_path / "clean.tsv").read_text(encoding="utf-8").splitlines()
    assert len(kept) == account.kept
    assert kept[0] == "\t".join(corpus[0])
    again = filter_corpus(
        tmp_path / "clean.tsv", out=tmp_path / "two", pair="en-de", set=["alignment=false"]
    )
    assert again.kept == account.kept
    assert len((tmp_path / "two.de").read_text(encoding="utf-8").splitlines()) == again.kept
    with pytest.raises(RunError, match="exists already"):
        filter_corpus(tmp_path / "raw.tsv", out=tmp_path / "clean.tsv")
    with pytest.raises(RunError, match="there is no folder"):
        filter_corpus(tmp_path / "raw.tsv", out=tmp_path / "no" / "clean.tsv")
    with pytest.raises(SettingsError, match=r"name a \.tsv file"):
        filter_corpus(tmp_path / "raw.tsv", out=tmp_path / "other")
    with pytest.raises(SettingsError, match="max_words"):
        filter_corpus(tmp_path / "raw.tsv", out=tmp_path / "o.tsv", set=["max_word=3"])


def test_any_number_of_processes_and_a_resumed_filtering_give_the_same(
    tmp_path: Path, corpus: list[TextPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 100)
    monkeypatch.setattr(blocks, "COMMIT_SECONDS", 0.0)
    bad = list(BAD.values())[1:]
    rows = [row for one in corpus for row in (one, *bad[:1])] + corpus[:50] + bad
    (tmp_path / "raw.tsv").write_bytes("".join(f"{a}\t{b}\n" for a, b in rows).encode())
    options = {"data": tmp_path / "raw.tsv", "set": {"sample": 300}}
    whole = filter_corpus(**options, out=tmp_path / "1.tsv", processes=1)  # type: ignore[arg-type]
    several = filter_corpus(**options, out=tmp_path / "2.tsv", processes=3)  # type: ignore[arg-type]
    assert whole == several
    assert whole.dropped["duplicates"] >= 50
    assert whole.read == whole.kept + sum(whole.dropped.values()) == len(rows)

    def stop(read: int) -> None:
        if read >= 700:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filter_corpus(**options, out=tmp_path / "3.tsv", progress=stop, processes=1)  # type: ignore[arg-type]
    seen: list[int] = []
    resumed = filter_corpus(
        **options,
        out=tmp_path / "3.tsv",
        progress=seen.append,
        processes=2,  # type: ignore[arg-type]
    )
    assert seen[0] > 700
    assert resumed == whole
    kept = [(tmp_path / f"{number}.tsv").read_bytes() for number in (1, 2, 3)]
    assert kept[0] == kept[1] == kept[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.tsv",
        "2.tsv",
        "3.tsv",
        "raw.tsv",
    ]


def test_many_pairs_can_be_scored_at_once(tmp_path: Path, corpus: list[TextPair]) -> None:
    (tmp_path / "raw.tsv").write_bytes("".join(f"{a}\t{b}\n" for a, b in corpus).encode())

    def scored(sample: Sequence[TextPair]) -> Callable[[Sequence[TextPair]], list[bool]]:
        assert len(sample) > 100
        return lambda pairs: ["e" in pair.source for pair in pairs]

    account = filter_corpus(tmp_path / "raw.tsv", out=tmp_path / "a.tsv", scored=scored)
    assert set(account.dropped) <= {"alignment", "near-duplicates", "identical sides"}
    kept = (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()
    assert all("e" in line.split("\t")[0] for line in kept)


def test_unequal_files(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\n")
    with pytest.raises(DataError, match=r"a\.en: has 2 lines, but .*a\.de has 1"):
        filter_corpus([tmp_path / "a.en", tmp_path / "a.de"], out=tmp_path / "b.tsv")
    assert not (tmp_path / "b.tsv").exists()
