from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import DataError, RegardError, RunError, SettingsError
from regard.batching.texts import all_windows
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.language_modelling.data import prepare_text
from regard.tasks.language_modelling.model import LoadedLanguageModel, TrainedLanguageModel
from regard.tasks.language_modelling.settings import LanguageModelRecipe, PretrainingSettings
from regard.tasks.language_modelling.training import next_token_loss, rate_of, train_language_model
from regard.training.progress import read_metrics

SMALL = [
    "model.layers=1",
    "model.heads=2",
    "model.model_dim=16",
    "model.context=16",
    "training.batch_size=8",
    "training.steps=60",
    "training.validate_every=30",
    "training.checkpoint_every=30",
    "training.warmup=5",
    "training.learning_rate=0.02",
    "decoding.max_tokens=10",
]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some lines of few words, compressed."""
    random = Random(1)
    words = ["the", "cat", "sat", "on", "a", "mat"]
    lines = [" ".join(random.choices(words, k=6)) + ".\n" for _ in range(200)]
    path = tmp_path_factory.mktemp("book") / "book.txt.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


def recipe(book: Path, *overrides: str) -> LanguageModelRecipe:
    found = find_recipe("gpt-nano", overrides=[f"data.text={book}", *SMALL, *overrides])
    return expect(found, LanguageModelRecipe)


def trained_in(folder: Path, settings: LanguageModelRecipe, **options: Any) -> TrainedLanguageModel:
    return train_language_model(settings, open_run(folder, settings, resume=False), **options)


@pytest.fixture(scope="module")
def trained(book: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedLanguageModel:
    return trained_in(tmp_path_factory.mktemp("runs") / "book", recipe(book))


def test_it_learns_and_writes_what_it_found(trained: TrainedLanguageModel) -> None:
    metrics = trained.metrics
    assert metrics["loss"] < 2.0  # of characters drawn evenly: 2.8
    assert metrics["bits_per_character"] == pytest.approx(metrics["loss"] / 0.6931472, rel=1e-4)
    assert metrics["bits_per_byte"] == metrics["bits_per_character"]
    rows = read_metrics(trained.run.folder / "samples.jsonl")
    assert [row["step"] for row in rows] == [30, 60]
    assert all(row["tokens"] == 10 == len(row["text"]) for row in rows)


def test_the_whole_validation_part_is_measured(trained: TrainedLanguageModel, book: Path) -> None:
    text = gzip.decompress(book.read_bytes()).decode()
    data = prepare_text(trained.run, recipe(book))
    assert data.train.characters + data.valid.characters == len(text)
    assert data.valid.characters == round(len(text) * 0.1)
    with torch.no_grad():
        batches = list(all_windows(data.valid, context=16))
        nats = sum(float(next_token_loss(trained.model.model, batch).nats) for batch in batches)
    count = sum(batch.target_tokens for batch in batches)
    assert count == len(data.valid) - 1
    assert nats / count == pytest.approx(trained.metrics["loss"], rel=1e-5)


def test_a_stopped_training_resumes_exactly(
    trained: TrainedLanguageModel, book: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"

    class Crash:
        """Stops the training after its 45th update."""

        def updated(self, progress: Any, result: Any, facts: Any) -> None:
            if progress.step == 45:
                raise KeyboardInterrupt

        def validated(self, progress: Any, metrics: Any) -> None: ...

        def finished(self, progress: Any, reason: str) -> None: ...

    settings = recipe(book)
    with pytest.raises(KeyboardInterrupt):
        trained_in(folder, settings, observers=[Crash()])
    run = open_run(folder, settings, resume=True)
    again = train_language_model(settings, run)
    assert again.metrics == trained.metrics
    for name in ("metrics.jsonl", "samples.jsonl"):
        ours, theirs = (read_metrics(each.run.folder / name) for each in (again, trained))
        for row in (*ours, *theirs):
            row.pop("seconds", None)
        assert ours == theirs


def test_changed_text_is_not_resumed(
    trained: TrainedLanguageModel, book: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_bytes(gzip.decompress(book.read_bytes()))
    settings = recipe(copy, "training.steps=30")
    folder = tmp_path / "run"
    trained_in(folder, settings)
    copy.write_text("another cat sat on a mat.\n" * 100, encoding="utf-8")
    with pytest.raises(RunError, match="The data has changed"):
        train_language_model(settings, open_run(folder, settings, resume=True))


@pytest.mark.parametrize("kind", ["sentencepiece", "byte-bpe"])
def test_subwords(book: Path, tmp_path: Path, kind: str) -> None:
    settings = recipe(
        book, f"tokenizer.kind={kind}", "tokenizer.size=290", "tokenizer.sample=2000",
        "model.positions=rotary", "training.steps=30",
    )  # fmt: skip
    found = trained_in(tmp_path / "run", settings)
    assert found.metrics["perplexity"] > 2 ** found.metrics["bits_per_character"]
    (text,) = found.model.generate("the cat", seed=3)
    assert (text.prompt, text.reason) == ("the cat", "length")


def test_a_recurrent_model_by_the_same_way(book: Path, tmp_path: Path) -> None:
    lines = [line for line in SMALL if not line.startswith("model.")]
    given = [f"data.text={book}", *lines, "model.family=recurrent", "model.hidden=24"]
    table = tmp_path / "gru.toml"
    table.write_text('task = "language-model"\n', encoding="utf-8")
    settings = find_recipe(str(table), overrides=[*given, "model.cell=gru", "training.ema=0.9"])
    found = trained_in(tmp_path / "run", expect(settings, LanguageModelRecipe))
    assert found.metrics["loss"] < 2.8
    (text,) = found.model.generate("the cat" * 20, max_tokens=5)
    assert text.tokens == 5
    with pytest.raises(RegardError, match="no attention heads"):
        found.model.heads("the cat")


def test_going_on_with_other_text(
    trained: TrainedLanguageModel, book: Path, tmp_path: Path
) -> None:
    settings = recipe(
        book, f"training.start_from={trained.run.folder}", "training.steps=1",
        "training.learning_rate=1e-9", f"data.valid={book}",
    )  # fmt: skip
    found = trained_in(tmp_path / "run", settings)
    assert found.metrics["loss"] == pytest.approx(trained.metrics["loss"], abs=0.1)
    assert found.model.text.size == trained.model.text.size


@pytest.mark.parametrize(
    ("override", "error", "message"),
    [
        ("data.text=[]", SettingsError, "set data.text=FILE"),
        ("data.text=nowhere.txt", DataError, "there is no such file"),
        ("model.context=5000", DataError, "too few: .* where one window takes 5001"),
        ("training.start_from=nowhere", RunError, "There is no run at nowhere"),
    ],
)
def test_what_cannot_be_trained_on(
    book: Path, tmp_path: Path, override: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        trained_in(tmp_path / "run", recipe(book, override))


def test_the_rate_ends_where_it_is_told_to() -> None:
    settings = PretrainingSettings.model_validate({"warmup": 10, "learning_rate": 1e-3})
    assert rate_of(5, 0.0, settings=settings) == pytest.approx(5e-4)
    assert rate_of(10, 0.0, settings=settings) == pytest.approx(1e-3)
    assert rate_of(50, 0.5, settings=settings) == pytest.approx(5.5e-4)
    assert rate_of(99, 1.0, settings=settings) == pytest.approx(1e-4)
    constant = settings.model_copy(update={"schedule": "constant"})
    assert rate_of(99, 1.0, settings=constant) == pytest.approx(1e-3)


# What a trained model does.


@pytest.fixture(scope="module")
def model(trained: TrainedLanguageModel) -> LoadedLanguageModel:
    loaded: LoadedLanguageModel = regard.load(trained.run.folder)
    return loaded


def test_the_same_text_with_and_without_cache(model: LoadedLanguageModel) -> None:
    for options in ({"temperature": 0.0}, {"temperature": 1.0, "samples": 3}):
        cached, plain = (
            model.generate("the", max_tokens=60, cache=cache, **options) for cache in (True, False)
        )
        assert cached == plain


def test_text_is_told_as_it_is_written(model: LoadedLanguageModel) -> None:
    heard: dict[int, list[str]] = {0: [], 1: []}
    found = model.generate(
        "the ", samples=2, max_tokens=30, on_text=lambda number, part: heard[number].append(part)
    )
    for number, one in enumerate(found):
        assert "".join(heard[number]) == one.text
        assert len(heard[number]) > 10


def test_a_string_to_stop_at_is_never_told(model: LoadedLanguageModel) -> None:
    (whole,) = model.generate("the", max_tokens=80)
    stop = whole.text[20:24]
    heard: list[str] = []
    (cut,) = model.generate(
        "the",
        max_tokens=80,
        stop=["never there", stop, ""],
        on_text=lambda _, part: heard.append(part),
    )
    assert cut.text == whole.text[: whole.text.index(stop)] == "".join(heard)
    assert cut.reason == "stop"


def test_prompts_of_every_kind(model: LoadedLanguageModel) -> None:
    assert model.prompt_warnings("the cat") == []
    assert model.prompt_warnings("") == []
    (empty,) = model.generate("", max_tokens=12)
    assert empty.tokens == 12 == len(empty.text)
    (warning,) = model.prompt_warnings("the cat sat on the mat")
    assert "The prompt has 22 tokens and the model reads 16 at once" in warning
    (warning,) = model.prompt_warnings("Ω cat Ж")
    assert "never seen these characters of the prompt: 'Ω' 'Ж'." in warning
    long, short = (
        model.generate(prompt, max_tokens=1, temperature=0.0)
        for prompt in ("the cat sat on the mat", "t sat on the mat")
    )
    assert long[0].text == short[0].text


def test_options_that_mean_nothing(model: LoadedLanguageModel) -> None:
    with pytest.raises(SettingsError, match="top_p"):
        model.generate("the", top_p=2.0)


def test_measures_of_a_text(model: LoadedLanguageModel) -> None:
    likely, unlikely = (model.bits_per_character(text) for text in ("the cat sat", "tehactt as."))
    assert likely < unlikely
    assert model.bits_per_character("the cat sat on the mat. the cat") > 0
    with pytest.raises(RegardError, match="the text is empty"):
        model.bits_per_character("")
    view = model.heads("the cat")
    assert "".join(view.pieces) == "the␣cat"
    assert view.weights.shape == (1, 2, 7, 7)
