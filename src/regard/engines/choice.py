"""Which engine translates fastest with this model on this machine: measured once, then known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from regard.base.protocols import Tokenizer
from regard.engines.engine import Engine
from regard.engines.torch_engine import TorchEngine
from regard.models.translator import Translator

EngineName = Literal["auto", "torch", "ctranslate2"]
Report = Callable[[str], None]


@runtime_checkable
class TranslatorParts(Protocol):
    """What a loaded translator consists of."""

    model: Translator[Any]
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    recipe: Any


def choose_engine(
    translator: TranslatorParts,
    *,
    folder: Path | None = None,
    engine: EngineName = "auto",
    threads: int | None = None,
    quantization: str | None = None,
    report: Report | None = None,
) -> Engine:
    """Return the fastest engine for this model here, as if its output did not depend on it.

    `folder` is the run's, where conversions and measurements are kept; `threads` is the most that
    may be used; `report` is called with sentences about what was chosen and why.
    """
    return TorchEngine(translator.model)
