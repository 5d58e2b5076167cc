"""The reference engine: every model and every option, in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.base.errors import SettingsError
from regard.base.results import Hypothesis
from regard.base.shapes import Int, Tensor
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.compute.device import keep_memory
from regard.decoding.beam import beam_search
from regard.decoding.constrained import Constrained
from regard.decoding.constraints import Constraints, ImpossibleConstraintsError
from regard.decoding.greedy import greedy_search
from regard.decoding.length_penalty import LengthPenalty
from regard.decoding.limits import least_lengths, length_limits
from regard.decoding.rules import Rules
from regard.decoding.sampling import sample
from regard.models.translator import Translator
from regard.settings.decoding import DecodingSettings

# A beam needs a place for every symbol of what is required, but not without end.
WIDEST_FOR_REQUIRED = 64


class TorchEngine:
    """Searches with the model itself."""

    name = "torch"
    batch_tokens = 2_048  # enough to keep the cores busy, small enough for their caches
    at_once = 1
    attends = True

    def __init__(self, model: Translator[Any]):
        self.model = model

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what this engine cannot do: only what no engine could."""
        if not any(some.required for some in constraints or ()):
            return None
        if settings.method != "beam":
            return f'required words with method = "{settings.method}"'
        if settings.diversity_groups > 1:
            return "required words with diversity_groups"
        return None

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int = 1,
        attention: bool = False,
        scores: bool = True,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first."""
        if not sources:
            return []
        if (lacking := self.lacks(settings, constraints)) is not None:
            raise SettingsError(f"There is no search for {lacking}.")
        self.model.eval()
        keep_memory()  # every step makes and frees the same large tensors
        source, mask = padded(sources, after=END)
        rules = self._rules(mask.sum(dim=1), settings, constraints)
        penalty = LengthPenalty(settings.length_penalty_kind, settings.length_penalty)
        required = 0 if rules.constrained is None else int(rules.constrained.required.total.max())
        if settings.method != "beam":
            found = sample(
                self.model,
                source,
                mask,
                rules=rules,
                seed=settings.seed,
                count=n_best,
                temperature=settings.temperature,
                top_k=settings.top_k,
                top_p=settings.top_p,
                penalty=penalty,
                with_weights=attention,
            )
        elif settings.beam == 1 and not required and not settings.coverage_penalty:
            found = greedy_search(
                self.model, source, mask, rules=rules, penalty=penalty, with_weights=attention
            )
        else:
            found = beam_search(
                self.model,
                source,
                mask,
                rules=rules,
                beam=max(settings.beam, min(required + 1, WIDEST_FOR_REQUIRED)),
                n_best=n_best,
                penalty=penalty,
                coverage=settings.coverage_penalty,
                groups=settings.diversity_groups,
                diversity=settings.diversity_strength,
                with_weights=attention,
            )
        for index, hypotheses in enumerate(found):
            if not hypotheses:
                raise ImpossibleConstraintsError(
                    index, "the search found no output that meets all constraints together"
                )
        return found

    def limits(
        self, lengths: Int[Tensor, "batch"], settings: DecodingSettings
    ) -> Int[Tensor, "batch"]:
        """Return the most symbols of each output by those of its source; both count the end."""
        limits = length_limits(
            lengths,
            ratio=settings.max_ratio,
            extra=settings.max_extra,
            most=settings.max_length,
        )
        longest = self.model.longest_target
        return limits if longest is None else limits.clamp(max=longest)

    def _rules(
        self,
        lengths: Int[Tensor, "batch"],
        settings: DecodingSettings,
        constraints: Sequence[Constraints] | None,
    ) -> Rules:
        limits = self.limits(lengths, settings)
        least = None
        if settings.min_length or settings.min_ratio:
            least = least_lengths(lengths, ratio=settings.min_ratio, least=settings.min_length)
        constrained = None
        if constraints is not None and any(constraints):
            vocab = self.model.projection.out_features
            constrained = Constrained(constraints, limits=limits, vocab=vocab)
        return Rules(
            limits=limits,
            least=least,
            no_repeat_ngram=settings.no_repeat_ngram,
            repetition_penalty=settings.repetition_penalty,
            constrained=constrained,
        )
