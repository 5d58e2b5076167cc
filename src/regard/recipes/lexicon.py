"""The shortlist of a run: the likely target symbols of each source symbol, from its own pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from regard.base.errors import RegardError, SettingsError
from regard.base.special_tokens import SPECIALS
from regard.batching.batch import encode_pairs
from regard.exchange.ctranslate2 import token_names
from regard.recipes.data import read_splits
from regard.recipes.loaded import LoadedTranslator
from regard.text.lexical_table import learn_lexical_table
from regard.text.sentencepiece import SentencePieceTokenizer

MOST_PAIRS = 50_000  # more teach little, and cost memory
LIKELY, FREQUENT = 40, 100


def learn_shortlist(
    translator: LoadedTranslator,
    *,
    likely: int = LIKELY,
    frequent: int = FREQUENT,
    report: Callable[[str], None] | None = None,
) -> list[str]:
    """Return the lines of CTranslate2's vocabulary map, learned from the run's training pairs.

    A line is a source symbol, a tab and its `likely` target symbols. The first has no source
    symbol: the `frequent` target symbols are always looked at.
    """
    if not isinstance(translator.source_tokenizer, SentencePieceTokenizer):
        raise SettingsError(
            "A shortlist needs subwords (tokenizer.kind=sentencepiece): the names of other symbols "
            "may hold spaces, which separate the entries of CTranslate2's table."
        )
    pairs = read_splits(translator.recipe.data).train
    if not pairs:
        raise RegardError("There are no training pairs to learn a shortlist from.")
    pairs = pairs[:: 1 + (len(pairs) - 1) // MOST_PAIRS]
    if report is not None:
        report(f"Learning a shortlist from {len(pairs)} pairs.")
    examples = encode_pairs(
        pairs,
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
    )
    sources, targets = translator.source_tokenizer, translator.target_tokenizer
    table = learn_lexical_table(
        [(example.source, example.target) for example in examples],
        source_size=sources.size,
        target_size=targets.size,
    )
    counts = Counter(symbol for example in examples for symbol in example.target)
    names = token_names(targets)

    def line(name: str, symbols: list[int]) -> str:
        return f"{name}\t{' '.join(names[symbol] for symbol in symbols)}"

    always = [symbol for symbol, _ in counts.most_common(frequent)]
    rows = ((name, table.best(symbol, likely)) for symbol, name in enumerate(token_names(sources)))
    known = [line(name, best) for name, best in list(rows)[len(SPECIALS) :] if best]
    return [line("", always), *known]
