"""The layer lens: what each layer would have said, had the model ended there.

The features between two layers go through the last norm and the projection, as those of the last
layer do (nostalgebraist 2020, "logit lens"). The last row is the output itself, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from regard.attention.probe import Probe, Recorder
from regard.base.errors import SettingsError
from regard.base.shapes import Float, Tensor


@torch.inference_mode()
def layer_features(
    network: Any, run: Callable[[Probe], Any], *, part: str = "decoder"
) -> list[Float[Tensor, "time model_dim"]]:
    """Return what could be projected before the first layer, and after each one.

    `network` is the decoder or backbone; `run` lets its model read one text with a probe. Attention
    keeps its fast kernels, so that the last features are those that the model computes by itself.
    """
    if not hasattr(network, "layers"):
        raise SettingsError(
            "The layer lens is for Transformers: this network has no layers whose output could be "
            "read as that of the last one."
        )
    recorder = Recorder()
    run(Probe(recorder, attention=False))
    entering = [recorder.get(part, number, "features") for number in range(len(network.layers))]
    norm, scale = network.norm, getattr(network, "output_scale", 1.0)
    found = [(each if norm is None else norm(each)) * scale for each in entering]
    return [each[0] for each in (*found, recorder.get(part, 0, "output"))]
