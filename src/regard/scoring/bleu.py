"""BLEU and chrF of a corpus: sacreBLEU's numbers with sacreBLEU's signatures."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.base.errors import RegardError, SettingsError
from regard.scoring.score import Score

# sacreBLEU knows more, but those download a model or need a dictionary that is not installed.
TOKENIZERS = ("13a", "intl", "char", "zh", "none")


def corpus_bleu(
    system: Sequence[str],
    reference: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    effective_order: bool = False,
) -> Score:
    """Return the BLEU of a corpus (Papineni et al. 2002; sacreBLEU: Post 2018).

    With `effective_order` a corpus too short to hold any 4-gram is scored by the n-grams it has
    instead of getting 0; wherever there is a 4-gram the value is the same.
    """
    require_pairs(system, reference)
    require_tokenizer(tokenize)
    metric = BLEU(
        tokenize=tokenize,
        lowercase=lowercase,
        effective_order=effective_order,
        force=True,  # its hint about tokenised text would come anew with every validation
    )
    result = metric.corpus_score(list(system), [list(reference)])
    return Score(
        name="BLEU",
        value=min(100.0, float(result.score)),  # rounding lifts a perfect score just above 100
        signature=str(metric.get_signature()),
        detail={
            "precisions": [float(precision) for precision in result.precisions],
            "brevity_penalty": float(result.bp),
            "system_length": int(result.sys_len),
            "reference_length": int(result.ref_len),
            "matched_ngrams": [int(count) for count in result.counts],
            "system_ngrams": [int(count) for count in result.totals],
            "sentences": len(system),
        },
    )


def corpus_chrf(
    system: Sequence[str],
    reference: Sequence[str],
    *,
    word_order: int = 0,
    lowercase: bool = False,
) -> Score:
    """Return the chrF2 of a corpus (Popović 2015); `word_order=2` gives chrF2++ (Popović 2017)."""
    require_pairs(system, reference)
    if word_order < 0:
        raise SettingsError(f"word_order ({word_order}) must be 0 (chrF2) or more (2: chrF2++).")
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    result = metric.corpus_score(list(system), [list(reference)])
    return Score(
        name=str(result.name),
        value=min(100.0, float(result.score)),
        signature=str(metric.get_signature()),
        detail={
            "character_order": int(result.char_order),
            "word_order": int(result.word_order),
            "beta": int(result.beta),
            "sentences": len(system),
        },
    )


def require_tokenizer(tokenize: str) -> None:
    """Refuse a tokenizer of BLEU that is not known or would have to be downloaded."""
    if tokenize not in TOKENIZERS:
        raise SettingsError(
            f"unknown BLEU tokenizer '{tokenize}'. Choose one of: {', '.join(TOKENIZERS)}."
        )


def require_pairs(system: Sequence[str], reference: Sequence[str]) -> None:
    """Refuse outputs and references that cannot be paired line by line."""
    if len(system) != len(reference):
        raise RegardError(
            f"{len(system)} system outputs cannot be scored against {len(reference)} references: "
            "both must have one line for each sentence."
        )
    if not system:
        raise RegardError("there is nothing to score: no system outputs and no references.")
