"""What `regard look` prints of a node."""

from __future__ import annotations

from regard.pictures.graph import Neighbour
from regard.tasks.node_classification.views import PRINTED_NEIGHBOURS, neighbour_lines


def test_a_hub_is_not_printed_whole() -> None:
    neighbours = [Neighbour(f"n{i}", 0, 0.01) for i in range(100)]
    lines = neighbour_lines(neighbours, ["a"]).splitlines()
    assert len(lines) == PRINTED_NEIGHBOURS + 1
    assert lines[0].endswith("n0 (a)")
    assert lines[-1].strip().startswith("0.8000 on 80 more")


def test_few_neighbours_are_all_there() -> None:
    assert neighbour_lines([], ["a"]) == ""
    assert len(neighbour_lines([Neighbour("n", 0, 1.0)], ["a"]).splitlines()) == 1
