"""Which token goes to which expert: the weights of gates, as heads that look at experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from regard.attention.probe import Probe, Recorder
from regard.base.errors import SettingsError
from regard.pictures.heat_map import write_map
from regard.tasks.attention import AttentionHeads
from regard.tasks.looking import LookRequest, View


def gate_weights(
    read: Callable[[Probe], object], *, part: str, tokens: Sequence[str]
) -> AttentionHeads:
    """Return how a part of a model shares its tokens out: [layers, 1, tokens, experts].

    `read` lets the model read one text, with a probe.
    """
    recorder = Recorder()
    with torch.inference_mode():
        read(Probe(recorder, attention=False))
    layers = sorted(
        layer for where, layer, name in recorder.values if (where, name) == (part, "gate")
    )
    if not layers:
        raise SettingsError(
            f"The {part} of this model has no experts; train one with --set model.experts=4."
        )
    found = np.stack([recorder.get(part, layer, "gate")[:1].cpu().numpy() for layer in layers])
    experts = tuple(str(number) for number in range(found.shape[-1]))
    return AttentionHeads("experts of each token", found, experts, tuple(tokens))


def view_of_experts(heads: AttentionHeads, request: LookRequest, *, text: str = "") -> View:
    """Show which tokens each expert gets: in a terminal as lists, in files as heat maps."""
    heads.check(request.layer)
    layers = range(len(heads.weights)) if request.layer is None else [request.layer]

    def shown(width: int) -> str:
        lines = [text] if text else []
        for layer in layers:
            lines.append(f"layer {layer}")
            for expert, column in enumerate(heads.weights[layer, 0].T):
                chosen = [
                    token for token, weight in zip(heads.target, column, strict=True) if weight > 0
                ]
                lines.append(f"  expert {expert}  {' '.join(chosen) or '-'}")
        return "\n".join(lines)

    def save(path: Path) -> None:
        write_map(
            np.concatenate([heads.weights[layer, 0].T for layer in layers]),
            source=heads.target,
            target=[f"layer {layer}, expert {name}" for layer in layers for name in heads.source],
            path=path,
        )

    return View(record=heads.to_dict(), save=save, text=text, shown=shown)
