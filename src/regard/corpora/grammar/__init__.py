"""The built-in corpus: a synchronous grammar of English and its target languages."""

from regard.corpora.grammar.generate import PAIRS, generate, write_corpus

__all__ = ["PAIRS", "generate", "write_corpus"]
