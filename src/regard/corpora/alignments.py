"""Word alignments: links in the Pharaoh format, and gold links."""

import re
from collections.abc import Iterable
from pathlib import Path

from regard.base.errors import DataError, RegardError
from regard.corpora.lines import read_lines
from regard.scoring.alignment import GoldLinks, parse_gold

LinkTuple = tuple[tuple[int, int], ...]

LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def format_alignment(links: Iterable[tuple[int, int]]) -> str:
    """Return links as one line, ordered by source word."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_alignment(text: str, *, path: Path, line: int) -> LinkTuple:
    """Return the links of one line; errors name `path` and `line`."""
    links = []
    for item in text.split():
        found = LINK.fullmatch(item)
        if found is None:
            raise DataError(
                f"{item!r} is not an alignment link",
                path=path,
                line=line,
                remedy="A link is source word, hyphen, target word, counted from 0: 3-4.",
            )
        links.append((int(found[1]), int(found[2])))
    return tuple(links)


def check_links(
    links: LinkTuple, *, source_words: int, target_words: int, path: Path, line: int
) -> None:
    """Refuse links to words that the sentences do not have."""
    for source, target in links:
        for side, word, words in (
            ("source", source, source_words),
            ("target", target, target_words),
        ):
            if word >= words:
                raise DataError(
                    f"the link {source}-{target} points past the {words} words of the {side}",
                    path=path,
                    line=line,
                    remedy="Words are separated by whitespace and counted from 0.",
                )


def read_alignments(path: Path) -> list[LinkTuple]:
    """Return the links of each sentence pair, one line per pair; a line may be empty."""
    return [
        parse_alignment(text, path=path, line=number)
        for number, text in enumerate(read_lines(path), 1)
    ]


def read_gold(path: Path, *, first: int = 0) -> list[GoldLinks]:
    """Return gold links, one line per pair: `i-j` is sure, `ipj` possible; words from `first`."""
    gold = []
    for number, text in enumerate(read_lines(path), 1):
        try:
            gold.append(parse_gold(text, first=first))
        except RegardError as error:
            raise DataError(
                str(error).rstrip("."),
                path=path,
                line=number,
                remedy=f"Words are counted from {first}.",
            ) from error
    return gold
