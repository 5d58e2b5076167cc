from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from regard.base.errors import RegardError
from regard.pictures.terminal import terminal_heat_map

SOURCE = ["cats", "do", "not", "like", "dogs"]
TARGET = ["Katzen", "mögen", "keine", "Hunde"]
WEIGHTS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.25, 0.0, 0.75, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0],
    ]
)


def lines_of(weights, source, target, width: int) -> list[str]:
    picture = terminal_heat_map(weights, source=source, target=target, console_width=width)
    return [line.rstrip() for line in picture.plain.splitlines()]


def test_words_are_above_their_columns_where_there_is_room():
    assert lines_of(WEIGHTS, SOURCE, TARGET, 80) == [
        "       cats do not like dogs",
        "Katzen ████",
        " mögen      ░░     ▓▓▓▓",
        " keine         ███",
        " Hunde                  ████",
        "       0   ░░▒▒▓▓██ 1",
    ]


def test_words_are_on_steps_where_columns_are_narrow():
    words = [f"Wortnummer{number}" for number in range(8)]
    lines = lines_of(np.eye(8), words, words, 60)
    assert lines[0].strip() == "Wortnummer0"
    assert lines[1].strip() == "│  Wortnummer1"
    assert lines[7].strip() == "│  │  │  │  │  │  │  Wortnummer7"
    assert lines[15].split() == ["Wortnummer7", "██"]
    # the thread, the first letter and the cell are in one column
    assert lines[7].index("Wortnummer7") == lines[15].index("██")


def test_a_wide_map_is_wrapped():
    source = [f"word{number}" for number in range(30)]
    lines = lines_of(np.eye(3, 30), source, ["a", "b", "c"], 50)
    assert sum(line.startswith("a ") or line == "a" for line in lines) == 2
    shown = [line.split()[-1] for line in lines if "word" in line]
    assert shown == source


def test_columns_are_numbered_on_a_very_narrow_console():
    source = ["Donaudampf", "schiff", "fahrts", "gesellschaft"]
    assert lines_of(np.eye(4), source, ["a", "b", "c", "d"], 7) == [
        "  1 Donaudampf",
        "  2 schiff",
        "  3 fahrts",
        "  4 gesellschaft",
        "   1  2  3  4",
        "a ██",
        "b    ██",
        "c       ██",
        "d          ██",
        "  0   ░░▒▒▓▓██ 1",
    ]


def test_long_target_words_are_cut():
    lines = lines_of(np.eye(1), ["a"], ["Donaudampfschifffahrtsgesellschaft"], 30)
    assert lines[1].startswith("Donaudamp… ")


def test_colour_is_there_when_the_terminal_has_it():
    picture = terminal_heat_map(WEIGHTS, source=SOURCE, target=TARGET, console_width=80)
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False, width=80
    )
    console.print(picture)
    assert "48;2;" in console.file.getvalue()


def test_without_colour_the_shades_remain():
    picture = terminal_heat_map(WEIGHTS, source=SOURCE, target=TARGET, console_width=80)
    console = Console(file=io.StringIO(), force_terminal=True, no_color=True, width=80)
    console.print(picture)
    assert "48;" not in console.file.getvalue()
    assert "▓▓▓▓" in console.file.getvalue()


def test_markup_in_words_is_only_text():
    lines = lines_of(np.eye(1), ["[bold]x[/bold]"], ["\x1b[31mred"], 80)
    assert lines[0].endswith("[bold]x[/bold]")
    assert lines[1].startswith("�[31mred")


@settings(deadline=None, max_examples=60)
@given(
    source=st.lists(st.text(max_size=20), min_size=1, max_size=25),
    target=st.lists(st.text(max_size=20), min_size=1, max_size=5),
    width=st.integers(20, 120),
)
def test_no_line_is_wider_than_the_console(source, target, width):
    weights = np.full((len(target), len(source)), 1 / len(source))
    for line in lines_of(weights, source, target, width):
        assert cell_len(line) <= width


def test_words_must_fit():
    with pytest.raises(RegardError, match="do not fit"):
        terminal_heat_map(WEIGHTS, source=TARGET, target=TARGET, console_width=80)
