"""What fine-tuning does to a model: it starts from weights, freezes parts, and may add adapters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.utils import parametrize

from regard.attention.lookup import Lookup
from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import SettingsError
from regard.base.shapes import Float, Tensor
from regard.transformer.layers import Embedded, FeedForward, RecurrentUnit


@torch.no_grad()
def load_extended(model: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Load weights by name; where the model has more rows, the first are loaded, the rest fresh.

    Returns the names of those that had rows added.
    """
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        _require_fit(name, parameter, weights)
    for name, parameter in parameters.items():
        old = weights[name]
        (parameter[: len(old)] if old.dim() else parameter).copy_(old)
    return [name for name, p in parameters.items() if p.shape != weights[name].shape]


def freeze(model: nn.Module, names: Sequence[str]) -> list[str]:
    """Keep parts as they are in training; return the names of their parameters.

    A part has one of the names of `parts_of`, is a module, as `encoder.layers.0`, or a pattern of
    parameters, as `encoder.*`. A table that two parts share has the name of the first of them.
    """
    parameters, parts = dict(model.named_parameters()), parts_of(model)
    frozen: list[str] = []
    for name in names:
        found = parts.get(name) or _of_module(model, name)
        found = found or [one for one in parameters if fnmatchcase(one, name)]
        if not found:
            patterns = ", ".join(f"{part}.*" for part in dict(model.named_children()))
            raise SettingsError(
                f"training.freeze: no parameter is named like {name!r}; the parts of this "
                f"model are {patterns}, and by name {', '.join(parts)}."
            )
        frozen += [one for one in found if one not in frozen]
    if len(frozen) == len(parameters):
        raise SettingsError("training.freeze leaves nothing to train; name fewer parts.")
    for name in frozen:
        parameters[name].requires_grad_(False)
    return frozen


def parts_of(model: nn.Module) -> dict[str, list[str]]:
    """Return the parts that can be frozen by the field's names, and their parameters."""
    parts: dict[str, list[str]] = {}
    for path, module in model.named_modules():
        for name in _names_of(path, module):
            part = parts.setdefault(name, [])
            part += [one for one in _of_module(model, path) if one not in part]
    return {name: parts[name] for name in sorted(parts) if parts[name]}


def _names_of(path: str, module: nn.Module) -> Iterator[str]:
    if path and "." not in path:
        yield path
    if isinstance(module, nn.Embedding | Embedded):  # with learned positions
        yield "embedding"
    if isinstance(module, MultiHeadAttention):
        yield "attention"
        yield "cross-attention" if path.endswith("cross_attention") else "self-attention"
    if isinstance(module, Lookup):
        yield "attention"
    if isinstance(module, FeedForward):
        yield "feed-forward"
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        yield "norms"


def _of_module(model: nn.Module, path: str) -> list[str]:
    """Return the names of a module's parameters; a shared one is named after its first place."""
    modules = dict(model.named_modules())
    if path not in modules:
        return []
    inside = set(map(id, modules[path].parameters()))
    return [name for name, one in model.named_parameters() if id(one) in inside]


class LowRank(nn.Module):
    """W + B A, with A of a few rows and B zero at first (Hu et al. 2022, section 4.1)."""

    def __init__(self, rows: int, columns: int, *, rank: int):
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, columns) / math.sqrt(columns))  # A
        self.up = nn.Parameter(torch.zeros(rows, rank))  # B

    def forward(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """Return W + B A."""
        return weight + self.up @ self.down


# The matrices that get adapters, by the module that has them.
ADAPTED: dict[type[nn.Module], tuple[str, ...]] = {
    MultiHeadAttention: ("projection", "output"),
    FeedForward: ("inner", "outer"),
    RecurrentUnit: ("projection", "forget"),
}
ORIGINAL = ".parametrizations.weight.original"  # how torch names a matrix that has an adapter


def add_adapters(
    network: nn.Module, *, rank: int, to: Sequence[type[nn.Module]] = tuple(ADAPTED)
) -> None:
    """Give matrices adapters, and keep everything else as it is."""
    found = [
        getattr(part, name)
        for part in network.modules()
        if isinstance(part, tuple(to))
        for name in ADAPTED[type(part)]
    ]
    if not found:
        raise SettingsError("training.adapter_rank: this model has no attention to adapt.")
    network.requires_grad_(False)
    for linear in found:
        adapter = LowRank(*linear.weight.shape, rank=rank)
        parametrize.register_parametrization(linear, "weight", adapter)


def merge_adapters(network: nn.Module) -> None:
    """Add what the adapters have learned to the weights, so that using them costs nothing."""
    for part in network.modules():
        if isinstance(part, nn.Linear) and parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight", leave_parametrized=True)


def merged_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a checkpoint as if its adapters had been merged."""
    found = {name: one for name, one in weights.items() if ".parametrizations." not in name}
    for name, one in weights.items():
        if name.endswith(ORIGINAL):
            path = name.removesuffix(ORIGINAL)
            adapter = f"{path}.parametrizations.weight.0"
            found[f"{path}.weight"] = one + weights[f"{adapter}.up"] @ weights[f"{adapter}.down"]
    return found


def _require_fit(name: str, parameter: Tensor, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights of a model that differs in more than rows at the end."""
    if name not in weights:
        raise SettingsError(
            f"training.start_from: that run's model has no weights {name!r}. Use the same "
            "settings under 'model' as that run."
        )
    old, new = weights[name].shape, parameter.shape
    if old[1:] != new[1:] or len(old) != len(new) or (len(old) and old[0] > new[0]):
        raise SettingsError(
            f"training.start_from: {name!r} has shape {tuple(old)} there and {tuple(new)} here. "
            "Use the same settings under 'model' as that run."
        )
