"""BPE codes and a dictionary, as subword-nmt and fairseq have them (Sennrich et al. 2016)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from regard.text.splitters import UNKNOWN_TEXT, Splitter

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
