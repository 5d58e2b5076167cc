"""Measures of quality: BLEU, chrF, error rates, classification and forecast scores."""
