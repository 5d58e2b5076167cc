"""What every head of a language model looks at."""

import torch

from regard.base.errors import SettingsError
from regard.base.shapes import Tensor
from regard.compute.device import beside
from regard.models.lens import layer_features
from regard.tasks.attention import SPACES, AttentionHeads, view_of_arcs, view_of_heads, view_of_word
from regard.tasks.experts import gate_weights, view_of_experts
from regard.tasks.language_modelling.model import HeadView, LoadedLanguageModel, load
from regard.tasks.lens import Lens, lens_of, view_of_lens
from regard.tasks.looking import LookRequest, View


def text_heads(view: HeadView) -> AttentionHeads:
    """Return what a language model looked at, at each token of a text."""
    text = "".join(view.pieces)
    for space in SPACES:
        text = text.replace(space, " ")
    return AttentionHeads(text, view.weights.numpy(), view.pieces, view.pieces)


def _request_heads(request: LookRequest) -> AttentionHeads:
    if request.part is not None:
        raise SettingsError(
            f"--part {request.part} is for translators: of a language model there are its heads, "
            "without --part, and --part experts."
        )
    return text_heads(load(request.run).heads(request.sentence))


def experts_view(request: LookRequest) -> View:
    """Show which expert each token goes to."""
    model = load(request.run)
    ids = model.read_ids(request.sentence)
    found = gate_weights(
        lambda probe: model.model(beside(model.model, torch.tensor([ids])), probe=probe),
        part="encoder" if model.model.reads_both_ways else "decoder",
        tokens=model.text.pieces(ids),
    )
    return view_of_experts(found, request)


def heads_view(request: LookRequest) -> View:
    """Show all heads, those of a layer, or one."""
    if request.part == "experts":
        return experts_view(request)
    heads = _request_heads(request)
    record = {"pieces": list(heads.source), "weights": heads.weights.tolist()}
    return view_of_heads(heads, request, record=record)


def word_view(request: LookRequest) -> View:
    """Show what one word of the text looks at."""
    return view_of_word(_request_heads(request), request)


def arcs_view(request: LookRequest) -> View:
    """Show the self-attention of the whole text."""
    return view_of_arcs(_request_heads(request), request)


def lens_of_text(loaded: LoadedLanguageModel, text: str) -> Lens:
    """Return what each layer expects after each token; after the last one, what the model says."""
    model, ids = loaded.model, list(loaded.read_ids(text))
    part = "encoder" if model.reads_both_ways else "decoder"
    features = layer_features(
        model.backbone,
        lambda probe: model(beside(model, torch.tensor([ids])), probe=probe),
        part=part,
    )

    def project(each: Tensor) -> Tensor:
        return model.project(each if model.transform is None else model.transform(each))

    with torch.inference_mode():
        best = int(project(features[-1])[-1].argmax())
    return lens_of(
        features,
        project,
        loaded.text.pieces,
        text=text,
        read=loaded.text.pieces(ids),
        said=ids if model.reads_both_ways else [*ids[1:], best],
    )


def lens_view(request: LookRequest) -> View:
    """Show what each layer expects after each token."""
    return view_of_lens(lens_of_text(load(request.run), request.sentence))
