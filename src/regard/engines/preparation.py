"""What is prepared once for each model: its conversion to CTranslate2, and its patience."""

import json
import math
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import torch
from pydantic import Field, TypeAdapter, ValidationError

from regard.base.errors import SettingsError
from regard.base.files import Fingerprint, locked, write_json
from regard.base.protocols import Tokenizer
from regard.batching.batch import sorted_batches
from regard.compute.device import HOST, available_cores, device_of
from regard.engines import ctranslate2_engine
from regard.engines.torch_engine import MOST_UNFINISHED, TorchEngine, unfinished_share
from regard.exchange import ctranslate2
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


def problem_with_ctranslate2(translator: TranslatorParts) -> str | None:
    """Return why CTranslate2 cannot run this model; None if it can."""
    try:
        version("ctranslate2")
        ctranslate2.require_exportable(translator.recipe.model)
    except PackageNotFoundError:
        return "it is not installed (pip install ctranslate2)."
    except SettingsError as error:
        return str(error)
    return None


def engine_folder(run: Path, quantization: ctranslate2.Quantization | None = None) -> Path:
    """Return where a run keeps its conversion."""
    return run / ENGINES / f"ctranslate2-{quantization or 'float32'}"


def fingerprint(translator: TranslatorParts) -> str:
    """Return a digest of weights and vocabularies; the conversion is a function of these."""
    found = Fingerprint()
    for name, parameter in translator.model.named_parameters():
        found.add(name)
        found.add(parameter.detach().cpu().numpy())
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        found.add("\n".join(ctranslate2.token_names(tokenizer)))
    return found.value


@contextmanager
def converted(
    translator: TranslatorParts,
    *,
    run: Path | None,
    quantization: ctranslate2.Quantization | None = None,
) -> Iterator[Path]:
    """Yield the folder of the conversion, made anew if it is missing, damaged or of other weights.

    If it cannot be kept, because there is no run or no permission to write to it, the folder is
    temporary and is deleted after the block.
    """
    record = {"fingerprint": fingerprint(translator), "ctranslate2": version("ctranslate2")}
    if run is not None:
        folder = engine_folder(run, quantization)
        if not _is_current(folder, record):
            try:
                folder.parent.mkdir(exist_ok=True)
                with locked(folder.parent, wait=True):  # another process may be at it too
                    if not _is_current(folder, record):
                        shutil.rmtree(folder, ignore_errors=True)
                        _write(folder, translator, quantization, record)
            except OSError:  # a folder that is read only, a disk that is full
                run = None
        if run is not None:
            yield folder
            return
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        yield _write(Path(place) / "ctranslate2", translator, quantization, record)


def _is_current(folder: Path, record: dict[str, str]) -> bool:
    """Return whether a conversion is of these weights, by this version, and not damaged."""
    known = ctranslate2.read_export_record(folder)
    same = all(known.get(name) == value for name, value in record.items())
    return same and ctranslate2.export_is_whole(folder)


def _write(
    folder: Path,
    translator: TranslatorParts,
    quantization: ctranslate2.Quantization | None,
    record: dict[str, str],
) -> Path:
    return ctranslate2.write_ctranslate2(
        folder,
        model=translator.model,
        settings=ctranslate2.require_exportable(translator.recipe.model),
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
        quantization=quantization,
        record=record,
    )


def converted_engine(
    translator: TranslatorParts,
    folder: Path,
    *,
    threads: ctranslate2_engine.Threads,
    compute_type: str = "float32",
    shortlist: bool = False,
) -> ctranslate2_engine.CTranslate2Engine:
    """Return the engine of a model's conversion in this folder, with torch as its reference."""
    return ctranslate2_engine.CTranslate2Engine(
        folder,
        reference=TorchEngine(translator.model),
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
        threads=threads,
        compute_type=compute_type,
        shortlist=shortlist,
    )


def remembered(run: Path | None, name: str) -> dict[str, Any]:
    """Return earlier measurements; none if there is no file or it cannot be read."""
    if run is None:
        return {}
    try:
        found = json.loads((run / ENGINES / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(run: Path | None, name: str, key: str, value: dict[str, Any]) -> None:
    """Store a measurement, if the run can be written to."""
    if run is None:
        return
    path = run / ENGINES / name
    try:
        path.parent.mkdir(exist_ok=True)
        write_json(path, {**remembered(run, name), key: value})
    except OSError:
        return


PATIENCE = "patience.json"
TRIED = (0, 1, 2, 3, 5, 10, 20)  # finished hypotheses beyond the beam size
MAX_DIFFERENT = 0.01  # largest accepted share of outputs that differ from the reference
SIGNIFICANCE = 0.05  # of the test that the share is smaller
MEASURED_SENTENCES = 1_000  # of these, 4 may differ
LONGEST = 500  # tokens of a measured sentence
SECONDS = 60.0  # that a measurement may take


@dataclass(frozen=True)
class Patience:
    """How long CTranslate2 must search with a model, and how well its outputs then agree."""

    extra: Annotated[int, Field(ge=0, le=max(TRIED))]
    """Finished hypotheses beyond the beam size that end a search."""
    agreement: Annotated[float, Field(ge=0, le=1)]
    """Share of the measured sentences whose output equals the reference's."""
    sentences: int


def prepare_patience(
    translator: TranslatorParts,
    run: Path,
    texts: Sequence[str],
    *,
    say: Callable[[str], None] = lambda line: None,
) -> Patience | None:
    """Return the patience that CTranslate2 needs with this model, measured if it is not known.

    It is None if CTranslate2 cannot do the recipe's search, if the search is greedy, if there are
    too few texts, or if it cannot be measured in a short time; `say` is told of the last. The texts
    should not be those of the training, on which the model is too confident.
    """
    settings = translator.recipe.decoding
    if (
        settings.beam == 1
        or ctranslate2_engine.lacking(settings)
        or problem_with_ctranslate2(translator)
    ):
        return None
    known = known_patience(run, _measured(translator), settings)
    if known is not None:
        return known
    encoded = [translator.source_tokenizer.encode(text) for text in texts[:MEASURED_SENTENCES]]
    sources = [ids for ids in encoded if 0 < len(ids) <= LONGEST]
    if not agreement_is_shown(0, len(sources)):
        return None
    if unfinished_share(TorchEngine(translator.model), sources, settings) > MOST_UNFINISHED:
        say(
            "Most outputs run to their length limit, as those of a model that has hardly learned: "
            "the fast engine is not tuned to this model."
        )
        return None
    found = measure_patience(translator, run, sources, cores=available_cores())
    if found is None:
        say(f"The fast engine is not tuned to this model: that takes over {SECONDS} seconds.")
    return found


def measure_patience(
    translator: TranslatorParts, run: Path, sources: Sequence[Sequence[int]], *, cores: int
) -> Patience | None:
    """Return the least patience that gives the reference's outputs, and store it in the run."""
    with converted(translator, run=run) as folder:
        engine = converted_engine(translator, folder, threads=ctranslate2_engine.Threads(cores, 1))
    settings = translator.recipe.decoding
    found = least_patience(engine, sources, settings)
    if found is not None:
        remember(run, PATIENCE, _key(_measured(translator), settings), asdict(found))
    return found


def _measured(translator: TranslatorParts) -> str:
    return measured_of(fingerprint(translator), device_of(translator.model))


def least_patience(
    engine: ctranslate2_engine.CTranslate2Engine,
    sources: Sequence[Sequence[int]],
    settings: DecodingSettings,
    *,
    seconds: float = SECONDS,
) -> Patience | None:
    """Return the least patience that suffices, or the greatest that is tried.

    More patience never changes an output that equals the reference's. The reference searches as
    many sentences as it can in half of the time; it is None if these are too few.
    """
    began, wanted = time.monotonic(), dict[int, tuple[int, ...]]()
    lengths = [(len(source) + 1, 0) for source in sources]
    batches = list(sorted_batches(lengths, token_budget=engine.reference.batch_tokens))
    random.Random(1).shuffle(batches)  # any beginning of them has sentences of all lengths
    for rows in batches:
        if time.monotonic() - began > seconds / 2:
            break
        best = engine.reference.search([sources[row] for row in rows], settings)
        wanted |= {row: some[0].tokens for row, some in zip(rows, best, strict=True)}
    if len(wanted) < len(sources) and not agreement_is_shown(0, len(wanted)):
        return None
    different = list(wanted)
    for extra in TRIED:
        engine.patience[ctranslate2_engine.patience_key(settings)] = extra
        found = engine.search([sources[row] for row in different], settings)
        different = [
            row for row, some in zip(different, found, strict=True) if some[0].tokens != wanted[row]
        ]
        if agreement_is_shown(len(different), len(wanted)):
            break
        if time.monotonic() - began > seconds:
            return None
    return Patience(extra, 1 - len(different) / len(wanted), len(wanted))


def agreement_is_shown(different: int, sentences: int) -> bool:
    """Return whether these differences show that at most MAX_DIFFERENT of all outputs differ.

    It is a binomial test: P(X <= different) < SIGNIFICANCE for X ~ B(sentences, MAX_DIFFERENT).
    """
    share = MAX_DIFFERENT
    probability = sum(
        math.comb(sentences, count) * share**count * (1 - share) ** (sentences - count)
        for count in range(different + 1)
    )
    return probability < SIGNIFICANCE


def known_patience(run: Path | None, model: str, settings: DecodingSettings) -> Patience | None:
    """Return the patience that was measured for the model with this fingerprint, if any."""
    found = remembered(run, PATIENCE).get(_key(model, settings))
    try:
        return TypeAdapter(Patience).validate_python(found)
    except ValidationError:  # it is missing, or damaged
        return None


def measured_of(model: str, device: torch.device) -> str:
    """Return what a measurement is of: a model's fingerprint, and what it computed on."""
    return model if device == HOST else f"{model} on {device.type}"


def _key(model: str, settings: DecodingSettings) -> str:
    beam, penalty = ctranslate2_engine.patience_key(settings)
    release = version("ctranslate2")
    return f"{model}, ctranslate2 {release}, beam {beam}, length penalty {penalty:g}"
