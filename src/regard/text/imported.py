"""Tokenizers of imported models: another program's ids, with our special tokens in front.

Search and batches know the special tokens by their fixed ids 0 to 3. A foreign vocabulary is
therefore renumbered once, at the import: its special tokens come first and all others keep their
order. The rows of embedding and output are moved alike, so the model computes what it did. Where
the other program has no such token (or begins an output with its end mark), a row is added.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.base.files import read_json, write_file
from regard.base.special_tokens import BEGIN, END, PAD, SPECIALS, UNKNOWN
from regard.text.splitters import (
    UNKNOWN_TEXT,
    LibrarySplitter,
    ListedPieces,
    SentencePieceSplitter,
    Splitter,
)
from regard.text.vocabulary import surfaces_of_bytes, words_of_surfaces, write_record

CONTINUED = "@@"  # at the end of a subword that does not end its word
WORD_END = "</w>"
FAIRSEQ_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
MOST_WORDS = 50_000  # whose subwords are remembered


class CodesSplitter(Splitter):
    """BPE codes (subword-nmt, Sennrich et al. 2016) and a dictionary of fairseq, a token a line.

    Words are what stands between spaces; the text has been split into words before.
    """

    kind = "bpe-codes"

    def __init__(self, codes: bytes, dictionary: bytes):
        self._files = {"codes": codes, "dict.txt": dictionary}
        self._ranks, self._old = _merges(codes)
        self._ids = vocabulary_of_dictionary(dictionary)
        self._tokens = list(self._ids)
        self._words: dict[str, list[str]] = {}

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self._tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the subwords of each word."""
        words = (word for word in text.strip("\r\n ").split(" ") if word)
        subwords = " ".join(" ".join(self._split(word)) for word in words)
        unknown = FAIRSEQ_SPECIALS.index(UNKNOWN_TEXT)
        return [self._ids.get(token, unknown) for token in subwords.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words, joined by spaces."""
        text = " ".join(self._tokens[number] for number in ids)
        return f"{text} ".replace(f"{CONTINUED} ", "").strip()

    def token(self, number: int) -> str:
        """Return the token of an id."""
        return self._tokens[number]

    def surface(self, number: int) -> bytes:
        """Return the subword; the space stands after the word."""
        token = self._tokens[number]
        if token.endswith(CONTINUED):
            return token.removesuffix(CONTINUED).encode()
        return f"{token} ".encode()

    def find(self, token: str) -> int | None:
        """Return the id of a token."""
        return self._ids.get(token)

    def files(self) -> dict[str, bytes]:
        """Return both files as they were."""
        return dict(self._files)

    @classmethod
    def load(cls, files: Mapping[str, bytes]) -> CodesSplitter:
        """Return the splitter of these files."""
        return cls(files["codes"], files["dict.txt"])

    def _split(self, word: str) -> list[str]:
        if word not in self._words:
            if len(self._words) >= MOST_WORDS:
                self._words.clear()
            self._words[word] = self._merged(word)
        return self._words[word]

    def _merged(self, word: str) -> list[str]:
        """Return the subwords of a word: the pair that was learned first is joined first."""
        parts = [*word, WORD_END] if self._old else [*word[:-1], word[-1] + WORD_END]
        last = len(self._ranks)
        while len(parts) > 1:
            best = min(itertools.pairwise(parts), key=lambda pair: self._ranks.get(pair, last))
            if best not in self._ranks:
                break
            joined: list[str] = []
            for part in parts:
                if joined and (joined[-1], part) == best:
                    joined[-1] += part
                else:
                    joined.append(part)
            parts = joined
        if parts[-1] == WORD_END:
            parts = parts[:-1]
        parts[-1] = parts[-1].removesuffix(WORD_END)
        return [*(part + CONTINUED for part in parts[:-1]), parts[-1]]


def vocabulary_of_dictionary(dictionary: bytes) -> dict[str, int]:
    """Return the ids of a fairseq dictionary, a token and its count a line, after its specials."""
    tokens = list(FAIRSEQ_SPECIALS)
    lines = dictionary.decode("utf-8").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        token, space, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not (token and space and count.lstrip("-").isdigit()):
            raise ValueError(f"line {number} of the dictionary is not a token and its count")
        tokens.append(token)
    ids = {token: number for number, token in enumerate(tokens)}
    if len(ids) != len(tokens):
        raise ValueError("the dictionary lists a token twice")
    return ids


def _merges(codes: bytes) -> tuple[dict[tuple[str, str], int], bool]:
    """Return the rank of each pair, and whether the file is of version 0.1."""
    first, *lines = codes.decode("utf-8").split("\n")
    old = not first.startswith("#version:") or first.split(":")[1].strip() == "0.1"
    if not first.startswith("#version:"):
        lines = [first, *lines]
    ranks: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines):
        pair = line.strip("\r\n ").split(" ")
        if len(pair) == 2:
            ranks.setdefault((pair[0], pair[1]), number)
        elif line.strip():
            raise ValueError(f"{line!r} is not a pair of two subwords")
    return ranks, old


SPLITTERS: dict[str, type[Splitter]] = {
    SentencePieceSplitter.kind: SentencePieceSplitter,
    ListedPieces.kind: ListedPieces,
    CodesSplitter.kind: CodesSplitter,
    LibrarySplitter.kind: LibrarySplitter,
}


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """Which ids of another program have a special role; `begin` is what a decoder reads first."""

    size: int
    pad: int | None = None
    unknown: int | None = None
    begin: int | None = None
    end: int | None = None
    ends: tuple[int, ...] = ()
    """Further ids that end a text, of a language model."""
    identity: bool = False
    """Whether ids stay as they are: those of a language model, which has no fixed ones."""

    @cached_property
    def theirs(self) -> tuple[int, ...]:
        """Their id of each of ours; -1 where they have no such token.

        A decoder that begins with the padding has that as our begin. One that begins with the end
        mark has the end mark twice: a row for the begin is added.
        """
        if self.identity:
            return tuple(range(self.size))
        pad = None if self.pad == self.begin else self.pad
        roles = [pad, self.unknown, self.begin, self.end]
        chosen = [-1 if number is None else number for number in roles]
        others = (number for number in range(self.size) if number not in chosen)
        return (*chosen, *others)

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """Their row of the output for each of our ids: a row that was added is never chosen."""
        if self.identity or self.theirs[BEGIN] != self.theirs[END]:
            return self.theirs
        return (*self.theirs[:BEGIN], -1, *self.theirs[BEGIN + 1 :])

    @cached_property
    def ours(self) -> dict[int, int]:
        """Our id of each of theirs."""
        return {theirs: ours for ours, theirs in enumerate(self.theirs) if theirs >= 0}

    @property
    def never(self) -> tuple[int, ...]:
        """Our ids that the other program does not have, so that they must not be chosen."""
        return tuple(ours for ours, theirs in enumerate(self.chosen) if theirs < 0)


class ImportedTokenizer:
    """A foreign splitter behind our ids.

    `prefix` are tokens before every text, by their names there: a language tag, or a begin mark.
    On the target side an output is made to begin with them. `suffix` are tokens after every text,
    as BERT has one.
    """

    def __init__(
        self,
        splitter: Splitter,
        numbering: Numbering,
        *,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
    ):
        self.splitter = splitter
        self.numbering = numbering
        self.prefix, self.suffix = tuple(prefix), tuple(suffix)
        self.opening = self._ids_of(self.prefix)
        """Our ids of the prefix."""
        self.closing = self._ids_of(self.suffix)
        """Our ids of the suffix."""

    def _ids_of(self, tokens: Sequence[str]) -> tuple[int, ...]:
        found = []
        for token in tokens:
            number = self.splitter.find(token)
            if number is None:
                raise RunError(f"The vocabulary has no token {token!r}.")
            found.append(self.numbering.ours[number])
        return tuple(found)

    @property
    def plain(self) -> ImportedTokenizer:
        """The same without a prefix, for words inside a text."""
        return ImportedTokenizer(self.splitter, self.numbering)

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self.numbering.theirs)

    @property
    def end(self) -> int | None:
        """The id that ends a text."""
        return self.numbering.end if self.numbering.identity else END

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids that end a text: most models have one."""
        return () if self.end is None else (self.end, *self.numbering.ends)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text between prefix and suffix, without begin and end tokens."""
        ours = self.numbering.ours
        unknown = ours.get(-1 if self.numbering.unknown is None else self.numbering.unknown)
        ids = (ours.get(number, unknown) for number in self.splitter.encode(text))
        known = (number for number in ids if number is not None)
        return [*self.opening, *known, *self.closing]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids, without special tokens except the unknown one."""
        return self.splitter.decode(
            [self.numbering.theirs[number] for number in ids if not self._is_silent(number)]
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as readable text."""
        return [self._label(number) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        silent = [self._is_silent(number) for number in ids]
        theirs = [self.numbering.theirs[number] for number in ids]
        surfaces = [
            b"" if quiet else self.splitter.surface(number)
            for number, quiet in zip(theirs, silent, strict=True)
        ]
        return words_of_surfaces(surfaces_of_bytes(surfaces))

    def save(self, folder: Path, name: str) -> None:
        """Write the splitter's own files as `folder/name.*`, and `folder/name.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        files = self.splitter.files()
        for ending, content in files.items():
            write_file(folder / f"{name}.{ending}", content)
        record: dict[str, Any] = {
            "kind": "imported",
            "splitter": self.splitter.kind,
            "numbering": asdict(self.numbering),
            "prefix": list(self.prefix),
            "suffix": list(self.suffix),
            "files": {ending: _digest(content) for ending, content in files.items()},
        }
        write_record(folder, name, record)

    @classmethod
    def load(cls, folder: Path, name: str) -> ImportedTokenizer:
        """Return the tokenizer that `save` wrote; raise RunError if it is missing or damaged."""
        path = folder / f"{name}.json"
        record = read_json(path, owner="tokenizer")
        try:
            kind = SPLITTERS[record["splitter"]]
            content = {
                ending: _checked(folder / f"{name}.{ending}", str(digest), record=path)
                for ending, digest in record["files"].items()
                if ending in ENDINGS
            }
            splitter = kind.load(content)
            numbers = record["numbering"]
            numbering = Numbering(**{**numbers, "ends": tuple(numbers.get("ends", ()))})
            _require_numbers(numbering, splitter)
            marks = {side: list(map(str, record.get(side, ()))) for side in ("prefix", "suffix")}
            return cls(splitter, numbering, **marks)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{path} does not describe an imported tokenizer: {error}") from None

    def _is_silent(self, number: int) -> bool:
        """Whether an id adds no text: special tokens other than the unknown one, and the prefix."""
        if self.numbering.identity:
            return number in self.opening or number in self.closing
        return (number < len(SPECIALS) and number != UNKNOWN) or number in self._silent

    @cached_property
    def _silent(self) -> set[int]:
        """Further ids without text: a begin mark that is not our begin, and the prefix."""
        found = [self.splitter.find(token) for token in ("<s>", "</s>", "<pad>")]
        return {*self.opening, *(self.numbering.ours[n] for n in found if n in self.numbering.ours)}

    def _label(self, number: int) -> str:
        if not self.numbering.identity and number in (PAD, UNKNOWN, BEGIN, END):
            return SPECIALS[number]
        return self.splitter.label(self.numbering.theirs[number])


ENDINGS = ("model", "vocab.json", "codes", "dict.txt", "tokenizer.json")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checked(path: Path, digest: str, *, record: Path) -> bytes:
    """Return a file's content, which must be what the record names."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"{path} is missing, so the tokenizer cannot be read") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    if _digest(content) != digest:
        raise RunError(f"{path} is incomplete or changed: it is not the file that {record} names")
    return content


def _require_numbers(numbering: Numbering, splitter: Splitter) -> None:
    special = (
        numbering.pad,
        numbering.unknown,
        numbering.begin,
        numbering.end,
        *numbering.ends,
    )
    if type(numbering.size) is not int or not 0 < numbering.size <= 10 * splitter.size + 1_000:
        raise ValueError(f"a vocabulary of {numbering.size} entries")
    for number in special:
        if number is not None and (type(number) is not int or not 0 <= number < numbering.size):
            raise ValueError(f"a special token has the id {number!r}")
