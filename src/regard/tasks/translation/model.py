"""A trained translator, ready to use: what `regard.load` returns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import torch

from regard.attention.probe import Change
from regard.base.errors import RegardError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.results import Hypothesis
from regard.base.shapes import Tensor
from regard.batching.batch import Example, prefetch, sorted_batches
from regard.compute.device import placed
from regard.decoding.constraints.phrases import Constraints, ImpossibleConstraintsError
from regard.decoding.search import LengthPenalty
from regard.engines.torch_engine import Engine, TorchEngine
from regard.models.build import build_translator
from regard.models.pretrained import add_adapters, merge_adapters
from regard.models.sizes import build_for
from regard.models.translator import Translator
from regard.runs.run import Run
from regard.settings.decoding import DecodingSettings
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.tasks.attention import END_MARK, AttentionMap
from regard.tasks.translation import results as outcomes
from regard.tasks.translation.constraints import ConstraintEncoder, TextConstraints, verbatim_words
from regard.tasks.translation.settings import TranslationRecipe
from regard.text.tokenizers import UnknownCount, unknown_parts
from regard.training.checkpoint import load_weights

# A sentence of 5,000 tokens took 229 seconds and 4.6 GB; both grow with the square.
MOST_PIECES = 2_000
# Builds a translator for a source and a target vocabulary of these sizes.
BuildTranslator: TypeAlias = Callable[[int, int], Translator[Any]]


class SentenceTooLongError(RegardError):
    """A sentence that no search should be tried on; `index` says which of them it is."""

    def __init__(self, index: int, size: str):
        self.index = index
        self.problem = f"has {size}, more than the {MOST_PIECES} tokens that one sentence may have"
        super().__init__(f"Sentence {index + 1} {self.problem}: split it, one sentence a line.")


class SourceSentence(NamedTuple):
    """A source sentence on its way through a search."""

    text: str
    ids: list[int]
    constraints: TextConstraints | None


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

    @cached_property
    def _constraints(self) -> ConstraintEncoder:
        return ConstraintEncoder(self.target_tokenizer)

    def unknown_count(self) -> UnknownCount:
        """Return an empty count of what the source vocabulary does not know."""
        by_character = self.recipe.tokenizer.kind == "character"
        return UnknownCount("character" if by_character else "word")

    @property
    def attends(self) -> bool:
        """Whether there is attention to look at."""
        model = self.recipe.model
        return isinstance(model, TransformerSettings) or model.attention != "none"

    def with_interventions(self, changes: Sequence[Change]) -> "LoadedTranslator":
        """Return this translator with interventions; torch decodes, step by step."""
        from regard.models.interventions import IntervenedTranslator

        if self.recipe.own_model:
            raise SettingsError("Interventions need a network of a recipe, not one of your own.")
        return LoadedTranslator(
            model=IntervenedTranslator(self.model, changes),
            source_tokenizer=self.source_tokenizer,
            target_tokenizer=self.target_tokenizer,
            recipe=self.recipe,
        )

    @overload
    def translate(self, text: str, **options: Any) -> outcomes.Translation: ...

    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[outcomes.Translation]: ...

    def translate(
        self, text: str | Sequence[str], **options: Any
    ) -> outcomes.Translation | list[outcomes.Translation]:
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
        scores: bool = True,
        constraints: TextConstraints | Sequence[TextConstraints] | None = None,
        interventions: Sequence[Change] = (),
        **changes: Any,
    ) -> Iterator[tuple[int, outcomes.Translation]]:
        """Translate sentences, longest first, and yield each with its index.

        A sentence's translation never depends on the others. Constraints are for all sentences, or
        a list with one for each. All settings of decoding can be changed by their names, as
        `beam=1`; what is None stays as the recipe has it. Without scores, which then may be NaN,
        a greedy search takes less time. Interventions (`regard.models.interventions`) are for all.
        """
        if interventions:
            yield from self.with_interventions(interventions).stream(
                texts,
                n_best=n_best,
                attention=attention,
                scores=scores,
                constraints=constraints,
                **changes,
            )
            return
        settings = self.decoding(n_best=n_best, **changes)
        asked = _for_each(texts, constraints)
        encoded = [self._encode(text, index) for index, text in enumerate(texts)]
        lengths = [(len(ids) + 1, 0) for ids in encoded]

        def search(rows: list[int]) -> list[tuple[int, outcomes.Translation]]:
            filled = [row for row in rows if encoded[row]]
            sentences = [
                SourceSentence(texts[row], encoded[row], asked[row] if asked else None)
                for row in filled
            ]
            try:
                found = self._search(
                    sentences, settings, n_best=n_best, attention=attention, scores=scores
                )
            except ImpossibleConstraintsError as error:
                raise ImpossibleConstraintsError(filled[error.index], error.problem) from error
            empty = [row for row in rows if not encoded[row]]
            nothing = [(row, outcomes.Translation(texts[row], "", 0.0, 0.0, None)) for row in empty]
            return [*nothing, *zip(filled, found, strict=True)]

        batches = sorted_batches(lengths, token_budget=self.engine.batch_tokens)
        at_once = self.engine.concurrent_searches(settings, constrained=asked is not None)
        for found in prefetch(search, batches, at_once=at_once):
            yield from found

    def score_pairs(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[outcomes.ScoredPair]:
        """Return how probable the model finds each given translation: forced decoding."""
        if len(sources) != len(targets):
            raise RegardError(
                f"{len(sources)} sources cannot be paired with {len(targets)} targets: both must "
                "have one line for each sentence."
            )
        examples = [
            Example(self._encode(source, index), self.target_tokenizer.encode(target))
            for index, (source, target) in enumerate(zip(sources, targets, strict=True))
        ]
        decoding = self.recipe.decoding
        penalty = LengthPenalty(decoding.length_penalty_kind, decoding.length_penalty)
        found = outcomes.forced_log_probabilities(self.model, examples)
        return [
            outcomes.ScoredPair(
                source=source,
                target=target,
                score=float(values.sum()) / float(penalty.divisor(torch.tensor(len(values)))),
                log_probability=float(values.sum()),
                pieces=(*self.target_tokenizer.pieces(example.target), END_MARK),
                log_probabilities=tuple(values.tolist()),
                unknown=(
                    *unknown_parts(self.source_tokenizer, source, example.source),
                    *unknown_parts(self.target_tokenizer, target, example.target),
                ),
            )
            for source, target, example, values in zip(
                sources, targets, examples, found, strict=True
            )
        ]

    def attention_map(
        self, source: Sequence[int], target: Sequence[int], weights: Tensor
    ) -> AttentionMap:
        """Return weights with their labels; source and target are ids without end marks."""
        return AttentionMap(
            weights=weights.cpu().numpy().astype(np.float32),
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
        most = {"beam": settings.beam, "mbr": settings.mbr_samples}.get(settings.method, n_best)
        if not 1 <= n_best <= most:
            name, remedy = {
                "mbr": ("mbr_samples", "draw more samples"),
                "sample": ("number of draws", "draw at least one"),
            }.get(settings.method, ("beam", "widen the beam"))
            raise SettingsError(
                f"n_best ({n_best}) must lie between 1 and the {name} ({most}); {remedy}."
            )
        return settings

    def all_constraints(
        self, sentences: Sequence[SourceSentence], settings: DecodingSettings
    ) -> list[Constraints] | None:
        """Return what is asked of each sentence; None if nothing is asked of any."""
        asked = any(sentence.constraints for sentence in sentences)
        opening = getattr(self.target_tokenizer, "opening", ())  # of an imported model
        if not (settings.copy_verbatim or asked or opening):
            return None
        found = [
            self._constraints.encode(
                sentence.constraints or TextConstraints(),
                copied=verbatim_words(sentence.text) if settings.copy_verbatim else (),
                room=self._room(sentence, settings),
            )
            for sentence in sentences
        ]
        return found if any(found) else None

    def _encode(self, text: str, index: int) -> list[int]:
        words = len(text.split())
        if words > MOST_PIECES:  # a word is at least one token: no need to look for them all
            raise SentenceTooLongError(index, f"{words} words")
        ids = self.source_tokenizer.encode(text) if words else []
        if len(ids) > MOST_PIECES:
            raise SentenceTooLongError(index, f"{len(ids)} tokens")
        return ids

    def _search(
        self,
        sentences: Sequence[SourceSentence],
        settings: DecodingSettings,
        *,
        n_best: int,
        attention: bool,
        scores: bool,
    ) -> list[outcomes.Translation]:
        """Search a batch and turn what was found into text."""
        by_risk = settings.method == "mbr"
        found = self.engine.search(
            [sentence.ids for sentence in sentences],
            settings.model_copy(update={"method": "sample"}) if by_risk else settings,
            n_best=settings.mbr_samples if by_risk else n_best,
            attention=self.attends and (attention or settings.replace_unknown),
            scores=scores,
            constraints=self.all_constraints(sentences, settings),
        )
        translations = []
        for sentence, hypotheses in zip(sentences, found, strict=True):
            each = [self._one(sentence, hypothesis, settings) for hypothesis in hypotheses]
            each = outcomes.least_risk(each, settings.mbr_utility)[:n_best] if by_risk else each
            if settings.replace_unknown and not attention:
                each = [replace(one, attention=None) for one in each]
            best, *others = each
            translations.append(replace(best, alternatives=tuple(others)) if others else best)
        return translations

    def _room(self, sentence: SourceSentence, settings: DecodingSettings) -> int:
        """Return the most tokens of an output, without end mark."""
        room = int((len(sentence.ids) + 1) * settings.max_ratio) + settings.max_extra - 1
        longest = self.model.longest_target
        room = room if settings.max_length is None else min(room, settings.max_length)
        return room if longest is None else min(room, longest - 1)

    def _one(
        self, sentence: SourceSentence, hypothesis: Hypothesis, settings: DecodingSettings
    ) -> outcomes.Translation:
        weights = hypothesis.attention
        attention = None
        if weights is not None:
            seen = weights[:, : len(sentence.ids) + 1]
            attention = self.attention_map(sentence.ids, hypothesis.tokens, seen)
        text = self.target_tokenizer.decode(hypothesis.tokens)
        if settings.replace_unknown:
            text = outcomes.with_source_words(
                text, hypothesis.tokens, source=sentence.text, attention=attention
            )
        return outcomes.Translation(
            source=sentence.text,
            text=text,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            attention=attention,
            unknown=unknown_parts(self.source_tokenizer, sentence.text, sentence.ids),
        )


def _for_each(
    texts: Sequence[str], constraints: TextConstraints | Sequence[TextConstraints] | None
) -> list[TextConstraints] | None:
    """Return the constraints of every sentence."""
    if constraints is None:
        return None
    if isinstance(constraints, TextConstraints):
        return [constraints] * len(texts)
    if len(constraints) != len(texts):
        raise SettingsError(
            f"{len(constraints)} constraints cannot be paired with {len(texts)} sentences: give "
            "one for each, or one for all."
        )
    return list(constraints)


def load(folder: str | Path, *, model: BuildTranslator | None = None) -> LoadedTranslator:
    """Load the best model of a run; `model` builds it again if it was built in Python."""
    run = Run.open(Path(folder))
    recipe = run.recipe(TranslationRecipe)
    if recipe.own_model and model is None:
        raise SettingsError(
            f"The network of the run at {folder} was built in Python: load it with the function "
            "that built it, regard.load(folder, model=...)."
        )
    source, target = run.tokenizers()
    weights = run.weights()
    network = build_for(
        lambda: fresh_network(recipe, source.size, target.size, model=model), weights
    )
    if recipe.training.adapter_rank:
        add_adapters(network, rank=recipe.training.adapter_rank)
        load_weights(network, weights)
        merge_adapters(network)
    else:
        load_weights(network, weights)
    network.requires_grad_(False).eval()
    return LoadedTranslator(
        model=placed(network), source_tokenizer=source, target_tokenizer=target, recipe=recipe
    )


def fresh_network(
    recipe: TranslationRecipe,
    source_vocab: int,
    target_vocab: int,
    *,
    model: BuildTranslator | None = None,
) -> Translator[Any]:
    """Return an untrained network: the recipe's, or one that a function of the user builds."""
    if model is not None:
        return model(source_vocab, target_vocab)
    return build_translator(recipe.model, source_vocab=source_vocab, target_vocab=target_vocab)


# A recipe does not know its vocabulary before it has seen data; this stands in for it.
ASSUMED_VOCABULARY = 8_000


def build(recipe: TranslationRecipe) -> Translator[Any]:
    """Return an untrained translator; model.source_vocab and target_vocab may be set."""
    vocabulary = recipe.tokenizer.size or ASSUMED_VOCABULARY
    return build_translator(
        recipe.model,
        source_vocab=recipe.model.source_vocab or vocabulary,
        target_vocab=recipe.model.target_vocab or vocabulary,
    )
