"""The trace of one node through a node classifier: its neighbours, their weights, its classes."""

import numpy as np
import torch

from regard.attention.graph import EdgeScore
from regard.attention.probe import Probe, Recorder
from regard.base.shapes import Tensor
from regard.compute.device import HOST, beside, moved
from regard.models.inspection import Trace, TracedArray, join_calls, recorded
from regard.tasks.node_classification.model import LoadedGraphClassifier


def trace_node(loaded: LoadedGraphClassifier, text: str) -> Trace:
    """Trace a node, given by its name or number, through every layer."""
    graph = loaded.graph
    node = graph.find(text.strip())
    loaded.model.eval()
    with torch.no_grad(), recorded(loaded.model) as outputs:
        recorder = Recorder()
        graph_input = beside(loaded.model, loaded.tensors)
        output = loaded.model(graph_input, with_weights=True, probe=Probe(recorder))
    output = moved(output, HOST)
    labels: dict[str, list[str]] = {"class": list(graph.classes)}
    arrays: list[TracedArray] = []
    edges = loaded.tensors.edges
    into = torch.nonzero(edges.target == node)[:, 0]
    names = [graph.name(int(source)) for source in edges.source[into]]
    scores = [part for part in loaded.model.modules() if isinstance(part, EdgeScore)]
    for number, (weights, score) in enumerate(zip(output.attention, scores, strict=True), 1):
        axis = f"neighbour (layer {number})"
        labels[axis] = names
        arrays.append(
            TracedArray(
                "weight" if number == 1 else f"weight_{number}",
                (axis, "head"),
                weights[into].numpy(),
                f"alpha_ij = softmax_j(e_ij) over the neighbours j, {score.formula}",
            )
        )
        edge_scores = recorder.get("graph", number - 1, "edge_scores").cpu()
        arrays.append(
            TracedArray(
                "score" if number == 1 else f"score_{number}",
                (axis, "head"),
                edge_scores.t()[into].numpy(),
                score.formula,
            )
        )
    if output.hidden is not None:
        hidden = output.hidden[node].numpy()
        arrays.append(
            TracedArray("hidden", ("hidden",), hidden, "ELU of the hidden layer's output")
        )
    logits = output.logits[node]
    arrays += [
        TracedArray("logit", ("class",), logits.numpy(), "what the last layer returns"),
        TracedArray("probability", ("class",), torch.softmax(logits, 0).numpy(), "softmax"),
    ]
    return Trace(
        family="graph classifier",
        source=text,
        output=graph.classes[int(logits.argmax())],
        arrays=arrays,
        labels=labels,
        parts=[
            TracedArray(f"part.{name}", _axes(value), _of_node(value, node, graph.nodes))
            for name, calls in outputs.items()
            for value in join_calls(calls)[:1]
        ],
    )


def _of_node(value: Tensor, node: int, nodes: int) -> np.ndarray:
    """Return the node's own row of what a part returned for all nodes; else all of it."""
    rows = value[node : node + 1] if value.dim() and len(value) == nodes else value
    return rows.cpu().numpy()


def _axes(value: Tensor) -> tuple[str, ...]:
    return tuple(f"axis {place}" for place in range(value.dim()))
