from __future__ import annotations

from pathlib import Path

import numpy as np

from regard.tasks.attention import AttentionMap

# "un-tied" is two pieces on the source side, "auf-gemacht" on the target side.
MAP = AttentionMap(
    weights=np.array(
        [[0.7, 0.1, 0.1, 0.1], [0.0, 0.3, 0.5, 0.2], [0.0, 0.1, 0.7, 0.2], [0.0, 0.0, 0.1, 0.9]],
        dtype=np.float32,
    ),
    source=("it", "un", "tied", "</s>"),
    target=("es", "auf", "gemacht", "</s>"),
    source_words=(0, 1, 1, -1),
    target_words=(0, 1, 1, -1),
)


def test_pieces_are_summed_over_source_and_averaged_over_target() -> None:
    seen = MAP.by_word("it untied", "es aufgemacht")
    assert (seen.source, seen.target) == (("it", "untied"), ("es", "aufgemacht"))
    np.testing.assert_allclose(seen.weights, [[0.7, 0.2], [0.0, 0.8]], atol=1e-6)


def test_each_target_word_is_linked_to_what_it_attends_to_most() -> None:
    assert MAP.links() == MAP.by_word("it untied", "es aufgemacht").links() == {(0, 0), (1, 1)}


def test_to_dict_has_labels_and_rounded_weights() -> None:
    plain = MAP.to_dict()
    assert plain["source"] == ["it", "un", "tied", "</s>"]
    assert plain["weights"][0] == [0.7, 0.1, 0.1, 0.1]


def test_it_shows_itself_in_a_notebook() -> None:
    shown = MAP._repr_html_()
    assert "tied" in shown
    assert 'aria-label="attention heat map"' in shown


def test_the_suffix_chooses_between_picture_and_data(tmp_path: Path) -> None:
    assert MAP.plot(tmp_path / "map.csv").read_text().startswith(",it,un,tied,</s>")
    assert "tied" in MAP.plot(tmp_path / "map.svg").read_text()
    assert MAP.plot().axes
    assert MAP.plot()._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
