"""`regard.train` does what `regard train` does, with files and with data from memory."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.base.errors import RegardError, SettingsError
from regard.cli.app import main
from regard.corpora.graph_files import read_npz
from regard.corpora.labelled import LabelledText, read_labelled
from regard.corpora.parallel import read_pairs
from regard.runs.run import Run
from regard.tasks import TASKS


@dataclass(frozen=True)
class Case:
    """A small training of one task: where its files are named, and the same data in Python."""

    recipe: str
    settings: dict[str, Any]
    files: dict[str, Any]
    memory: Callable[[], Any]


def translation(toy_corpus: Path) -> Case:
    files = {part: [str(toy_corpus / f"{part}.{end}") for end in ("src", "tgt")]
             for part in ("train", "valid", "test")}  # fmt: skip
    settings = {
        "tokenizer.kind": "word", "model.cell": "gru", "model.hidden": 8, "model.embedding": 8,
        "batches.tokens": 400, "training.steps": 6, "training.validate_every": 3,
        "training.checkpoint_every": 3, "training.validate_sentences": 4, "decoding.beam": 1,
    }  # fmt: skip

    def memory() -> dict[str, Iterator[tuple[str, str]]]:
        parts = {part: read_pairs([Path(file) for file in both]) for part, both in files.items()}
        return {part: ((p.source, p.target) for p in pairs) for part, pairs in parts.items()}

    named = {f"data.{part}": both for part, both in files.items()}
    return Case("seq2seq-attention", settings, named, memory)


def language_model(folder: Path) -> Case:
    random = Random(1)
    words = ["the", "cat", "sat", "on", "a", "mat"]
    parts = [
        "".join(" ".join(random.choices(words, k=6)) + ".\n" for _ in range(60)) for _ in range(2)
    ]
    for number, part in enumerate(parts):
        (folder / f"book{number}.txt").write_text(part, encoding="utf-8")
    settings = {
        "model.layers": 1, "model.heads": 2, "model.model_dim": 16, "model.context": 16,
        "training.batch_size": 4, "training.steps": 6, "training.validate_every": 3,
        "decoding.max_tokens": 5, "tokenizer.kind": "byte-bpe", "tokenizer.size": 280,
    }  # fmt: skip
    files = {"data.text": [str(folder / f"book{number}.txt") for number in range(2)]}
    return Case("gpt-nano", settings, files, lambda: (part.rstrip("\n") for part in parts))


def text_classifier(folder: Path) -> Case:
    rows = [(f"the {word} sat", "animal") for word in ("cat", "dog", "cow", "hen")] * 5
    rows += [(f"a {word} fell", "tool") for word in ("saw", "axe", "file")] * 5
    path = folder / "labels.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for text, label in rows), encoding="utf-8")
    settings = {
        "model.layers": 1, "model.heads": 2, "model.model_dim": 16, "model.context": 16,
        "training.epochs": 2, "training.tokens": 64, "data.share": 0.8,
    }  # fmt: skip
    return Case("text-classifier", settings, {"data.train": str(path)}, lambda: iter(rows))


def forecaster(folder: Path) -> Case:
    values = [15 + 5 * float(np.sin(day / 2)) for day in range(80)]
    path = folder / "waves.csv"
    path.write_text("height\n" + "".join(f"{value!r}\n" for value in values), encoding="utf-8")
    settings = {
        "data.window": 6, "model.hidden": 4, "training.steps": 6, "training.validate_every": 3,
    }  # fmt: skip
    return Case("forecast", settings, {"data.file": str(path)}, lambda: iter(values))


def node_classifier(folder: Path) -> Case:
    random = np.random.default_rng(0)
    labels = np.arange(30) % 3
    path = folder / "small.npz"
    features = np.eye(3, dtype=np.float32)[labels] + random.random((30, 3), dtype=np.float32)
    np.savez(path, x=features, y=labels, edges=random.integers(0, 30, (2, 60)))
    settings = {
        "training.steps": 5, "training.seeds": 2, "data.train_per_class": 3,
        "training.batch_nodes": 4,
    }  # fmt: skip
    return Case("gat-cora", settings, {"data.graph": str(path)}, lambda: read_npz(path))


OTHERS = {
    "language-model": language_model,
    "classify-text": text_classifier,
    "forecast": forecaster,
    "classify-nodes": node_classifier,
}


@pytest.fixture(scope="module", params=TASKS)
def case(
    request: pytest.FixtureRequest, toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Case:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "translate":
        return translation(toy_corpus)
    return OTHERS[request.param](folder)


@pytest.fixture(scope="module")
def by_command(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the command line."""
    out = tmp_path_factory.mktemp("command") / "run"
    options = [f"{key}={json.dumps(value)}" for key, value in (case.settings | case.files).items()]
    with pytest.raises(SystemExit) as ended:
        main(["train", case.recipe, *(word for each in options for word in ("--set", each)),
              "--out", str(out)])  # fmt: skip
    assert not ended.value.code
    return out


@pytest.fixture(scope="module")
def from_memory(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the same data, given in Python."""
    out = tmp_path_factory.mktemp("memory") / "run"
    torch.manual_seed(99)  # what was random before does not matter
    regard.train(case.recipe, set=case.settings, data=case.memory(), out=out, progress=False)
    return out


def weights(run: Path) -> dict[str, dict[str, torch.Tensor]]:
    """Return the tensors of the best model and of all checkpoints, optimiser included."""
    files = sorted(run.rglob("*.safetensors"))
    assert {"model.safetensors", "optimizer.safetensors"} <= {file.name for file in files}
    return {str(file.relative_to(run)): load_file(file) for file in files}


def assert_same(one: Path, other: Path) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for file, tensors in first.items():
        assert tensors.keys() == second[file].keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, second[file][name]), (file, name)


def test_a_call_and_the_command_give_the_same_weights(
    case: Case, by_command: Path, tmp_path: Path
) -> None:
    torch.manual_seed(99)
    trained = regard.train(
        case.recipe, set=case.settings | case.files, out=tmp_path / "run", progress=False
    )
    assert_same(by_command, tmp_path / "run")
    assert (tmp_path / "run" / "recipe.toml").read_text() == (
        by_command / "recipe.toml"
    ).read_text()
    assert trained.run.folder == tmp_path / "run"
    assert trained.report.is_file()
    assert trained.run.task in trained._repr_html_()


def test_data_from_memory_gives_the_weights_of_the_same_data_from_files(
    by_command: Path, from_memory: Path
) -> None:
    assert_same(by_command, from_memory)


def test_a_run_from_memory_says_so_and_names_no_file(case: Case, from_memory: Path) -> None:
    table = tomllib.loads((from_memory / "recipe.toml").read_text(encoding="utf-8"))["data"]
    assert table["from_memory"] is True
    for key in case.files:
        assert not table.get(key.removeprefix("data."))
    assert regard.load(from_memory).model is not None


def test_a_run_from_memory_is_resumed_with_its_data_and_not_without(
    case: Case, from_memory: Path
) -> None:
    before = weights(from_memory).keys()
    recipe = from_memory / "recipe.toml"
    with pytest.raises(SettingsError, match=r"given in Python, not in files\. Give the same data"):
        regard.train(recipe, out=from_memory, resume=True, progress=False)
    regard.train(recipe, out=from_memory, data=case.memory(), resume=True, progress=False)
    assert weights(from_memory).keys() == before


def test_other_data_is_refused_when_a_run_from_memory_is_resumed(
    case: Case, from_memory: Path
) -> None:
    others: dict[str, Any] = {
        "seq2seq-attention": {"train": [("ba", "ab")] * 20, "valid": [("ba", "ab")]},
        "gpt-nano": ["another text\n" * 50],
        "text-classifier": [("one", "a"), ("two", "b")] * 9,
        "forecast": [float(number % 7) for number in range(90)],
    }
    if case.recipe not in others:
        pytest.skip("a graph is compared with that of the run")
    with pytest.raises(RegardError, match=r"data has changed|belongs to another model|describes"):
        regard.train(
            from_memory / "recipe.toml",
            out=from_memory,
            data=others[case.recipe],
            resume=True,
            progress=False,
        )


def test_a_run_from_memory_refuses_to_read_its_files(case: Case, from_memory: Path) -> None:
    from regard.tasks.forecasting.data import read_windows
    from regard.tasks.language_modelling.training import prepare
    from regard.tasks.node_classification.data import read_graph
    from regard.tasks.text_classification.data import read_labelled_splits
    from regard.tasks.translation.data import read_splits, read_valid

    run = Run.open(from_memory)
    recipe: Any = run.recipe(type(regard.load(from_memory).recipe))
    readers: dict[str, list[Callable[[], Any]]] = {
        "translate": [lambda: read_splits(recipe.data), lambda: read_valid(recipe.data)],
        "language-model": [lambda: prepare(run, recipe)],
        "classify-text": [lambda: read_labelled_splits(recipe.data)],
        "forecast": [lambda: read_windows(recipe.data)],
        "classify-nodes": [lambda: read_graph(recipe.data)],
    }
    for reader in readers[run.task]:
        with pytest.raises(SettingsError, match=r"This run was trained on .* given in Python"):
            reader()


def test_data_may_also_be_names_of_files(toy_corpus: Path, tmp_path: Path) -> None:
    case = translation(toy_corpus)
    data = {key.removeprefix("data."): [Path(file) for file in both]
            for key, both in case.files.items()}  # fmt: skip
    trained = regard.train(
        case.recipe, set=case.settings, data=data, out=tmp_path / "run", progress=False
    )
    assert trained.run.table["data"]["train"] == case.files["data.train"]
    assert trained.run.table["data"]["from_memory"] is False


# What is given as data, by the recipe that it is given to, and what the message says.
WRONG: dict[str, tuple[str, Any, str]] = {
    "no pairs": ("seq2seq", {"train": []}, "The train data has no pairs"),
    "an unknown part": ("seq2seq", {"trian": []}, "part of the data 'trian'. Did you mean 'train'"),
    "no training part": ("seq2seq", {"valid": [("a", "b")]}, 'has no part "train"'),
    "three sides": ("seq2seq", [("a", "b", "c")], r"Item 1 of the train data is not a pair"),
    "an empty side": (
        "seq2seq",
        [("a", "b"), ("a", " ")],
        "Item 2 of the train data is not a pair",
    ),
    "too long": ("seq2seq", [("a " * 1001, "b")], r"Item 1 .* has 1001 words, more than data\.max"),
    "files and pairs": (
        "seq2seq",
        {"train": ["a.en", "a.de"], "valid": [("a", "b")]},
        r"files \(train\) and pairs from memory",
    ),
    "a missing file": ("seq2seq", "nowhere.tsv", "nowhere.tsv"),
    "a number as text": ("gpt-nano", ["a", 3], "Item 2 of the text data is not a text: 3"),
    "an unknown part of text": ("gpt-nano", {"test": ["a"]}, "Unknown part of the data 'test'"),
    "files and texts": ("gpt-nano", [Path("a"), "b"], "files and texts from memory"),
    "no text": ("gpt-nano", [], "There is no text to learn from"),
    "no labelled texts": ("text-classifier", [], "The train data has no texts"),
    "a text without label": (
        "text-classifier",
        [("a",)],
        "Item 1 of the train data is not a text wi",
    ),
    "an unknown label": (
        "text-classifier",
        {"train": [("a", "x"), ("b", "y")] * 4, "valid": [("a", "z")]},
        "no training text has the label 'z'",
    ),
    "words for numbers": ("forecast", ["one", "two"], "a plain list of finite numbers"),
    "a table of numbers": ("forecast", np.zeros((3, 3)), "a plain list of finite numbers"),
    "not finite": ("forecast", [1.0, float("inf")], "a plain list of finite numbers"),
    "too few numbers": ("forecast", [1.0, 2.0], "the series has 2 values"),
}


@pytest.mark.parametrize(("recipe", "data", "message"), WRONG.values(), ids=WRONG)
def test_data_that_cannot_be_used(recipe: str, data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=message):
        regard.train(recipe, data=data, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_report_names_the_part_that_was_scored(tmp_path: Path) -> None:
    case = text_classifier(tmp_path)
    rows = list(case.memory())
    settings = case.settings | {"data.hold_out_test": 0}
    for data, part in [({"train": rows}, "validation"), ({"train": rows, "test": rows}, "test")]:
        trained = regard.train(
            case.recipe, set=settings, data=data, out=tmp_path / part, progress=False
        )
        assert f"Scores on the {part} texts" in trained.report.read_text(encoding="utf-8")


def test_labelled_texts_may_be_the_programs_own(tmp_path: Path) -> None:
    case = text_classifier(tmp_path)
    texts = read_labelled(Path(case.files["data.train"]))
    assert isinstance(texts[0], LabelledText)
    trained = regard.train(
        case.recipe, set=case.settings, data=texts, out=tmp_path / "run", progress=False
    )
    assert trained.model.labels == ("animal", "tool")


def test_a_plan_of_every_task_says_what_was_read_and_what_it_takes(
    case: Case, by_command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    plan = regard.plan(case.recipe, set=case.settings | case.files, progress=False)
    assert not list(tmp_path.iterdir())  # nothing stays, not even in the folder for such things
    found = plan.estimate
    recorded = Run.open(by_command)
    assert plan.recipe.task == recorded.task
    trained = sum(p.numel() for p in regard.load(by_command).model.parameters())
    assert found.parameters == found.trained_parameters == trained
    assert found.memory.weights >= 4 * trained
    assert found.memory.gradients >= 4 * trained
    assert found.memory.optimiser > 0
    assert found.memory.activations > 0
    assert found.measured_updates == 3
    assert found.updates_per_epoch is not None
    assert 0 < found.seconds_per_update < found.seconds
    assert plan.facts
    values = json.loads(json.dumps(plan.to_dict()))
    for fact in plan.facts:
        assert fact.name in values
        assert fact.text in str(plan)
        assert fact.text.split(",")[0] in plan._repr_html_()
    assert values["memory"]["total"] == found.memory.total
    for name in ("model", "updates", "memory", "time"):
        assert f"\n{name} " in str(plan)
