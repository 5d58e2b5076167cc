from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import regard
from regard.base.errors import RegardError, RunError, SettingsError
from regard.corpora.lines import read_lines
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.results import Translation


@pytest.fixture(scope="module")
def model(toy_run: Path) -> LoadedTranslator:
    loaded: LoadedTranslator = regard.load(toy_run)
    return loaded


@pytest.fixture(scope="module")
def sentences(toy_corpus: Path) -> list[str]:
    lines = read_lines(toy_corpus / "test.src") + read_lines(toy_corpus / "valid.src")
    assert len({len(line.split()) for line in lines}) > 3
    return lines[:64]


def test_it_has_learned_the_invented_language(model: LoadedTranslator) -> None:
    assert model.translate("badal kofen migon").text == "LADAB NEFOK NOGIM"


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_never_depends_on_its_neighbours(
    model: LoadedTranslator, sentences: list[str], beam: int
) -> None:
    together = model.translate(sentences, beam=beam)
    reverse = model.translate(sentences[::-1], beam=beam)[::-1]
    assert len(together) == 64
    for sentence, one, other in zip(sentences, together, reverse, strict=True):
        alone = model.translate(sentence, beam=beam)
        assert alone.source == one.source == sentence
        assert alone.text == one.text == other.text
        assert alone.score == pytest.approx(one.score, abs=1e-4)
        assert alone.score == pytest.approx(other.score, abs=1e-4)
        assert alone.attention is not None
        assert one.attention is not None
        np.testing.assert_allclose(alone.attention.weights, one.attention.weights, atol=1e-4)


def test_the_attention_carries_its_labels_and_end_marks(model: LoadedTranslator) -> None:
    found = model.translate("badal kofen").attention
    assert found is not None
    assert found.source[-1] == found.target[-1] == "</s>"
    assert (found.source_words[-1], found.target_words[-1]) == (-1, -1)
    assert found.weights.shape == (len(found.target), len(found.source))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-5)


def test_by_word_leaves_the_end_marks_out(model: LoadedTranslator) -> None:
    seen = model.translate("badal kofen migon").by_word()
    assert seen.source == ("badal", "kofen", "migon")
    assert seen.target == ("LADAB", "NEFOK", "NOGIM")
    assert seen.links() == {(0, 0), (1, 1), (2, 2)}


def test_the_map_is_drawn_or_returned(model: LoadedTranslator, tmp_path: Path) -> None:
    found = model.translate("badal kofen").attention
    assert found is not None
    assert found.plot(tmp_path / "map.svg") == tmp_path / "map.svg"
    assert "<svg" in (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert isinstance(found.plot(), Figure)


def test_alternatives_are_worse_and_different(model: LoadedTranslator) -> None:
    found = model.translate("badal kofen", beam=4, n_best=3)
    every = [found, *found.alternatives]
    assert len(every) == len({each.text for each in every}) == 3
    assert [each.score for each in every] == sorted((e.score for e in every), reverse=True)


def test_results_become_plain_values(model: LoadedTranslator) -> None:
    plain = model.translate("badal", n_best=2).to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain.keys() == {
        "source", "text", "score", "log_probability", "attention", "alternatives"
    }  # fmt: skip
    assert model.translate("badal", attention=False).to_dict().keys() == {
        "source", "text", "score", "log_probability"
    }  # fmt: skip


def test_nothing_is_translated_to_nothing(model: LoadedTranslator) -> None:
    assert model.translate([]) == []
    for empty in ("", "   "):
        assert model.translate([empty, "badal"])[0] == Translation(empty, "", 0.0, 0.0, None)


def test_unknown_words_are_no_obstacle(model: LoadedTranslator) -> None:
    assert isinstance(model.translate("badal ☃ kofen").text, str)


def test_without_attention_there_is_nothing_to_look_at(model: LoadedTranslator) -> None:
    with pytest.raises(RegardError, match="made without attention"):
        model.translate("badal", attention=False).by_word()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_best": 9}, r"n_best \(9\) must lie between 1 and the beam \(5\); widen the beam"),
        ({"n_best": 0}, r"n_best \(0\) must lie between 1 and the beam"),
        ({"beam": 2, "n_best": 3}, r"n_best \(3\) must lie between 1 and the beam \(2\)"),
        ({"beam": 0}, r"beam: Input should be greater than or equal to 1 \(given: 0\)"),
        ({"length_penalty": -1.0}, r"length_penalty: Input should be greater than or equal to 0"),
    ],
)
def test_impossible_options_are_refused(
    model: LoadedTranslator, options: dict[str, float], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        model.translate("badal", **options)


@pytest.mark.parametrize(
    ("line", "size"), [("badal " * 100_000, "100000 words"), ("," * 6_000, "11999 tokens")]
)
def test_a_line_far_too_long_is_refused_with_its_number(
    model: LoadedTranslator, line: str, size: str
) -> None:
    message = f"Sentence 2 has {size}, more than the 2000 tokens.*: split it"
    with pytest.raises(RegardError, match=message):
        model.translate(["badal", line])


def test_a_long_sentence_is_no_obstacle(model: LoadedTranslator) -> None:
    assert model.translate("badal " * 300, beam=2).text


# Name of the case: what happens to a copy of the run, what the message must say.
DAMAGES = {
    "no folder": (shutil.rmtree, "There is no run at .*: no such folder"),
    "no recipe": (lambda run: (run / "recipe.toml").unlink(), "it has no recipe.toml"),
    "no weights": (
        lambda run: [shutil.rmtree(run / part) for part in ("best", "checkpoints")],
        "has no weights yet.*--resume",
    ),
    "weights cut short": (
        lambda run: (run / "best/model.safetensors").write_bytes(
            (run / "best/model.safetensors").read_bytes()[:-1]
        ),
        r"best/model\.safetensors is missing or damaged \(it does not match its checksum\)",
    ),
    "weights of another model": (
        lambda run: (run / "recipe.toml").write_text(
            (run / "recipe.toml").read_text().replace("hidden = 48", "hidden = 64")
        ),
        r"tensor 'encoder.* has shape .* but the recipe describes",
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_run_is_named(toy_run: Path, tmp_path: Path, case: str) -> None:
    damage, message = DAMAGES[case]
    copy = tmp_path / "copy"
    shutil.copytree(toy_run, copy)
    damage(copy)
    with pytest.raises(RunError, match=message):
        regard.load(copy)


def test_without_a_best_model_the_newest_checkpoint_is_used(toy_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(toy_run, copy)
    shutil.rmtree(copy / "best")
    assert regard.load(str(copy)).translate("badal").text == "LADAB"
