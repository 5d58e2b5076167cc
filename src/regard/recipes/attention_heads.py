"""What every head of a model looks at: as maps, as arcs from a word, as data, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from regard.base.errors import RegardError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import SPECIALS
from regard.batching.batch import collate, encode_pairs
from regard.corpora.parallel import SentencePair
from regard.recipes.attention_map import END_MARK, AttentionMap
from regard.recipes.loaded import LoadedTranslator
from regard.recipes.loaded_language_model import HeadView
from regard.settings.suggest import require_known

BEGIN_MARK = SPECIALS[2]
SPACES = "␣▁"  # how pieces show the space before them
PARTS = {
    "across": "from target to source",
    "encoder": "among the source words",
    "decoder": "among the target words",
}


class Side(NamedTuple):
    """A sentence as a model reads it: its pieces, the word of each, and the text itself."""

    pieces: tuple[str, ...]
    words: tuple[int, ...]
    text: str


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

    def plot(self, path: str | Path, *, layer: int | None = None, head: int | None = None) -> Path:
        """Draw all heads, those of a layer, or one, to a file; .csv and .json get the data."""
        from regard.recipes.head_pictures import draw_heads

        draw_heads(self, Path(path), layer=layer, head=head)
        return Path(path)


def translator_heads(
    model: LoadedTranslator, text: str, *, part: str = "across", pieces: bool = False
) -> tuple[str, AttentionHeads]:
    """Return a text's translation, and what every head of a Transformer's part looked at."""
    require_known(part, PARTS, what="part")
    if not text.strip():
        raise RegardError("There is nothing to translate: the text is empty.")
    said = model.translate(text, attention=False).text
    (example,) = encode_pairs(
        [SentencePair(text, said)], model.source_tokenizer, model.target_tokenizer
    )
    batch = collate([example])
    with torch.inference_mode():
        maps = model.model.head_maps(batch.source, batch.source_mask, batch.target_input)
    found = {"across": maps.across, "encoder": maps.encoder, "decoder": maps.decoder}[part]
    if found is None:
        raise SettingsError(f"The {part} of this model has no self-attention.")
    source = _side(model.source_tokenizer, example.source, text)
    target = _side(model.target_tokenizer, example.target, said)
    read = _side(model.target_tokenizer, example.target, said, begun=True)
    rows, columns = {
        "across": (target, source),
        "encoder": (source, source),
        "decoder": (read, read),
    }[part]
    title = f"attention {PARTS[part]}"
    return said, _labelled(found[:, 0].numpy(), rows, columns, title=title, pieces=pieces)


def text_heads(view: HeadView) -> AttentionHeads:
    """Return what a language model looked at, at each symbol of a text."""
    text = "".join(view.pieces)
    for space in SPACES:
        text = text.replace(space, " ")
    return AttentionHeads(text, view.weights.numpy(), view.pieces, view.pieces)


def _side(tokenizer: Tokenizer, ids: Sequence[int], text: str, *, begun: bool = False) -> Side:
    """Return a sentence with its end mark, or as a decoder reads it with its begin mark."""
    pieces, words = tokenizer.pieces(ids), tokenizer.word_of_piece(ids)
    if begun:
        return Side((BEGIN_MARK, *pieces), (-1, *words), text)
    return Side((*pieces, END_MARK), (*words, -1), text)


def _labelled(
    weights: Float[np.ndarray, "layers heads target source"],
    target: Side,
    source: Side,
    *,
    title: str,
    pieces: bool,
) -> AttentionHeads:
    """Return weights between pieces, or between whole words without the marks."""
    if pieces:
        return AttentionHeads(title, weights, source.pieces, target.pieces)

    def merged(head: Float[np.ndarray, "target source"]) -> Float[np.ndarray, "words others"]:
        between = AttentionMap(head, source.pieces, target.pieces, source.words, target.words)
        return between.by_word(source.text, target.text).weights

    by_word = np.array([[merged(head) for head in layer] for layer in weights])
    return AttentionHeads(title, by_word, tuple(source.text.split()), tuple(target.text.split()))
