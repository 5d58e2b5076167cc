"""The reference engine: every model and every option, in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.base.results import Hypothesis
from regard.base.specials import END
from regard.batching.batch import padded
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.limits import length_limits
from regard.models.translator import Translator
from regard.settings.decoding import DecodingSettings


class TorchEngine:
    """Searches with the model itself."""

    name = "torch"
    batch_tokens = 2_048  # enough to keep the cores busy, small enough for their caches
    attends = True

    def __init__(self, model: Translator[Any]):
        self.model = model

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what this engine cannot do."""
        if settings.method != "beam":
            return f'method = "{settings.method}"'
        return "constraints" if constraints else None

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int = 1,
        attention: bool = False,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first."""
        if not sources:
            return []
        self.model.eval()
        source, mask = padded(sources, after=END)
        limits = length_limits(mask, ratio=settings.max_ratio, extra=settings.max_extra)
        if self.model.longest_target is not None:
            limits = limits.clamp(max=self.model.longest_target)
        if settings.beam == 1:
            found = greedy_search(
                self.model,
                source,
                mask,
                limits=limits,
                length_penalty=settings.length_penalty,
                with_weights=attention,
            )
            return [[hypothesis] for hypothesis in found]
        return beam_search(
            self.model,
            source,
            mask,
            limits=limits,
            beam=settings.beam,
            length_penalty=settings.length_penalty,
            n_best=n_best,
            with_weights=attention,
        )
