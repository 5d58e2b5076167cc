from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TOY_WORDS

import regard
from regard.corpora.lines import read_lines
from regard.corpora.parallel import SentencePair
from regard.runs.run import Run
from regard.scoring.bleu import corpus_bleu
from regard.tasks.translation.tuning import TriedPenalty, choose_penalty


@pytest.fixture
def changeable(random_transformer_run: Path, tmp_path: Path) -> Path:
    """A run of many lengths of outputs, which are too short: so low is its own penalty."""
    folder = Path(shutil.copytree(random_transformer_run, tmp_path / "run"))
    model = regard.load(folder)
    decoding = model.decoding(length_penalty=0.2)
    Run.open(folder).rewrite(model.recipe.model_copy(update={"decoding": decoding}))
    return folder


def penalties(*values: float) -> list[str]:
    return [word for value in values for word in ("--length-penalty", f"{value:g}")]


@pytest.fixture
def answers(run: Callable[..., Any], changeable: Path, tmp_path: Path) -> list[Path]:
    """Files of sentences and of what the run itself answers with a penalty of 1."""
    files = [tmp_path / "source", tmp_path / "reference"]
    lines = [" ".join(TOY_WORDS[n % 7 : n % 7 + 2 + n % 5]) for n in range(200)]
    files[0].write_text("\n".join(lines) + "\n")
    translated = run("translate", changeable, "--input", files[0], "--length-penalty", "1").lines
    kept = [pair for pair in zip(lines, translated, strict=True) if all(pair)]
    for path, side in zip(files, zip(*kept, strict=True), strict=True):
        path.write_text("\n".join(side) + "\n")
    return files


def test_a_sure_gain_is_kept_and_used(
    run: Callable[..., Any], changeable: Path, answers: list[Path]
) -> None:
    source, reference = answers
    files = ["--source", source, "--reference", reference]
    answer = run("tune", changeable, *files, *penalties(0.6, 1), "--json").json
    assert [one["length_penalty"] for one in answer["tried"]] == [0.2, 0.6, 1.0]
    ratios = [one["length_ratio"] for one in answer["tried"]]
    assert ratios == sorted(ratios)
    assert ratios[0] < ratios[-1]
    assert answer["best"] == answer["chosen"] == answer["tried"][-1]
    assert answer["p_value"] < 0.01
    model = regard.load(changeable)
    assert model.recipe.decoding.length_penalty == 1
    found = [one.text for one in model.translate(read_lines(source))]
    again = corpus_bleu(found, read_lines(reference)).value
    assert again == pytest.approx(answer["best"]["score"]["value"], abs=1e-6)


def test_it_says_what_it_tries_and_can_leave_the_run_alone(
    run: Callable[..., Any], changeable: Path, answers: list[Path]
) -> None:
    before = (changeable / "recipe.toml").read_bytes()
    files = ["--source", answers[0], "--reference", answers[1]]
    lines = run("tune", changeable, *files, *penalties(1), "--no-keep").lines
    assert [line.split()[2] for line in lines[:2]] == ["0.2", "1"]
    assert "1 is " in lines[2]
    assert lines[3].startswith(f"{changeable} stays as it is")
    assert (changeable / "recipe.toml").read_bytes() == before
    assert run("tune", changeable, *files, *penalties(1)).lines[3].endswith("= 1 from now on.")


@pytest.mark.parametrize(("right", "sure"), [(21, False), (40, True)])
def test_a_gain_that_may_be_chance_changes_nothing(right: int, sure: bool) -> None:
    pairs = [SentencePair("source", f"one two three four five {n}") for n in range(40)]

    def tried(penalty: float, places: range) -> TriedPenalty:
        texts = tuple(p.target if n in places else "no word" for n, p in enumerate(pairs))
        return TriedPenalty(penalty, corpus_bleu(texts, [p.target for p in pairs]), texts)

    own, other = tried(1.0, range(20)), tried(1.4, range(40 - right, 40))
    found = choose_penalty([own, other], pairs, present=1.0)
    assert found.best is other
    assert found.chosen is (other if sure else own)
    assert found.p_value is not None
    assert (found.p_value < 0.01) is sure


def test_without_a_word_several_are_tried(run: Callable[..., Any], toy_run: Path) -> None:
    lines = run("tune", toy_run, "--no-keep").lines
    assert len(lines) == 9
    assert lines[-1].endswith("no sure gain.")  # all outputs are the same


def test_a_greedy_search_has_no_length_penalty(
    refuse: Callable[..., str], changeable: Path
) -> None:
    path = changeable / "recipe.toml"
    path.write_text(path.read_text().replace("beam = 5", "beam = 1"))
    assert "matters to a beam search alone" in refuse("tune", changeable)


def test_an_empty_file_is_no_choice(
    refuse: Callable[..., str], changeable: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    assert refuse("tune", changeable, "--source", empty, "--reference", empty)


def test_both_files_are_needed(refuse: Callable[..., str], toy_run: Path, tmp_path: Path) -> None:
    assert "or neither" in refuse("tune", toy_run, "--source", tmp_path / "source")
