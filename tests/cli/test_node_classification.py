"""What `regard look` prints of a node."""

from __future__ import annotations

import pytest

from regard.cli.node_classification import PRINTED_NEIGHBOURS, print_look


def test_a_hub_is_not_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    neighbours = [{"node": f"n{i}", "predicted": "a", "weight": 0.01} for i in range(100)]
    print_look({"node": "hub", "predicted": "a", "attends_to": neighbours})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + PRINTED_NEIGHBOURS + 1
    assert lines[-1].strip().startswith("0.8000 on 80 more")


def test_few_neighbours_are_all_there(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"node": "leaf", "predicted": "a", "attends_to": [], "written": "n.svg"}
    print_look(found)
    assert capsys.readouterr().out == "node leaf: class a\nWrote n.svg\n"
