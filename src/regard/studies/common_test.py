"""The test set on which several runs are compared: their common one, or given files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from regard.base.errors import DataError, RunError, SettingsError
from regard.corpora.parallel import SentencePair, read_parallel
from regard.tasks.translation.data import read_test
from regard.tasks.translation.forgetting import DOMAIN, kept_tests
from regard.tasks.translation.settings import DataSettings, TranslationRecipe

REMEDY = "Give one test set for all with --test SOURCE TARGET."
LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?")
# File endings that do not name a language.
NO_LANGUAGE = frozenset({"src", "tgt", "ref", "txt", "tsv", "tok", "raw", "bpe"})
SENTENCE_END = re.compile(r"(\s?)[.!?]$")
FEWEST_ENDS = 5
SMALLEST_SHARE = 0.1


def common_test(
    recipes: Mapping[str, TranslationRecipe], files: tuple[Path, Path] | None = None
) -> list[SentencePair]:
    """Return the pairs on which these runs can be compared; raise if there are none."""
    require_one_direction({name: recipe.data for name, recipe in recipes.items()})
    if files is not None:
        return read_parallel(*files)
    parts = {name: _test_part(name, recipe.data) for name, recipe in recipes.items()}
    (first, pairs), *others = parts.items()
    for other, theirs in others:
        if _texts(theirs) != _texts(pairs):
            raise RunError(_difference(first, pairs, other, theirs))
    return pairs


def family_tests(
    runs: Mapping[str, Path], recipes: Mapping[str, TranslationRecipe]
) -> dict[str, list[SentencePair]]:
    """Return the tests that fine-tuned runs have kept, if all runs are of one family.

    Such are runs that were fine-tuned on the same data, and what they started from. Nothing is
    returned for other runs.
    """
    tuned = {name: tests for name, folder in runs.items() if (tests := kept_tests(folder))}
    starts = [Path(start).resolve() for n in tuned if (start := recipes[n].training.start_from)]
    if not tuned or any(runs[name].resolve() not in starts for name in runs.keys() - tuned):
        return {}
    first, *others = tuned.values()
    shared = {name: p for name, p in first.items() if all(p == one.get(name) for one in others)}
    return shared if DOMAIN in shared else {}


def require_one_direction(data: Mapping[str, DataSettings]) -> None:
    """Refuse runs with different language pairs, as far as the pairs are known."""
    known = {name: found for name, each in data.items() if (found := direction(each))}
    (first, wanted), *others = known.items() or [("", "")]
    for other, found in others:
        if found != wanted:
            raise RunError(
                f"{first} translates {wanted} and {other} translates {found}: they cannot be "
                "compared. Compare runs of one language pair."
            )


def direction(data: DataSettings) -> str | None:
    """Return the languages of a run, as "en-de"; None where its files do not tell."""
    if data.built_in:
        return data.grammar.pair
    if data.pair is not None:
        return data.pair
    languages = [_language(file) for file in data.train]
    if len(languages) != 2 or None in languages or languages[0] == languages[1]:
        return None
    return f"{languages[0]}-{languages[1]}"


def require_like(name: str, outputs: Sequence[str], references: Sequence[str]) -> None:
    """Refuse to score tokenised outputs with raw references, or the other way round."""
    written, wanted = text_form(outputs), text_form(references)
    if written and wanted and written != wanted:
        raise SettingsError(
            f"{name} writes {written} text, but the references are {wanted} text: their BLEU "
            f"would mean nothing. Give a test set of the kind that {name} was trained on (--test), "
            "and compare it with runs of the same kind."
        )


def text_form(texts: Sequence[str]) -> Literal["tokenised", "raw"] | None:
    """Return whether sentence-final marks follow a space; None if there are too few marks."""
    ends = [match for text in texts if (match := SENTENCE_END.search(text.rstrip()))]
    if len(ends) < max(FEWEST_ENDS, SMALLEST_SHARE * len(texts)):
        return None
    spaced = sum(bool(match[1]) for match in ends)
    return "tokenised" if 2 * spaced > len(ends) else "raw"


def _language(file: str) -> str | None:
    ending = Path(file.removesuffix(".gz")).suffix.removeprefix(".")
    return ending if LANGUAGE.fullmatch(ending) and ending not in NO_LANGUAGE else None


def _test_part(name: str, data: DataSettings) -> list[SentencePair]:
    """Return the test part of a run; a part in its own file is read without the others."""
    if data.from_memory or not (data.built_in or data.test or data.hold_out_test):
        raise RunError(f"{name} has no test part. {REMEDY}")
    try:
        return read_test(data)
    except DataError as error:
        raise RunError(f"The test part of {name} cannot be read: {error} {REMEDY}") from error


def _difference(
    first: str, pairs: Sequence[SentencePair], other: str, theirs: Sequence[SentencePair]
) -> str:
    """Return a message about the difference between two test parts."""
    if len(pairs) != len(theirs):
        return (
            f"The test parts of {first} ({len(pairs):,} pairs) and {other} ({len(theirs):,} pairs) "
            f"differ. {REMEDY}"
        )
    bare = [{_bare(pair.target) for pair in part} for part in (pairs, theirs)]
    if 2 * len(bare[0] & bare[1]) > len(bare[0]):
        return (
            f"The test parts of {first} and {other} hold the same sentences in different "
            "spellings: is one of them tokenised or lower-cased? Their scores cannot be compared."
        )
    return f"The test parts of {first} and {other} differ. {REMEDY}"


def _bare(text: str) -> str:
    """Return a text in lower case without white space."""
    return "".join(text.lower().split())


def _texts(pairs: Sequence[SentencePair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]
