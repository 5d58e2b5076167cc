"""An exported translator in onnxruntime, with the steps that all searches take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.base.errors import RegardError, RunError
from regard.base.files import read_json
from regard.base.results import Encoded, Step
from regard.base.shapes import Bool, Int, Tensor

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
RECORD, LONGEST = "export.json", "longest"
Arrays = dict[str, np.ndarray]


class OnnxState(NamedTuple):
    """What the next step reads: the memory, and the past of every layer."""

    memory: Arrays
    past: Arrays
    read: int


class OnnxTranslator:
    """A `StepDecoder` whose arithmetic is done by onnxruntime."""

    def __init__(self, folder: Path, *, threads: int = 1):
        self.longest_target: int = read_json(folder / RECORD, owner="export")[LONGEST]
        """The most target tokens, end mark included."""
        self._encoder = _session(folder / ENCODER, threads)
        self._decoder = _session(folder / DECODER, threads)
        self.outputs = [value.name for value in self._decoder.get_outputs()]
        self._pasts = {
            value.name: value.shape
            for value in self._decoder.get_inputs()
            if value.name.startswith("past_")
        }

    def eval(self) -> OnnxTranslator:
        """Return itself: it never trains."""
        return self

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Read the source sentences once; the summary holds the keys and values of each layer."""
        names = [value.name for value in self._encoder.get_outputs()]
        found = self._encoder.run(names, {"tokens": source.numpy(), "mask": mask.numpy()})
        arrays = dict(zip(names, found, strict=True))
        return Encoded(torch.from_numpy(arrays["memory"]), mask, summary=arrays)

    def start(self, encoded: Encoded) -> OnnxState:
        """Return the state before the first target token."""
        batch = len(encoded.mask)
        memory = {n: a for n, a in encoded.summary.items() if n.startswith("memory_")}
        # The first axis is the batch, and another one without a fixed size is the past.
        past = {
            name: np.zeros(
                [batch, *(size if isinstance(size, int) else 0 for size in shape[1:])], np.float32
            )
            for name, shape in self._pasts.items()
        }
        return OnnxState(memory | {"mask": encoded.mask.numpy()}, past, 0)

    def step(
        self, tokens: Int[Tensor, "batch"], state: OnnxState, *, with_weights: bool = False
    ) -> Step[OnnxState]:
        """Read one token a row and return logits over the next one."""
        given = {"tokens": tokens.numpy(), "position": np.array(state.read)}
        found = self._decoder.run(self.outputs, given | state.memory | state.past)
        arrays = dict(zip(self.outputs, found, strict=True))
        past = {name: arrays[name.removeprefix("past_")] for name in self._pasts}
        weights = _mean_of_last(arrays) if with_weights else None
        after = state._replace(past=past, read=state.read + 1)
        return Step(torch.from_numpy(arrays["logits"]), after, weights)

    def select(self, state: OnnxState, rows: Int[Tensor, "chosen"]) -> OnnxState:
        """Return the state of these rows of the batch, in this order."""
        chosen = rows.numpy()
        memory, past = (
            {name: part[chosen] for name, part in side.items()}
            for side in (state.memory, state.past)
        )
        return OnnxState(memory, past, state.read)


def _mean_of_last(arrays: Mapping[str, np.ndarray]) -> Tensor:
    """Return the mean over the heads of the last layer, as our decoder shows it."""
    layers = [name for name in arrays if name.startswith("cross_weights.")]
    if not layers:
        raise RegardError("This export has no weights as outputs: export it with --weights.")
    last = max(layers, key=lambda name: int(name.rpartition(".")[2]))
    return torch.from_numpy(arrays[last][:, :, 0]).mean(dim=1)


def _session(path: Path, threads: int) -> Any:
    if not path.is_file():
        raise RunError(f"{path} is missing: this is not a folder that was exported to ONNX.")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
