"""The built-in corpus: a synchronous grammar of English and its target languages."""

from regard.corpora.grammar.generate import generate
from regard.corpora.grammar.languages import PAIRS
from regard.corpora.grammar.write import write_corpus

__all__ = ["PAIRS", "generate", "write_corpus"]
