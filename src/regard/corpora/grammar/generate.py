"""Sentence pairs of the grammar: sampling, alignment, splits and files."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from regard.base.errors import RegardError, RunError, SettingsError
from regard.corpora.alignments import LinkTuple, format_alignment
from regard.corpora.grammar import agreements, english, french, german
from regard.corpora.grammar.choices import RandomStream
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.grammar.sampling import Sampler
from regard.corpora.grammar.tree import Cause, Language, LinkedWord, Pronoun
from regard.corpora.parallel import SentencePair

LANGUAGES: dict[str, Language] = {"de": german.LANGUAGE, "fr": french.LANGUAGE}
PAIRS = ("en-de", "en-fr")


def target_language(pair: str) -> Language:
    """Return the target language of a pair such as "en-de"."""
    if pair not in PAIRS:
        known = ", ".join(PAIRS)
        raise SettingsError(f"The built-in grammar has no pair {pair!r}; it has: {known}.")
    return LANGUAGES[pair.removeprefix("en-")]


def align(source: Sequence[LinkedWord], target: Sequence[LinkedWord]) -> LinkTuple:
    """Return the pairs (source word, target word) that share a cause."""
    places: dict[Cause, list[int]] = {}
    for index, token in enumerate(source):
        for cause in token.causes:
            if cause in places:
                places[cause].append(index)
            else:
                places[cause] = [index]
    links = [
        (place, index)
        for index, token in enumerate(target)
        for cause in token.causes
        for place in places.get(cause, ())
    ]
    return tuple(sorted(set(links)))


def antecedents(source: Sequence[LinkedWord]) -> LinkTuple:
    """Return the pairs (pronoun, last word of its noun) of the source."""
    found = []
    for index, token in enumerate(source):
        if token.text in ("it", "they"):
            ((node, _),) = token.causes
            if isinstance(node, Pronoun) and node.antecedent is not None:
                cause = (node.antecedent, "noun")
                noun = max(place for place, word in enumerate(source) if cause in word.causes)
                found.append((index, noun))
    return tuple(found)


SplitName: TypeAlias = Literal["train", "valid", "test"]
WordList: TypeAlias = Literal["full", "small", "agreements"]
StyleName: TypeAlias = Literal["plain", "written", "mixed"]

SHORTEST = 3
COMMA = ","
# The range of lengths counts as exhausted after this number of draws without a new sentence. A
# split that takes one draw in eleven reaches it only if hardly one sentence in a thousand is new.
PATIENCE = 20_000


def split_of(source: str) -> SplitName:
    """Return the split of a source sentence by its hash, so that splits never overlap."""
    first = blake2b(source.encode("utf-8"), digest_size=1).digest()[0]
    if first < 24:
        return "valid"
    return "test" if first < 48 else "train"


def written(pair: SentencePair) -> SentencePair:
    """Return a plain pair as people write: with a capital, a full stop and attached commas.

    A comma is then part of the word before it, so its own links are left out.
    """
    source, source_places = _written_words(pair.source)
    target, target_places = _written_words(pair.target)
    links = [
        (source_places[s], target_places[t])
        for s, t in pair.alignment or ()
        if s in source_places and t in target_places
    ]
    return SentencePair(
        source=source,
        target=target,
        alignment=tuple(sorted(links)),
        antecedents=tuple((source_places[a], source_places[b]) for a, b in pair.antecedents),
    )


def _written_words(text: str) -> tuple[str, dict[int, int]]:
    """Return a text as people write it, and the new place of each word that is no comma."""
    kept = [place for place, word in enumerate(text.split()) if word != COMMA]
    places = {place: number for number, place in enumerate(kept)}
    joined = text.replace(f" {COMMA}", COMMA)
    return f"{joined[:1].upper()}{joined[1:]}.", places


def is_written(source: str, *, style: StyleName, seed: int) -> bool:
    """Return whether a sentence gets its capital and full stop: in `mixed`, half of them do."""
    if style != "mixed":
        return style == "written"
    return blake2b(f"{seed} {source}".encode(), digest_size=1).digest()[0] < 128


def generate(
    *,
    pair: str,
    split: SplitName,
    size: int,
    min_words: int = SHORTEST,
    max_words: int = 60,
    words: WordList = "full",
    style: StyleName = "plain",
    contested: float = 0.0,
    seed: int = 1,
) -> list[SentencePair]:
    """Return `size` different sentence pairs whose sources have `min_words` to `max_words` words.

    The wanted lengths are uniform over the range. A larger size starts with the same sentences, and
    every style has the same sentences. `contested` is the share, of those with 10 words and more,
    in which "it" could stand for several nouns and only an adjective tells which.
    """
    if not SHORTEST <= min_words <= max_words:
        raise SettingsError(
            f"Sentences of {min_words} to {max_words} words cannot be drawn: min_words must be "
            f"at least {SHORTEST}, and max_words at least min_words."
        )
    stream = RandomStream(seed)
    drawn = _drawn(pair, words, stream, (min_words, max_words), contested=contested)
    pairs: list[SentencePair] = []
    seen: set[str] = set()
    draws = 0
    while len(pairs) < size:
        draws += 1
        if draws > PATIENCE:
            raise RegardError(
                f"The grammar found only {len(pairs)} different {split} sentences of {min_words} "
                f"to {max_words} words, and {size} were asked for. "
                "Ask for fewer, or allow longer sentences or the full vocabulary."
            )
        tokens, translated = next(drawn)
        source = " ".join([token.text for token in tokens])
        if source in seen or split_of(source) != split:
            continue
        draws = 0
        seen.add(source)
        found = SentencePair(
            source=source,
            target=" ".join([token.text for token in translated]),
            alignment=align(tokens, translated),
            antecedents=antecedents(tokens),
        )
        pairs.append(written(found) if is_written(source, style=style, seed=seed) else found)
    return pairs


Translated: TypeAlias = tuple[Sequence[LinkedWord], Sequence[LinkedWord]]


def _drawn(
    pair: str, words: WordList, stream: RandomStream, lengths: tuple[int, int], *, contested: float
) -> Iterator[Translated]:
    """Return endless sentences with their translations, of lengths uniform over a range."""
    language = target_language(pair)
    if words == "agreements":
        return _agreements(pair, stream, lengths)
    small = words == "small"
    sampler = Sampler(lexicon(small=small), stream, language, small=small, contested=contested)
    return _sentences(sampler, language, stream, lengths)


def _sentences(
    sampler: Sampler, language: Language, stream: RandomStream, lengths: tuple[int, int]
) -> Iterator[Translated]:
    while True:
        sentence = sampler.sentence(stream.between(*lengths))
        yield english.realise(sentence), language.realise(sentence)


def _agreements(pair: str, stream: RandomStream, lengths: tuple[int, int]) -> Iterator[Translated]:
    """Return events, whose lengths have bounds of their own."""
    if pair != "en-fr":
        raise SettingsError(f'The words "agreements" have French alone, not {pair}; set en-fr.')
    fewest, most = agreements.LENGTHS
    low, high = max(lengths[0], fewest), min(lengths[1], most)
    if low > high:
        raise SettingsError(
            f'Sentences of the words "agreements" have {fewest} to {most} words; '
            f"{lengths[0]} to {lengths[1]} were asked for."
        )
    return _events(agreements.AgreementSampler(stream), stream, (low, high))


def _events(
    sampler: agreements.AgreementSampler, stream: RandomStream, lengths: tuple[int, int]
) -> Iterator[Translated]:
    while True:
        event = sampler.event(stream.between(*lengths))
        yield agreements.english_words(event), agreements.french_words(event)


def write_corpus(
    folder: Path,
    *,
    pair: str,
    size: int,
    valid_size: int = 1000,
    test_size: int = 1000,
    min_words: int = SHORTEST,
    max_words: int = 60,
    words: WordList = "full",
    style: StyleName = "plain",
    seed: int = 1,
) -> dict[SplitName, list[SentencePair]]:
    """Write train, valid and test, each as two line files, `.align` and `.antecedents`."""
    target_language(pair)
    sides = pair.split("-")
    refuse_existing(folder, [*sides, "align", "antecedents"])
    sizes: dict[SplitName, int] = {"train": size, "valid": valid_size, "test": test_size}
    corpora = {
        split: generate(
            pair=pair,
            split=split,
            size=sizes[split],
            min_words=min_words,
            max_words=max_words,
            words=words,
            style=style,
            seed=seed,
        )
        for split in sizes
    }
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in corpora.items():
        write_lines(folder / f"{split}.{sides[0]}", (each.source for each in pairs))
        write_lines(folder / f"{split}.{sides[1]}", (each.target for each in pairs))
        write_lines(
            folder / f"{split}.align", (format_alignment(each.alignment or ()) for each in pairs)
        )
        write_lines(
            folder / f"{split}.antecedents",
            (format_alignment(each.antecedents) for each in pairs),
        )
    return corpora


def refuse_existing(folder: Path, suffixes: Iterable[str]) -> None:
    """Refuse a folder that holds a file which would be overwritten."""
    for split in get_args(SplitName):
        for suffix in suffixes:
            path = folder / f"{split}.{suffix}"
            if path.exists():
                raise RunError(f"{path} exists already. Choose another folder, or remove it first.")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by "\\n" on every platform."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
