"""Interventions against the same arithmetic in numpy; unused, they change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard.attention.edges import Edges
from regard.attention.graph import EDGE_SCORES, GraphAttention
from regard.attention.multihead import MultiHeadAttention
from regard.attention.probe import Probe, Recorder, Site
from regard.models import interventions as change
from regard.models.build import build_translator
from regard.models.interventions import Intervened, Place
from regard.models.language_model import build_language_model
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.settings.recipe import validate
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.node_classification.interventions import ForceNode, HideNode

VOCAB = 11
HEADS, WIDTH, SOURCE, TARGET = 2, 8, 5, 4


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def translator(family: str, **settings: Any) -> Any:
    torch.manual_seed(1)
    chosen: Any
    if family == "transformer":
        chosen = TransformerSettings.model_validate(
            {"layers": 2, "model_dim": 16, "heads": 2, "feed_forward": 32, **settings}
        )
    else:
        chosen = RecurrentSettings.model_validate(
            {"hidden": 8, "embedding": 5, "decoder": family, **settings}
        )
    return build_translator(chosen, source_vocab=VOCAB, target_vocab=VOCAB).eval()


def reading() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.tensor([[4, 9, 6, 7, 3]])
    return source, torch.ones_like(source, dtype=torch.bool), torch.tensor([[2, 5, 8, 4]])


ALL: dict[str, tuple[Any, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]] = {}


def case(name: str, intervention: Any) -> Callable[[Any], Any]:
    """Keep what an intervention makes of weights and values, written in numpy."""

    def keep(function: Any) -> Any:
        ALL[name] = (intervention, function)
        return function

    return keep


@case("force", change.Force(2, (0.0, 0.25, 0.0, 0.75, 0.0), Place("cross", 0, 1)))
def _forced(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights[1, 2] = [0, 0.25, 0, 0.75, 0]
    return weights, values


@case("move", change.Move(1, (0, 2), (3,), Place("cross")))
def _moved(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights[:, 1, 3] += weights[:, 1, 0] + weights[:, 1, 2]
    weights[:, 1, 0] = weights[:, 1, 2] = 0
    return weights, values


@case("hide from one head", change.Hide((1,), Place("cross", 0, 0)))
def _hidden(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.log(weights)
    scores[0, :, 1] = -np.inf  # as if the word had been masked
    return softmax(scores), values


@case("hide from all", change.Hide((1, 4)))
def _hidden_from_all(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.log(weights)
    scores[:, :, [1, 4]] = -np.inf
    return softmax(scores), values


@case("swap", change.Swap((0,), (3,)))
def _swapped(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return weights, values[:, [3, 1, 2, 0, 4]]


@case("swap words of several tokens", change.Swap((0, 1), (3,)))
def _mean_swapped(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = values[:, :2].mean(axis=1)
    first = values[:, 3]
    return weights, np.stack([first, first, values[:, 2], mean, values[:, 4]], axis=1)


@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_heads_equal_numpy(name: str) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(model_dim=WIDTH, heads=HEADS)
    inputs, memory = torch.randn(1, TARGET, WIDTH), torch.randn(1, SOURCE, WIDTH)
    intervention, expected = ALL[name]
    found = attention.cross(
        inputs, attention.memory(memory), None, with_weights=True, probe=Probe(intervention)
    )

    weight, bias = attention.projection.weight.numpy(), attention.projection.bias.numpy()

    def split(rows: np.ndarray, part: int) -> np.ndarray:
        chosen = slice(part * WIDTH, (part + 1) * WIDTH)
        projected = rows @ weight[chosen].T + bias[chosen]
        return projected.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)

    q, k, v = split(inputs[0].numpy(), 0), split(memory[0].numpy(), 1), split(memory[0].numpy(), 2)
    alpha = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS))
    alpha, v = expected(alpha, v)
    joined = (alpha @ v).transpose(1, 0, 2).reshape(TARGET, WIDTH)
    output = joined @ attention.output.weight.numpy().T + attention.output.bias.numpy()
    np.testing.assert_allclose(found.context[0], output, atol=1e-5)
    assert found.weights is not None
    np.testing.assert_allclose(found.weights[0], alpha, atol=1e-6)


@torch.no_grad()
def test_heads_that_are_off_or_averaged_equal_numpy() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(model_dim=WIDTH, heads=HEADS)
    inputs, memory = torch.randn(1, TARGET, WIDTH), torch.randn(1, SOURCE, WIDTH)
    keys = attention.memory(memory)
    recorder = Recorder()
    attention.cross(inputs, keys, None, probe=Probe(recorder))
    z = recorder.get("cross", 0, "context")[0].numpy()  # [heads, target, head_dim]
    means = change.mean_contexts([recorder])
    np.testing.assert_allclose(means["cross", 0], z.mean(axis=1), atol=1e-6)
    for intervention, other in (
        (change.Off(Place("cross", 0, 1)), np.zeros_like(z[1])),
        (change.Mean(Place("cross", 0, 1), means), np.broadcast_to(z[1].mean(0), z[1].shape)),
    ):
        found = attention.cross(inputs, keys, None, probe=Probe(intervention)).context
        joined = np.concatenate([z[0], other], axis=1)
        expected = joined @ attention.output.weight.numpy().T + attention.output.bias.numpy()
        np.testing.assert_allclose(found[0], expected, atol=1e-5)


@torch.no_grad()
def test_a_recurrent_decoder_equals_numpy() -> None:
    """Luong et al.: s_i = tanh(U y + W s + b), e_ij = h_j s_i, t_i = tanh(W [s_i; c_i])."""
    model = translator("luong", cell="tanh", attention="dot", layers=1)
    source, mask, target = reading()
    intervention = change.Force(1, (0.0, 0.0, 1.0, 0.0, 0.0))
    found = model(source, mask, target, with_weights=True, probe=Probe(intervention))

    encoded = model.encode(source, mask)
    h, s = encoded.memory[0].numpy(), encoded.summary[0][-1, 0].numpy()
    decoder, cell = model.decoder, model.decoder.stack.cells[0]
    combine = decoder.combine
    for step, token in enumerate(target[0].tolist()):
        x = decoder.embedding.weight[token].numpy()
        s = np.tanh(
            cell.input_weights.numpy() @ x + cell.state_weights.numpy() @ s + cell.bias.numpy()
        )
        alpha = np.eye(5)[2] if step == 1 else softmax(h @ s)
        joined = np.concatenate([s, alpha @ h])
        features = np.tanh(combine.weight.numpy() @ joined)
        np.testing.assert_allclose(found.features[0, step], features, atol=1e-5)
        np.testing.assert_allclose(found.attention[0, step], alpha, atol=1e-6)


@torch.no_grad()
def test_a_patched_state_is_that_of_the_other_sentence() -> None:
    model = translator("transformer")
    source, mask, target = reading()
    other = torch.tensor([[8, 8, 5, 10, 3]])
    theirs = model.encode(other, mask).memory[0, 1:3]
    mixed = model.encode(source, mask).memory.clone()
    mixed[0, [0, 4]] = theirs
    expected, _ = model.decoder(target, model.decoder.start(
        type(model.encode(source, mask))(memory=mixed, mask=mask)), with_weights=False)  # fmt: skip
    patched = model(source, mask, target, probe=Probe(change.Patch((0, 4), theirs)))
    torch.testing.assert_close(patched.features, expected.features, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("placement", ["pre", "post"])
@torch.no_grad()
def test_a_layer_that_is_skipped_adds_nothing(placement: str) -> None:
    model = translator("transformer", norm_placement=placement)
    source, mask, _ = reading()
    recorder = Recorder()
    skip = change.Skip("encoder", 1)

    def see(site: Site, name: str, value: torch.Tensor) -> torch.Tensor:
        return skip(site, name, recorder(site, name, value))

    memory = model.encode(source, mask, probe=Probe(see)).memory
    layer, expected = model.encoder.layers[1], recorder.get("encoder", 1, "features")
    if placement == "post":
        expected = layer.feed_forward_residual.norm(layer.attention_residual.norm(expected))
    else:
        expected = model.encoder.norm(expected)
    torch.testing.assert_close(memory, expected)


FAMILIES: dict[str, Callable[[], Any]] = {
    "transformer": lambda: translator("transformer"),
    "relative positions": lambda: translator("transformer", positions="relative"),
    "additive score": lambda: translator("transformer", score="additive"),
    "luong": lambda: translator("luong", attention="dot"),
    "luong, several heads": lambda: translator("luong", attention="multi-head", heads=2),
    "bahdanau": lambda: translator("bahdanau", attention="additive"),
    "input feeding": lambda: translator("luong", attention="dot", input_feeding=True),
}


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_weights_forced_to_what_they_are_change_nothing(family: str) -> None:
    model = FAMILIES[family]()
    source, mask, target = reading()
    recorder = Recorder()
    plain = model(source, mask, target, probe=Probe(recorder)).features
    kept = []
    for (part, layer, name), values in recorder.values.items():
        if name == "weights":
            rows = torch.cat(values, dim=2)[0]  # [heads, target, source]
            for step in range(rows.shape[1]):
                kept.append(change.Force(step, rows[:, step], Place(part, layer)))
    assert kept
    forced = Intervened(model, kept)(source, mask, target).features
    assert torch.equal(forced, plain)
    state, steps = Intervened(model, kept), []
    reached = state.start(state.encode(source, mask))
    for token in target[0]:
        step = state.step(token[None], reached)
        reached = state.select(step.state, torch.tensor([0]))
        steps.append(step.logits)
    expected = model.project(plain)[0]
    torch.testing.assert_close(torch.cat(steps), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_a_probe_that_changes_nothing_finds_what_the_fast_path_finds(family: str) -> None:
    model = FAMILIES[family]()
    source, mask, target = reading()
    seen = model(source, mask, target, probe=Probe(Recorder()))
    torch.testing.assert_close(seen.features, model(source, mask, target).features)


@torch.no_grad()
def test_beams_keep_their_interventions() -> None:
    """Rows that share the memory of a sentence are shown to a probe each with its own."""
    model = Intervened(translator("transformer"), [change.Hide((1,))])
    source, mask, _ = reading()
    state = model.select(model.start(model.encode(source, mask)), torch.tensor([0, 0, 0]))
    step = model.step(torch.tensor([2, 2, 2]), state, with_weights=True)
    assert step.weights is not None
    assert step.weights.shape == (3, 5)
    assert not step.weights[:, 1].any()
    torch.testing.assert_close(step.weights.sum(dim=1), torch.ones(3))


@pytest.mark.parametrize(
    "options",
    [{}, {"positions": "rotary", "key_value_heads": 1}, {"window": 3, "positions": "rotary"}],
)
@torch.no_grad()
def test_a_language_model_reads_the_same_with_a_cache(options: dict[str, Any]) -> None:
    recipe = {"task": "language-model", "model": {"layers": 2, "model_dim": 16, "heads": 2,
              "context": 24, **options}}  # fmt: skip
    settings = validate(recipe, LanguageModelRecipe, origin="test").model
    torch.manual_seed(2)
    model = build_language_model(settings, vocab=9).eval()
    text = torch.tensor([[1, 4, 5, 6, 2, 7]])
    for intervention in (change.Hide((4,)), change.Off(Place("decoder", 1, 0))):
        intervened = Intervened(model, [intervention])
        full = model.project(intervened(text).features)[0, -1]
        state = intervened.start(1)
        for token in text[0]:
            step = intervened.read(token[None, None], state)
            state = step.state
        torch.testing.assert_close(step.logits[0], full, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_what_can_see_nothing_else_gets_no_weights() -> None:
    weights = torch.tensor([[[[1.0, 0.0], [0.25, 0.75]]]])
    found = change.Hide((0,))(Site("decoder"), "weights", weights)
    assert found.tolist() == [[[[0.0, 0.0], [0.0, 1.0]]]]


@torch.no_grad()
def test_hiding_a_neighbour_equals_numpy() -> None:
    torch.manual_seed(3)
    source, target = torch.tensor([0, 1, 2, 0, 1, 3, 2]), torch.tensor([0, 0, 0, 1, 1, 2, 3])
    edges = Edges.sort(source, target, sources=4, targets=4)
    layer = GraphAttention(input_dim=3, score=EDGE_SCORES["additive"](heads=2, head_dim=2))
    features = torch.randn(4, 3)
    recorder = Recorder()
    layer(features, edges, probe=Probe(recorder, Site("graph")))
    alpha = recorder.get("graph", 0, "edge_weights").numpy().copy()  # [heads, edges]
    values = recorder.get("graph", 0, "node_values").numpy()  # [nodes, heads, head_dim]

    def expected(weights: np.ndarray) -> np.ndarray:
        context = np.zeros((4, 2, 2))
        for edge, (j, i) in enumerate(zip(edges.source, edges.target, strict=True)):
            context[i] += weights[:, edge, None] * values[j]
        return context.reshape(4, 4) + layer.bias.numpy()

    hidden = alpha.copy()
    hidden[1, edges.source.numpy() == 1] = 0
    for i in (0, 1):
        near = edges.target.numpy() == i
        hidden[1, near] /= hidden[1, near].sum()
    probe = Probe(HideNode(1, edges, Place("graph", 0, 1)), Site("graph"))
    found = layer(features, edges, probe=probe).context
    np.testing.assert_allclose(found, expected(hidden), atol=1e-5)

    forced = alpha.copy()
    forced[:, :3] = [0, 0, 1]
    probe = Probe(ForceNode(0, (0.0, 0.0, 1.0), edges), Site("graph"))
    found = layer(features, edges, probe=probe).context
    np.testing.assert_allclose(found, expected(forced), atol=1e-5)

    off = change.Off(Place("graph", 0, 0))
    found = layer(features, edges, probe=Probe(off, Site("graph"))).context
    np.testing.assert_allclose(found[:, :2], np.tile(layer.bias.numpy()[:2], (4, 1)), atol=1e-6)

    same = ForceNode(0, tuple(alpha[0, :3].tolist()), edges, Place("graph", 0, 0))
    unchanged = layer(features, edges, probe=Probe(same, Site("graph"))).context
    assert torch.equal(unchanged, layer(features, edges).context)
