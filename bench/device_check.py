"""Whether a device computes as the processor does, and how fast: for someone who has one.

    python bench/device_check.py --device cuda [--out device-check.json]

Every family is trained and run in a tiny size on both; a Transformer of the base size is trained
and decodes at full speed, beside one of the package `transformers` if it is installed. The result
file holds all figures, errors included: please send it in with an issue. `--small` tries the script
itself with tiny sizes, on any device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.batching.batch import Batch, collate, encode_pairs
from regard.compute.device import HOST, computing_on, placed
from regard.corpora.parallel import SentencePair
from regard.models.build import build_translator
from regard.settings.decoding import DecodingSettings
from regard.tasks import find_recipe
from regard.tasks.translation.objective import optimizer_of, training_loss
from regard.training.update import add_gradient, update
from result import commit, versions

ROOT = Path(__file__).parents[1]
TOLERANCE = 2e-3  # of single precision, with products that a GPU may round to TF32
SOURCE_VOCAB = TARGET_VOCAB = 16_000
SENTENCE = 24  # tokens


def main() -> None:
    """Check a device and write what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="auto")
    options.add_argument("--out", type=Path, default=Path("device-check.json"))
    options.add_argument("--small", action="store_true")
    given = options.parse_args()
    with computing_on(given.device) as device:
        found = {
            "device": str(device),
            "hardware": hardware(device),
            "commit": commit(),
            "versions": {"python": platform.python_version()}
            | versions(("regard", "torch", "transformers", "ctranslate2")),
            "families": families(device),
            "speed": speed(device, small=given.small),
        }
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    wrong = [name for name, row in found["families"].items() if not row.get("equal")]
    print(json.dumps(found["speed"], indent=1))
    print(f"{len(found['families']) - len(wrong)} of {len(found['families'])} families agree.")
    for name in wrong:
        print(f"  not {name}: {found['families'][name]}")
    print(f"Wrote {given.out}. Please attach it to an issue.")
    sys.exit(1 if wrong else 0)


def hardware(device: torch.device) -> str:
    """Return the name of the device, as far as torch knows it."""
    if device == HOST:
        return platform.processor() or platform.machine()
    module = torch.get_device_module(device)
    return str(module.get_device_name(device)) if hasattr(module, "get_device_name") else "unknown"


def families(device: torch.device) -> dict[str, dict[str, Any]]:
    """Return for each family how far the results on the device are from the processor's."""
    sys.path.insert(0, str(ROOT))
    cases = importlib.import_module("tests.devices.pretend_tasks")
    found = {}
    for name, case in cases.CASES.items():
        results = []
        try:
            for each in ("cpu", str(device)):
                with tempfile.TemporaryDirectory() as folder:
                    torch.manual_seed(1)
                    results.append(case(each, Path(folder)))
            apart = cases.difference(*results)
            found[name] = {"difference": apart, "equal": apart <= TOLERANCE}
        except Exception as error:  # whatever it is, it belongs into the file
            found[name] = {"error": f"{type(error).__name__}: {error}"[:500],
                           "where": traceback.format_exc()[-1500:]}  # fmt: skip
        print(f"{name}: {found[name].get('difference', found[name].get('error'))}", flush=True)
    return found


def speed(device: torch.device, *, small: bool) -> dict[str, float]:
    """Return tokens a second in training and decoding, and the most memory that was used."""
    sizes = ["model.layers=1", "model.model_dim=16", "model.heads=2"] if small else []
    recipe = find_recipe("transformer-tiny" if small else "transformer-base", overrides=sizes)
    vocab = 60 if small else SOURCE_VOCAB
    rows, steps = (8, 2) if small else (128, 20)
    torch.manual_seed(1)
    model = placed(build_translator(recipe.model, source_vocab=vocab, target_vocab=vocab))
    optimizer = optimizer_of(model, recipe.training)
    batch = random_batch(rows, vocab)
    loss = {"smoothing": 0.1, "coverage": 0.0, "word_dropout": 0.0, "r_drop": 0.0}
    reset_memory(device)

    def step() -> None:
        update(
            [batch],
            add_gradient=lambda part, tokens: add_gradient(
                lambda one: training_loss(model, one, **loss), part, tokens
            ),
            parameters=list(model.parameters()),
            optimizer=optimizer,
            clip=1.0,
        )

    model.train()
    found = {"training_tokens_per_second": batch.target_tokens * rate(step, steps, device)}
    found["training_peak_bytes"] = peak_memory(device)
    found |= decoding_speed(model, batch, device, small=small)
    if importlib.util.find_spec("transformers") is not None:
        found |= peer_speed(batch, vocab, recipe.model, device, steps=steps)
    return found


def decoding_speed(
    model: Any, batch: Batch, device: torch.device, *, small: bool
) -> dict[str, float]:
    """Return the tokens a second of greedy and of beam search."""
    from regard.engines.torch_engine import TorchEngine

    engine, length = TorchEngine(model), 4 if small else 64
    sources = batch.source[:16, :-1].tolist()
    found = {}
    for name, beam in {"greedy": 1, "beam": 5}.items():
        settings = DecodingSettings(beam=beam, min_length=length, max_length=length)
        engine.search(sources[:2], settings.model_copy(update={"max_length": 4, "min_length": 0}))
        searches = rate(lambda settings=settings: engine.search(sources, settings), 1, device)
        found[f"{name}_tokens_per_second"] = len(sources) * length * searches
    return found


def peer_speed(
    batch: Batch, vocab: int, sizes: Any, device: torch.device, *, steps: int
) -> dict[str, float]:
    """Return the training speed of a model of the same size of `transformers`."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=vocab, d_model=sizes.model_dim, encoder_layers=sizes.layers,
        decoder_layers=sizes.layers, encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads, encoder_ffn_dim=sizes.feed_forward,
        decoder_ffn_dim=sizes.feed_forward, pad_token_id=0, decoder_start_token_id=0,
        dropout=sizes.dropout,
    )  # fmt: skip
    model = MarianMTModel(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    there = batch.to(device)
    labels = there.target_output.masked_fill(~there.target_mask, -100)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(
            input_ids=there.source, attention_mask=there.source_mask,
            decoder_input_ids=there.target_input, labels=labels,
        ).loss.backward()  # fmt: skip
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return {"transformers_training_tokens_per_second":
            batch.target_tokens * rate(step, steps, device)}  # fmt: skip


def random_batch(rows: int, vocab: int) -> Batch:
    """Return sentences of random tokens."""
    texts = [" ".join("x" * SENTENCE) for _ in range(rows)]
    encoder = RandomTokens(vocab)
    return collate(encode_pairs([SentencePair(text, text) for text in texts], encoder, encoder))


class RandomTokens:
    """A tokenizer that gives each word a number that means nothing."""

    def __init__(self, vocab: int):
        self._vocab = vocab
        self._generator = torch.Generator().manual_seed(1)

    def encode(self, text: str) -> list[int]:
        """Return random tokens, as many as the text has words."""
        size = (len(text.split()),)
        return torch.randint(4, self._vocab, size, generator=self._generator).tolist()


def rate(work: Callable[[], Any], times: int, device: torch.device) -> float:
    """Return how often a second some work is done, after doing it once to warm up."""
    work()
    synchronize(device)
    began = time.perf_counter()
    for _ in range(times):
        work()
    synchronize(device)
    return times / (time.perf_counter() - began)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device != HOST:
        torch.get_device_module(device).synchronize()


def reset_memory(device: torch.device) -> None:
    """Forget the most memory that was used so far, where the device counts it."""
    if device != HOST and hasattr(torch.get_device_module(device), "reset_peak_memory_stats"):
        torch.get_device_module(device).reset_peak_memory_stats()


def peak_memory(device: torch.device) -> float:
    """Return the most memory that was used, as far as the device counts it; else 0."""
    module = None if device == HOST else torch.get_device_module(device)
    if module is None or not hasattr(module, "max_memory_allocated"):
        return 0.0
    return float(module.max_memory_allocated())


if __name__ == "__main__":
    main()
