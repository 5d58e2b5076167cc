"""The gradient of a small GPT by bare operations: how much torch's own kernels leave to gain.

No module and no autograd is left, and all tensors but those of norms and embedding have their place
before the first update. What an update takes here is about what its products, norms, activations
and softmaxes take; a training that is made of the same kernels can hardly be faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.batching.texts import StreamBatch
from regard.models.language_model import LanguageModel

EPSILON = 1e-5
gelu = torch.ops.aten.gelu.out
gelu_backward = torch.ops.aten.gelu_backward.grad_input
norm_backward = torch.ops.aten.native_layer_norm_backward
softmax_backward = torch.ops.aten._softmax_backward_data.out


class Linear:
    """x W^T + b, with a gradient for both."""

    def __init__(self, module: nn.Linear):
        self.weight, self.bias = module.weight.data, module.bias.data
        self.by_weight, self.by_bias = (gradient_of(p) for p in (module.weight, module.bias))

    def forward(self, inputs: Tensor, out: Tensor) -> None:
        """Write the outputs."""
        torch.addmm(self.bias, inputs, self.weight.t(), out=out)

    def backward(self, gradient: Tensor, inputs: Tensor, out: Tensor) -> None:
        """Write the gradient by the inputs, and keep that by the weights."""
        torch.mm(gradient, self.weight, out=out)
        torch.mm(gradient.t(), inputs, out=self.by_weight)
        torch.sum(gradient, 0, out=self.by_bias)


class Norm:
    """Layer norm, which remembers what its gradient needs."""

    def __init__(self, module: nn.LayerNorm):
        self.weight, self.bias = module.weight.data, module.bias.data
        self.by_weight, self.by_bias = (gradient_of(p) for p in (module.weight, module.bias))
        self.shape = tuple(module.normalized_shape)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs."""
        self.inputs = inputs
        self.outputs, self.mean, self.scale = torch.native_layer_norm(
            inputs, self.shape, self.weight, self.bias, EPSILON
        )
        return self.outputs

    def backward(self, gradient: Tensor) -> Tensor:
        """Return the gradient by the inputs, and keep that by the weights."""
        by_inputs, by_weight, by_bias = norm_backward(
            gradient, self.inputs, self.shape, self.mean, self.scale, self.weight, self.bias,
            (True, True, True),
        )  # fmt: skip
        self.by_weight.copy_(by_weight)
        self.by_bias.copy_(by_bias)
        changed: Tensor = by_inputs
        return changed


class Layer:
    """Self-attention and feed-forward network with norms before them."""

    def __init__(self, module: Any, *, batch: int, time: int):
        attention, feed_forward = module.attention, module.feed_forward
        self.first, self.second = (
            Norm(part.norm) for part in (module.attention_residual, module.feed_forward_residual)
        )
        self.projection, self.output = Linear(attention.projection), Linear(attention.output)
        self.inner, self.outer = Linear(feed_forward.inner), Linear(feed_forward.outer)
        width, hidden = feed_forward.inner.weight.shape[1], feed_forward.inner.weight.shape[0]
        self.axes = (batch, time, attention.heads, width // attention.heads)
        self.alpha = 1 / math.sqrt(self.axes[3])
        rows, heads = batch * time, batch * attention.heads
        self.future = torch.full((time, time), -1e9).triu(1)
        self.projected, self.by_projected = (torch.empty(rows, 3 * width) for _ in range(2))
        self.split, self.by_split = (
            torch.empty(3, batch, attention.heads, time, self.axes[3]) for _ in range(2)
        )
        self.weights, self.by_weights = (torch.empty(heads, time, time) for _ in range(2))
        self.context, self.by_context = (torch.empty(heads, time, self.axes[3]) for _ in range(2))
        self.joined, self.middle, self.result, self.by_width = (
            torch.empty(rows, width) for _ in range(4)
        )
        self.hidden, self.active, self.by_hidden = (torch.empty(rows, hidden) for _ in range(3))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the features after this layer."""
        self.projection.forward(self.first.forward(inputs), out=self.projected)
        self.split.copy_(self._side_by_side(self.projected).permute(2, 0, 3, 1, 4))
        query, keys, values = (part.flatten(0, 1) for part in self.split)
        self.weights.copy_(self.future)
        self.weights.baddbmm_(query, keys.mT, alpha=self.alpha)
        torch.softmax(self.weights, -1, out=self.weights)
        torch.bmm(self.weights, values, out=self.context)
        self.joined.view(self.axes).copy_(self._heads(self.context))
        self.output.forward(self.joined, out=self.middle)
        self.middle.add_(inputs)
        self.inner.forward(self.second.forward(self.middle), out=self.hidden)
        gelu(self.hidden, out=self.active)
        self.outer.forward(self.active, out=self.result)
        return self.result.add_(self.middle)

    def backward(self, gradient: Tensor) -> Tensor:
        """Return the gradient by what this layer read."""
        self.outer.backward(gradient, self.active, out=self.by_hidden)
        gelu_backward(self.by_hidden, self.hidden, grad_input=self.by_hidden)
        self.inner.backward(self.by_hidden, self.second.outputs, out=self.by_width)
        gradient = self.second.backward(self.by_width).add_(gradient)
        self.output.backward(gradient, self.joined, out=self.by_width)
        self._heads(self.by_context).copy_(self.by_width.view(self.axes))
        query, keys, values = (part.flatten(0, 1) for part in self.split)
        by_query, by_keys, by_values = (part.flatten(0, 1) for part in self.by_split)
        torch.bmm(self.weights.mT, self.by_context, out=by_values)
        torch.bmm(self.by_context, values.mT, out=self.by_weights)
        softmax_backward(
            self.by_weights, self.weights, -1, torch.float32, grad_input=self.by_weights
        )
        by_query.baddbmm_(self.by_weights, keys, beta=0, alpha=self.alpha)
        by_keys.baddbmm_(self.by_weights.mT, query, beta=0, alpha=self.alpha)
        self._side_by_side(self.by_projected).copy_(self.by_split.permute(1, 3, 0, 2, 4))
        self.projection.backward(self.by_projected, self.first.outputs, out=self.by_width)
        return self.first.backward(self.by_width).add_(gradient)

    def _side_by_side(self, projected: Tensor) -> Tensor:
        batch, time, heads, head_dim = self.axes
        return projected.view(batch, time, 3, heads, head_dim)

    def _heads(self, context: Tensor) -> Tensor:
        batch, time, heads, head_dim = self.axes
        return context.view(batch, heads, time, head_dim).transpose(1, 2)


def bare_gradient(
    model: LanguageModel[Any], *, batch: int, time: int
) -> Callable[[StreamBatch, int], float]:
    """Return what sets the gradients of a GPT with learned positions, tied and without dropout."""
    backbone: Any = model.backbone
    layers = [Layer(module, batch=batch, time=time) for module in backbone.layers]
    last = Norm(backbone.norm)
    table, positions = backbone.embedded.embedding.weight, backbone.embedded.positions.vectors
    by_table, by_positions = gradient_of(table), gradient_of(positions)
    logits = torch.empty(batch * time, len(table))
    by_features = torch.empty(batch * time, table.shape[1])
    buffers = {parameter: parameter.grad for parameter in model.parameters()}

    @torch.no_grad()
    def add_gradient(asked: StreamBatch, tokens: int) -> float:
        for parameter, buffer in buffers.items():  # an update forgets them
            parameter.grad = buffer
        inputs, expected = asked.tokens.flatten(), asked.expected.reshape(-1, 1)
        features = (table[inputs].view(batch, time, -1) + positions).view(batch * time, -1)
        for layer in layers:
            features = layer.forward(features)
        features = last.forward(features)
        torch.mm(features, table.t(), out=logits)
        torch.log_softmax(logits, -1, out=logits)
        nats = -float(logits.gather(1, expected).sum())
        gradient = logits.exp_().scatter_add_(1, expected, torch.full(expected.shape, -1.0))
        gradient.div_(tokens)
        torch.mm(gradient.t(), features, out=by_table)
        torch.mm(gradient, table, out=by_features)
        by_inputs = last.backward(by_features)
        for layer in reversed(layers):
            by_inputs = layer.backward(by_inputs)
        torch.sum(by_inputs.view(batch, time, -1), 0, out=by_positions)
        by_table.index_add_(0, inputs, by_inputs)
        return nats

    return add_gradient


def gradient_of(parameter: Tensor) -> Tensor:
    """Give a parameter a place for its gradient, and return it."""
    parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
