"""The search for places where a head attends from a word to a word, against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import SettingsError
from regard.base.special_tokens import BEGIN, END
from regard.corpora.parallel import SentencePair
from regard.tasks import look_at
from regard.tasks.looking import LookRequest
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.search import GazeQuery, find_gazes

WORD = "badal"


def brute_force(loaded, pairs, query):
    """Look at every cell of every pair, one sentence at a time and without padding."""
    found = set()
    for pair in pairs:
        source, target = (
            loaded.source_tokenizer.encode(pair.source),
            loaded.target_tokenizer.encode(pair.target),
        )
        with torch.inference_mode():
            maps = loaded.model.head_maps(
                torch.tensor([[*source, END]]),
                torch.ones(1, len(source) + 1, dtype=torch.bool),
                torch.tensor([[BEGIN, *target]]),
            )
        weights = getattr(maps, query.part)[query.layer, 0]
        weights = weights.mean(0) if query.head is None else weights[query.head]
        sides = {
            "cross": ("target", "source"),
            "encoder": ("source", "source"),
            "decoder": ("target", "target"),
        }
        rows, columns = (getattr(pair, side).split() for side in sides[query.part])
        shift = 1 if query.part == "decoder" else 0  # a word is a token; the first column is <s>
        for row, one in enumerate(rows):
            for column, other in enumerate(columns):
                if column + shift >= weights.shape[1]:
                    continue
                weight = float(weights[row, column + shift])
                if (one, other) == (query.attends, query.attended) and weight >= query.least:
                    found.add((pair.source, row, column, round(weight, 4)))
    return found


@pytest.mark.parametrize(
    ("part", "words", "head"),
    [
        ("cross", ("LADAB", "badal"), 1),
        ("cross", ("NEFAB", "babafen"), None),
        ("encoder", ("badal", "badal"), 0),
        ("decoder", ("LADAB", "LADAB"), None),
    ],
)
def test_the_search_finds_what_brute_force_finds(
    random_transformer_run: Path, part: str, words: tuple[str, str], head: int | None
) -> None:
    loaded = regard.load(random_transformer_run)
    pairs = read_splits(loaded.recipe.data).train[:150]
    query = GazeQuery(attends=words[0], attended=words[1], part=part, layer=1, head=head, least=0.1)
    found = find_gazes(loaded, pairs, query)
    shown = {(g.source, g.attends, g.attended, round(g.weight, 4)) for g in found}
    expected = brute_force(loaded, pairs, query)
    assert {each[:3] for each in shown} == {each[:3] for each in expected}
    assert [g.weight for g in found] == sorted((g.weight for g in found), reverse=True)
    if words == ("LADAB", "badal"):
        assert len(found) > 3


def test_a_trained_model_attends_from_a_word_to_its_source(toy_run: Path) -> None:
    found = look_at(LookRequest(run=toy_run, where="LADAB:badal"), "where")
    assert found.record["count"] > 20
    assert found.record["places"][0]["weight"] > 0.8
    assert "places where LADAB attends to badal" in found.shown(80)
    with pytest.raises(SettingsError, match="is a list, not a picture"):
        found.save(Path("x.png"))


def test_words_of_pieces_are_merged_and_case_does_not_matter(toy_run: Path) -> None:
    loaded = regard.load(toy_run)
    pair = SentencePair("badal kofen", "LADAB NEFOK")
    (found,) = find_gazes(loaded, [pair], GazeQuery(attends="ladab", attended="BADAL"))
    assert (found.attends, found.attended) == (0, 0)


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("badal", {}, "where 'badal' cannot be read: write WORD:WORD"),
        ("LADAB:badal", {"part": "sideways"}, "There is no part 'sideways'"),
        ("LADAB:badal", {"layer": 3}, "A recurrent translator has one head"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    toy_run: Path, where: str, options: dict, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        look_at(LookRequest(run=toy_run, where=where, **options), "where")


def test_layers_and_heads_that_are_not_there_are_refused(random_transformer_run: Path) -> None:
    loaded = regard.load(random_transformer_run)
    pair = [SentencePair("badal kofen", "LADAB NEFOK")]
    for place, message in (({"layer": 7}, "no layer 7 in cross"), ({"head": 5}, "no head 5")):
        with pytest.raises(SettingsError, match=message):
            find_gazes(loaded, pair, GazeQuery(attends="LADAB", attended="badal", **place))
