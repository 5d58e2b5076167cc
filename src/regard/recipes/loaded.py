"""A trained translator, ready to use: what `regard.load` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from regard.base.errors import RegardError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.results import Hypothesis
from regard.base.shapes import Tensor
from regard.batching.buckets import sorted_batches
from regard.engines.engine import Engine
from regard.engines.torch_engine import TorchEngine
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.recipes.attention_map import END_MARK, AttentionMap
from regard.recipes.run import Run
from regard.settings.decoding import DecodingSettings
from regard.settings.read import validate
from regard.settings.transformer import TransformerSettings
from regard.settings.translation import TranslationRecipe
from regard.training.checkpoint import load_weights

MOST_PIECES = 5_000


class SentenceTooLongError(RegardError):
    """A sentence that no search should be tried on; `index` says which of them it is."""

    def __init__(self, index: int, size: str):
        self.index = index
        self.problem = f"has {size}, more than the {MOST_PIECES} symbols that one sentence may have"
        super().__init__(f"Sentence {index + 1} {self.problem}: split it, one sentence a line.")


@dataclass(frozen=True)
class Translation:
    """A translation with its evidence."""

    source: str
    text: str
    score: float
    log_probability: float
    attention: AttentionMap | None
    alternatives: tuple[Translation, ...] = ()

    def by_word(self) -> AttentionMap:
        """Return the attention between whole words, without the end marks."""
        if self.attention is None:
            raise RegardError("This translation was made without attention.")
        return self.attention.by_word(self.source, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            **({"attention": self.attention.to_dict()} if self.attention else {}),
            **(
                {"alternatives": [other.to_dict() for other in self.alternatives]}
                if self.alternatives
                else {}
            ),
        }


class LoadedTranslator:
    """A model, its two tokenizers and its recipe; the engine that searches is the torch one."""

    def __init__(
        self,
        *,
        model: Translator[Any],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        recipe: TranslationRecipe,
        engine: Engine | None = None,
    ):
        self.model = model
        self.engine = TorchEngine(model) if engine is None else engine
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.recipe = recipe

    @property
    def attends(self) -> bool:
        """Whether there is attention to look at."""
        model = self.recipe.model
        return isinstance(model, TransformerSettings) or model.attention != "none"

    @overload
    def translate(self, text: str, **options: Any) -> Translation: ...

    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[Translation]: ...

    def translate(
        self, text: str | Sequence[str], **options: Any
    ) -> Translation | list[Translation]:
        """Translate one sentence, or a list of them; the options are those of `stream`."""
        if isinstance(text, str):
            return self.translate([text], **options)[0]
        results = dict(self.stream(text, **options))
        return [results[index] for index in range(len(text))]

    def stream(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        attention: bool = True,
        **changes: Any,
    ) -> Iterator[tuple[int, Translation]]:
        """Translate sentences, longest first, and yield each with its index.

        A sentence's translation never depends on the others. All settings of decoding can be
        changed by their names, as `beam=1`; what is None stays as the recipe has it.
        """
        settings = self.decoding(n_best=n_best, **changes)
        encoded = [self._encode(text, index) for index, text in enumerate(texts)]
        lengths = [(len(ids) + 1, 0) for ids in encoded]
        for rows in sorted_batches(lengths, token_budget=self.engine.batch_tokens):
            filled = [row for row in rows if encoded[row]]
            for row in set(rows) - set(filled):
                yield row, Translation(texts[row], "", 0.0, 0.0, None)
            found = self.engine.search(
                [encoded[row] for row in filled],
                settings,
                n_best=n_best,
                attention=attention and self.attends,
            )
            for row, hypotheses in zip(filled, found, strict=True):
                yield row, self._translation(texts[row], encoded[row], hypotheses)

    def attention_map(
        self, source: Sequence[int], target: Sequence[int], weights: Tensor
    ) -> AttentionMap:
        """Return weights with their labels; source and target are ids without end marks."""
        return AttentionMap(
            weights=weights.numpy().astype(np.float32),
            source=(*self.source_tokenizer.pieces(source), END_MARK),
            target=(*self.target_tokenizer.pieces(target), END_MARK),
            source_words=(*self.source_tokenizer.word_of_piece(source), -1),
            target_words=(*self.target_tokenizer.word_of_piece(target), -1),
        )

    def decoding(self, *, n_best: int = 1, **changes: Any) -> DecodingSettings:
        """Return the recipe's settings of decoding with these changes, or say what is wrong."""
        given = {name: value for name, value in changes.items() if value is not None}
        table = {**self.recipe.decoding.model_dump(), **given}
        settings = validate(table, DecodingSettings, origin="decoding")
        if not 1 <= n_best <= settings.beam:
            raise SettingsError(
                f"n_best ({n_best}) must lie between 1 and the beam ({settings.beam}); "
                "widen the beam."
            )
        return settings

    def _encode(self, text: str, index: int) -> list[int]:
        words = len(text.split())
        if words > MOST_PIECES:  # a word is at least one symbol: no need to look for them all
            raise SentenceTooLongError(index, f"{words} words")
        ids = self.source_tokenizer.encode(text) if words else []
        if len(ids) > MOST_PIECES:
            raise SentenceTooLongError(index, f"{len(ids)} symbols")
        return ids

    def _translation(
        self, text: str, source: Sequence[int], hypotheses: Sequence[Hypothesis]
    ) -> Translation:
        best, *others = [self._one(text, source, hypothesis) for hypothesis in hypotheses]
        if not others:
            return best
        return Translation(
            text, best.text, best.score, best.log_probability, best.attention, tuple(others)
        )

    def _one(self, text: str, source: Sequence[int], hypothesis: Hypothesis) -> Translation:
        weights = hypothesis.attention
        attention = None
        if weights is not None:
            attention = self.attention_map(source, hypothesis.tokens, weights[:, : len(source) + 1])
        return Translation(
            source=text,
            text=self.target_tokenizer.decode(hypothesis.tokens),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            attention=attention,
        )


def load(folder: str | Path) -> LoadedTranslator:
    """Load the best model of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(TranslationRecipe)
    source, target = run.tokenizers()
    model = build_translator(recipe.model, source_vocab=source.size, target_vocab=target.size)
    load_weights(model, run.weights())
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return LoadedTranslator(
        model=model, source_tokenizer=source, target_tokenizer=target, recipe=recipe
    )
