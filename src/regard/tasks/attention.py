"""What a model looked at: attention maps and heads with their words, drawn and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError, SettingsError
from regard.base.special_tokens import SPECIALS
from regard.pictures.arcs import WordAttention, draw_arcs, draw_sentence_arcs
from regard.pictures.head_grid import draw_head_grid, head_grid_svg
from regard.pictures.heat_map import write_map
from regard.pictures.report import Heading, HoverMap, Picture, Section, write_page
from regard.scoring.alignment import Link, best_links
from regard.tasks.looking import LookRequest, View

END_MARK = SPECIALS[3]


@dataclass(frozen=True)
class AttentionMap:
    """Weights between target and source pieces; the last row and column are the end marks.

    `source_words` and `target_words` give each piece the index of its word, -1 for the end mark.
    """

    weights: Float[np.ndarray, "target source"]
    source: tuple[str, ...]
    target: tuple[str, ...]
    source_words: tuple[int, ...]
    target_words: tuple[int, ...]

    def by_word(self, source_text: str, target_text: str) -> AttentionMap:
        """Return the map between whitespace-separated words, without the end marks."""
        source, target = tuple(source_text.split()), tuple(target_text.split())
        merged = merge_to_words(
            self.weights, source_words=self.source_words, target_words=self.target_words
        )
        weights = np.zeros((len(target), len(source)), dtype=self.weights.dtype)
        rows, columns = merged.shape
        weights[:rows, :columns] = merged[: len(target), : len(source)]
        return AttentionMap(
            weights, source, target, tuple(range(len(source))), tuple(range(len(target)))
        )

    def links(self) -> frozenset[Link]:
        """Return a (source, target) link to the most attended source word of each target word."""
        merged = merge_to_words(
            self.weights, source_words=self.source_words, target_words=self.target_words
        )
        return best_links(merged)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": list(self.source),
            "target": list(self.target),
            "weights": [[round(float(w), 6) for w in row] for row in self.weights],
        }

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the heat map."""
        from regard.pictures.heat_map import heat_map_svg
        from regard.pictures.svg import notebook_picture

        drawn = heat_map_svg(self.weights, source=self.source, target=self.target)
        return notebook_picture(drawn, label="attention heat map")

    def plot(self, path: str | Path | None = None, *, title: str | None = None) -> Any:
        """Draw the heat map to a file (PNG, SVG, PDF), or return a figure, which a notebook shows.

        A file that ends in .csv or .json gets the weights.
        """
        from regard.pictures.heat_map import heat_map_figure, write_map

        if path is None:
            return heat_map_figure(
                self.weights, source=self.source, target=self.target, title=title
            )
        write_map(
            self.weights, source=self.source, target=self.target, path=Path(path), title=title
        )
        return Path(path)


SPACES = "␣▁"  # how pieces show the space before them


@dataclass(frozen=True)
class AttentionHeads:
    """The weights of every layer and head of one part of a model, with the words between them."""

    title: str
    weights: Float[np.ndarray, "layers heads target source"]
    source: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def looks_at_itself(self) -> bool:
        """Whether the words look at each other."""
        return self.source == self.target

    def of(self, layer: int | None = None, head: int | None = None) -> AttentionMap:
        """Return one head's map, the mean of a layer's heads, or the mean of all."""
        self.check(layer, head)
        chosen = self.weights if layer is None else self.weights[layer : layer + 1]
        chosen = chosen if head is None else chosen[:, head : head + 1]
        places = tuple(range(len(self.source))), tuple(range(len(self.target)))
        return AttentionMap(chosen.mean(axis=(0, 1)), self.source, self.target, *places)

    def check(self, layer: int | None = None, head: int | None = None) -> None:
        """Refuse a layer or a head that is not there."""
        for name, number, size in (
            ("layer", layer, self.weights.shape[0]),
            ("head", head, self.weights.shape[1]),
        ):
            if number is not None and not 0 <= number < size:
                known = (
                    f"the {name}s are 0 to {size - 1}" if size > 1 else f"there is {name} 0 only"
                )
                raise SettingsError(f"There is no {name} {number}: {known}.")

    def place(self, word: str) -> int:
        """Return where a word stands; `it#2` is the second one of its kind."""
        if not self.looks_at_itself:
            raise SettingsError("Only self-attention leads from word to word: choose its part.")
        wanted, _, number = word.rpartition("#")
        plain = [piece.strip(SPACES) for piece in self.target]
        if word in plain or not wanted or not number.isdigit():
            wanted, number = word, "1"
        places = [place for place, each in enumerate(plain) if each == wanted]
        if not 1 <= int(number) <= len(places):
            raise SettingsError(
                f"The text has no {'such ' if places else ''}word {word!r}. Its words are: "
                f"{' '.join(plain)}."
            )
        return places[int(number) - 1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "title": self.title,
            "source": list(self.source),
            "target": list(self.target),
            "weights": np.round(self.weights.astype(float), 6).tolist(),
        }

    def _repr_html_(self) -> str:
        from regard.pictures.head_grid import head_grid_svg
        from regard.pictures.svg import notebook_picture

        drawn = head_grid_svg(self.weights, source=self.source, target=self.target)
        return notebook_picture(drawn, label=self.title)

    def plot(
        self, path: str | Path | None = None, *, layer: int | None = None, head: int | None = None
    ) -> Any:
        """Draw all heads, those of a layer, or one, to a file; .csv and .json get the data.

        Without a file, return a figure, which a notebook shows.
        """
        if path is None:
            return self._figure(layer, head)
        draw_heads(self, Path(path), layer=layer, head=head)
        return Path(path)

    def _figure(self, layer: int | None, head: int | None) -> Any:
        from regard.pictures.head_grid import head_grid_figure

        self.check(layer, head)
        if head is not None:
            require_layer(self, layer)
            return self.of(layer, head).plot(title=f"layer {layer}, head {head}")
        chosen = self.weights if layer is None else self.weights[layer : layer + 1]
        return head_grid_figure(
            chosen,
            source=self.source,
            target=self.target,
            first_layer=layer or 0,
            title=self.title,
        )


def draw_heads(
    heads: AttentionHeads, path: Path, *, layer: int | None = None, head: int | None = None
) -> None:
    """Draw all layers and heads, the heads of a layer, or one head.

    A file that ends in .html is a page with every head, in which one can point at each word.
    """
    heads.check(layer, head)
    if path.suffix.lower() == ".html":
        write_page(path, title=f"Every head: {heads.title}", sections=_sections(heads))
        return
    if head is None:
        chosen = heads.weights if layer is None else heads.weights[layer : layer + 1]
        draw_head_grid(
            chosen,
            source=heads.source,
            target=heads.target,
            path=path,
            first_layer=layer or 0,
            title=heads.title,
        )
        return
    require_layer(heads, layer)
    seen = heads.of(layer, head)
    title = f"layer {layer}, head {head}"
    write_map(seen.weights, source=seen.source, target=seen.target, path=path, title=title)


def require_layer(heads: AttentionHeads, layer: int | None) -> None:
    """Refuse one head of no layer."""
    if layer is None:
        raise SettingsError(f"Say of which layer: 0 to {len(heads.weights) - 1}.")


def gazes(
    heads: AttentionHeads, word: str, *, layer: int | None = None, head: int | None = None
) -> list[WordAttention]:
    """Return what a word looks at: in each layer on average, in each head of a layer, or in one."""
    heads.check(layer, head)
    place = heads.place(word)
    if layer is None:
        if head is not None:
            require_layer(heads, layer)
        count = heads.weights.shape[1]
        means = heads.weights.mean(axis=1)
        return [
            WordAttention(
                heads.source, place, each[place], f"layer {number}, mean of {count} heads"
            )
            for number, each in enumerate(means)
        ]
    numbers = range(heads.weights.shape[1]) if head is None else [head]
    return [
        WordAttention(
            heads.source,
            place,
            heads.weights[layer, number, place],
            f"layer {layer}, head {number}",
        )
        for number in numbers
    ]


def draw_word(
    heads: AttentionHeads,
    word: str,
    path: Path,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Draw arcs from one word to the words that it looks at."""
    draw_arcs(gazes(heads, word, layer=layer, head=head), path)


def draw_sentence(
    heads: AttentionHeads, path: Path, *, layer: int | None = None, head: int | None = None
) -> None:
    """Draw the arcs of all words: of one head, or the mean of a layer's or of all heads."""
    if not heads.looks_at_itself:
        raise SettingsError("Only self-attention leads from word to word: choose its part.")
    seen = heads.of(layer, head)
    where = "all layers" if layer is None else f"layer {layer}"
    which = "mean of the heads" if head is None else f"head {head}"
    draw_sentence_arcs(seen.weights, words=seen.source, path=path, title=f"{where}, {which}")


def _sections(heads: AttentionHeads) -> list[Section]:
    sections: list[Section] = [
        Picture(
            "All layers and heads",
            head_grid_svg(heads.weights, source=heads.source, target=heads.target),
        )
    ]
    for layer, of_layer in enumerate(heads.weights):
        sections.append(Heading(f"Layer {layer}"))
        sections += [
            HoverMap(heads.source, heads.target, of_head, f"Layer {layer}, head {head}")
            for head, of_head in enumerate(of_layer)
        ]
    return sections


def view_of_heads(
    heads: AttentionHeads, request: LookRequest, *, record: Mapping[str, Any], text: str = ""
) -> View:
    """Show all heads, those of a layer, or one."""
    heads.check(request.layer, request.head)
    return View(
        record=record,
        save=lambda path: draw_heads(heads, path, layer=request.layer, head=request.head),
        text=text,
    )


def view_of_word(heads: AttentionHeads, request: LookRequest, *, text: str = "") -> View:
    """Show what one word of the text looks at."""
    found = gazes(heads, request.word or "", layer=request.layer, head=request.head)

    def shown(width: int) -> str:
        lines = []
        for gaze in found:
            ranked = sorted(zip(gaze.weights.tolist(), gaze.words, strict=True), reverse=True)
            strongest = ", ".join(f"{word} {weight:.2f}" for weight, word in ranked[:4])
            lines.append(f"{gaze.note}: {strongest}")
        return "\n".join(lines)

    return View(
        record={
            "words": list(heads.source),
            "place": found[0].place,
            "seen": [{"of": gaze.note, "weights": gaze.weights.tolist()} for gaze in found],
        },
        save=lambda path: draw_arcs(found, path),
        text=text,
        shown=shown,
    )


def view_of_arcs(heads: AttentionHeads, request: LookRequest, *, text: str = "") -> View:
    """Show the self-attention of the whole text."""
    return View(
        record=heads.of(request.layer, request.head).to_dict(),
        save=lambda path: draw_sentence(heads, path, layer=request.layer, head=request.head),
        text=text,
    )


def merge_to_words(
    weights: Float[np.ndarray, "target source"],
    *,
    source_words: Sequence[int],
    target_words: Sequence[int],
) -> Float[np.ndarray, "target_words source_words"]:
    """Return attention between words from attention between pieces of words.

    `source_words` and `target_words` give each piece the index of its word, or -1 to leave it out
    (the end mark). The weight that reaches a source word is the sum over its pieces, and a target
    word has the mean weights of its pieces.
    """
    if weights.shape != (len(target_words), len(source_words)):
        raise RegardError(
            f"weights of shape {weights.shape} do not fit {len(target_words)} target pieces "
            f"and {len(source_words)} source pieces."
        )
    from_source = _membership(source_words, weights.dtype)  # pieces, words
    from_target = _membership(target_words, weights.dtype)
    pieces_of_word = np.maximum(from_target.sum(axis=0), 1)  # a word without pieces stays zero
    merged = from_target.T @ weights @ from_source
    return np.asarray(merged / pieces_of_word[:, None], dtype=weights.dtype)


def _membership(
    words: Sequence[int], dtype: np.dtype[np.floating]
) -> Float[np.ndarray, "pieces words"]:
    """Return a matrix that has 1 where a piece belongs to a word."""
    index = np.asarray(words, dtype=np.int64)
    count = int(index.max(initial=-1)) + 1
    return np.asarray(index[:, None] == np.arange(count), dtype=dtype)
