"""Everything that computes, on the CPU and on the pretend device, with the same results.

    python tests/devices/pretend_tasks.py [NAME ...]

Prints a line of JSON for each case: the greatest relative difference between the two devices, and
the error if there was one. Tests and `bench/scale.py` run this in a process of its own, since a
device that torch knows stays until the process ends.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests import pretend  # noqa: E402

if __name__ == "__main__":  # others take the cases alone, for a device that is there
    pretend.install()

from tests.upgrades.kept_runs import (  # noqa: E402
    GRAPH,
    LABELLED,
    LINES,
    TEXT,
    TRANSLATIONS,
)

import regard  # noqa: E402
from regard.compute.device import computing_on  # noqa: E402
from regard.training.checkpoint import read_tensors  # noqa: E402

TOLERANCE = 2e-4  # of float32, whose sums are made in another order
RUNS = ROOT / "tests" / "upgrades" / "format-1"

Found = Any
# What is computed, given the name of a device and a new folder.
Case = Callable[[str, Path], Found]
CASES: dict[str, Case] = {}


def numbers(value: Any) -> Iterator[float | str]:
    """Yield the numbers and texts of a result, in order."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            raise TypeError("a result was left on the device")
        yield from value.double().flatten().tolist()
    elif isinstance(value, np.ndarray):
        yield from value.astype(np.float64).flatten().tolist()
    elif isinstance(value, Mapping):
        for name in sorted(value, key=str):
            yield from numbers(value[name])
    elif is_dataclass(value) and not isinstance(value, type):
        yield from numbers(asdict(value))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, bool | str) or value is None:
        yield str(value)
    else:
        yield float(value)


def difference(first: Found, second: Found) -> float:
    """Return the greatest difference of two results, relative to the numbers' size or to 1."""
    ours, theirs = list(numbers(first)), list(numbers(second))
    if len(ours) != len(theirs):
        return math.inf
    greatest = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            greatest = greatest if a == b else math.inf
        elif not (a == b or (math.isnan(a) and math.isnan(b))):
            greatest = max(greatest, abs(a - b) / max(1.0, abs(a), abs(b)))
    return greatest


def compared(case: Case) -> dict[str, Any]:
    """Return how far the results on both devices are apart."""
    found = []
    for device in ("cpu", pretend.NAME):
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(1)
            try:
                found.append(case(device, Path(folder)))
            except Exception as error:
                return {"error": f"{type(error).__name__} on {device}: {error}"[:600],
                        "where": traceback.format_exc()}  # fmt: skip
    apart = difference(*found)
    return {"difference": apart, "equal": apart <= TOLERANCE}


# Training

SHORT = {"training.steps": 6, "training.validate_every": 3, "training.checkpoint_every": 3,
         "training.keep": 1}  # fmt: skip
# The two devices draw different random numbers, as any two do.
SAME = {"model.dropout": 0}
TEXTS = {**SHORT, "training.validate_sentences": 4, "decoding.beam": 2, "decoding.max_length": 9,
         "tokenizer.kind": "word", "batches.tokens": 120, **SAME}  # fmt: skip
RECURRENT = {"model.hidden": 8, "model.embedding": 8}
TRANSFORMER = {"model.layers": 1, "model.model_dim": 8, "model.heads": 2}
LANGUAGE = {**SHORT, **SAME, **TRANSFORMER, "model.context": 16, "training.batch_size": 4,
            "decoding.max_tokens": 4}  # fmt: skip
TRAININGS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "bahdanau": ("seq2seq-attention", {**TEXTS, **RECURRENT}, TRANSLATIONS),
    "luong": ("luong", {**TEXTS, **RECURRENT, "tokenizer.kind": "character"}, TRANSLATIONS),
    "transformer": ("transformer-tiny", {**TEXTS, **TRANSFORMER, "model.feed_forward": 8,
                    "training.ema": 0.9, "training.average": 0}, TRANSLATIONS),
    "muon": ("transformer-tiny", {**TEXTS, **TRANSFORMER, "training.optimizer": "muon",
             "training.word_dropout": 0, "training.average": 2}, TRANSLATIONS),
    "convolutional": ("convolutional-tiny", {**TEXTS, **TRANSFORMER}, TRANSLATIONS),
    "language-model": ("gpt-nano", LANGUAGE, TEXT),
    "recurrent-language-model": ("lstm-nano", {**SHORT, **SAME, **RECURRENT, "model.layers": 1,
                                 "decoding.max_tokens": 4}, TEXT),
    "text-classifier": ("text-classifier", {**SAME, **TRANSFORMER, "model.context": 32,
                        "training.epochs": 1}, LABELLED),
    "forecaster": ("fibonacci-attention", {**SHORT, "data.terms": 40, "data.window": 3,
                   "model.hidden": 4}, None),
    "node-classifier": ("gat-cora", {"training.steps": 3, "training.seeds": 1, "model.heads": 2,
                        "model.hidden": 4, "model.dropout": 0, "model.attention_dropout": 0},
                        GRAPH),
}  # fmt: skip


def train(name: str, device: str, folder: Path, *, resume: bool = False, **changes: Any) -> Path:
    """Train a small model on a device."""
    recipe, settings, data = TRAININGS[name]
    run = folder / "run"
    given = {"data": data, "set": settings | changes, "resume": resume}
    regard.train(recipe, out=run, device=device, progress=False, **given)
    return run


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the best model of a run."""
    (best,) = sorted(run.glob("**/best"))[:1]
    return read_tensors(best)


def training(name: str) -> Case:
    """Return the case of one training: its weights and what its best model says."""

    def case(device: str, folder: Path) -> Found:
        run = train(name, device, folder)
        tested = run / "test.json"
        return weights_of(run), json.loads(tested.read_text()) if tested.exists() else None

    return case


CASES |= {f"train {name}": training(name) for name in TRAININGS}


# A training that is stopped and resumed, with dropout: the generator of the device goes on too.


def resumed(device: str, folder: Path) -> Found:
    """Return how far the weights are from those of a training that was never stopped."""
    drops = {"model.dropout": 0.3}
    whole = weights_of(train("transformer", device, folder / "whole", **drops))
    settings = {"training.steps": 3, **drops}
    run = train("transformer", device, folder / "stopped", **settings)
    again = {"training.steps": 6, **drops}
    train("transformer", device, folder / "stopped", resume=True, **again)
    return difference(whole, weights_of(run))


def moved_on(device: str, folder: Path) -> Found:
    """Return the weights of a training that began on one device and went on upon another."""
    run = train("transformer", "cpu", folder, **{"training.steps": 3})
    train("transformer", device, folder, resume=True)
    return weights_of(run)


CASES |= {"resume": resumed, "resume on another device": moved_on}

# Decoding

TRANSLATORS = ("recurrent-translator", "transformer-translator", "character-translator")
BEAM = {"beam": 3}
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {**BEAM, "n_best": 3},
    "diverse": {"beam": 4, "diversity_groups": 2, "diversity_strength": 0.5, "n_best": 2},
    "coverage": {**BEAM, "coverage_penalty": 0.2},
    "length": {**BEAM, "length_penalty_kind": "wu", "length_penalty": 0.6, "min_length": 3},
    "rules": {**BEAM, "no_repeat_ngram": 2, "repetition_penalty": 1.3, "replace_unknown": True},
    "sampling": {"method": "sample", "temperature": 0.8, "top_k": 9, "top_p": 0.9, "n_best": 3},
    "mbr": {"method": "mbr", "mbr_samples": 4},
    "prefix": {**BEAM, "constraints": {"prefix": "eht "}},
    "required": {**BEAM, "constraints": {"required": ("tac",)}},
    "forbidden": {**BEAM, "constraints": {"forbidden": ("eht", "sees")}},
    "all constraints": {
        **BEAM, "constraints": {"prefix": "eht ", "required": ("owt",), "forbidden": ("exa",)}
    },
    "greedy prefix": {"beam": 1, "constraints": {"prefix": "eht ", "forbidden": ("tac",)}},
}  # fmt: skip


def loaded(name: str, device: str) -> Any:
    return regard.load(RUNS / name, device=device)


def decoding(name: str, search: str) -> Case:
    """Return the case of one search with a trained translator: all that it finds."""

    def case(device: str, folder: Path) -> Found:
        from regard.tasks.translation.constraints import TextConstraints

        options = dict(SEARCHES[search])
        if wanted := options.pop("constraints", None):
            options["constraints"] = TextConstraints(**wanted)
        found = loaded(name, device).translate(LINES[:5], **options)
        return [
            (one.text, one.score, one.log_probability, one.attention.weights)
            for best in found
            for one in (best, *best.alternatives)
        ]

    return case


for translator in TRANSLATORS:
    wanted = SEARCHES if translator != "character-translator" else ("greedy", "beam", "required")
    CASES |= {f"decode {translator}: {search}": decoding(translator, search) for search in wanted}

WRITTEN: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "sampling": {"temperature": 0.9, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "samples": 3},
    "penalty": {"temperature": 0.0, "repetition_penalty": 1.5},
    "without cache": {"temperature": 0.0, "cache": False},
}


def writing(name: str, options: dict[str, Any]) -> Case:
    def case(device: str, folder: Path) -> Found:
        model = loaded(name, device)
        found = model.generate("the ", max_tokens=24, **options)  # more than the context
        return [(one.text, one.tokens) for one in found], model.bits_per_character(TEXT)

    return case


for model in ("language-model", "recurrent-language-model"):
    CASES |= {f"generate {model}: {name}": writing(model, of) for name, of in WRITTEN.items()}


# Everything else that a trained model is asked


def scored(device: str, folder: Path) -> Found:
    """Return how probable translations are."""
    return [loaded(name, device).score_pairs(*zip(*TRANSLATIONS["test"], strict=True))
            for name in TRANSLATORS]  # fmt: skip


def classified(device: str, folder: Path) -> Found:
    model = loaded("text-classifier", device)
    explained = model.explain(LINES[0]).to_dict()
    return model.classify(LINES[:4]), explained, model.heads(LINES[0]).weights


def forecast(device: str, folder: Path) -> Found:
    return loaded("forecaster", device).forecast([55.0, 89.0, 144.0])


def nodes(device: str, folder: Path) -> Found:
    model = loaded("node-classifier", device)
    return model.predictions, model.attention().weights, model.embeddings()


def traced(name: str, text: str) -> Case:
    def case(device: str, folder: Path) -> Found:
        with computing_on(device):
            found = regard.trace(RUNS / name, text).to_dict()
        # Where nothing is padding, the processor needs no penalties; other devices do not ask.
        found["parts"] = {n: v for n, v in found["parts"].items() if "penalties" not in n}
        return found

    return case


LOOKS: dict[str, list[dict[str, Any]]] = {
    "recurrent-translator": [{}],
    "transformer-translator": [{}, {"part": "encoder"}, {"part": "decoder", "layer": 0},
                               {"picture": "word", "word": "cat"}, {"picture": "arcs"}],
    "language-model": [{}, {"layer": 0}, {"picture": "arcs"}],
    "text-classifier": [{"picture": "heads"}, {"picture": "arcs"}],
    "node-classifier": [{}, {"picture": "node", "node": "3"}],
}  # fmt: skip


def looked(name: str) -> Case:
    def case(device: str, folder: Path) -> Found:
        text = None if name == "node-classifier" else LINES[0]
        with computing_on(device):
            return [regard.look(RUNS / name, text, **of).record for of in LOOKS[name]]

    return case


CHANGES: dict[str, list[dict[str, Any]]] = {
    "recurrent-translator": [{"force": ["0=cat"]}, {"swap": ["the=cat"]}, {"hide": ["cat"]}],
    "transformer-translator": [{"off": ["cross.0.0"]}, {"mean": ["encoder.0.1"]},
                               {"skip": ["encoder.0"]}, {"move": ["0=the:cat"]},
                               {"patch": ["the=the"], "other": LINES[7]}],
    "language-model": [{"off": ["0.0"]}, {"hide": ["#2"]}],
    "text-classifier": [{"off": ["0.0"]}],
    "node-classifier": [{"hide": ["3"]}, {"off": ["0.0"]}, {"force": ["5"]}],
}  # fmt: skip


def changed(name: str) -> Case:
    def case(device: str, folder: Path) -> Found:
        text = {"node-classifier": "4", "language-model": "the cat"}.get(name, LINES[0])
        model = loaded(name, device)
        return [regard.intervene(model, text, **of).to_dict() for of in CHANGES[name]]

    return case


def explained(name: str) -> Case:
    def case(device: str, folder: Path) -> Found:
        return [one.values for one in regard.explain(loaded(name, device), LINES[0])]

    return case


def served(device: str, folder: Path) -> Found:
    """Return what a server answers."""
    from fastapi.testclient import TestClient

    from regard.serving.app import create_app
    from regard.serving.limits import ServerSettings
    from regard.serving.models import stored_models

    with computing_on(device):
        models = stored_models(
            [RUNS / "recurrent-translator", RUNS / "transformer-translator"], engine="torch"
        )
    found = []
    with TestClient(create_app(models, ServerSettings(wait_ms=0))) as client:
        for model in models:
            asked = {"text": LINES[0], "model": model.name}
            answer = client.post("/api/attend", json=asked)
            found.append(answer.json())
            found.append(client.post("/api/text", json=asked).json())
    return found


def studied(device: str, folder: Path) -> Found:
    """Return what small trainings for lectures find."""
    from regard.studies import ladder

    # Not `gradients`: its backward pass through single steps can end torch's thread for wrapped
    # tensors, and with it the process.
    with computing_on(device):
        return [one.accuracy for one in ladder.climb(steps=3)]


CASES |= {
    "score": scored,
    "classify": classified,
    "forecast": forecast,
    "nodes": nodes,
    **{f"look at {name}": looked(name) for name in LOOKS},
    **{f"intervene in {name}": changed(name) for name in CHANGES},
    **{f"explain {name}": explained(name) for name in TRANSLATORS[:2]},
    **{
        f"trace {name}": traced(name, text)
        for name, text in {
            **dict.fromkeys(TRANSLATORS, LINES[0]),
            "language-model": "the cat",
            "recurrent-language-model": "the cat",
            "text-classifier": LINES[0],
            "forecaster": "55, 89, 144",
            "node-classifier": "3",
        }.items()
    },
    "serve": served,
    "studies": studied,
}


# What the device refuses, and how often a program waits for it


def refused() -> dict[str, Any]:
    """Return what the pretend device does not do."""
    there, here = torch.ones(3, device=pretend.NAME), torch.ones(3)
    attempts: dict[str, Callable[[], Any]] = {
        "mixed with the CPU": lambda: there + here,
        "numpy": there.numpy,
        "double precision": there.double,
        "indexed by the CPU": lambda: there[torch.tensor([1])],
        "generator of the CPU": lambda: torch.rand(
            3, device=pretend.NAME, generator=torch.Generator()
        ),
    }
    found = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (RuntimeError, TypeError):
            found.append(name)
    return {"refused": found}


def waits() -> dict[str, Any]:
    """Return how often a Transformer's update, and a step of its searches, wait for the device."""
    from regard.training import distributed

    seen: list[pretend.Watched] = []
    take = distributed.update

    def watched(*arguments: Any, **options: Any) -> Any:
        with pretend.watching() as watcher:
            result = take(*arguments, **options)
        seen.append(watcher)
        return result

    distributed.update = watched  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as folder:
            train("transformer", pretend.NAME, Path(folder), **{"model.dropout": 0.1})
    finally:
        distributed.update = take
    found: dict[str, Any] = {
        "update": max(sum(watcher.waits.values()) for watcher in seen),
        "update_at": sorted({f"{line} {op}" for watcher in seen for line, op in watcher.waits}),
    }
    for name, search in {"greedy": {"beam": 1}, "beam": {"beam": 4}}.items():
        counted, places = {}, set[str]()
        for length in (20, 60):
            model = loaded("transformer-translator", pretend.NAME)
            with pretend.watching() as watcher:
                model.engine.search(
                    [model.source_tokenizer.encode(LINES[0])],
                    model.decoding(min_length=length, max_length=length, **search),
                )
            counted[length] = sum(watcher.waits.values())
            places |= {f"{n} {line} {op}" for (line, op), n in watcher.waits.items()}
        found[f"{name}_step"] = (counted[60] - counted[20]) / 40
        found[f"{name}_at"] = sorted(places)
    return found


MEASURES: dict[str, Callable[[], dict[str, Any]]] = {"refused": refused, "waits": waits}


def main(names: list[str]) -> None:
    """Print what each case finds; a name stands for all that hold it, "=name" for itself."""
    warnings.simplefilter("ignore")

    def is_wanted(case: str) -> bool:
        return any(name == f"={case}" or (name and name in case) for name in names)

    for case in (*CASES, *MEASURES):
        if is_wanted(case) or (not names and case in CASES):
            found = compared(CASES[case]) if case in CASES else MEASURES[case]()
            sys.stdout.write(json.dumps({"case": case, **found}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
