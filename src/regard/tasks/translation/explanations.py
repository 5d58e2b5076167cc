"""Which source tokens decided on each target token: attention, and what else can be asked.

Every method gives one number for each target token and source token. What depends on a choice takes
that of the literature: the baseline of integrated gradients and of occlusion is the unknown token
in place of each source token, the end mark stays; what is explained is the probability of a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from regard.attention.probe import Probe, Recorder, Site
from regard.base.errors import RegardError, SettingsError
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import BEGIN, END, UNKNOWN
from regard.batching.batch import padded
from regard.compute.device import beside, device_of
from regard.settings.recipe import require_known
from regard.tasks.attention import AttentionMap
from regard.tasks.translation.model import LoadedTranslator

STEPS = 50  # of the integral, as captum and inseq have it
RESIDUAL = 0.5  # the share of a residual in a rollout (Abnar & Zuidema 2020)


@dataclass(frozen=True)
class Explanation:
    """What a method says about a translation: a number for each target and source token.

    `values` are as the method gives them, with their signs; `shares` are their sizes, of which each
    row sums to one, with the words that they are about.
    """

    method: str
    source: str
    text: str
    values: Float[np.ndarray, "target source"]
    shares: AttentionMap

    def by_word(self) -> AttentionMap:
        """Return the shares of whole words, without the end marks."""
        return self.shares.by_word(self.source, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "method": self.method,
            "source": self.source,
            "text": self.text,
            "values": np.round(self.values.astype(float), 7).tolist(),
            "shares": self.shares.to_dict(),
        }

    def save(self, path: Any) -> None:
        """Draw the words' heat map to a file, or write its numbers (.csv, .json)."""
        self.by_word().plot(path, title=f"{self.method}: what decided")

    def _repr_html_(self) -> str:
        from regard.pictures.svg import notebook_lines

        return notebook_lines((self.method, self.text)) + self.by_word()._repr_html_()


@dataclass(frozen=True)
class SentencePass:
    """A sentence and a translation of it in the tokens of a model."""

    loaded: LoadedTranslator
    source: tuple[int, ...]
    target: tuple[int, ...]
    head: tuple[int, int] | None = None
    """The head that the method best-head shows."""

    @property
    def model(self) -> Any:
        """The network."""
        return self.loaded.model

    @cached_property
    def recorder(self) -> Recorder:
        """Every value on the way through the model."""
        recorder = Recorder()
        with torch.inference_mode():
            self.features(1, probe=Probe(recorder))
        return recorder

    @property
    def outputs(self) -> Tensor:
        """The target tokens and the end mark."""
        return torch.tensor([*self.target, END])

    def features(
        self, rows: int, *, probe: Probe | None = None, source: Tensor | None = None
    ) -> Float[Tensor, "rows target model_dim"]:
        """Return what the model makes of the pair, `rows` times, or of other sources."""
        if source is None:
            source = torch.tensor([[*self.source, END]]).expand(rows, -1)
        target, _ = beside(self.model, padded([list(self.target)] * rows, before=BEGIN))
        mask = torch.ones_like(source, dtype=torch.bool)
        found: Tensor = self.model(source, mask, target, probe=probe).features
        return found

    def chances(self, features: Tensor) -> Float[Tensor, "rows target"]:
        """Return the probability of each target token in each row."""
        logits = self.model.project(features).float()
        wanted = self.outputs.expand(len(features), -1)[:, :, None]
        found: Tensor = logits.softmax(dim=-1).gather(2, wanted)[:, :, 0]
        return found

    def layers(self, part: str, name: str) -> list[Tensor]:
        """Return what was seen under this name in each layer of a part."""
        found = self.recorder.values
        numbers = sorted({layer for where, layer, what in found if (where, what) == (part, name)})
        return [torch.cat(found[part, number, name], dim=-2)[0] for number in numbers]


Matrix = Float[Tensor, "target source"]


def _attention(given: SentencePass) -> Matrix:
    """Return the weights that the model shows: the mean of the heads of its alignment layer."""
    layer = getattr(given.model.decoder, "alignment_layer", 0)
    return given.layers("cross", "weights")[layer].mean(dim=0)


def _best_head(given: SentencePass) -> Matrix:
    """Return one head: the one that was chosen, or the one whose weights are sharpest."""
    layers = given.layers("cross", "weights")
    if given.head is not None:
        layer, head = given.head
        return layers[layer][head]
    heads = torch.cat(layers)
    sharpness = heads.max(dim=2).values.mean(dim=1)
    return heads[int(sharpness.argmax())]


def _rollout(given: SentencePass) -> Matrix:
    """Return attention followed through all layers (Abnar & Zuidema 2020, eq. 1)."""
    return _through_layers(
        [_with_residual(layer.mean(dim=0)) for layer in given.layers("encoder", "weights")],
        [_with_residual(layer.mean(dim=0)) for layer in given.layers("decoder", "weights")],
        [
            (RESIDUAL * torch.ones(len(given.outputs)), RESIDUAL * layer.mean(dim=0))
            for layer in given.layers("cross", "weights")
        ],
        source=len(given.source) + 1,
    )


def _with_residual(weights: Tensor) -> Tensor:
    return (1 - RESIDUAL) * weights + RESIDUAL * torch.eye(len(weights))


def _through_layers(
    encoder: Sequence[Tensor],
    decoder: Sequence[Tensor],
    cross: Sequence[tuple[Tensor, Tensor]],
    *,
    source: int,
) -> Matrix:
    """Return how much of each source token is in each last state.

    E = E_L ... E_1; in each decoder layer S <- D S, then S <- diag(r) S + C E.
    """
    read = torch.eye(source)
    for layer in encoder:
        read = layer @ read
    found = torch.zeros(len(cross[0][0]), source)
    for number, (kept, across) in enumerate(cross):
        if number < len(decoder):
            found = decoder[number] @ found
        found = kept[:, None] * found + across @ read
    return found


def _gradient(given: SentencePass) -> Matrix:
    """Return sum_d x_d dp/dx_d over the embedding x of each source token (Simonyan et al. 2014)."""
    vectors, gradients = _gradients(given, torch.ones(1), baseline=False)
    return (vectors * gradients).sum(dim=-1)


def _integrated_gradients(given: SentencePass) -> Matrix:
    """Return sum_d (x_d - b_d) int dp/dx_d along the line from b to x (Sundararajan et al. 2017).

    The integral is Gauss-Legendre's with 50 steps; b is the embedding of the unknown token.
    """
    places, weights = np.polynomial.legendre.leggauss(STEPS)
    shares = torch.tensor((1 + places) / 2, dtype=torch.float32)
    total: Any = 0
    for share, weight in zip(shares, weights / 2, strict=True):
        change, gradients = _gradients(given, share[None], baseline=True)
        total = total + float(weight) * (change * gradients).sum(dim=-1)
    found: Tensor = total
    return found


def _gradients(given: SentencePass, share: Tensor, *, baseline: bool) -> tuple[Tensor, Tensor]:
    """Return x - b (or x) and dp_i/dx at b + share (x - b), [target, source, width], b = 0 or not.

    Each row of the batch is a copy of the sentence, and explains one target token.
    """
    steps = len(given.outputs)
    kept: list[Tensor] = []
    neutral = _neutral(given) if baseline else None

    def replace(site: Site, name: str, value: Tensor) -> Tensor:
        if site.part != "encoder" or name != "embedding":
            return value
        start = torch.zeros_like(value) if neutral is None else neutral.expand_as(value)
        leaf = (start + share * (value - start)).detach().requires_grad_()
        kept.extend([(value - start).detach(), leaf])
        return leaf

    with torch.enable_grad():
        chances = given.chances(given.features(steps, probe=Probe(replace)))
        change, leaf = kept
        (gradients,) = torch.autograd.grad(chances.diagonal().sum(), leaf)
    return change, gradients


def _neutral(given: SentencePass) -> Float[Tensor, "1 source width"]:
    """Return the embeddings of the baseline: unknown tokens, and the end mark as it is."""
    seen: list[Tensor] = []

    def keep(site: Site, name: str, value: Tensor) -> Tensor:
        if site.part == "encoder" and name == "embedding":
            seen.append(value.detach())
        return value

    unknown = torch.tensor([[UNKNOWN] * len(given.source) + [END]])
    mask = torch.ones_like(unknown, dtype=torch.bool)
    with torch.no_grad():
        given.model.encode(unknown, mask, probe=Probe(keep))
    return seen[0]


@torch.inference_mode()
def _occlusion(given: SentencePass) -> Matrix:
    """Return by how much p falls when a token is unknown (Zeiler & Fergus 2014; Li et al. 2016)."""
    places = len(given.source)
    sources = torch.tensor([[*given.source, END]]).repeat(places + 1, 1)
    sources[torch.arange(places), torch.arange(places)] = UNKNOWN
    chances = given.chances(given.features(places + 1, source=sources))
    fall = (chances[-1:] - chances[:-1]).T  # [target, source]
    return torch.cat([fall, torch.zeros(len(fall), 1)], dim=1)  # the end mark stays


@torch.inference_mode()
def _value_zeroing(given: SentencePass) -> Matrix:
    """Return how far a state turns when a token's values in cross-attention are zero.

    1 - cos of the features before and after (Mohebbi et al. 2023), in all layers at once.
    """
    places = len(given.source) + 1

    def zero(site: Site, name: str, value: Tensor) -> Tensor:
        if site.part != "cross" or name != "values":
            return value
        changed = value.clone()
        changed[torch.arange(places), :, torch.arange(places)] = 0
        return changed

    whole = given.features(1, probe=Probe(Recorder()))
    without = given.features(places, probe=Probe(zero))
    return (1 - torch.cosine_similarity(without, whole, dim=-1)).T


def _weighted_values(given: SentencePass) -> Matrix:
    """Return ||sum_h alpha_h W^O_h v_h||, mean over the layers (Kobayashi et al. 2020, eq. 3)."""
    found = [part.norm(dim=-1) for part in _transformed(given, "cross")]
    return torch.stack(found).mean(dim=0)


def _transformed(given: SentencePass, part: str) -> list[Float[Tensor, "target source width"]]:
    """Return for each layer what each position gives to each other one: alpha W^O v."""
    name = {"cross": "cross_attention", "decoder": "self_attention", "encoder": "attention"}[part]
    stack = given.model.encoder if part == "encoder" else given.model.decoder
    found = []
    for number, (weights, values) in enumerate(
        zip(given.layers(part, "weights"), given.layers(part, "values"), strict=True)
    ):
        mixed = torch.einsum("hij,hjd->ijhd", weights, values[:, : weights.shape[2]])
        if hasattr(stack, "layers"):
            output = getattr(stack.layers[number], name).output.weight
            mixed = mixed.flatten(2) @ output.T
        else:  # a recurrent decoder reads the contexts as they are
            mixed = mixed.flatten(2)
        found.append(mixed)
    return found


@torch.inference_mode()
def _alti(given: SentencePass) -> Matrix:
    """Return contributions of tokens to tokens, followed through all layers (ALTI+).

    c_ij = max(0, ||y_i||_1 - ||y_i - T_i(x_j)||_1), with the residual as T_i(x_i), each row brought
    to a sum of one (Ferrando et al. 2022, eq. 7-8). Layer norms are left out.
    """
    within = {part: _contributions(given, part) for part in ("encoder", "decoder", "cross")}
    sums = [shares.sum(dim=1) + kept for kept, shares in within["cross"]]
    return _through_layers(
        [torch.diag(kept) + shares for kept, shares in within["encoder"]],
        [torch.diag(kept) + shares for kept, shares in within["decoder"]],
        [
            (kept / total, shares / total[:, None])
            for (kept, shares), total in zip(within["cross"], sums, strict=True)
        ],
        source=len(given.source) + 1,
    )


def _contributions(given: SentencePass, part: str) -> list[tuple[Tensor, Tensor]]:
    """Return for each layer the shares of the residual and of each position that is attended to."""
    found = []
    entered = "attended" if part == "cross" else "features"
    origin = "decoder" if part == "cross" else part
    for parts, residual in zip(
        _transformed(given, part), given.layers(origin, entered), strict=True
    ):
        whole = residual + parts.sum(dim=1)  # [target, width]
        size = whole.abs().sum(dim=-1)
        distance = (whole[:, None] - parts).abs().sum(dim=-1)
        shares = (size[:, None] - distance).clamp(min=0)
        kept = (size - (whole - residual).abs().sum(dim=-1)).clamp(min=0)
        total = (shares.sum(dim=1) + kept).clamp(min=1e-12)
        found.append((kept / total, shares / total[:, None]))
    return found


METHODS: dict[str, Callable[[SentencePass], Matrix]] = {
    "attention": _attention,
    "best-head": _best_head,
    "rollout": _rollout,
    "gradient": _gradient,
    "integrated-gradients": _integrated_gradients,
    "occlusion": _occlusion,
    "value-zeroing": _value_zeroing,
    "weighted-values": _weighted_values,
    "alti": _alti,
}
# What needs layers of self-attention, or several heads.
OF_TRANSFORMERS = ("best-head", "rollout", "alti")


def methods_of(loaded: LoadedTranslator) -> tuple[str, ...]:
    """Return the methods that have a meaning for a model."""
    if hasattr(loaded.model.decoder, "layers"):
        return tuple(METHODS)
    return tuple(name for name in METHODS if name not in OF_TRANSFORMERS)


def explain_translation(
    loaded: LoadedTranslator,
    source: str,
    text: str | None = None,
    *,
    method: str = "attention",
    head: tuple[int, int] | None = None,
) -> Explanation:
    """Return which source tokens decided on each token of a translation, by default the model's."""
    require_known(method, METHODS, what="method")
    if not source.strip():
        raise RegardError("There is nothing to explain: the text is empty.")
    if not loaded.attends or loaded.recipe.own_model:
        raise RegardError("This model has no attention of ours, which all methods look at.")
    if method not in methods_of(loaded):
        raise SettingsError(
            f"{method} needs the layers and heads of a Transformer; this model has the methods "
            f"{', '.join(methods_of(loaded))}."
        )
    if text is None:
        text = loaded.translate(source, attention=False).text
    given = SentencePass(
        loaded,
        tuple(loaded.source_tokenizer.encode(source)),
        tuple(loaded.target_tokenizer.encode(text)),
        head,
    )
    loaded.model.eval()
    return explained(given, method, source, text)


def explained(given: SentencePass, method: str, source: str, text: str) -> Explanation:
    """Return what a method says about a pair in tokens."""
    with device_of(given.model):  # what is made inside is made there
        values = METHODS[method](given).detach().cpu().numpy().astype(np.float64)
    sizes = np.abs(values)
    sums = sizes.sum(axis=1, keepdims=True)
    shares = torch.from_numpy(sizes / np.where(sums > 0, sums, 1)).float()
    shown = given.loaded.attention_map(given.source, given.target, shares)
    return Explanation(method, source, text, values, shown)
