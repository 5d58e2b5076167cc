"""What is made and measured once for each model: its CTranslate2 conversion and its patience."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import Field, TypeAdapter, ValidationError

from regard.base.files import Fingerprint, write_json
from regard.base.protocols import Tokenizer
from regard.batching.batch import sorted_batches
from regard.engines.ctranslate2_engine import CTranslate2Engine, Threads, wait_key
from regard.engines.torch_engine import TorchEngine
from regard.exchange.ctranslate2 import (
    Quantization,
    read_export_record,
    require_exportable,
    token_names,
    write_ctranslate2,
)
from regard.models.translator import Translator
from regard.settings.decoding import DecodingSettings

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
    found = Fingerprint()
    for name, parameter in translator.model.named_parameters():
        found.add(name)
        found.add(parameter.detach().cpu().numpy())
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        found.add("\n".join(token_names(tokenizer)))
    return found.value


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


def remembered(run: Path | None, name: str) -> dict[str, Any]:
    """Return what was measured before; a file that cannot be read is as good as none."""
    if run is None:
        return {}
    try:
        found = json.loads((run / ENGINES / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(run: Path | None, name: str, key: str, value: dict[str, Any]) -> None:
    """Keep a measurement, if the run can be written to."""
    if run is None:
        return
    path = run / ENGINES / name
    try:
        path.parent.mkdir(exist_ok=True)
        write_json(path, {**remembered(run, name), key: value})
    except OSError:
        return


PATIENCES = "waits.json"
TRIED = (0, 1, 2, 3, 5, 10, 20)  # outputs more than the beam is wide
DIFFERENT = 0.01  # of all sentences: fewer outputs than that shall not be the reference's
CHANCE = 0.05  # of seeing so few among the sentences that it is measured on, if it were as many


@dataclass(frozen=True)
class Patience:
    """Outputs beyond the width of the beam, and of how many sentences the best was found so."""

    more: Annotated[int, Field(ge=0, le=max(TRIED))]
    same: Annotated[float, Field(ge=0, le=1)]
    sentences: int


def measure_patience(
    translator: TranslatorParts, run: Path, sources: Sequence[Sequence[int]], *, cores: int
) -> Patience:
    """Find the shortest wait that gives the reference's outputs, and keep it beside the run."""
    reference = TorchEngine(translator.model)
    with converted(translator, run=run) as folder:
        engine = CTranslate2Engine(
            folder,
            reference=reference,
            source_tokenizer=translator.source_tokenizer,
            target_tokenizer=translator.target_tokenizer,
            threads=Threads(cores, 1),
        )
    settings = translator.recipe.decoding
    found = least_patience(engine, sources, settings)
    remember(run, PATIENCES, _key(fingerprint(translator), settings), asdict(found))
    return found


def least_patience(
    engine: CTranslate2Engine, sources: Sequence[Sequence[int]], settings: DecodingSettings
) -> Patience:
    """Return the first wait that suffices, or the longest; a longer one changes no right output."""
    wanted: dict[int, tuple[int, ...]] = {}
    lengths = [(len(source) + 1, 0) for source in sources]
    for rows in sorted_batches(lengths, token_budget=engine.reference.batch_tokens):
        best = engine.reference.search([sources[row] for row in rows], settings)
        wanted |= {row: some[0].tokens for row, some in zip(rows, best, strict=True)}
    others = list(wanted)
    for more in TRIED:
        engine.waits[wait_key(settings)] = more
        found = engine.search([sources[row] for row in others], settings)
        others = [
            row for row, some in zip(others, found, strict=True) if some[0].tokens != wanted[row]
        ]
        if surely_few(len(others), len(sources)):
            break
    return Patience(more, 1 - len(others) / len(sources), len(sources))


def surely_few(different: int, sentences: int) -> bool:
    """Return whether so few of these sentences show that few of all are different."""
    so_few = sum(
        math.comb(sentences, count) * DIFFERENT**count * (1 - DIFFERENT) ** (sentences - count)
        for count in range(different + 1)
    )
    return so_few < CHANCE


def known_patience(run: Path | None, model: str, settings: DecodingSettings) -> Patience | None:
    """Return what was measured of the model of this fingerprint, if anything was."""
    found = remembered(run, PATIENCES).get(_key(model, settings))
    try:
        return TypeAdapter(Patience).validate_python(found)
    except ValidationError:  # there is none, or it is not ours
        return None


def _key(model: str, settings: DecodingSettings) -> str:
    beam, penalty = wait_key(settings)
    release = version("ctranslate2")
    return f"{model}, ctranslate2 {release}, beam {beam}, length penalty {penalty:g}"
