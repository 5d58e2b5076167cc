"""An ordered list of symbols and their ids; the four special symbols come first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regard.base.errors import SettingsError
from regard.base.special_tokens import SPECIALS, UNKNOWN


class Vocabulary:
    """Symbols to ids and back.

    No text is ever read as a special symbol: a text that spells "</s>" is ordinary text, so the
    special symbols have ids but are not found by `id_of`.
    """

    def __init__(self, symbols: Iterable[str]):
        self.symbols = tuple(symbols)
        self._ids = {symbol: number for number, symbol in enumerate(self.symbols, len(SPECIALS))}
        if len(self._ids) != len(self.symbols):
            raise ValueError("a vocabulary holds each symbol once")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        size: int | None = None,
        min_count: int = 1,
        always: tuple[str, ...] = (),
    ) -> Vocabulary:
        """Keep the most frequent symbols, equally frequent ones in the order of their code points.

        `size` is the most entries that the vocabulary may have, special symbols included; symbols
        in `always` are kept whatever their count.
        """
        least = len(SPECIALS) + len(always) + 1
        if size is not None and size < least:
            raise SettingsError(
                f"a vocabulary of {size} entries cannot hold the {least - 1} that are always there "
                f"and a word besides; ask for at least {least}"
            )
        frequent = sorted(
            (symbol for symbol, count in counts.items() if count >= min_count),
            key=lambda symbol: (-counts[symbol], symbol),
        )
        if not frequent:
            raise SettingsError(
                f"there is no text to learn a vocabulary from: nothing occurs {min_count} or more "
                "times"
            )
        kept = [*always, *(symbol for symbol in frequent if symbol not in always)]
        return cls(kept if size is None else kept[: size - len(SPECIALS)])

    def __len__(self) -> int:
        return len(SPECIALS) + len(self.symbols)

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._ids

    def id_of(self, symbol: str) -> int:
        """Return the symbol's id, or that of the unknown symbol."""
        return self._ids.get(symbol, UNKNOWN)

    def symbol_of(self, number: int) -> str:
        """Return the symbol with this id; a special symbol gives its name, such as "<unk>"."""
        if not 0 <= number < len(self):
            raise IndexError(f"id {number} is outside a vocabulary of {len(self)} entries")
        return SPECIALS[number] if number < len(SPECIALS) else self.symbols[number - len(SPECIALS)]
