"""A model in CTranslate2's form: converted once, kept beside the run, made anew if it changed."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.base.protocols import Tokenizer
from regard.exchange.ctranslate2_export import (
    Quantization,
    read_export_record,
    require_exportable,
    token_names,
    write_ctranslate2,
)
from regard.models.translator import Translator

ENGINES = "engines"


@runtime_checkable
class TranslatorParts(Protocol):
    """What a loaded translator consists of."""

    model: Translator[Any]
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    recipe: Any


def engine_folder(run: Path, quantization: Quantization | None = None) -> Path:
    """Return where a run keeps its conversion."""
    return run / ENGINES / f"ctranslate2-{quantization or 'float32'}"


def fingerprint(translator: TranslatorParts) -> str:
    """Return a digest of weights and vocabularies: if it is the same, so is the conversion."""
    digest = hashlib.blake2b(digest_size=16)
    for name, parameter in translator.model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().cpu().contiguous().numpy().data)
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        digest.update("\n".join(token_names(tokenizer)).encode())
    return digest.hexdigest()


@contextmanager
def converted(
    translator: TranslatorParts, *, run: Path | None, quantization: Quantization | None = None
) -> Iterator[Path]:
    """Yield the folder of the conversion, made if it is not there or belongs to other weights.

    Where it cannot be kept, because there is no run or it cannot be written to, it is temporary
    and gone after the block.
    """
    record = {"fingerprint": fingerprint(translator), "ctranslate2": version("ctranslate2")}
    if run is not None:
        folder = engine_folder(run, quantization)
        known = read_export_record(folder)
        if any(known.get(name) != value for name, value in record.items()):
            try:
                _write(folder, translator, quantization, record)
            except OSError:  # a folder that is read only, a disk that is full
                run = None
        if run is not None:
            yield folder
            return
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        yield _write(Path(place) / "ctranslate2", translator, quantization, record)


def _write(
    folder: Path,
    translator: TranslatorParts,
    quantization: Quantization | None,
    record: dict[str, str],
) -> Path:
    return write_ctranslate2(
        folder,
        model=translator.model,
        settings=require_exportable(translator.recipe.model),
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
        quantization=quantization,
        record=record,
    )
