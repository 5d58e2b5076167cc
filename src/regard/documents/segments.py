"""Segments through a model: split into sentences, each different sentence translated once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from regard.base.errors import DataError
from regard.base.files import fingerprint
from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import AlignedWord, place_tags
from regard.corpora.formats.placeholders import copied, translatable, without_placeholders
from regard.decoding.constraints.phrases import ImpossibleConstraintsError
from regard.runs.run import RECIPE, Run
from regard.scoring.alignment import Links, format_links
from regard.tasks.translation.model import LoadedTranslator, SentenceTooLongError
from regard.tasks.translation.results import Translation
from regard.text.sentences import LONGEST_SENTENCE, SplitSentence, join_sentences, split_sentences

Kept = TypeVar("Kept")


@runtime_checkable
class AnyDocument(Protocol):
    """A document of any format: its texts, and the file that translations make of it."""

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate."""
        ...

    def filled(self, translations: Sequence[str], /) -> str | bytes:
        """Return the file with these translations."""
        ...


Translate: TypeAlias = Callable[[Sequence[str]], Iterable[tuple[int, Translation]]]

# Errors about one of the sentences; their `index` says which.
SENTENCE_ERRORS = (SentenceTooLongError, ImpossibleConstraintsError)

ENTRIES = 10_000
# Longer sentences hardly ever repeat, and a cache of them could grow large.
LONGEST_KEPT = 500


class SentenceCache(Generic[Kept]):
    """Translates lists of sentences; `keep` takes from a translation what is wanted of it."""

    def __init__(
        self, translate: Translate, keep: Callable[[Translation], Kept], *, entries: int = ENTRIES
    ):
        self._translate = translate
        self._keep = keep
        self._entries = entries
        self._known: OrderedDict[str, Kept] = OrderedDict()

    def __call__(
        self, texts: Sequence[str], *, done: Callable[[float], None] = lambda share: None
    ) -> list[Kept]:
        """Return the results in order; `done` hears each time which share of them is ready."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, []).append(place)
        found = {text: self._known[text] for text in places if text in self._known}
        new = [text for text in places if text not in found]
        ready = len(texts) - sum(len(places[text]) for text in new)
        try:
            for index, translation in self._translate(new):
                found[new[index]] = self._keep(translation)
                ready += len(places[new[index]])
                done(ready / len(texts))
        except SENTENCE_ERRORS as error:
            error.index = places[new[error.index]][0]
            raise
        self._remember(found)
        return [found[text] for text in texts]

    def _remember(self, found: dict[str, Kept]) -> None:
        for text, kept in found.items():
            if len(text) <= LONGEST_KEPT:
                self._known[text] = kept
                self._known.move_to_end(text)
        while len(self._known) > self._entries:
            self._known.popitem(last=False)


def located(
    error: SentenceTooLongError | ImpossibleConstraintsError,
    *,
    path: Path,
    line: int | None,
    what: str,
) -> DataError:
    """Return an error about a sentence as one about a place in a file."""
    if isinstance(error, SentenceTooLongError):
        remedy = "Split it, one sentence a line." if what == "the line" else "Split it."
        return DataError(f"{what} {error.problem}", path=path, line=line, remedy=remedy)
    return DataError(
        error.problem, path=path, line=line, remedy="Ask for less, or change the text."
    )


WORD = re.compile(r"\S+")
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")
# Characters of a line from which on it is taken for a paragraph.
LONG_LINE = 1_000


@dataclass(frozen=True)
class LinkedText:
    """A translation and its links between words of source and target; None if nothing is known."""

    text: str
    links: Links | None


def linked(translation: Translation) -> LinkedText:
    """Return what a document needs of a translation."""
    attention = translation.attention
    return LinkedText(one_line(translation.text), attention.links() if attention else None)


def one_line(text: str) -> str:
    """Return a translation without line breaks, which would shift all lines behind it."""
    return LINE_BREAK.sub(" ", text) if "\n" in text or "\r" in text else text


@dataclass(frozen=True)
class Splitting:
    """When a text is split into sentences: beyond this number of characters, or None for never."""

    beyond: int | None = LONG_LINE
    language: str = ""

    def sentences(self, segment: Segment) -> list[SplitSentence]:
        """Return the sentences of a segment; its outer white space is never translated."""
        text = segment.text
        if self.beyond is not None and len(text) > self.beyond:
            return split_sentences(
                text,
                language=self.language,
                hard_breaks=segment.hard_breaks,
                longest=LONGEST_SENTENCE,
            )
        lines = split_lines(text) if segment.hard_breaks else [SplitSentence(text, "")]
        return [part for line in lines for part in _stripped(line)]


def split_lines(text: str) -> list[SplitSentence]:
    """Return the lines of a text as sentences, with the white space between them."""
    parts = LINE_BREAK.split(text)
    gaps = [*LINE_BREAK.findall(text), ""]
    return [SplitSentence(*both) for both in zip(parts, gaps, strict=True)]


def _stripped(part: SplitSentence) -> list[SplitSentence]:
    text = part.text.strip()
    lead = len(part.text) - len(part.text.lstrip())
    before = [SplitSentence("", part.text[:lead])] if lead else []
    return [*before, SplitSentence(text, part.text[lead + len(text) :] + part.gap)]


def translate_segments(
    segments: Sequence[Segment],
    sentences: SentenceCache[LinkedText],
    splitting: Splitting,
    *,
    done: Callable[[float], None] = lambda share: None,
) -> list[str]:
    """Return the translated segments, written as their formats want them.

    Those in which the model has not copied the placeholders are translated again without them.
    """
    written: dict[int, str] = {}
    wanted = []
    for place, segment in enumerate(segments):
        if segment.protected and not translatable(segment):
            written[place] = copied_segment(segment)
        else:
            wanted.append(place)
    found = _translated([segments[place] for place in wanted], wanted, sentences, splitting, done)
    again = []
    for place, (target, text) in zip(wanted, found, strict=True):
        written[place] = text
        if segments[place].protected and not copied(segments[place], target):
            again.append(place)
    without = [without_placeholders(segments[place]) for place in again]
    for place, (_, text) in zip(
        again, _translated(without, again, sentences, splitting), strict=True
    ):
        written[place] = text
    return [written[place] for place in range(len(segments))]


def copied_segment(segment: Segment) -> str:
    """Return a segment as it is, written as its format wants it."""
    if segment.raw is not None:
        return segment.raw
    parts = [SplitSentence(segment.text, "")]
    return _written(segment, parts, [LinkedText(segment.text, None)])


def _translated(
    segments: Sequence[Segment],
    places: Sequence[int],
    sentences: SentenceCache[LinkedText],
    splitting: Splitting,
    done: Callable[[float], None] = lambda share: None,
) -> list[tuple[str, str]]:
    """Return each translation as plain text and as written; errors name the place of a segment."""
    if not segments:
        return []
    split = SplitSegments.of(segments, splitting)
    try:
        found = sentences(split.sentences, done=done)
    except SENTENCE_ERRORS as error:
        error.index = places[split.segment_of(error.index)]
        raise
    return list(zip(split.targets(found), split.written(found), strict=True))


def translate_lines(given: Sequence[str], translate: Translate, splitting: Splitting) -> list[str]:
    """Return the translation of each line."""
    found = [Segment(line.strip(), line=number) for number, line in enumerate(given, 1)]
    return translate_segments(found, SentenceCache(translate, linked), splitting)


@dataclass(frozen=True)
class SplitSegments:
    """Segments as their sentences, which may be translated in any way and put back."""

    segments: Sequence[Segment]
    parts: list[list[SplitSentence]]

    @classmethod
    def of(cls, segments: Sequence[Segment], splitting: Splitting) -> SplitSegments:
        """Split segments into sentences."""
        return cls(segments, [splitting.sentences(segment) for segment in segments])

    @property
    def sentences(self) -> list[str]:
        """All sentences to translate, in order; none of them is empty."""
        return [one_line(part.text) for parts in self.parts for part in parts if part.text]

    def segment_of(self, sentence: int) -> int:
        """Return which segment a sentence belongs to."""
        owners = [number for number, parts in enumerate(self.parts) for s in parts if s.text]
        return owners[sentence]

    def written(self, translations: Sequence[LinkedText]) -> list[str]:
        """Return the segments with these translations of their sentences."""
        found = iter(translations)
        return [
            _written(segment, parts, [next(found) if s.text else LinkedText("", ()) for s in parts])
            for segment, parts in zip(self.segments, self.parts, strict=True)
        ]

    def targets(self, translations: Sequence[LinkedText]) -> list[str]:
        """Return the plain texts of the same segments."""
        found = iter(translations)
        return [
            _joined(parts, [next(found) if s.text else LinkedText("", ()) for s in parts])
            for parts in self.parts
        ]


def _joined(parts: Sequence[SplitSentence], found: Sequence[LinkedText]) -> str:
    if len(parts) == 1:
        return found[0].text + parts[0].gap
    return join_sentences(parts, [each.text for each in found])


def _written(segment: Segment, parts: Sequence[SplitSentence], found: Sequence[LinkedText]) -> str:
    same = all(one_line(s.text) == each.text for s, each in zip(parts, found, strict=True))
    if segment.raw is not None and same:
        return segment.raw
    target = _joined(parts, found)
    if not segment.tags:
        return segment.arrange(segment.write(target))
    words = _aligned(parts, found, target)
    return segment.arrange(
        place_tags(segment.text, segment.tags, target=target, words=words, write=segment.write)
    )


def _aligned(
    parts: Sequence[SplitSentence], found: Sequence[LinkedText], target: str
) -> list[AlignedWord]:
    """Return the words of the whole target with the characters of the source they stand for."""
    words: list[AlignedWord] = []
    source_start = target_start = 0
    for part, each in zip(parts, found, strict=True):
        target_start = target.index(each.text, target_start)
        words += aligned_words(part.text, each, source_start, target_start)
        source_start += len(part.text) + len(part.gap)
        target_start += len(each.text)
    return words


def aligned_words(
    source: str, found: LinkedText, source_start: int = 0, target_start: int = 0
) -> list[AlignedWord]:
    """Return the words of a sentence; without links each stands for the word at the same share."""
    sources = [(m.start() + source_start, m.end() + source_start) for m in WORD.finditer(source)]
    targets = [m.span() for m in WORD.finditer(found.text)]
    if found.links is None:
        links = {j: j * len(sources) // len(targets) for j in range(len(targets))}
    else:
        links = {j: i for i, j in found.links if i < len(sources)}
    return [
        AlignedWord(
            start + target_start,
            end + target_start,
            sources[links[number]] if number in links and sources else None,
        )
        for number, (start, end) in enumerate(targets)
    ]


BLOCK = 2**20


def translate_document(
    document: AnyDocument,
    translate: Translate,
    *,
    path: Path,
    splitting: Splitting,
    done: Callable[[float], None] = lambda share: None,
) -> str | bytes:
    """Return a document with all its segments translated; everything else stays as it is."""
    segments = document.segments
    try:
        written = translate_segments(
            segments, SentenceCache(translate, linked), splitting, done=done
        )
    except SENTENCE_ERRORS as error:
        line = segments[error.index].line
        raise located(error, path=path, line=line, what="a sentence") from error
    return document.filled(written)


def needs_alignment(document: AnyDocument, model: LoadedTranslator) -> bool:
    """Return whether tags or placeholders are to be placed, by a model that can tell where."""
    return model.attends and any(s.tags or s.protected for s in document.segments)


def run_fingerprint(folder: Path) -> str:
    """Return a digest of all that makes a run translate as it does: recipe, words and weights."""
    weights = Run.open(folder).weights()
    files = [folder / RECIPE, *sorted(folder.glob("source.*")), *sorted(folder.glob("target.*"))]
    return fingerprint([*files, *sorted(weights.glob("model*"))])


def shown_lines(translation: Translation, n_best: int) -> str:
    """Return the lines of one sentence; n-best lists carry their scores, as `score ||| text`."""
    if n_best == 1:
        return translation.text
    every = (translation, *translation.alternatives)
    return "\n".join(f"{each.score:.4f} ||| {each.text}" for each in every)


def alignment_line(translation: Translation) -> str:
    """Return the word alignment of a translation, empty if nothing is known."""
    return format_links(translation.attention.links()) if translation.attention else ""
