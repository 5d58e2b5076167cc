"""A SentencePiece tokenizer: subwords, with a fallback to bytes."""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Literal

import sentencepiece

from regard.base.errors import RunError, SettingsError
from regard.base.files import read_json, write_file
from regard.base.special_tokens import BEGIN, END, PAD, SPECIALS, UNKNOWN
from regard.text import vocabulary
from regard.text.segmentation import SegmentationSampler

ModelType = Literal["unigram", "bpe"]

# SentencePiece writes a space as this character, so the character itself is encoded as bytes.
SPACE_MARK = "▁"
# Longer texts add memory but no more subwords.
LONGEST_TEXT_BYTES = 65_536
# Fixed, because the result of the training depends on the number of threads.
THREADS = 4


class SentencePieceTokenizer:
    """The subwords of a SentencePiece model; decoding gives back exactly the encoded text.

    Kudo and Richardson 2018 (SentencePiece), Kudo 2018 (unigram), Sennrich et al. 2016 (BPE).
    Text is normalised only if `normalise` says so, the first word of a text has the same tokens as
    in mid-sentence, and characters outside the vocabulary are encoded as UTF-8 bytes, so no text is
    unknown.
    """

    def __init__(self, model: bytes, *, normalise: vocabulary.Normalisation = "none"):
        self.model = model
        self.normalise = normalise
        self._processor = _processor(model)
        self._bytes = [self._bytes_of(number) for number in range(len(self._processor))]
        self._first_byte = self._processor.piece_to_id("<0x00>")
        self._samplers: dict[float, SegmentationSampler] = {}

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        size: int,
        model_type: ModelType = "unigram",
        character_coverage: float = 1.0,
        normalise: vocabulary.Normalisation = "none",
    ) -> SentencePieceTokenizer:
        """Return a tokenizer of at most `size` entries; a small corpus may support fewer.

        `character_coverage` is the share of the text that the characters of the vocabulary cover;
        rarer characters are encoded as bytes (0.9995 suits Chinese and Japanese). The same texts in
        the same order give the same model.
        """
        if not 0.98 <= character_coverage <= 1:
            raise SettingsError(
                f"character_coverage ({character_coverage}) must lie between 0.98 and 1"
            )
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(
                    vocabulary.NORMALISATIONS[normalise](text) for text in texts if text.strip()
                ),
                model_writer=model,
                model_type=model_type,
                vocab_size=size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                byte_fallback=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                max_sentence_length=LONGEST_TEXT_BYTES,
                num_threads=THREADS,
                minloglevel=2,
                **_special_options(),
            )
        except RuntimeError as error:
            raise SettingsError(_training_problem(str(error), size)) from None
        return cls(model.getvalue(), normalise=normalise)

    def extended(self, texts: Iterable[str], *, size: int) -> SentencePieceTokenizer:
        """Return a tokenizer of at most `size` entries with subwords of these texts added.

        Known ids do not change. The new subwords are those of a model trained on these texts
        alone: first its characters, then its most likely subwords, each with its score there.
        """
        if size <= self.size:
            return self
        fresh = self.train(texts, size=size, normalise=self.normalise)._likelihoods()
        known = self._likelihoods()
        added = sorted(fresh.keys() - known.keys(), key=lambda x: (len(x) > 1, -fresh[x], x))
        entries = (_entry(piece, fresh[piece]) for piece in added[: size - self.size])
        # Concatenated protocol buffers are read as one, with the entries of both.
        return type(self)(b"".join([self.model, *entries]), normalise=self.normalise)

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end tokens."""
        first, *others = vocabulary.NORMALISATIONS[self.normalise](text).split(SPACE_MARK)
        ids: list[int] = self._processor.encode(first)
        if others:
            mark = [self._first_byte + byte for byte in SPACE_MARK.encode()]
            for other in others:
                ids += mark + self._continuation.encode(other)
        return ids

    def sample(self, texts: Sequence[str], *, alpha: float, seed: int) -> list[list[int]]:
        """Return the ids of each text for a random segmentation (subword regularisation).

        Kudo 2018, section 3.3, over all segmentations: the larger `alpha`, the more often a likely
        one is drawn. The ids are a function of the texts, alpha and the seed, in every process.
        """
        sampler, random = self._sampler(alpha), Random(seed)
        sampled = []
        for each in texts:
            text = vocabulary.NORMALISATIONS[self.normalise](each)
            if not text or SPACE_MARK in text:  # encoded as bytes, for which there is only one way
                sampled.append(self.encode(each))
            else:
                marked = SPACE_MARK + text.replace(" ", SPACE_MARK)
                sampled.append(sampler.draw(marked, random))
        return sampled

    def _sampler(self, alpha: float) -> SegmentationSampler:
        """Return the sampler of this alpha, which keeps what it has computed."""
        if alpha not in self._samplers:
            scores = self._likelihoods()
            if all(score == int(score) for score in scores.values()):
                raise SettingsError(
                    "Subword sampling needs a unigram vocabulary: this one was made by BPE, whose "
                    "subwords have no probabilities."
                )
            self._samplers[alpha] = SegmentationSampler(
                scores,
                {piece: self._processor.piece_to_id(piece) for piece in scores},
                mark=SPACE_MARK,
                first_byte=self._first_byte,
                alpha=alpha,
            )
        return self._samplers[alpha]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids, without special tokens except the unknown one."""
        text = b"".join([self._bytes[number] for number in ids])
        return text.removeprefix(b" ").decode("utf-8", errors="replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as readable text: "▁" begins a word, "<0xE2>" is a byte."""
        return [vocabulary.visible(self._processor.id_to_piece(number)) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        return vocabulary.words_of_surfaces(
            vocabulary.surfaces_of_bytes([self._bytes[number] for number in ids])
        )

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/name.model`, which SentencePiece can read, and `folder/name.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / f"{name}.model", self.model)
        record = {"kind": "sentencepiece", **vocabulary.record_of(self.normalise)}
        digest = hashlib.sha256(self.model).hexdigest()
        vocabulary.write_record(folder, name, record | {"sha256": digest})

    @classmethod
    def load(cls, folder: Path, name: str) -> SentencePieceTokenizer:
        """Return the tokenizer that `save` wrote; raise RunError if it is missing or damaged."""
        record = read_json(folder / f"{name}.json", owner="tokenizer")
        digest = record.get("sha256")
        path = folder / f"{name}.model"
        try:
            model = path.read_bytes()
        except FileNotFoundError:
            raise RunError(f"{path} is missing, so the tokenizer cannot be read") from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        if hashlib.sha256(model).hexdigest() != digest:
            raise RunError(
                f"{path} is incomplete or changed: it is not the model that {name}.json names"
            )
        try:
            return cls(model, normalise=record.get(vocabulary.NORMALISE, "none"))
        except (RuntimeError, ValueError) as error:
            raise RunError(f"{path} is not a SentencePiece model for Regard: {error}") from None

    @cached_property
    def _continuation(self) -> Any:
        """The same model for text that continues a word."""
        processor = _processor(self.model)
        processor.override_normalizer_spec(add_dummy_prefix=False)
        return processor

    def _likelihoods(self) -> dict[str, float]:
        """Return the subwords, without special tokens and bytes, and their scores."""
        processor = self._processor
        return {
            processor.id_to_piece(number): processor.get_score(number)
            for number in range(self.size)
            if number != UNKNOWN and not (processor.is_control(number) or processor.is_byte(number))
        }

    def _bytes_of(self, number: int) -> bytes:
        """Return the UTF-8 bytes of a token."""
        processor = self._processor
        if processor.is_byte(number):
            return bytes([int(processor.id_to_piece(number)[3:5], base=16)])
        if number == UNKNOWN:
            return SPECIALS[UNKNOWN].encode()
        if processor.is_control(number):
            return b""
        piece: str = processor.id_to_piece(number)
        return piece.replace(SPACE_MARK, " ").encode()


def _processor(model: bytes) -> Any:
    """Return a loaded model; refuse one without our special tokens or without bytes."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(model)
    specials = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if specials != (PAD, UNKNOWN, BEGIN, END):
        raise ValueError(f"its special tokens have the ids {specials}")
    first = processor.piece_to_id("<0x00>")
    if not (
        first + 255 < len(processor) and all(map(processor.is_byte, range(first, first + 256)))
    ):
        raise ValueError("it has no tokens for single bytes")
    return processor


def _entry(piece: str, score: float) -> bytes:
    """Return a subword as field 1 of SentencePiece's file: a text (1) and a float (2).

    A subword has at most 16 characters, so every length fits in one byte.
    """
    text = piece.encode()
    fields = bytes([0x0A, len(text), *text, 0x15]) + struct.pack("<f", score)
    return bytes([0x0A, len(fields)]) + fields


def _special_options() -> dict[str, Any]:
    """Return the trainer's options that give the special tokens our ids and names."""
    names = {"pad": PAD, "unk": UNKNOWN, "bos": BEGIN, "eos": END}
    ids: dict[str, Any] = {f"{name}_id": number for name, number in names.items()}
    return ids | {f"{name}_piece": SPECIALS[number] for name, number in names.items()}


def _training_problem(message: str, size: int) -> str:
    """Return why SentencePiece could not train, in the user's terms."""
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"a SentencePiece vocabulary of {size} entries is too small: the special tokens, the "
            f"256 bytes and the characters of these texts need at least {found[1]}"
        )
    if "sentences_.empty()" in message:
        return "there is no text to train a SentencePiece vocabulary on"
    return f"SentencePiece could not train a vocabulary of {size} entries: {message}"
