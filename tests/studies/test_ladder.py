from __future__ import annotations

import pytest
import torch

from regard.attention.ladder import RUNGS
from regard.studies.ladder import WIDTH, RecallModel, RecallTask, accuracy, climb


def test_the_answer_is_what_was_last_said_of_the_key() -> None:
    task = RecallTask(keys=3, values=4, pairs=6)
    items, answers = task.draw(40, torch.Generator().manual_seed(1))
    assert items.shape == (40, 7, 2)
    for sequence, answer in zip(items.tolist(), answers.tolist(), strict=True):
        *pairs, (asked, mark) = sequence
        assert mark == task.values
        said = dict(map(tuple, pairs))  # later pairs overwrite earlier ones
        assert said[asked] == answer


def test_the_best_without_order_is_between_chance_and_certainty() -> None:
    generator = torch.Generator().manual_seed(2)
    assert RecallTask(pairs=1).without_order(200, generator) == 1.0
    task = RecallTask()
    assert task.chance < task.without_order(2_000, generator) < 0.8


def test_every_rung_is_trained_on_the_same_task() -> None:
    heard: list[tuple[str, int]] = []
    climbed = list(climb(steps=3, on_step=lambda name, step: heard.append((name, step))))
    assert [rung.name for rung in climbed] == [rung.name for rung in RUNGS]
    assert heard[:4] == [(RUNGS[0].name, 1), (RUNGS[0].name, 2), (RUNGS[0].name, 3),
                         (RUNGS[1].name, 1)]  # fmt: skip
    for rung in climbed:
        assert 0 <= rung.accuracy <= 1
        assert rung.parameters > 0
        assert rung.to_dict()["history"] == rung.history
    same = list(climb(steps=3, rungs=RUNGS[2:3]))
    assert same[0].accuracy == climbed[2].accuracy


@pytest.mark.learning
def test_keys_and_values_learn_to_find_the_pair() -> None:
    """With one pair a key, order does not matter and content alone must find the answer."""
    (found,) = climb(steps=250, task=RecallTask(keys=20, values=4, pairs=3), rungs=RUNGS[3:4])
    assert found.accuracy > 0.8


def test_an_untrained_model_guesses() -> None:
    task = RecallTask()
    torch.manual_seed(1)
    rung = RUNGS[2].build(input_dim=WIDTH, hidden=WIDTH)
    model = RecallModel(rung=rung, task=task, input_dim=WIDTH, hidden=WIDTH)
    assert accuracy(model, task, seed=1) < 0.4
