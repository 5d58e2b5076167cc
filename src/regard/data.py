"""Corpora as `regard.corpus`: the built-in one, and what `regard corpus` does with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import SettingsError
from regard.settings.recipe import require_known

if TYPE_CHECKING:
    from regard.corpora.cleaning import Account
    from regard.corpora.composition import Mixture
    from regard.corpora.fetching import FetchedCorpus
    from regard.corpora.parallel import SentencePair
    from regard.corpora.statistics import CorpusStatistics

BUILT_IN = ("grammar",)
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs to train, validate and test on, with gold word alignments."""

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    folder: Path | None = None
    """Where the files were written, if they were."""

    def to_dict(self) -> dict[str, Any]:
        """Return the folder and its files, or how many pairs there are."""
        if self.folder is not None:
            files = sorted(path.name for path in self.folder.iterdir())
            return {"folder": str(self.folder), "files": files}
        return {name: len(getattr(self, name)) for name in ("train", "valid", "test")}

    def _repr_html_(self) -> str:
        from regard.pictures.svg import notebook_lines

        sizes = f"{len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test"
        return notebook_lines(
            ("pairs", sizes), *((pair.source, pair.target) for pair in self.train[:3])
        )


class CorpusTools:
    """The built-in corpus when it is called, and functions for corpora of files.

    corpus()                                      the built-in sentence pairs
    corpus.fetch("multi30k", out=...)             download a corpus and check it
    corpus.filter("raw.tsv", out=...)             keep the good pairs, with an account
    corpus.mix(["a.tsv", "b.tsv"], out=...)       several corpora in shares
    corpus.split("all.tsv", out=...)              train, valid and test
    corpus.stats("all.tsv")                       sizes, lengths, words, scripts and copies
    """

    def __call__(
        self,
        name: str = "grammar",
        *,
        pair: str = "en-de",
        size: int = 20_000,
        valid_size: int = 1_000,
        test_size: int = 1_000,
        words: str = "full",
        style: str = "plain",
        length: tuple[int, int] = (3, 60),
        seed: int = 1,
        out: str | Path | None = None,
    ) -> Corpus:
        """Return a built-in corpus, and write it to files if `out` names a folder.

        `length` is the fewest and the most source words of a sentence. `style` is "plain" (small
        letters, no full stop), "written" (with capital and full stop) or "mixed". The same seed
        gives the same sentences, always and everywhere.
        """
        from regard.corpora.grammar import generate, write_corpus

        require_known(name, BUILT_IN, what="corpus")
        require_known(words, ["full", "small", "agreements"], what="vocabulary")
        require_known(style, ["plain", "written", "mixed"], what="style")
        shortest, longest = length
        if shortest > longest:
            raise SettingsError(
                f"--min-words ({shortest}) must not exceed --max-words ({longest})."
            )
        settings: dict[str, Any] = {
            "pair": pair,
            "min_words": shortest,
            "max_words": longest,
            "words": words,
            "style": style,
            "seed": seed,
        }
        if out is not None:
            written = write_corpus(
                Path(out), size=size, valid_size=valid_size, test_size=test_size, **settings
            )
            return Corpus(**written, folder=Path(out))
        train, valid, test = (
            generate(split=split, size=count, **settings)  # type: ignore[arg-type]
            for split, count in (("train", size), ("valid", valid_size), ("test", test_size))
        )
        return Corpus(train, valid, test)

    @staticmethod
    def fetch(
        name: str,
        *,
        out: str | Path,
        pair: str | None = None,
        version: str = "latest",
        progress: Callable[[int, int | None], None] = lambda done, total: None,
    ) -> FetchedCorpus:
        """Download a corpus into a folder, or check the one that is there.

        `name` is "multi30k", "tinyshakespeare", or "opus/NAME" with the languages as `pair`.
        """
        from regard.corpora.fetching import fetch_corpus

        return fetch_corpus(name, out=out, pair=pair, version=version, progress=progress)

    @staticmethod
    def filter(
        data: Paths,
        *,
        out: str | Path,
        pair: str | None = None,
        columns: Sequence[str] = (),
        set: Mapping[str, Any] | Sequence[str] = (),
        model: str | Path | None = None,
        processes: int | None = None,
        progress: Callable[[int], None] = lambda read: None,
    ) -> Account:
        """Write the good pairs of a corpus, and return how many each filter dropped.

        `model` is the run of a translator, which then scores the pairs in place of IBM model 1.
        """
        from regard.corpora.cleaning import filter_corpus

        scored = None
        if model is not None:
            from regard.tasks.translation.pair_filter import model_filter

            scored = model_filter(Path(model))
        return filter_corpus(
            data,
            out=out,
            pair=pair,
            columns=columns,
            set=set,
            scored=scored,
            scored_by="" if model is None else str(Path(model).resolve()),
            processes=processes,
            progress=progress,
        )

    @staticmethod
    def mix(
        corpora: Sequence[str | Path],
        *,
        out: str | Path,
        pair: str | None = None,
        weights: Sequence[float] = (),
        temperature: float = 1.0,
        size: int | None = None,
        seed: int = 1,
        progress: Callable[[int], None] = lambda written: None,
    ) -> Mixture:
        """Write a mixture of corpora in shares of weight n^(1/T), and return what it took."""
        from regard.corpora.composition import mix_corpora

        return mix_corpora(
            corpora,
            out=out,
            pair=pair,
            weights=weights,
            temperature=temperature,
            size=size,
            seed=seed,
            progress=progress,
        )

    @staticmethod
    def split(
        data: Paths,
        *,
        out: str | Path,
        valid: int = 1_000,
        test: int = 1_000,
        pair: str | None = None,
        columns: Sequence[str] = (),
        seed: int = 1,
        processes: int | None = None,
        progress: Callable[[int], None] = lambda written: None,
    ) -> dict[str, int]:
        """Write train, valid and test into a folder, and return how many pairs each has."""
        from regard.corpora.composition import split_corpus

        return split_corpus(
            data,
            out=out,
            valid=valid,
            test=test,
            pair=pair,
            columns=columns,
            seed=seed,
            processes=processes,
            progress=progress,
        )

    @staticmethod
    def stats(
        data: Paths,
        *,
        pair: str | None = None,
        columns: Sequence[str] = (),
        processes: int | None = None,
        progress: Callable[[int], None] = lambda read: None,
    ) -> CorpusStatistics:
        """Count what a corpus holds."""
        from regard.corpora.statistics import corpus_statistics

        return corpus_statistics(
            data, pair=pair, columns=columns, processes=processes, progress=progress
        )


corpus = CorpusTools()
