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
from regard.tasks.language_modelling.objective import loss_of_recipe, next_token_loss, validated
from regard.tasks.language_modelling.settings import (
    LanguageModelRecipe,
    PretrainingSettings,
    TextSettings,
)
from regard.tasks.language_modelling.training import rate_of, train_language_model
from regard.text.tokenizers import RunningText, train_tokenizer
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
        def noted(self, line: str) -> None: ...

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
    # Killed inside its first checkpoint, it begins with the same weights again.
    killed = open_run(tmp_path / "killed", settings, resume=False)
    (killed.folder / "checkpoints" / ".step-00000001.writing").mkdir(parents=True)
    again = train_language_model(settings, killed)
    assert again.metrics["loss"] == found.metrics["loss"]


@pytest.mark.parametrize(
    ("override", "error", "message"),
    [
        ("data.text=[]", SettingsError, "no text to learn from: give the data with --data"),
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


@pytest.fixture(scope="module")
def both_ways(book: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedLanguageModel:
    """A model that reads both ways and has learned to guess hidden characters."""
    chosen = recipe(book, "model.family=bidirectional", "training.steps=120")
    return trained_in(tmp_path_factory.mktemp("runs") / "both", chosen)


def test_hidden_tokens_are_learned_from_both_sides(both_ways: TrainedLanguageModel) -> None:
    assert set(both_ways.metrics) == {"loss", "perplexity"}
    assert both_ways.metrics["loss"] < 2.3  # of characters drawn evenly: 2.8
    assert not (both_ways.run.folder / "samples.jsonl").exists()
    view = both_ways.model.heads("the cat")
    assert float(view.weights[..., 0, -1].min()) > 0  # the first character sees the last


def test_a_model_that_reads_both_ways_does_not_generate(both_ways: TrainedLanguageModel) -> None:
    with pytest.raises(RegardError, match="it cannot write on"):
        both_ways.model.generate("the")
    with pytest.raises(RegardError, match="it cannot write on"):
        both_ways.model.bits_per_character("the cat")


def test_validation_hides_the_same_tokens_each_time(
    both_ways: TrainedLanguageModel, book: Path
) -> None:
    chosen = both_ways.model.recipe
    data = prepare_text(both_ways.run, chosen)
    loss_of = loss_of_recipe(chosen, data.text)
    model = both_ways.model.model
    first, second = (validated(data, model, chosen, loss_of=loss_of).value for _ in range(2))
    assert first == second == pytest.approx(both_ways.metrics["loss"], rel=1e-4)


def test_hidden_tokens_and_answers_exclude_each_other(book: Path) -> None:
    chosen = recipe(book, "model.family=bidirectional")
    pairs = chosen.model_copy(update={"data": TextSettings(pairs=("pairs.tsv",))})
    with pytest.raises(SettingsError, match="cannot learn answers to prompts"):
        loss_of_recipe(pairs, RunningText(train_tokenizer(["the cat"], kind="character")))
