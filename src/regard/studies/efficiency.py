"""Sequential against parallel: time, memory and path length of models against the length of texts.

Recurrent networks and Transformers with equal numbers of parameters read the same tokens, divided
into texts of different lengths; and kinds of self-attention are compared with each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.masks import Visibility
from regard.models.inspection import parameter_count
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.language_models import (
    CausalTransformerSettings,
    RecurrentLanguageModelSettings,
)
from regard.studies.small_models import ModelSettings
from regard.transformer.causal import CausalTransformer

VOCAB = 64
TOKENS = 4_096  # of an update, however they are divided
LENGTHS = (16, 64, 256, 1_024)
WIDTH, LAYERS = 96, 2
STRIDE = 16
ATTENTION: dict[str, dict[str, Any]] = {
    "full": {},
    "window": {"window": 2 * STRIDE},
    "strided": {"pattern": "strided", "stride": STRIDE},
    "fixed": {"pattern": "fixed", "stride": STRIDE},
    "hashed": {"pattern": "hashed", "hash_chunk": STRIDE},
    "memory": {"positions": "segment", "memory": 2 * STRIDE},
}


@dataclass(frozen=True)
class LengthCosts:
    """What a model costs, by the length of the texts that an update is divided into."""

    name: str
    parameters: int
    seconds: dict[int, float] = field(default_factory=dict)
    """CPU seconds of an update."""
    kept_bytes: dict[int, int] = field(default_factory=dict)
    """What is kept for the gradient."""
    path: dict[int, int | None] = field(default_factory=dict)
    """Steps from the first position to the last; None if it is not reached."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def efficiency(
    *,
    lengths: Sequence[int] = LENGTHS,
    rounds: int = 3,
    tokens: int = TOKENS,
    on_model: Callable[[str], None] = lambda name: None,
) -> list[LengthCosts]:
    """Measure recurrent models and Transformers in turn; the median of the rounds counts."""
    found = []
    for name, settings_of in models(max(lengths)).items():
        on_model(name)
        costs = LengthCosts(name, parameter_count(build_language_model(settings_of, vocab=VOCAB)))
        for length in lengths:
            torch.manual_seed(1)
            model = build_language_model(settings_of, vocab=VOCAB)
            text = torch.randint(VOCAB, (max(1, tokens // length), length))
            costs.kept_bytes[length] = kept_bytes(model, text)
            costs.seconds[length] = statistics.median(
                update_seconds(model, text) for _ in range(rounds)
            )
            costs.path[length] = path_length(model, length)
        found.append(costs)
    return found


def models(longest: int) -> dict[str, ModelSettings]:
    """Return settings of models with about the same number of parameters."""
    context = max(longest, 2 * STRIDE)
    sizes = {"layers": LAYERS, "model_dim": WIDTH, "heads": 4, "context": context}
    found: dict[str, ModelSettings] = {
        f"Transformer, {name}": CausalTransformerSettings.model_validate(
            sizes | {"positions": "rotary"} | more
        )
        for name, more in ATTENTION.items()
    }
    wanted = parameter_count(build_language_model(found["Transformer, full"], vocab=VOCAB))
    recurrent: dict[str, ModelSettings] = {
        cell.upper(): _of_size(cell, wanted, context) for cell in ("lstm", "gru")
    }
    return recurrent | found


def _of_size(cell: str, wanted: int, context: int) -> RecurrentLanguageModelSettings:
    """Return the widest recurrent model that has no more parameters than wanted."""

    def of(width: int) -> RecurrentLanguageModelSettings:
        return RecurrentLanguageModelSettings.model_validate(
            {"cell": cell, "layers": LAYERS, "hidden": width, "embedding": width, "tie": True,
             "context": context}
        )  # fmt: skip

    width = 8
    while parameter_count(build_language_model(of(width + 4), vocab=VOCAB)) <= wanted:
        width += 4
    return of(width)


def _loss(model: LanguageModel[Any], text: Tensor) -> Tensor:
    features: Tensor = model(text).features
    return features.square().mean()


def update_seconds(model: LanguageModel[Any], text: Tensor) -> float:
    """Return the CPU seconds of one pass forwards and backwards."""
    model.zero_grad(set_to_none=True)
    began = time.process_time()
    _loss(model, text).backward()  # type: ignore[no-untyped-call]
    return time.process_time() - began


def kept_bytes(model: nn.Module, text: Tensor) -> int:
    """Return the bytes that are kept for the gradient, without the weights."""
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = _loss(model, text)  # type: ignore[arg-type]
    found = sum(storages.values())
    del loss  # until here it held the storages, so that no two had one address
    return found


def path_length(model: LanguageModel[Any], length: int) -> int | None:
    """Return the steps from the first position to the last (Vaswani et al. 2017, table 1).

    A recurrent network takes one for each position; attention one a layer, as many as it needs
    until the masks of the layers, one behind the other, lead there. Which pairs have the same
    hash depends on the text, so for hashed attention it is that of random vectors.
    """
    backbone = model.backbone
    if not isinstance(backbone, CausalTransformer):
        return length
    seen = _seen(backbone, length).to(torch.float32)
    reached = seen[-1:]
    for steps in range(1, length + 1):
        if bool(reached[0, 0]):
            return steps
        further = ((reached @ seen) > 0).to(torch.float32)
        if torch.equal(further, reached):
            return None
        reached = further
    return None


def _seen(backbone: CausalTransformer, length: int) -> Tensor:
    """Return which positions each one sees in one layer."""
    features = torch.zeros(1, length, 1)
    visibility = Visibility.back(
        features, read=0, window=backbone.window, distance_bias=None, segments=backbone.segments
    )
    seen = visibility.near
    attention: Any = backbone.layers[0].attention
    if attention.pattern is not None:
        generator = torch.Generator().manual_seed(1)
        shape = (1, 1, length, attention.query_dim // attention.heads)
        keys = torch.randn(shape, generator=generator)
        penalties = attention.pattern.penalties(keys, visibility)
        seen = seen & (penalties.view(-1, length, length)[0] == 0)
        seen = seen | torch.eye(length, dtype=torch.bool)
    return seen


def growth(values: Mapping[int, float]) -> float:
    """Return how many times as much the longest texts cost as the shortest, for the same tokens."""
    ends = min(values), max(values)
    return values[ends[1]] / values[ends[0]]
