"""Interventions as users write them, in every family, and the refusals of what a model has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.base.errors import RegardError, SettingsError
from regard.corpora.graph import FeatureMatrix, Graph
from regard.corpora.parallel import SentencePair
from regard.models.graph_classifier import build_graph_classifier
from regard.models.language_model import build_language_model
from regard.models.text_classifier import classifier_of
from regard.settings.recipe import validate
from regard.studies.interventions import forced_steps, head_importance
from regard.tasks import find_recipe
from regard.tasks.interventions import Effect, InterventionRequest, Words, place_of
from regard.tasks.language_modelling.interventions import (
    intervene_in_classifier,
    intervene_in_language_model,
)
from regard.tasks.language_modelling.model import LoadedLanguageModel
from regard.tasks.node_classification.data import graph_input
from regard.tasks.node_classification.interventions import intervene_in_graph
from regard.tasks.node_classification.model import LoadedGraphClassifier
from regard.tasks.node_classification.settings import GraphRecipe
from regard.tasks.text_classification.model import LoadedTextClassifier
from regard.tasks.text_classification.settings import TextClassificationRecipe
from regard.text.tokenizers import RunningText, train_tokenizer

TEXT = "badal kofen migon"


def test_swapping_values_swaps_the_words(toy_run: Path) -> None:
    found = regard.intervene(toy_run, TEXT, swap=["badal=migon"])
    assert found.before.text == "LADAB NEFOK NOGIM"
    assert found.after.text.startswith("NOGIM")
    assert [old for old, _ in found.changes]
    assert found.before.tokens[-1] == "</s>"
    assert found.kept[0] < 0.5 < found.before.probabilities[0]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"force": ["0=migon"]}, id="a step by its number"),
        pytest.param({"force": ["LADAB=migon:0.9,badal:0.1"]}, id="a step by its word"),
        pytest.param({"move": ["0=badal:migon"]}, id="moved"),
        pytest.param({"hide": ["badal", "kofen"]}, id="hidden"),
        pytest.param({"force": ["0=#2@0.0"]}, id="a word by its place, in one head"),
    ],
)
def test_attention_decides_on_the_first_word(toy_run: Path, options: dict[str, Any]) -> None:
    assert regard.intervene(toy_run, TEXT, **options).after.text.split()[0] == "NOGIM"


def test_a_state_of_another_sentence(toy_run: Path) -> None:
    found = regard.intervene(toy_run, TEXT, patch=["badal=migon"], other="migon kofen badal")
    assert found.kept[0] < 0.9 * found.before.probabilities[0]


def test_heads_off_and_at_their_mean(toy_run: Path, random_transformer_run: Path) -> None:
    for options in ({"off": ["0.0"]}, {"mean": ["0.0"]}):
        assert regard.intervene(toy_run, TEXT, **options).changes
    model = regard.load(random_transformer_run)
    for options in ({"off": ["encoder.0.1"]}, {"off": ["1"]}, {"skip": ["decoder.0"]},
                    {"mean": ["decoder.0.1"]}, {"hide": ["kofen@encoder.1"]},
                    {"patch": ["kofen@encoder.1"], "other": TEXT}):  # fmt: skip
        found = regard.intervene(model, TEXT, **options)
        assert len(found.kept) == len(found.before.probabilities)
        same = "patch" in options  # the states of the same text
        assert (found.kept == pytest.approx(found.before.probabilities, abs=1e-6)) == same


def test_an_effect_shows_itself(toy_run: Path, tmp_path: Path) -> None:
    found = regard.intervene(toy_run, TEXT, swap=["badal=migon"])
    shown = found._repr_html_()
    assert "<mark>" in shown
    assert shown.count("<svg") == 2
    assert "p before" in str(found)
    found.save(tmp_path / "maps.csv")
    assert "LADAB" in (tmp_path / "maps.csv").read_text("utf-8")
    assert found.to_dict()["interventions"] == ["swap badal=migon"]
    with pytest.raises(SettingsError, match="no map of attention"):
        Effect("", (), found.before.__class__("", (), ()), found.after, ()).save(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to change"),
        ({"off": ["x"]}, "names no heads"),
        ({"off": ["1.2.3"]}, "names no heads"),
        ({"off": ["3"]}, "no layer 3 in cross: it has 1"),
        ({"off": ["0.4"]}, "no head 4 in cross"),
        ({"off": ["encoder.0"]}, "no attention in encoder; it has it in cross"),
        ({"skip": ["cross.0"]}, "names no layer"),
        ({"hide": ["hund"]}, "source has no word 'hund'"),
        ({"force": ["badal"]}, "force 'badal' cannot be read"),
        ({"force": ["HUND=badal"]}, "translation has no word 'HUND'"),
        ({"force": ["0=badal:0.4"]}, "sum to 0.4"),
        ({"move": ["0=badal"]}, "move 'badal' cannot be read"),
        ({"swap": ["badal"]}, "swap 'badal' cannot be read"),
        ({"patch": ["badal"]}, "give it with --from TEXT"),
        ({"patch": ["badal@encoder.0"], "other": TEXT}, "has no such states"),
    ],
)
def test_mistakes_are_explained(toy_run: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        regard.intervene(toy_run, TEXT, **options)


def test_words_and_places_are_read() -> None:
    words = Words(("Cats", "like", "like", "dogs."), (0, 0, 1, 2, 3, -1), "</s>")
    assert words.tokens("cats") == (0, 1)
    assert words.tokens("like#2") == (3,)
    assert words.tokens("dogs") == (4,)
    assert words.tokens("</s>") == (5,)
    assert words.weights("cats:0.5,dogs:0.5") == (0.25, 0.25, 0, 0, 0.5, 0)
    assert str(place_of("decoder.2.1", part=None)) == "decoder layer 2, head 1"
    with pytest.raises(SettingsError, match="no token of its own"):
        Words(("a", "b"), (0,)).tokens("b")


def test_the_worth_of_heads(toy_run: Path, tmp_path: Path) -> None:
    found = head_importance(toy_run, sentences=6)
    (head,) = found.heads
    assert (head.part, head.layer, head.head) == ("cross", 0, 0)
    assert head.lost == pytest.approx(found.bleu - head.bleu)
    assert head.lost > 20  # without attention it can only guess
    assert "what is lost without a head" in str(found)
    assert "<svg" in found._repr_html_()
    found.save(tmp_path / "heads.csv")
    assert found.to_dict()["heads"][0]["lost"] == head.lost
    with pytest.raises(SettingsError, match="no attention in encoder"):
        head_importance(toy_run, parts=["encoder"])


def test_forced_steps_write_what_they_are_made_to_look_at(toy_run: Path) -> None:
    pair = SentencePair(TEXT, "LADAB NEFOK NOGIM", alignment=((0, 0), (1, 1), (2, 2)))
    found = forced_steps(regard.load(toy_run), [pair])
    assert found.steps == 9
    assert found.unforced == pytest.approx(1 / 3)
    assert found.own == 1
    assert found.gold > 0.8
    with pytest.raises(RegardError, match="no gold alignments"):
        forced_steps(regard.load(toy_run), [SentencePair("a", "b")])


def language_model(**settings: Any) -> LoadedLanguageModel:
    recipe = find_recipe("gpt-nano")
    text = RunningText(train_tokenizer(["abc def."], kind="character"))
    model = {"layers": 2, "model_dim": 16, "heads": 2, "context": 24, **settings}
    if settings.get("family") == "recurrent":
        model = settings
    recipe = validate(
        {**recipe.model_dump(exclude_unset=True), "model": model}, type(recipe), origin=""
    )
    torch.manual_seed(1)
    network = build_language_model(recipe.model, vocab=text.size).eval()  # type: ignore[attr-defined]
    return LoadedLanguageModel(model=network, text=text, recipe=recipe)  # type: ignore[arg-type]


def test_a_language_model_writes_on_anew() -> None:
    model = language_model()
    for request in (
        InterventionRequest(hide=["a"]),
        InterventionRequest(off=["1.0"], skip=["decoder.0"]),
        InterventionRequest(force=["2=b"], move=["3=a:c"], swap=["a=b@0"]),
        InterventionRequest(mean=["0.1"], patch=["a=d@decoder.1"], other="ad"),
    ):
        found = intervene_in_language_model(model, "abca", request)
        assert found.before.attention is not None
        assert len(found.kept) == len(found.before.tokens)
        assert found.kept != found.before.probabilities
    with pytest.raises(SettingsError, match="no attention in cross; it has it in decoder"):
        intervene_in_language_model(model, "abca", InterventionRequest(off=["cross.0"]))
    with pytest.raises(SettingsError, match="Give the layer whose input"):
        intervene_in_language_model(model, "ab", InterventionRequest(patch=["a"], other="a"))
    recurrent = language_model(family="recurrent", hidden=8, embedding=4, layers=1)
    with pytest.raises(RegardError, match="no attention heads"):
        intervene_in_language_model(recurrent, "ab", InterventionRequest(hide=["a"]))


@pytest.mark.parametrize("family", ["transformer", "bidirectional"])
def test_a_classifier_chooses_anew(family: str) -> None:
    base = language_model(family=family)
    torch.manual_seed(2)
    network = classifier_of(base.model, labels=2).eval()
    recipe = find_recipe("text-classifier", overrides=["model.context=24"])
    assert isinstance(recipe, TextClassificationRecipe)
    model = LoadedTextClassifier(model=network, text=base.text, labels=("no", "yes"), recipe=recipe)
    found = intervene_in_classifier(model, "abc", InterventionRequest(hide=["a"]))
    assert found.before.text == found.before.tokens[0]
    assert sum(found.kept) == pytest.approx(1)
    assert found.kept != found.before.probabilities
    with pytest.raises(RegardError, match="text is empty"):
        intervene_in_classifier(model, " ", InterventionRequest(hide=["a"]))


def graph_classifier() -> LoadedGraphClassifier:
    recipe = find_recipe("gat-cora")
    assert isinstance(recipe, GraphRecipe)
    pairs = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    features = FeatureMatrix.from_dense(np.eye(4, dtype=np.float32))
    graph = Graph(features, np.array([0, 1, 0, 1]), pairs, ("even", "odd"))
    torch.manual_seed(3)
    network = build_graph_classifier(recipe.model, features=4, classes=2).eval()
    return LoadedGraphClassifier(
        model=network, graph=graph, tensors=graph_input(graph, recipe.data), recipe=recipe
    )


def test_a_node_is_classified_anew() -> None:
    model = graph_classifier()
    for request in (
        InterventionRequest(hide=["1"]),
        InterventionRequest(force=["1"]),
        InterventionRequest(force=["0=1@0.0"]),
        InterventionRequest(off=["0.1"]),
    ):
        found = intervene_in_graph(model, "0", request)
        assert sum(found.kept) == pytest.approx(1)
        assert found.kept != found.before.probabilities
    with pytest.raises(SettingsError, match="2 is no neighbour of 0: it has"):
        intervene_in_graph(model, "0", InterventionRequest(force=["2"]))
    with pytest.raises(SettingsError, match="swap has no meaning for a graph"):
        intervene_in_graph(model, "0", InterventionRequest(swap=["1=2"]))
