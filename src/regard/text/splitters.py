"""How other programs split text: SentencePiece, and the `tokenizer.json` of Hugging Face.

A splitter gives the ids of the program it is from, with its own normaliser. It knows nothing of
our special tokens; `text.imported` makes a tokenizer of it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

import sentencepiece

from regard.base.budgets import parse_json
from regard.base.errors import RunError, SettingsError
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.text.byte_bpe import byte_letters, bytes_of_piece
from regard.text.vocabulary import visible

SPACE_MARK = "▁"
WORD_PIECE_SPECIALS = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
UNKNOWN_TEXT = SPECIALS[UNKNOWN]


class Splitter(ABC):
    """Text to the ids of another program, and back."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of ids."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without marks at its begin and end."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids that are not special."""

    @abstractmethod
    def token(self, number: int) -> str:
        """Return the name of an id, as the other program writes it."""

    @abstractmethod
    def surface(self, number: int) -> bytes:
        """Return the UTF-8 bytes that an id adds to a text, with the space before a word."""

    @abstractmethod
    def find(self, token: str) -> int | None:
        """Return the id of a token by its name, as "</s>"; None if there is none."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Return the files that it is made of, by the endings of their names."""

    @classmethod
    @abstractmethod
    def load(cls, files: Mapping[str, bytes]) -> Splitter:
        """Return the splitter of these files; raise ValueError if one is damaged."""

    def label(self, number: int) -> str:
        """Return an id as readable text, as a heat map shows it."""
        return visible(self.token(number))

    def added_tokens(self) -> list[str]:
        """Return tokens that a list names besides the pieces, as marks of languages."""
        return []


class SentencePieceSplitter(Splitter):
    """A SentencePiece model as it is, with any ids; a vocabulary may number its pieces anew.

    With a vocabulary, as MarianMT has one, a language tag (">>fra<<") at the begin of a text is a
    token, and a piece that is not listed is unknown.
    """

    kind = "sentencepiece"
    tagged: ClassVar[bool] = True
    """Whether a text may begin with a language tag, where there is a vocabulary."""

    def __init__(self, model: bytes, vocabulary: Mapping[str, int] | None = None):
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.load_from_serialized_proto(model)
        except RuntimeError as error:
            raise ValueError(f"not a SentencePiece model: {error}") from None
        self.vocabulary = None if vocabulary is None else dict(vocabulary)
        if vocabulary is not None and UNKNOWN_TEXT not in vocabulary:
            raise ValueError(f"the vocabulary has no {UNKNOWN_TEXT}")

    @property
    def size(self) -> int:
        """The number of ids."""
        if self.vocabulary is None:
            return len(self.processor)
        return max(self.vocabulary.values()) + 1

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids: list[int]
        if self.vocabulary is None:
            ids = self.processor.encode(text)
            return ids
        tag = ""
        if self.tagged and text.startswith(">>") and "<<" in text:
            tag, _, text = text.partition("<<")
            tag += "<<"
        unknown = self.vocabulary[UNKNOWN_TEXT]
        pieces: list[str] = [*([tag] if tag else []), *self.processor.encode(text, out_type=str)]
        return [self.vocabulary.get(piece, unknown) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids."""
        pieces = [self.token(number) for number in ids]
        text: str = self.processor.decode(pieces)
        if UNKNOWN_TEXT in pieces:  # else "⁇" is what was written
            text = text.replace(" ⁇ ", f" {UNKNOWN_TEXT} ")
        return text.strip()

    def token(self, number: int) -> str:
        """Return the piece of an id."""
        if self._tokens is None:
            if number >= len(self.processor):  # a row that no piece uses
                return UNKNOWN_TEXT
            piece: str = self.processor.id_to_piece(number)
            return piece
        return self._tokens.get(number, UNKNOWN_TEXT)

    def surface(self, number: int) -> bytes:
        """Return the bytes of a piece; control pieces have none."""
        piece = self.token(number)
        known = self.processor.piece_to_id(piece)
        if known == self.processor.unk_id():
            listed = self.vocabulary is not None and piece != UNKNOWN_TEXT
            return piece.replace(SPACE_MARK, " ").encode() if listed else UNKNOWN_TEXT.encode()
        if self.processor.is_control(known):
            return b""
        if self.processor.is_byte(known):
            return bytes([int(piece[3:5], base=16)])
        return piece.replace(SPACE_MARK, " ").encode()

    def find(self, token: str) -> int | None:
        """Return the id of a piece."""
        if self.vocabulary is not None:
            return self.vocabulary.get(token)
        number: int = self.processor.piece_to_id(token)
        unknown = number == self.processor.unk_id() and token != self.processor.id_to_piece(number)
        return None if unknown else number

    def files(self) -> dict[str, bytes]:
        """Return the model and, if there is one, the vocabulary."""
        files = {"model": self.model}
        if self.vocabulary is not None:
            files["vocab.json"] = json.dumps(self.vocabulary, ensure_ascii=False).encode()
        return files

    @classmethod
    def load(cls, files: Mapping[str, bytes]) -> SentencePieceSplitter:
        """Return the splitter of these files."""
        vocabulary = files.get("vocab.json")
        return cls(files["model"], None if vocabulary is None else ids_of_json(vocabulary))

    def added_tokens(self) -> list[str]:
        """Return the entries of the vocabulary."""
        return list(self.vocabulary or ())

    @cached_property
    def _tokens(self) -> dict[int, str] | None:
        if self.vocabulary is None:
            return None
        return {number: token for token, number in self.vocabulary.items()}


class ListedPieces(SentencePieceSplitter):
    """A SentencePiece model with a vocabulary and without tags in texts (fairseq, M2M100)."""

    kind = "sentencepiece-listed"
    tagged = False


class LibrarySplitter(Splitter):
    """A `tokenizer.json` of Hugging Face, read by their package `tokenizers`."""

    kind = "tokenizer-json"

    def __init__(self, description: bytes):
        self._description = description
        tokenizers = _library()
        try:
            with _telling_panics():
                self.library = tokenizers.Tokenizer.from_str(description.decode("utf-8"))
                self._decoder = str(json.loads(self.library.to_str()).get("decoder"))
        except RunError:
            raise
        except Exception as error:  # the library raises plain exceptions
            raise ValueError(f"not a tokenizer.json: {error}") from None
        self.library.no_truncation()
        self.library.no_padding()

    @classmethod
    def of_word_pieces(
        cls, pieces: Sequence[str], *, lowercase: bool, strip_accents: bool | None = None
    ) -> LibrarySplitter:
        """Return BERT's splitter of a list of pieces, whose places are the ids."""
        library = _library()
        ids = {piece: number for number, piece in enumerate(pieces)}
        specials = [name for name in WORD_PIECE_SPECIALS if name in ids]
        if len(specials) < len(WORD_PIECE_SPECIALS):
            lacking = [name for name in WORD_PIECE_SPECIALS if name not in ids]
            raise ValueError(f"the list of pieces has no {', '.join(lacking)}")
        made = library.Tokenizer(library.models.WordPiece(ids, unk_token=specials[0]))
        made.normalizer = library.normalizers.BertNormalizer(
            lowercase=lowercase, strip_accents=strip_accents
        )
        made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        made.decoder = library.decoders.WordPiece()
        made.add_special_tokens(specials)
        begin, end = WORD_PIECE_SPECIALS[1:3]
        made.post_processor = library.processors.TemplateProcessing(
            single=f"{begin} $A {end}", special_tokens=[(name, ids[name]) for name in (begin, end)]
        )
        return cls(made.to_str().encode())

    @cached_property
    def size(self) -> int:
        """The number of ids, up to the greatest."""
        return 1 + int(max(self.library.get_vocab(with_added_tokens=True).values()))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        with _telling_panics():
            ids: list[int] = self.library.encode(text, add_special_tokens=False).ids
        return ids

    def marks(self) -> tuple[list[int], list[int]]:
        """Return the ids that the model wants before and after a text."""
        bare = self.encode("a")
        whole: list[int] = self.library.encode("a", add_special_tokens=True).ids
        places = (n for n in range(len(whole)) if bare and whole[n : n + len(bare)] == bare)
        begin = next(places, None)
        if begin is None:
            raise RunError("The tokenizer.json puts no marks around a text that could be found.")
        return whole[:begin], whole[begin + len(bare) :]

    def added_tokens(self) -> list[str]:
        """Return the tokens that the file adds to those of its model."""
        return [token.content for token in self.library.get_added_tokens_decoder().values()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids."""
        with _telling_panics():
            text: str = self.library.decode(list(ids), skip_special_tokens=False)
        return text

    def token(self, number: int) -> str:
        """Return the token of an id."""
        return self.library.id_to_token(number) or UNKNOWN_TEXT

    def surface(self, number: int) -> bytes:
        """Return the bytes that a token adds, by the kind of its decoder."""
        token = self.token(number)
        if "ByteLevel" in self._decoder:
            return bytes_of_piece(token, self._letters)
        if "WordPiece" in self._decoder:
            return (token.removeprefix("##") if token.startswith("##") else f" {token}").encode()
        if token.startswith("<0x") and len(token) == 6:
            return bytes([int(token[3:5], base=16)])
        return token.replace(SPACE_MARK, " ").encode()

    def label(self, number: int) -> str:
        """Return a token as readable text."""
        if "ByteLevel" in self._decoder:
            return visible(self.surface(number).decode("utf-8", errors="replace"))
        return visible(self.token(number))

    def find(self, token: str) -> int | None:
        """Return the id of a token."""
        number: int | None = self.library.token_to_id(token)
        return number

    def files(self) -> dict[str, bytes]:
        """Return the description as it was."""
        return {"tokenizer.json": self._description}

    @classmethod
    def load(cls, files: Mapping[str, bytes]) -> LibrarySplitter:
        """Return the splitter of this file."""
        return cls(files["tokenizer.json"])

    @cached_property
    def _letters(self) -> dict[str, int]:
        return byte_letters()


def ids_of_json(content: bytes) -> dict[str, int]:
    """Return a vocabulary of tokens and ids; raise ValueError if it is none."""
    table = parse_json(content)
    if not isinstance(table, dict) or not table:
        raise ValueError("the vocabulary is not a table of ids")
    if not all(type(number) is int and number >= 0 for number in table.values()):
        raise ValueError("the vocabulary has an id that is not a number")
    if max(table.values()) > 100 * len(table):
        raise ValueError(f"the vocabulary has the id {max(table.values())}")
    return table


AnySplitter = TypeVar("AnySplitter", bound=Splitter)


@contextmanager
def _telling_panics() -> Iterator[None]:
    """Turn a panic of the library, which no `except Exception` catches, into a RunError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RunError(f"This tokenizer.json contradicts itself: {error}.") from None


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise SettingsError(
            "A tokenizer.json needs the package `tokenizers`: pip install tokenizers"
        ) from error
    return tokenizers


def read_splitter(
    kind: type[AnySplitter], files: Mapping[str, Any], *, origin: object
) -> AnySplitter:
    """Return the splitter of these files, given as paths; a damaged one is a RunError."""
    content = {}
    for name, path in files.items():
        try:
            content[name] = path.read_bytes()
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return cast(AnySplitter, kind.load(content))
    except (ValueError, KeyError) as error:
        raise RunError(f"{origin}: {error}.") from None
