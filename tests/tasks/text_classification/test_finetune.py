from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from regard.base.errors import DataError, RegardError, RunError, SettingsError
from regard.models.language_model import build_language_model
from regard.models.pretrained import LowRank, add_adapters, merge_adapters
from regard.runs.run import Run, open_run
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.recipe import expect
from regard.tasks import find_recipe, look
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.language_modelling.training import train_language_model
from regard.tasks.text_classification.model import build_text_classifier, load
from regard.tasks.text_classification.settings import TextClassificationRecipe
from regard.tasks.text_classification.training import (
    begin_with,
    from_scratch,
    optimizer_of,
    train_text_classifier,
)
from regard.training.checkpoint import read_tensors

ANIMALS, TOOLS = ["cat", "dog", "cow", "hen"], ["saw", "axe", "hoe", "pin"]
MODEL = ["model.layers=2", "model.heads=2", "model.model_dim=16", "model.context=24"]


def sentences(seed: int, count: int) -> list[tuple[str, str]]:
    random = Random(seed)
    found = []
    for _ in range(count):
        label = random.choice(["animal", "tool"])
        word = random.choice(ANIMALS if label == "animal" else TOOLS)
        found.append((label, f"i see a {word} {random.choice(['now', 'here'])}"))
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled sentences of a few words, and the same without labels."""
    folder = tmp_path_factory.mktemp("labelled")
    for name, seed, count in (("train", 1, 80), ("test", 2, 30)):
        rows = [f"{text}\t{label}\n" for label, text in sentences(seed, count)]
        (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    plain = "".join(f"{text}\n" for _, text in sentences(3, 200))
    (folder / "plain.txt").write_text(plain, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def pretrained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a small language model."""
    overrides = [
        f"data.text={corpus / 'plain.txt'}", *MODEL, "training.steps=60", "training.warmup=5",
        "training.learning_rate=0.01", "training.validate_every=60", "decoding.max_tokens=0",
    ]  # fmt: skip
    recipe = expect(find_recipe("gpt-nano", overrides=overrides), LanguageModelRecipe)
    folder = tmp_path_factory.mktemp("runs") / "plain"
    train_language_model(recipe, open_run(folder, recipe, resume=False))
    return folder


def recipe_of(corpus: Path, *overrides: str) -> TextClassificationRecipe:
    given = [
        f"data.train={corpus / 'train.tsv'}", f"data.test={corpus / 'test.tsv'}",
        "tokenizer.kind=character", *MODEL, "training.epochs=15", "training.learning_rate=0.01",
        "training.warmup=2", "training.tokens=120", *overrides,
    ]  # fmt: skip
    return expect(find_recipe("text-classifier", overrides=given), TextClassificationRecipe)


def train(recipe: TextClassificationRecipe, folder: Path, **options: Any) -> Any:
    return train_text_classifier(recipe, open_run(folder, recipe, resume=False), **options)


def test_a_pretrained_network_learns_to_classify(
    corpus: Path, pretrained: Path, tmp_path: Path
) -> None:
    recipe = begin_with(recipe_of(corpus), pretrained)
    trained = train(recipe, tmp_path / "run")
    assert trained.score.accuracy > 0.9
    assert trained.score.examples == 30
    loaded = load(tmp_path / "run")
    (one, other) = loaded.classify(["i see a cat now", "i see a saw here and there, my friend"])
    assert (one.label, other.label) == ("animal", "tool")
    assert sum(one.probabilities.values()) == pytest.approx(1)
    assert one.to_dict()["probability"] == max(one.probabilities.values())
    alone = loaded.classify(["i see a cat now"])[0]
    assert alone.probability == pytest.approx(one.probability, abs=1e-5)


def test_a_kill_in_the_first_checkpoint_does_not_lose_the_pretrained_weights(
    corpus: Path, pretrained: Path, tmp_path: Path
) -> None:
    recipe = begin_with(recipe_of(corpus, "training.epochs=1"), pretrained)
    killed = open_run(tmp_path / "killed", recipe, resume=False)
    (killed.folder / "checkpoints" / ".step-00000001.writing").mkdir(parents=True)
    weights = [
        (trained.run.folder / "best" / "model.safetensors").read_bytes()
        for trained in (train_text_classifier(recipe, killed), train(recipe, tmp_path / "whole"))
    ]
    assert weights[0] == weights[1]


def test_a_look_shows_which_words_decided(corpus: Path, pretrained: Path, tmp_path: Path) -> None:
    train(begin_with(recipe_of(corpus), pretrained), tmp_path / "run")
    model = load(tmp_path / "run")
    text = "i see a cat now"
    found = model.explain(text)
    odds, without = (
        math.log(one.probabilities["animal"] / one.probabilities["tool"])
        for one in model.classify([text, "i see a now"])
    )
    assert (found.label, found.other) == ("animal", "tool")
    assert found.log_odds == pytest.approx(odds, abs=1e-4)
    assert found.words == ("i", "see", "a", "cat", "now")
    assert found.values[3] == pytest.approx(odds - without, abs=1e-4)
    assert max(found.values) == found.values[3]  # the cat decided
    assert model.explain("i see a CAT").unknown == ("C", "A", "T")

    view = look(tmp_path / "run", text)
    lines = view.shown(80).splitlines()
    assert lines[0].startswith("animal (")
    assert [line.split()[0] for line in lines[2:7]] == list(found.words)
    view.save(tmp_path / "words.csv")
    assert (tmp_path / "words.csv").read_text().startswith("word,value\ni,")
    view.save(tmp_path / "words.svg")
    assert "cat" in (tmp_path / "words.svg").read_text()
    assert view.record["words"] == list(found.words)
    heads = look(tmp_path / "run", text, layer=1)
    assert "weights" in heads.record
    assert "confusion" in look(tmp_path / "run").record  # without a text
    with pytest.warns(UserWarning, match=r"\[3 unknown characters: C, A, T\]"):
        look(tmp_path / "run", "a CAT")
    with pytest.raises(RegardError, match="There is nothing to classify"):
        look(tmp_path / "run", " ")
    with pytest.raises(SettingsError, match="--part is for translators"):
        look(tmp_path / "run", text, part="cross")


def test_the_same_network_from_scratch(corpus: Path, pretrained: Path, tmp_path: Path) -> None:
    changes = ["training.adapter_rank=2", "training.epochs=2"]
    recipe = from_scratch(begin_with(recipe_of(corpus, *changes), pretrained))
    assert (recipe.training.start_from, recipe.training.adapter_rank) == (None, 0)
    trained = train(recipe, tmp_path / "run", tokenizer_of=pretrained)
    assert trained.model.text.size == load_size(pretrained)
    assert trained.score.examples == 30


def load_size(folder: Path) -> int:
    from regard.tasks.language_modelling.model import load

    return load(folder).text.size


def test_adapters_leave_the_network_as_it_was(
    corpus: Path, pretrained: Path, tmp_path: Path
) -> None:
    changes = ["training.adapter_rank=2", "training.epochs=2"]
    recipe = begin_with(recipe_of(corpus, *changes), pretrained)
    trained = train(recipe, tmp_path / "run")
    before = read_tensors(Run.open(pretrained).weights())
    after = read_tensors(trained.run.weights())
    assert any(".up" in name for name in after)
    for name, tensor in after.items():
        plain = name.replace(".parametrizations.weight.original", ".weight")
        if plain in before and not plain.startswith("projection"):
            assert tensor.equal(before[plain]), name
    assert not any("parametrizations" in name for name, _ in trained.model.model.named_parameters())


def test_lower_layers_can_stay_or_be_slower(corpus: Path, pretrained: Path, tmp_path: Path) -> None:
    recipe = begin_with(
        recipe_of(corpus, "training.freeze_layers=1", "training.epochs=1"), pretrained
    )
    trained = train(recipe, tmp_path / "run")
    before, after = (
        read_tensors(folder) for folder in (Run.open(pretrained).weights(), trained.run.weights())
    )
    same = {
        name.split(".")[2] if name.startswith("backbone.layers") else name.split(".")[1]
        for name in after
        if name in before and after[name].equal(before[name])
    }
    assert same == {"0", "embedded"}


def test_rates_fall_with_the_depth(corpus: Path) -> None:
    recipe = recipe_of(corpus, "training.layer_decay=0.5")
    model = build_text_classifier(recipe, vocab=30, labels=2)
    groups = optimizer_of(model, recipe.training, layers=2).param_groups
    assert {group["rate_share"] for group in groups} == {1.0, 0.5, 0.25, 0.125}
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_merged_adapters_give_the_same_features() -> None:
    torch.manual_seed(1)
    settings = CausalTransformerSettings.model_validate({"layers": 1, "model_dim": 8, "heads": 2})
    model = build_language_model(settings, vocab=9).eval()
    tokens = torch.randint(0, 9, (2, 6))
    with torch.no_grad():
        plain = model(tokens).features
        add_adapters(model, rank=2)
        torch.testing.assert_close(model(tokens).features, plain)
        for part in model.modules():
            if isinstance(part, LowRank):
                part.up.normal_()
        adapted = model(tokens).features
        assert not torch.allclose(adapted, plain)
        merge_adapters(model)
        torch.testing.assert_close(model(tokens).features, adapted)


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        (["training.freeze_layers=9"], SettingsError, r"freeze_layers \(9\) exceeds model.layers"),
        (["data.train=nowhere.tsv"], DataError, "there is no such file"),
        (["data.valid={corpus}/odd.tsv"], DataError, "no training text has the label 'animals'"),
    ],
)
def test_what_cannot_be_learned(
    corpus: Path, tmp_path: Path, overrides: list[str], error: type[Exception], message: str
) -> None:
    (corpus / "odd.tsv").write_text(
        "i see a cat now\tanimals\ni see a saw here\ttool\n", encoding="utf-8"
    )
    with pytest.raises(error, match=message):
        train(
            recipe_of(corpus, *(each.format(corpus=corpus) for each in overrides)),
            tmp_path / "run",
        )


def test_a_recurrent_network_has_nothing_to_adapt_or_freeze(corpus: Path, tmp_path: Path) -> None:
    table = tmp_path / "recurrent.toml"
    table.write_text(
        f'task = "classify-text"\n[data]\ntrain = "{corpus / "train.tsv"}"\n'
        '[model]\nfamily = "recurrent"\nhidden = 16\nembedding = 8\n[training]\nepochs = 1\n',
        encoding="utf-8",
    )
    for change, message in (
        ("training.adapter_rank=2", "no attention to adapt"),
        ("training.freeze_layers=1", "no layers to freeze"),
    ):
        recipe = expect(find_recipe(str(table), overrides=[change]), TextClassificationRecipe)
        with pytest.raises(SettingsError, match=message):
            train(recipe, tmp_path / change)
    recipe = expect(find_recipe(str(table)), TextClassificationRecipe)
    assert train(recipe, tmp_path / "run").score.examples > 0


def test_few_labels_and_no_data(corpus: Path, tmp_path: Path) -> None:
    from regard.tasks.text_classification.data import read_labelled_splits

    recipe = recipe_of(corpus, "data.share=0.1")
    splits = read_labelled_splits(recipe.data)
    assert 6 <= len(splits.train) <= 9
    assert {one.label for one in splits.train} == {"animal", "tool"}
    nothing = recipe.data.model_copy(update={"train": ()})
    with pytest.raises(
        SettingsError, match=r"no labelled texts to learn from: give the data with --data"
    ):
        read_labelled_splits(nothing)


def test_a_damaged_run(corpus: Path, pretrained: Path, tmp_path: Path) -> None:
    trained = train(recipe_of(corpus, "training.epochs=1"), tmp_path / "run")
    (trained.run.folder / "labels.json").unlink()
    with pytest.raises(RunError, match=r"labels\.json is missing or damaged"):
        load(trained.run.folder)
    wide = begin_with(recipe_of(corpus), pretrained)
    other = wide.model_copy(update={"model": wide.model.model_copy(update={"model_dim": 32})})
    with pytest.raises(SettingsError, match=r"has no weights 'backbone\.embedded"):
        train(other, tmp_path / "wide")


def test_a_classifier_on_a_network_that_reads_both_ways(corpus: Path, tmp_path: Path) -> None:
    overrides = [
        f"data.text={corpus / 'plain.txt'}", *MODEL, "model.family=bidirectional",
        "training.steps=60", "training.warmup=5", "training.learning_rate=0.01",
        "training.validate_every=60",
    ]  # fmt: skip
    recipe = expect(find_recipe("gpt-nano", overrides=overrides), LanguageModelRecipe)
    train_language_model(recipe, open_run(tmp_path / "plain", recipe, resume=False))
    chosen = begin_with(recipe_of(corpus), tmp_path / "plain")
    run = open_run(tmp_path / "labels", chosen, resume=False)
    trained = train_text_classifier(chosen, run)
    assert trained.score.accuracy > 0.9
    model = load(run.folder)
    alone, *_ = model.classify(["i see a cat now"])
    together = model.classify(["i see a cat now", "i see a hoe here and there and everywhere"])[0]
    assert alone.probability == pytest.approx(together.probability, abs=1e-5)
    assert model.heads("i see").weights.shape[0] == 2
