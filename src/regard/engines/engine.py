"""The one interface of engines: source ids in, hypotheses out."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from regard.base.results import Hypothesis
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded, sorted_batches
from regard.decoding.constraints.phrases import Constraints
from regard.models.translator import Translator
from regard.settings.decoding import DecodingSettings


@runtime_checkable
class Engine(Protocol):
    """Searches for the outputs of source sentences; each never depends on its neighbours."""

    @property
    def name(self) -> str:
        """A short name for people and records, as "torch"."""
        ...

    @property
    def batch_tokens(self) -> int:
        """Number of padded source tokens that one search should have."""
        ...

    @property
    def attends(self) -> bool:
        """Whether its hypotheses can carry attention."""
        ...

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Return the name of a requested feature that this engine lacks; None if it has all."""
        ...

    def concurrent_searches(self, settings: DecodingSettings, *, constrained: bool) -> int:
        """Return how many such searches, each in its own thread, keep this engine busy."""
        ...

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
        """Return the hypotheses of each sentence, best first.

        Sources are ids without end mark, none of them empty; constraints, if given, are one for
        each source. Without `scores`, a score may be NaN where computing it takes time.
        """
        ...


def on_time(
    model: Translator[Any], weights: Float[Tensor, "target columns"], *, source: int
) -> Float[Tensor, "target columns"]:
    """Return the rows of a taught head beside the tokens that they align; others as they are.

    `source` is the place of the end mark, with which that of the target is aligned.
    """
    if model.taught_head is None:
        return weights
    last = torch.zeros_like(weights[:1])
    last[0, source] = 1.0
    return torch.cat([weights[1:], last])


PASS_TOKENS = 4_096


@torch.inference_mode()
def attention_over(
    model: Translator[Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    head: tuple[int, int] | None = None,
) -> list[Float[Tensor, "target source"]]:
    """Return the attention of each target over its source, as if the model had generated it.

    Ids come without end marks; the maps have a last row and column for them. `head` is a layer and
    a head of the decoder, both counted from 0; by default the map is the one that the model shows.
    """
    model.eval()
    maps: dict[int, Tensor] = {}
    lengths = [(len(s) + 1, len(t) + 1) for s, t in zip(sources, targets, strict=True)]
    taught = head is None or head == model.taught_head
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        source, mask = padded([sources[row] for row in rows], after=END)
        target, _ = padded([targets[row] for row in rows], before=BEGIN)
        if head is None:
            weights = model(source, mask, target, with_weights=True).attention
        else:
            layer, number = head
            weights = model.head_maps(source, mask, target).cross[layer][:, number]
        for index, row in enumerate(rows):
            own = weights[index, : lengths[row][1], : lengths[row][0]]
            maps[row] = (on_time(model, own, source=lengths[row][0] - 1) if taught else own).clone()
    return [maps[row] for row in range(len(sources))]
