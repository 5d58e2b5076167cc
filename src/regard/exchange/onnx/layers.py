"""ONNX graphs that are written node by node, and the layers of a Transformer in them.

So a graph holds nothing but the arithmetic of the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from regard.attention.masks import forbidden
from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import Rotary
from regard.base.shapes import Tensor
from regard.settings.models import TransformerSettings
from regard.transformer import layers as parts

OPSET, IR_VERSION = 20, 9
# Sinusoids have no end, but a graph reads them from a table.
MOST_POSITIONS = 2_048
FLOATS, IDS, TRUTHS = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class OnnxGraph:
    """An ONNX graph that grows node by node; tensors are known by their names."""

    def __init__(self, name: str):
        self.name = name
        self.nodes: list[Any] = []
        self.weights: dict[tuple[int, torch.Size], str] = {}
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, kind: int, *axes: str | int) -> str:
        """Declare an input with these axes; a text is a size that is not fixed."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, axes))
        return name

    def output(self, name: str, tensor: str, *axes: str | int) -> None:
        """Give a tensor a name outside."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, FLOATS, axes))

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return its name."""
        return self.several(kind, *inputs, outputs=1, **attributes)[0]

    def several(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; return their names."""
        names = [f"{kind}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def weight(self, tensor: Tensor) -> str:
        """Store a parameter of the model; one that is used twice is stored once."""
        place = (tensor.data_ptr(), tensor.shape)
        if place not in self.weights:
            self.weights[place] = self.constant(tensor.detach().cpu().float().numpy(), "weight")
        return self.weights[place]

    def constant(self, values: Any, kind: str = "constant") -> str:
        """Store numbers that never change."""
        name = f"{kind}_{len(self.initializers)}"
        array = np.ascontiguousarray(np.asarray(values))
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def numbers(self, *values: int) -> str:
        """Store whole numbers, as axes and shapes are."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """Store one number."""
        return self.constant(np.array(value, dtype=np.float32))

    def size(self, tensor: str, axis: int) -> str:
        """Return one size of a tensor, as a number."""
        return self("Squeeze", self("Shape", tensor, start=axis, end=axis + 1))

    def count_to(self, end: str) -> str:
        """Return 0, 1, ... below a number."""
        zero, one = (self.constant(np.array(value, dtype=np.int64)) for value in (0, 1))
        return self("Range", zero, end, one)

    def model(self) -> onnx.ModelProto:
        """Return the whole, checked."""
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, self.initializers
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="regard",
        )
        onnx.checker.check_model(model)
        return model


class LayerGraph(OnnxGraph):
    """A graph with the layers of a Transformer."""

    def __init__(self, name: str, settings: TransformerSettings, *, int8: bool = False):
        """`int8` prepares it for 8 bits: words are stored so, and no matrix is used twice."""
        super().__init__(name)
        self.int8 = int8
        learned = settings.positions == "learned"
        self.most = settings.max_length if learned else MOST_POSITIONS
        self.settings = settings
        self.length: str | None = None
        """How many inputs there are, from the first position on; None in a step."""
        self.position = ""
        """The position of the one input of a step."""

    def rows(self, table: Tensor) -> str:
        """Return the rows of a table at the positions of the inputs."""
        stored = self.constant(table.detach().cpu().float().numpy())
        if self.length is None:
            return self("Gather", stored, self("Unsqueeze", self.position, self.numbers(0)))
        return self("Slice", stored, self.numbers(0), self.length, self.numbers(0))

    def linear(self, inputs: str, weight: Tensor, bias: Tensor | None) -> str:
        """Return x W^T + b."""
        transposed = self.constant(weight.detach().cpu().float().T.numpy(), "weight")
        product = self("MatMul", inputs, transposed)
        return product if bias is None else self("Add", product, self.weight(bias))

    def norm(self, inputs: str, norm: nn.Module) -> str:
        """Return the layer norm, or the RMS norm."""
        weight: Any = norm.weight
        epsilon: Any = norm.eps
        if isinstance(norm, nn.LayerNorm):
            return self(
                "LayerNormalization",
                inputs,
                self.weight(weight),
                self.weight(norm.bias),
                axis=-1,
                epsilon=epsilon,
            )
        square = self("ReduceMean", self("Mul", inputs, inputs), self.numbers(-1))
        size = self("Sqrt", self("Add", square, self.number(epsilon)))
        return self("Mul", self("Div", inputs, size), self.weight(weight))

    def embedded(self, tokens: str, embedded: parts.Embedded) -> str:
        """Return the vectors of tokens at their positions."""
        vectors = self._words(tokens, embedded.embedding.weight)
        if embedded.scale != 1:
            vectors = self("Mul", vectors, self.number(embedded.scale))
        if embedded.positions is not None:
            vectors = self("Add", vectors, self.rows(embedded.positions(self.most)))
        return vectors if embedded.norm is None else self.norm(vectors, embedded.norm)

    def _words(self, tokens: str, table: Tensor) -> str:
        """Return the rows of a table of words; in 8 bits, each has a scale of its own."""
        if not self.int8:
            return self("Gather", self.weight(table), tokens)
        scales = (table.detach().abs().amax(dim=1, keepdim=True) / 127).clamp(min=1e-12)
        small = self.constant((table.detach() / scales).round().to(torch.int8).numpy(), "weight")
        rows = self("Cast", self("Gather", small, tokens), to=FLOATS)
        sizes = self("Gather", self.constant(scales.float().numpy(), "weight"), tokens)
        return self("Mul", rows, sizes)

    def projected_words(self, features: str, projection: nn.Linear) -> str:
        """Return the logits; a table that is read too is stored once, if not in 8 bits."""
        if self.int8:
            return self.linear(features, projection.weight, projection.bias)
        bias = [] if projection.bias is None else [self.weight(projection.bias)]
        return self("Gemm", features, self.weight(projection.weight), *bias, transB=1)

    def feed_forward(self, inputs: str, network: parts.FeedForward) -> str:
        """Return f(x W_1 + b_1) W_2 + b_2."""
        weight, bias = network.inner.weight, network.inner.bias
        name = network.activation
        if name in parts.GATED:  # gate and value take turns
            plain = {"swiglu": "swish", "geglu": "gelu", "geglu-tanh": "gelu-tanh"}[name]
            gate, value = (
                self.linear(inputs, weight[turn::2], None if bias is None else bias[turn::2])
                for turn in (0, 1)
            )
            active = self("Mul", self._active(gate, plain), value)
        else:
            active = self._active(self.linear(inputs, weight, bias), name)
        return self.linear(active, network.outer.weight, network.outer.bias)

    def _active(self, inner: str, name: str) -> str:
        if name == "relu":
            return self("Relu", inner)
        if name == "swish":
            return self("Mul", inner, self("Sigmoid", inner))
        return self("Gelu", inner, approximate="tanh" if name == "gelu-tanh" else "none")

    def heads(self, projected: str, count: int, norm: nn.Module | None = None) -> str:
        """Return a projection split into heads: [batch, heads, time, head_dim]."""
        split = self("Reshape", projected, self.numbers(0, 0, count, -1))
        found = self("Transpose", split, perm=[0, 2, 1, 3])
        return found if norm is None else self.norm(found, norm)

    def rotated(self, heads: str, rotary: Rotary) -> str:
        """Return queries or keys rotated by their positions."""
        waves = rotary.sinusoids(self.most).chunk(2, dim=-1)
        sine, cosine = (self.rows(part) for part in waves)
        first, second = self.several("Split", heads, outputs=2, axis=-1, num_outputs=2)
        rotated = (
            self("Sub", self("Mul", first, cosine), self("Mul", second, sine)),
            self("Add", self("Mul", second, cosine), self("Mul", first, sine)),
        )
        return self("Concat", *rotated, axis=-1)

    def attended(
        self, attention: MultiHeadAttention, heads: Sequence[str], penalties: Sequence[str]
    ) -> tuple[str, str]:
        """Return the context of queries, keys and values, and the weights."""
        query, keys, values = heads
        times = attention.heads // attention.groups
        if times > 1:
            shape = self.numbers(0, attention.heads, -1, attention.query_dim // attention.heads)
            lifted = (self("Unsqueeze", part, self.numbers(2)) for part in (keys, values))
            keys, values = (
                self("Reshape", self("Concat", *[part] * times, axis=2), shape) for part in lifted
            )
        if attention.score is None:
            scale = (attention.query_dim // attention.heads) ** -0.5
            query = self("Mul", query, self.number(scale))
        scores = self("MatMul", query, self("Transpose", keys, perm=[0, 1, 3, 2]))
        for penalty in penalties:
            scores = self("Add", scores, penalty)
        weights = self("Softmax", scores, axis=-1)
        context = self("Transpose", self("MatMul", weights, values), perm=[0, 2, 1, 3])
        joined = self("Reshape", context, self.numbers(0, 0, attention.query_dim))
        return self.linear(joined, attention.output.weight, attention.output.bias), weights

    def projected(self, attention: MultiHeadAttention, inputs: str, names: str) -> list[str]:
        """Return queries, keys and values ("qkv"), or some of them, split into heads."""
        width = (attention.projection.out_features - attention.query_dim) // 2
        rows = {"q": (0, attention.query_dim)}
        rows |= {"k": (attention.query_dim, width), "v": (attention.query_dim + width, width)}
        found = []
        for name in names:
            first, count = rows[name]
            part = slice(first, first + count)
            weight, bias = attention.projection.weight, attention.projection.bias
            made = self.linear(inputs, weight[part], None if bias is None else bias[part])
            norm = {"q": attention.query_norm, "k": attention.key_norm, "v": None}[name]
            split = self.heads(made, attention.heads if name == "q" else attention.groups, norm)
            if isinstance(attention.positions, Rotary) and name in "qk":
                split = self.rotated(split, attention.positions)
            found.append(split)
        return found

    def padding(self, mask: str) -> str:
        """Return what hides padding: [batch, 1, 1, source]."""
        hidden = self.number(forbidden(torch.float32))
        found = self("Where", mask, self.number(0.0), hidden)
        return self("Unsqueeze", found, self.numbers(1, 2))

    def by_distance(self, stack: Any) -> str | None:
        """Return a table of what distance adds to scores: [heads, 2 most - 1]; None if nothing."""
        window = self.settings.window
        if stack.distance_bias is None and window is None:
            return None
        distances = torch.arange(1 - self.most, self.most)
        table = torch.zeros(1, len(distances))
        if stack.distance_bias is not None:
            table = stack.distance_bias(distances[None], dtype=torch.float32)[:, 0]
        if window is not None:
            table = table + (distances.abs() > window) * forbidden(torch.float32)
        return self.constant(table.detach().float().numpy())

    def residual(self, residual: parts.Residual, features: str, change: str) -> str:
        """Return the sum of a sublayer and its residual, after its norm if that comes last."""
        joined = self("Add", features, change)
        return joined if residual.pre_norm else self.norm(joined, residual.norm)

    def enter(self, residual: parts.Residual, features: str) -> str:
        """Return what a sublayer reads."""
        return self.norm(features, residual.norm) if residual.pre_norm else features
