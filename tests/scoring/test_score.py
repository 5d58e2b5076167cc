from __future__ import annotations

from regard.scoring.measures import Score


def test_a_score_shows_its_signature_and_stays_text() -> None:
    shown = Score("BLEU", 31.237, "case:<b>")._repr_html_()
    assert "<b>BLEU 31.24</b>" in shown
    assert "case:&lt;b&gt;" in shown
