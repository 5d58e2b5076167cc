"""Measures of quality, each a number with its evidence: BLEU, chrF, alignment error rate."""
