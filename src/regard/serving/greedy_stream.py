"""A translation as it is being written: the text so far, after every symbol of a greedy search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from regard.base.shapes import Tensor
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.decoding.constraints.batch import Constrained
from regard.decoding.greedy import follow_paths
from regard.decoding.rules import Rules
from regard.decoding.search import LengthPenalty
from regard.engines.torch_engine import TorchEngine
from regard.recipes.loaded import LoadedTranslator
from regard.serving.question import Task


class NobodyListensError(Exception):
    """Raised by a listener that has gone away; ends the search."""


def write_greedily(translator: LoadedTranslator, task: Task, heard: Callable[[str], None]) -> None:
    """Call `heard` with the text so far after every symbol; text that was given comes first."""
    source, mask = padded([task.source], after=END)
    settings = task.settings
    limits = TorchEngine(translator.model).limits(mask.sum(dim=1), settings)
    constrained = None
    if task.constraints:
        vocab = translator.target_tokenizer.size
        # What must come somewhere is found by the wider search that follows.
        asked = replace(task.constraints, required=())
        constrained = Constrained([asked], limits=limits, vocab=vocab)
    written: list[int] = []

    def pick(values: Tensor, numbers: Tensor) -> Tensor:
        symbols = values.argmax(dim=1)
        if int(symbols[0]) != END:
            written.append(int(symbols[0]))
            if len(written) >= len(task.constraints.prefix):
                heard(translator.target_tokenizer.decode(written))
        return symbols

    follow_paths(
        translator.model,
        source,
        mask,
        rules=Rules(limits=limits, constrained=constrained),
        pick=pick,
        penalty=LengthPenalty(),
    )
