from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError, SettingsError
from regard.scoring.bleu import corpus_bleu, corpus_chrf

SYSTEM = ["Katzen mögen keine Hunde.", "Der alte Hund schläft im großen Garten heute."]
REFERENCE = ["Katzen mögen keine Hunde.", "Der alte Hund schläft heute im großen Garten."]

sentences = st.lists(st.text("abc .", max_size=20), min_size=1, max_size=5)


def test_bleu_is_sacrebleu_s_with_its_signature():
    score = corpus_bleu(SYSTEM, REFERENCE)
    expected = sacrebleu.corpus_bleu(SYSTEM, [REFERENCE])
    assert score.name == "BLEU"
    assert score.value == pytest.approx(expected.score)
    assert score.signature == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    )
    assert score.detail["precisions"] == pytest.approx(expected.precisions)
    assert score.detail["brevity_penalty"] == expected.bp
    assert score.detail["system_length"] == expected.sys_len
    assert score.detail["reference_length"] == expected.ref_len
    assert score.detail["sentences"] == 2


def test_chrf_is_sacrebleu_s_with_its_signature():
    score = corpus_chrf(SYSTEM, REFERENCE)
    assert score.name == "chrF2"
    assert score.value == pytest.approx(sacrebleu.corpus_chrf(SYSTEM, [REFERENCE]).score)
    assert score.signature == (
        f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}"
    )
    assert corpus_chrf(SYSTEM, REFERENCE, word_order=2).name == "chrF2++"


def test_a_perfect_score_is_exactly_one_hundred():
    assert corpus_bleu(REFERENCE, REFERENCE).value == 100.0
    assert corpus_chrf(REFERENCE, REFERENCE).value == 100.0


def test_lowercase_and_tokenizer_reach_sacrebleu_and_its_signature():
    score = corpus_bleu(["HUNDE schlafen im Garten"], ["hunde schlafen im garten"], lowercase=True)
    assert score.value == 100.0
    assert "case:lc" in score.signature
    assert "tok:char" in corpus_bleu(SYSTEM, REFERENCE, tokenize="char").signature
    assert "case:lc" in corpus_chrf(SYSTEM, REFERENCE, lowercase=True).signature


def test_effective_order_scores_what_has_no_four_gram():
    assert corpus_bleu(["ja"], ["ja"]).value == 0.0
    score = corpus_bleu(["ja"], ["ja"], effective_order=True)
    assert score.value == 100.0
    assert "eff:yes" in score.signature


@settings(deadline=None, max_examples=30)
@given(sentences)
def test_scores_are_percentages_and_plain_json(lines):
    for score in (corpus_bleu(lines, lines[::-1]), corpus_chrf(lines, lines[::-1])):
        assert 0 <= score.value <= 100
        assert json.loads(json.dumps(score.to_dict())) == score.to_dict()


def test_a_score_reads_well():
    assert str(corpus_bleu(REFERENCE, REFERENCE)).startswith("BLEU = 100.00 (nrefs:1|")


@pytest.mark.parametrize("measure", [corpus_bleu, corpus_chrf])
def test_unequal_counts_are_both_named(measure):
    with pytest.raises(RegardError, match="3 system outputs cannot be scored against 2 references"):
        measure(["a", "b", "c"], ["a", "b"])


@pytest.mark.parametrize("measure", [corpus_bleu, corpus_chrf])
def test_nothing_cannot_be_scored(measure):
    with pytest.raises(RegardError, match="nothing to score"):
        measure([], [])


def test_an_unknown_tokenizer_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match=r"'mosse'\. Choose one of: 13a, intl, char, zh, none"):
        corpus_bleu(SYSTEM, REFERENCE, tokenize="mosse")


def test_a_negative_word_order_is_refused():
    with pytest.raises(SettingsError, match=r"word_order \(-1\) must be 0"):
        corpus_chrf(SYSTEM, REFERENCE, word_order=-1)


def test_scoring_imports_neither_torch_nor_matplotlib():
    program = (
        "import sys, regard.scoring.bleu, regard.scoring.alignment;"
        "sys.exit(bool({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_tokenised_text_is_scored_without_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a man walks ."] * 200
    assert corpus_bleu(lines, lines).value == pytest.approx(100)
    assert not caplog.records


def test_letters_that_look_alike_count_as_alike() -> None:
    written = ["die müden Bücher gefallen Äpfeln sehr"]
    apart = [unicodedata.normalize("NFD", text) for text in written]
    for score in (corpus_bleu, corpus_chrf):
        same = score(written, written)
        found = score(apart, written)
        assert found.value == same.value == pytest.approx(100)
        assert found.signature == f"{same.signature}|unicode:nfc"
