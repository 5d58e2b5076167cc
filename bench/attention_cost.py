"""What self-attention costs as sequences grow: full, within a window, and linear.

    python bench/attention_cost.py [--rounds 3]

Measures one layer of multi-head self-attention (width 128, 4 heads) on one thread, forwards and
backwards: seconds of the processor, and the bytes that are kept for the way back. Full attention
appears twice: with all weights held (as when they are wanted or dropped out), and by the fused
kernel that makes them piece by piece. Writes results/attention-cost.json and the picture.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.masks import Visibility
from regard.attention.multihead import MultiHeadAttention
from regard.pictures.studies import LengthPanel, draw_by_length
from result import write_result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "attention-cost.png"
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
WIDTH, HEADS, WINDOW = 128, 4, 32
KINDS = {
    "full": "full, weights held",
    "fused": "full, fused kernel",
    "window": f"window of {WINDOW} each way",
    "linear": "linear",
}


def main() -> None:
    """Measure every kind at every length, write the result and draw it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--rounds", type=int, default=3, help="rounds, of which the fastest counts"
    )
    given = options.parse_args()
    torch.set_num_threads(1)
    seconds: dict[str, dict[int, float]] = {kind: {} for kind in KINDS}
    megabytes: dict[str, dict[int, float]] = {kind: {} for kind in KINDS}
    for length in LENGTHS:
        for kind in KINDS:
            seconds[kind][length] = min(measured(kind, length) for _ in range(given.rounds))
            megabytes[kind][length] = kept_bytes(kind, length) / 1e6
            print(kind, length, seconds[kind][length], megabytes[kind][length], flush=True)
    unit = seconds["full"][LENGTHS[0]]
    ratios = {k: {n: value / unit for n, value in each.items()} for k, each in seconds.items()}
    figures = {
        **{f"time_{k}_{n}": round(v, 3) for k, each in ratios.items() for n, v in each.items()},
        **{f"mb_{k}_{n}": round(v, 3) for k, each in megabytes.items() for n, v in each.items()},
    }
    details = {
        "time": f"as a ratio to full attention at {LENGTHS[0]}, which took {1e3 * unit:.2f} ms",
        "mb": "megabytes kept for the way back, weights of the layer left out",
        "layer": f"width {WIDTH}, {HEADS} heads, one sequence, no mask but the window",
    }
    path = write_result(
        "attention-cost",
        figures,
        command=f"python bench/attention_cost.py --rounds {given.rounds}",
        details=details,
    )
    draw_by_length(
        [
            LengthPanel(
                label=f"time (full at {LENGTHS[0]} = 1)", curves=named(ratios), powers=True
            ),
            LengthPanel(label="memory for the way back, MB", curves=named(megabytes), powers=True),
        ],
        PICTURE,
    )
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def named(curves: dict[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """Return the curves under names to be read."""
    return {KINDS[kind]: curve for kind, curve in curves.items()}


def layer_of(kind: str) -> MultiHeadAttention:
    """Return a fresh layer."""
    torch.manual_seed(1)
    return MultiHeadAttention(model_dim=WIDTH, heads=HEADS, linear=kind == "linear")


def loss_of(layer: MultiHeadAttention, inputs: Tensor, kind: str) -> Tensor:
    """Return a number that depends on all that the layer gives for these inputs."""
    length = inputs.shape[1]
    visibility = Visibility(
        target=length,
        source=length,
        dtype=inputs.dtype,
        device=inputs.device,
        window=WINDOW if kind == "window" else None,
    )
    (context, _), _ = layer(inputs, visibility, with_weights=kind == "full")
    return context.square().mean()


def measured(kind: str, length: int) -> float:
    """Return the CPU seconds of one forward and backward pass."""
    layer, inputs = layer_of(kind), torch.randn(1, length, WIDTH)
    began = time.process_time()
    loss_of(layer, inputs, kind).backward()
    return time.process_time() - began


def kept_bytes(kind: str, length: int) -> int:
    """Return the bytes kept for the backward pass, without the weights of the layer."""
    layer, inputs = layer_of(kind), torch.randn(1, length, WIDTH)
    weights = {each.untyped_storage().data_ptr() for each in layer.parameters()}
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = loss_of(layer, inputs, kind)
    found = sum(storages.values())
    del loss  # until here it held the storages, so that no two had one address
    return found


if __name__ == "__main__":
    main()
