"""Text of many lines as one stream of ids, as language models read it."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.build import AnyTokenizer
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.sentencepiece import SentencePieceTokenizer

NEWLINE = "\n"


class RunningText:
    """A tokenizer for text with line ends in it; text comes back exactly as it was.

    SentencePiece knows no line ends: each line is spelled as a text of its own, so that its first
    word has the same symbols as in mid-line, and the byte of the line end stands between them.
    """

    def __init__(self, tokenizer: AnyTokenizer):
        self.tokenizer = tokenizer
        by_line = isinstance(tokenizer, SentencePieceTokenizer)
        self._newline = tokenizer.encode(NEWLINE)[-1] if by_line else None

    @property
    def size(self) -> int:
        """How many entries the vocabulary has."""
        return self.tokenizer.size

    @property
    def end(self) -> int | None:
        """The id that the model itself may put after a text; None if it never learns one."""
        return self.tokenizer.end if isinstance(self.tokenizer, ByteBpeTokenizer) else None

    @property
    def opening(self) -> list[int]:
        """What a model reads before a text that has no beginning: an end of another text, or line.

        Empty if the vocabulary knows no line ends.
        """
        if self.end is not None:
            return [self.end]
        found = self.encode(NEWLINE)
        return found if self.decode(found) == NEWLINE else []

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        if self._newline is None:
            return self.tokenizer.encode(text)
        first, *others = text.split(NEWLINE)
        ids = self.tokenizer.encode(first)
        for line in others:
            ids.append(self._newline)
            ids += self.tokenizer.encode(line)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        if self._newline is None:
            return self.tokenizer.decode(ids)
        lines: list[list[int]] = [[]]
        for number in ids:
            if number == self._newline:
                lines.append([])
            else:
                lines[-1].append(number)
        return NEWLINE.join(self.tokenizer.decode(line) for line in lines)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as a person should read it."""
        return self.tokenizer.pieces(ids)
