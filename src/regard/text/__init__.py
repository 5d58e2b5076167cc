"""Tokenizers (characters, words, SentencePiece) and the vocabulary behind them, without torch."""
