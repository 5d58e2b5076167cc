"""Graph attention networks as their authors' TensorFlow code keeps them (Velickovic et al. 2018).

Head k has the convolutions 3k (W), 3k + 1 and 3k + 2 (the halves of a, each with a bias), and a
bias of its own. Hidden heads come first, then the one of the output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.base.errors import RunError
from regard.base.shapes import Tensor
from regard.exchange.formats import ForeignFiles, ForeignModel, Format
from regard.exchange.layout import Rule, WeightLayout, fill, rule
from regard.exchange.operations import Cut, Flattened, Joined, Summed
from regard.exchange.sources import npz_names, read_npz
from regard.models.graph_classifier import build_graph_classifier
from regard.settings.models import GraphModelSettings

LEFTOVERS = {
    r"beta[12]_power.*": "a counter of Adam",
    r".*/Adam(_1)?": "the memory of Adam",
}


def _named(kind: str, number: int, part: str) -> str:
    return f"{kind}_{number}.{part}" if number else f"{kind}.{part}"


def layer_rules(layer: int, heads: Sequence[int], width: int) -> list[Rule]:
    """Return the rules of one layer, whose heads have these numbers."""
    count = len(heads)

    def each(place: int, part: str) -> list[str]:
        return [_named("conv1d", 3 * head + place, part) for head in heads]

    ours = f"layers.{layer}"
    vectors = Flattened((1, -1, 1), (1, -1)).then(Joined(count))
    return [
        rule(
            f"{ours}.project.0.weight",
            each(0, "kernel"),
            Flattened((1, -1, width), (-1, width)).then(Joined(count, dim=1)),
        ),
        rule(f"{ours}.score.target_readout", each(1, "kernel"), vectors),
        rule(f"{ours}.score.source_readout", each(2, "kernel"), vectors),
        rule(  # two biases of each head are only ever added
            f"{ours}.score.bias",
            [*each(1, "bias"), *each(2, "bias")],
            Joined(2 * count).then(Cut(2)).then(Summed()),
        ),
        rule(f"{ours}.bias", [_named("BiasAdd", head, "biases") for head in heads], Joined(count)),
    ]


def layout(settings: GraphModelSettings) -> WeightLayout:
    """Return where the authors keep the weights of two layers."""
    hidden = layer_rules(0, range(settings.heads), settings.head_dim)
    output = layer_rules(1, [settings.heads], settings.classes)
    return WeightLayout(rules=[*hidden, *output], leftovers=LEFTOVERS)


def settings_of(tensors: Mapping[str, Tensor], *, origin: object) -> GraphModelSettings:
    """Return the settings that the shapes of the convolutions describe."""
    numbers = [
        int(hit[1] or 0)
        for name in tensors
        if (hit := re.fullmatch(r"conv1d(?:_(\d+))?\.kernel", name))
    ]
    kernels = [
        tensors[_named("conv1d", number, "kernel")] for number in sorted(numbers) if number % 3 == 0
    ]
    if len(kernels) < 2 or any(kernel.dim() != 3 for kernel in kernels):
        raise RunError(f"{origin} has no heads of two layers: 'conv1d.kernel', 'conv1d_3.kernel'.")
    (_, features, width), *_, (_, _, classes) = (kernel.shape for kernel in kernels)
    first = [kernel for kernel in kernels if kernel.shape[1] == features]
    if len(first) != len(kernels) - 1:
        raise RunError(
            f"{origin} has {len(first)} heads that read the features, and "
            f"{len(kernels) - len(first)} others; one output head is expected."
        )
    return GraphModelSettings.model_validate(
        {"heads": len(first), "head_dim": width, "features": features, "classes": classes}
    )


def read(files: ForeignFiles) -> ForeignModel:
    """Return the model of an npz file."""
    tensors = read_npz(files.weights)
    settings = settings_of(tensors, origin=files.weights)
    model = build_graph_classifier(settings, features=settings.features, classes=settings.classes)
    table = layout(settings)
    leftovers = fill(model, table, tensors, origin=files.weights)
    return ForeignModel(
        task="classify-nodes",
        model=model.eval(),
        settings=settings,
        layout=table,
        leftovers=leftovers,
    )


def detect(weights: Path) -> bool:
    """Return whether a file has the names of such a model."""
    names = npz_names(weights) if weights.suffix == ".npz" else []
    return "conv1d.kernel" in names and "BiasAdd.biases" in names


FORMAT = Format(
    name="gat",
    title="GAT (.npz with the names of its authors' code)",
    detect=detect,
    read=read,
)
