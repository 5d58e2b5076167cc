from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DataError, RunError, SettingsError
from regard.corpora import blocks
from regard.corpora.composition import LowestKeys, mix_corpora, split_corpus
from regard.corpora.parallel import SentencePair, hold_out


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def corpora(tmp_path: Path) -> tuple[Path, Path]:
    small = table(tmp_path / "small.tsv", [(f"small {n}", f"klein {n}") for n in range(10)])
    large = table(tmp_path / "large.tsv", [(f"large {n}", f"groß {n}") for n in range(90)])
    return small, large


def test_a_mixture_without_weights_holds_everything_once(
    tmp_path: Path, corpora: tuple[Path, Path]
) -> None:
    found = mix_corpora(corpora, out=tmp_path / "mixed.tsv")
    assert found.to_dict()["pairs"] == 100
    rows = rows_of(tmp_path / "mixed.tsv")
    assert sorted(rows) == sorted(rows_of(corpora[0]) + rows_of(corpora[1]))
    for place in range(10, 101, 10):  # the shares hold everywhere
        assert sum(row[0].startswith("small") for row in rows[:place]) == place / 10
    assert "10.0%" in str(found)


def test_weights_and_temperature_decide_the_shares(
    tmp_path: Path, corpora: tuple[Path, Path]
) -> None:
    mixed = tmp_path / "mixed.tsv"
    found = mix_corpora(corpora, out=mixed, weights=[9.0, 1.0], size=60, seed=3)
    assert list(found.taken.values()) == [30, 30]
    counts = Counter(row[0] for row in rows_of(mixed))
    assert all(counts[f"small {n}"] == 3 for n in range(10))
    chosen = [row[0] for row in rows_of(mixed) if row[0].startswith("large")]
    assert len(set(chosen)) == 30
    found = mix_corpora(corpora, out=tmp_path / "hot.tsv", temperature=1000.0, size=20)
    assert list(found.taken.values()) == [10, 10]
    mix_corpora(corpora, out=tmp_path / "again.tsv", weights=[9.0, 1.0], size=60, seed=3)
    assert mixed.read_bytes() == (tmp_path / "again.tsv").read_bytes()
    mix_corpora(corpora, out=tmp_path / "other.tsv", weights=[9.0, 1.0], size=60, seed=4)
    assert mixed.read_bytes() != (tmp_path / "other.tsv").read_bytes()


def test_line_files_and_folders_can_be_mixed(tmp_path: Path, corpora: tuple[Path, Path]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in (folder / "train", tmp_path / "lines"):
        name.with_suffix(".en").write_text("one\ntwo\n")
        name.with_suffix(".de").write_text("eins\nzwei\n")
    lines = f"{tmp_path / 'lines.en'},{tmp_path / 'lines.de'}"
    mix_corpora([folder, lines, corpora[0]], pair="en-de", out=tmp_path / "mixed")
    assert (tmp_path / "mixed.en").read_text().splitlines().count("two") == 2
    assert len((tmp_path / "mixed.de").read_text("utf-8").splitlines()) == 14


def test_a_mixture_goes_on_where_it_was_stopped(
    tmp_path: Path, corpora: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "COMMIT_SECONDS", 0)
    options = {"weights": [9.0, 1.0], "size": 3_000}
    mix_corpora(corpora, out=tmp_path / "whole.tsv", **options)  # type: ignore[arg-type]

    def stop(written: int) -> None:
        if written == 2_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mix_corpora(corpora, out=tmp_path / "a.tsv", progress=stop, **options)  # type: ignore[arg-type]
    seen: list[int] = []
    mix_corpora(corpora, out=tmp_path / "a.tsv", progress=seen.append, **options)  # type: ignore[arg-type]
    assert seen[0] > 1_000
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_mistakes_of_a_mixture(tmp_path: Path, corpora: tuple[Path, Path]) -> None:
    out = tmp_path / "mixed.tsv"
    small, large = corpora
    with pytest.raises(SettingsError, match="two corpora or more"):
        mix_corpora([small], out=out)
    with pytest.raises(SettingsError, match="2 corpora and 1 weights"):
        mix_corpora([small, large], out=out, weights=[1.0])
    with pytest.raises(SettingsError, match="must be above 0"):
        mix_corpora([small, large], out=out, weights=[1.0, 0.0])
    with pytest.raises(SettingsError, match="named twice"):
        mix_corpora([small, small], out=out)
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\n")
    with pytest.raises(DataError, match=r"has 2 lines, but .* has 1"):
        mix_corpora([small, f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}"], out=out, pair="en-de")
    assert not out.exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_split_is_what_a_training_would_hold_out(tmp_path: Path, processes: int) -> None:
    rows = [(f"source {number % 70}", f"target {number}") for number in range(100)]
    data = table(tmp_path / "all.tsv", rows)
    out = tmp_path / "parts"
    counts = split_corpus(data, out=out, valid=10, test=7, seed=5, processes=processes)
    train, valid, test = hold_out([SentencePair(*row) for row in rows], sizes=[10, 7], seed=5)
    for part, pairs in {"train": train, "valid": valid, "test": test}.items():
        assert rows_of(out / f"{part}.tsv") == [(pair.source, pair.target) for pair in pairs]
        assert counts[part] == len(pairs)
    sources = [{row[0] for row in rows_of(out / f"{part}.tsv")} for part in counts]
    assert not sources[0] & sources[1]
    assert not sources[0] & sources[2]
    with pytest.raises(RunError, match="exists already"):
        split_corpus(data, out=out, valid=10, test=7)


def test_a_split_goes_on_and_may_be_of_line_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "COMMIT_SECONDS", 0)
    data = table(tmp_path / "all.tsv", [(f"s {n}", f"t {n}") for n in range(12_000)])

    def stop(written: int) -> None:
        raise KeyboardInterrupt

    for folder, progress in (("a", stop), ("a", None), ("b", None)):
        try:
            split_corpus(
                data,
                out=tmp_path / folder,
                valid=100,
                test=0,
                pair="en-de",
                processes=1,
                progress=progress or (lambda written: None),
            )
        except KeyboardInterrupt:
            assert not (tmp_path / folder / "train.en").exists()
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {"train.en", "train.de", "valid.en", "valid.de"}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_too_few_pairs_to_split(tmp_path: Path) -> None:
    data = table(tmp_path / "all.tsv", [("a", "b")] * 3)
    with pytest.raises(DataError, match=r"3 pairs are too few .* --valid and --test"):
        split_corpus(data, out=tmp_path / "parts", valid=2, test=1)
    assert not (tmp_path / "parts").exists()


def test_the_lowest_keys_are_counted_in_little_memory() -> None:
    draw = np.random.default_rng(1)
    keys = draw.integers(0, 50_000, 100_000).astype(np.uint64)
    lowest = LowestKeys(10)
    for block in np.split(keys, 100):
        lowest.add(block)
    unique, counts = np.unique(keys, return_counts=True)
    expected = LowestKeys(10)
    expected._keys, expected._counts = unique, counts
    assert lowest.parts({"valid": 10}) == expected.parts({"valid": 10})
    assert len(lowest._keys) <= 10_010
