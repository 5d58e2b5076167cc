"""The byte-level BPE tokenizer of GPT-2 (Radford et al. 2019, section 2.2).

Text is encoded as UTF-8 bytes, and frequent pairs of tokens are merged. The package `tokenizers` of
Hugging Face (the extra `gpt2`) does the work; it is imported on first use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_file
from regard.text.vocabulary import (
    NORMALISATIONS,
    Normalisation,
    form_of_record,
    record_of,
    surfaces_of_bytes,
    visible,
    words_of_surfaces,
    write_record,
)

END_OF_TEXT = "<|endoftext|>"
LEAST = 256 + 1  # every byte, and the end of a text
VERSION = "#version: 0.2"

Merge = tuple[str, str]


class ByteBpeTokenizer:
    """The ids of GPT-2's `vocab.json`; decoding gives back exactly the encoded text.

    Unlike in the other vocabularies, the first four ids are not special tokens. The only special
    token is "<|endoftext|>", which separates texts. In a text it is ordinary text.
    """

    def __init__(
        self,
        *,
        vocabulary: Mapping[str, int],
        merges: Sequence[Merge],
        normalise: Normalisation = "none",
    ):
        self.vocabulary = dict(vocabulary)
        self.normalise = normalise
        self.merges = tuple(merges)
        if sorted(self.vocabulary.values()) != list(range(len(self.vocabulary))):
            raise ValueError("the ids of a vocabulary must be 0, 1, 2 and so on")
        self._encoder = _encoder(_library(), self.vocabulary, self.merges)

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int, normalise: Normalisation = "none"
    ) -> ByteBpeTokenizer:
        """Return a tokenizer of up to `size` entries; a small text may support fewer."""
        if size < LEAST:
            raise SettingsError(
                f"a byte-level vocabulary of {size} entries is too small for the 256 bytes and the "
                f"end of a text; the size must be at least {LEAST}"
            )
        tokenizers = _library()
        learner = tokenizers.Tokenizer(tokenizers.models.BPE())
        learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size - 1,
            initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        normalised = (NORMALISATIONS[normalise](text) for text in texts)
        learner.train_from_iterator(normalised, trainer=trainer)
        learned = json.loads(learner.to_str())["model"]
        if not learned["merges"]:
            raise SettingsError("there is no text to learn a byte-level vocabulary from")
        vocabulary = learned["vocab"] | {END_OF_TEXT: len(learned["vocab"])}
        merges = [(a, b) for a, b in learned["merges"]]
        return cls(vocabulary=vocabulary, merges=merges, normalise=normalise)

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        return len(self.vocabulary)

    @property
    def end(self) -> int | None:
        """The id that separates texts, if there is one."""
        return self.vocabulary.get(END_OF_TEXT)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids: list[int] = self._encoder.encode(NORMALISATIONS[self.normalise](text)).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; an incomplete letter becomes the replacement character."""
        return b"".join([self._bytes[number] for number in ids]).decode("utf-8", errors="replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as readable text, with whitespace made visible."""
        return [visible(self._bytes[number].decode("utf-8", errors="replace")) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        return words_of_surfaces(surfaces_of_bytes([self._bytes[number] for number in ids]))

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/name.vocab.json` and `folder/name.merges.txt`, and `folder/name.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.write_files(folder / f"{name}.vocab.json", folder / f"{name}.merges.txt")
        record = {"kind": "byte-bpe", **record_of(self.normalise)}
        write_record(folder, name, record)

    def write_files(self, vocabulary: Path, merges: Path) -> None:
        """Write the two files in the format of GPT-2."""
        text = json.dumps(self.vocabulary, ensure_ascii=False)
        write_file(vocabulary, text + "\n")
        lines = [VERSION, *(f"{first} {second}" for first, second in self.merges)]
        write_file(merges, "\n".join(lines) + "\n")

    def description(
        self,
        *,
        specials: Sequence[str] = (),
        around: tuple[str, str] | None = None,
    ) -> str:
        """Return the tokenizer as one file of the package `tokenizers`, `tokenizer.json`.

        `specials` are further special tokens, and `around` stand before and after every text.
        """
        library = _library()
        encoder = _encoder(library, self.vocabulary, self.merges)
        encoder.decoder = library.decoders.ByteLevel()
        if self.normalise == "nfc":
            encoder.normalizer = library.normalizers.NFC()
        if self.end is not None:
            encoder.add_special_tokens([library.AddedToken(END_OF_TEXT, normalized=False)])
        encoder.add_special_tokens(list(specials))
        if around is not None and all(name in self.vocabulary for name in around):
            encoder.post_processor = library.processors.TemplateProcessing(
                single=f"{around[0]} $A {around[1]}",
                special_tokens=[(name, self.vocabulary[name]) for name in around],
            )
        text: str = encoder.to_str()
        return text

    @classmethod
    def load(cls, folder: Path, name: str) -> ByteBpeTokenizer:
        """Return the tokenizer that `save` wrote."""
        found = cls.read_files(folder / f"{name}.vocab.json", folder / f"{name}.merges.txt")
        found.normalise = form_of_record(folder, name)
        return found

    @classmethod
    def read_files(cls, vocabulary: Path, merges: Path) -> ByteBpeTokenizer:
        """Return the tokenizer of GPT-2's two files; raise RunError if one is damaged."""
        try:
            entries = json.loads(_text(vocabulary))
            if not isinstance(entries, dict) or not all(
                isinstance(number, int) for number in entries.values()
            ):
                raise ValueError("it is not a table of ids")
        except ValueError as error:
            raise RunError(f"{vocabulary} is not a GPT-2 vocabulary: {error}") from None
        pairs = []
        for number, line in enumerate(_text(merges).split("\n"), 1):
            if not line or (number == 1 and line.startswith("#version")):
                continue
            first, space, second = line.partition(" ")
            if not (first and space and second) or " " in second:
                raise RunError(f"{merges}, line {number}: {line!r} is not a pair of two pieces.")
            pairs.append((first, second))
        try:
            return cls(vocabulary=entries, merges=pairs)
        except ValueError as error:
            raise RunError(f"{vocabulary} and {merges.name} do not fit: {error}") from None

    @cached_property
    def _bytes(self) -> list[bytes]:
        """The UTF-8 bytes of each id."""
        values = byte_letters()
        ordered = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        return [b"" if piece == END_OF_TEXT else bytes_of_piece(piece, values) for piece in ordered]


def byte_letters() -> dict[str, int]:
    """Return the byte of each letter that GPT-2 writes tokens with.

    A byte that is a visible character of Latin-1 is written as that character. The others are
    written, in order, as the characters from 256 on.
    """
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + n): b for n, b in enumerate(hidden)}


def bytes_of_piece(piece: str, values: Mapping[str, int]) -> bytes:
    """Return the bytes of a token; a token that was added as plain text stands for that text."""
    if all(letter in values for letter in piece):
        return bytes(values[letter] for letter in piece)
    return piece.encode()


def _encoder(tokenizers: Any, vocabulary: Mapping[str, int], merges: Sequence[Merge]) -> Any:
    try:
        model = tokenizers.models.BPE(vocab=dict(vocabulary), merges=list(merges))
    except Exception as error:  # the library raises plain exceptions
        raise ValueError(str(error)) from None
    encoder = tokenizers.Tokenizer(model)
    encoder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoder


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise SettingsError(
            "Byte-level BPE needs the package `tokenizers`: pip install tokenizers"
        ) from error
    return tokenizers


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunError(f"{path} is missing, so the tokenizer cannot be read") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RunError(f"{path} is not UTF-8 text") from None
