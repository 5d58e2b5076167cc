"""What every head of a translator looks at."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Group
from rich.text import Text

from regard.base.errors import RegardError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, SPECIALS
from regard.batching.batch import collate, encode_pairs, padded
from regard.compute.device import beside
from regard.corpora.parallel import SentencePair
from regard.models.lens import layer_features
from regard.pictures.heat_map import write_map
from regard.pictures.steps import draw_step
from regard.pictures.terminal import terminal_heat_map
from regard.settings.recipe import require_known
from regard.tasks import attention as attention_views
from regard.tasks.experts import gate_weights, view_of_experts
from regard.tasks.lens import Lens, lens_of, view_of_lens
from regard.tasks.looking import LookRequest, View
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.results import Translation

BEGIN_MARK = SPECIALS[2]


PARTS = {
    "cross": "from target to source",
    "encoder": "among the source words",
    "decoder": "among the target words",
}
EXPERTS = {"experts": "encoder", "target-experts": "decoder"}  # and where their gates are


class Side(NamedTuple):
    """A sentence as a model reads it: its pieces, the word of each, and the text itself."""

    pieces: tuple[str, ...]
    words: tuple[int, ...]
    text: str


def translator_heads(
    model: LoadedTranslator, text: str, *, part: str = "cross", pieces: bool = False
) -> tuple[str, attention_views.AttentionHeads]:
    """Return a text's translation, and what every head of a Transformer's part looked at."""
    require_known(part, PARTS, what="part")
    if not text.strip():
        raise RegardError("There is nothing to translate: the text is empty.")
    translation = model.translate(text, attention=False)
    _warn_of_unknown(model, translation)
    said = translation.text
    (example,) = encode_pairs(
        [SentencePair(text, said)], model.source_tokenizer, model.target_tokenizer
    )
    batch = beside(model.model, collate([example]))
    with torch.inference_mode():
        maps = model.model.head_maps(batch.source, batch.source_mask, batch.target_input)
    found = {"cross": maps.cross, "encoder": maps.encoder, "decoder": maps.decoder}[part]
    if found is None:
        raise SettingsError(f"The {part} of this model has no self-attention.")
    source = _side(model.source_tokenizer, example.source, text)
    target = _side(model.target_tokenizer, example.target, said)
    read = _side(model.target_tokenizer, example.target, said, begun=True)
    rows, columns = {
        "cross": (target, source),
        "encoder": (source, source),
        "decoder": (read, read),
    }[part]
    title = f"attention {PARTS[part]}"
    return said, _labelled(found[:, 0].cpu().numpy(), rows, columns, title=title, pieces=pieces)


def _side(tokenizer: Tokenizer, ids: Sequence[int], text: str, *, begun: bool = False) -> Side:
    """Return a sentence with its end mark, or as a decoder reads it with its begin mark."""
    pieces, words = tokenizer.pieces(ids), tokenizer.word_of_piece(ids)
    if begun:
        return Side((BEGIN_MARK, *pieces), (-1, *words), text)
    return Side((*pieces, attention_views.END_MARK), (*words, -1), text)


def _labelled(
    weights: Float[np.ndarray, "layers heads target source"],
    target: Side,
    source: Side,
    *,
    title: str,
    pieces: bool,
) -> attention_views.AttentionHeads:
    """Return weights between pieces, or between whole words without the marks."""
    if pieces:
        return attention_views.AttentionHeads(title, weights, source.pieces, target.pieces)

    def merged(head: Float[np.ndarray, "target source"]) -> Float[np.ndarray, "words others"]:
        between = attention_views.AttentionMap(
            head, source.pieces, target.pieces, source.words, target.words
        )
        return between.by_word(source.text, target.text).weights

    by_word = np.array([[merged(head) for head in layer] for layer in weights])
    return attention_views.AttentionHeads(
        title, by_word, tuple(source.text.split()), tuple(target.text.split())
    )


def sentence_view(request: LookRequest) -> View:
    """Show which source words each target word attends to."""
    translation, seen = _read_sentence(request)

    def shown(width: int) -> Group:
        drawn = terminal_heat_map(
            seen.weights, source=seen.source, target=seen.target, console_width=width
        )
        return Group(drawn, Text(translation.text))

    return View(
        record={**translation.to_dict(), "attention": seen.to_dict()},
        save=lambda path: write_map(
            seen.weights, source=seen.source, target=seen.target, path=path
        ),
        text=translation.text,
        shown=shown,
    )


def step_view(request: LookRequest) -> View:
    """Show one step of the decoder, from 1: the words so far, and what the newest one reads."""
    _, seen = _read_sentence(request)
    step = request.step or 0
    if not 1 <= step <= len(seen.target):
        words = " ".join(seen.target)
        raise SettingsError(
            f"There is no step {step}: the output has steps 1 to {len(seen.target)} ({words})."
        )
    weights = seen.weights[step - 1]
    lines = [f"step {step}: {' '.join(seen.target[:step])}"]
    lines += [f"  {weight:.2f}  {word}" for weight, word in zip(weights, seen.source, strict=True)]
    return View(
        record={
            "step": step,
            "written": list(seen.target[:step]),
            "source": list(seen.source),
            "weights": [round(float(weight), 6) for weight in weights],
        },
        save=lambda path: draw_step(
            seen.weights, source=seen.source, target=seen.target, step=step, path=path
        ),
        text=" ".join(seen.target[:step]),
        shown=lambda width: "\n".join(lines),
    )


def _read_sentence(request: LookRequest) -> tuple[Translation, attention_views.AttentionMap]:
    """Return the translation of what is asked, with its attention by word or by piece."""
    model = load(request.run)
    if not model.attends:
        raise RegardError(f"The model of {request.run} has no attention to look at.")
    translation = model.translate(request.sentence)
    if translation.attention is None:
        raise RegardError("There is nothing to translate: the text is empty.")
    _warn_of_unknown(model, translation)
    return translation, translation.attention if request.pieces else translation.by_word()


def _warn_of_unknown(model: LoadedTranslator, translation: Translation) -> None:
    """Warn of words that the model cannot see, for the picture shows a guess there."""
    count = model.unknown_count()
    count.add(translation.unknown)
    if count.parts:
        warnings.warn(str(count), stacklevel=2)


def _request_heads(
    request: LookRequest, *, part: str
) -> tuple[str, attention_views.AttentionHeads]:
    return translator_heads(
        load(request.run),
        request.sentence,
        part=request.part or part,
        pieces=request.pieces,
    )


def experts_view(request: LookRequest) -> View:
    """Show which expert each token of the source goes to, or of the translation."""
    model, part = load(request.run), EXPERTS[request.part or ""]
    said = model.translate(request.sentence, attention=False).text
    (example,) = encode_pairs(
        [SentencePair(request.sentence, said)], model.source_tokenizer, model.target_tokenizer
    )
    batch = beside(model.model, collate([example]))
    source = _side(model.source_tokenizer, example.source, request.sentence)
    read = _side(model.target_tokenizer, example.target, said, begun=True)
    found = gate_weights(
        lambda probe: model.model(batch.source, batch.source_mask, batch.target_input, probe=probe),
        part=part,
        tokens=(source if part == "encoder" else read).pieces,
    )
    return view_of_experts(found, request, text=said)


def heads_view(request: LookRequest) -> View:
    """Show all heads, those of a layer, or one; or the experts."""
    if request.part in EXPERTS:
        return experts_view(request)
    said, heads = _request_heads(request, part="cross")
    return attention_views.view_of_heads(
        heads, request, record={"text": said, **heads.to_dict()}, text=said
    )


def word_view(request: LookRequest) -> View:
    """Show what one word of the text looks at."""
    said, heads = _request_heads(request, part="encoder")
    return attention_views.view_of_word(heads, request, text=said)


def arcs_view(request: LookRequest) -> View:
    """Show the self-attention of the whole text."""
    said, heads = _request_heads(request, part="encoder")
    return attention_views.view_of_arcs(heads, request, text=said)


def lens_of_translation(
    loaded: LoadedTranslator, text: str, target: Sequence[int] | None = None
) -> Lens:
    """Return what each decoder layer would have said at each step of a translation.

    `target` are the tokens of one that is given, without the end mark.
    """
    if target is None:
        said = loaded.translate(text, attention=False).text
        target = loaded.target_tokenizer.encode(said)
    model, source = loaded.model, loaded.source_tokenizer.encode(text)
    ids, mask = beside(model, padded([source], after=END))
    read, _ = beside(model, padded([list(target)], before=BEGIN))
    features = layer_features(
        model.decoder, lambda probe: model(ids, mask, read, probe=probe), part="decoder"
    )
    tokenizer = loaded.target_tokenizer

    def pieces(numbers: Sequence[int]) -> list[str]:
        return [
            SPECIALS[number] if number < len(SPECIALS) else tokenizer.pieces([number])[0]
            for number in numbers
        ]

    return lens_of(
        features,
        model.project,
        pieces,
        text=tokenizer.decode(list(target)),
        read=pieces([BEGIN, *target]),
        said=[*target, END],
    )


def lens_view(request: LookRequest) -> View:
    """Show what each decoder layer would have said."""
    return view_of_lens(lens_of_translation(load(request.run), request.sentence))
