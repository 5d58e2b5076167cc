"""Which engine translates fastest with this model on this machine: measured once, then known."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch

from regard.base.errors import SettingsError
from regard.compute.processes import CAN_FORK, available_cores
from regard.engines.ctranslate2_engine import CTranslate2Engine, Threads, wait_key
from regard.engines.engine import Engine
from regard.engines.preparation import (
    TranslatorParts,
    converted,
    engine_folder,
    fingerprint,
    known_patience,
    remember,
    remembered,
)
from regard.engines.torch_engine import TorchEngine, TorchProcesses
from regard.exchange.ctranslate2 import Quantization, read_export_record, require_exportable
from regard.settings.decoding import DecodingSettings

EngineName = Literal["auto", "torch", "ctranslate2"]
Report = Callable[[str], None]
CHOICES = "choice.json"
# The sample: enough for a picture of the speed, and done in a second or two.
SENTENCES, TORCH_SENTENCES, SOURCE, TARGET = 32, 8, 15, 15
ROUNDS = 2  # in turns, of which the better counts: another process may disturb one
LOST_BLEU = 0.1
MOST_PROCESSES = 8  # of torch; each wants a batch of its own


def choose_engine(
    translator: TranslatorParts,
    *,
    folder: Path | None = None,
    engine: EngineName = "auto",
    threads: int | None = None,
    quantization: Quantization | None = None,
    report: Report | None = None,
) -> Engine:
    """Return the fastest engine for this model here; the output does not depend on the choice.

    `folder` is the run's, where conversions and measurements are kept; `threads` is the most that
    may be used; `report` is called with sentences about what was chosen and why. A quantised model
    is used on request, or where its export recorded that it loses at most 0.1 BLEU.
    """
    say = report or _say_nothing
    cores = threads or available_cores()
    if threads is not None:
        torch.set_num_threads(threads)
    problem = problem_with_ctranslate2(translator)
    wanted = engine == "ctranslate2" or quantization is not None
    if wanted and engine == "torch":
        raise SettingsError("quantization belongs to the engine ctranslate2, not to torch.")
    if wanted and problem is not None:
        raise SettingsError(f"The engine ctranslate2 cannot be used: {problem}")
    if engine == "torch" or problem is not None:
        say("Engine: torch" + (f" ({problem})" if problem else "."))
        return _torch(translator, cores)
    if quantization is None and engine == "auto":
        quantization = _harmless_quantization(translator, folder)
    with converted(translator, run=folder, quantization=quantization) as place:
        return _fastest(
            translator,
            place,
            run=folder,
            cores=cores,
            quantization=quantization,
            with_torch=engine == "auto" and quantization is None,
            say=say,
        )


def _torch(translator: TranslatorParts, cores: int) -> Engine:
    """Return the engine that has everything, with a process a core where that can be."""
    engine = TorchEngine(translator.model)
    processes = min(cores, MOST_PROCESSES) if CAN_FORK else 1
    return TorchProcesses(engine, processes=processes) if processes > 1 else engine


def layouts(cores: int) -> list[Threads]:
    """Return the ways to share out the cores that are worth a try."""
    each = [number for number in (1, 2, 4, cores) if number <= cores]
    return list(dict.fromkeys(Threads(cores // number, number) for number in each))


def problem_with_ctranslate2(translator: TranslatorParts) -> str | None:
    """Return why CTranslate2 cannot serve this model, if so."""
    try:
        version("ctranslate2")
        require_exportable(translator.recipe.model)
    except PackageNotFoundError:
        return "it is not installed (pip install ctranslate2)."
    except SettingsError as error:
        return str(error)
    return None


def _harmless_quantization(translator: TranslatorParts, run: Path | None) -> Quantization | None:
    """Return int8 if its export to the run's folder has shown that it costs next to nothing."""
    if run is None:
        return None
    record = read_export_record(engine_folder(run, "int8"))
    change = record.get("bleu_change")
    measured = isinstance(change, int | float) and change >= -LOST_BLEU
    return "int8" if measured and record.get("fingerprint") == fingerprint(translator) else None


def _fastest(
    translator: TranslatorParts,
    place: Path,
    *,
    run: Path | None,
    cores: int,
    quantization: Quantization | None,
    with_torch: bool,
    say: Report,
) -> Engine:
    """Return the engine that was fastest before, or measure all and remember."""
    reference = TorchEngine(translator.model)

    def fast(threads: Threads) -> CTranslate2Engine:
        return CTranslate2Engine(
            place,
            reference=reference,
            source_tokenizer=translator.source_tokenizer,
            target_tokenizer=translator.target_tokenizer,
            threads=threads,
            compute_type="float32" if quantization is None else "default",
        )

    beam = translator.recipe.decoding.beam
    parts = ["torch " + version("torch")] if with_torch else []
    parts += [f"cores {cores}", f"beam {beam}", quantization or "float32"]
    record = read_export_record(place)
    key = ", ".join([record["fingerprint"], "ctranslate2 " + record["ctranslate2"], *parts])
    known = [*map(str, layouts(cores)), *(["torch"] if with_torch else [])]
    speeds = remembered(run, CHOICES).get(key)
    if not isinstance(speeds, dict) or list(speeds) != known:
        sources = _sample(translator.source_tokenizer.size)
        engines = {str(threads): fast(threads) for threads in layouts(cores)}
        tried = [
            {name: _speed(engine, sources, beam) for name, engine in engines.items()}
            for _ in range(ROUNDS)
        ]
        speeds = {name: max(one[name] for one in tried) for name in engines}
        if with_torch:
            speeds["torch"] = _torch_speed(reference, sources[:TORCH_SENTENCES], beam)
        remember(run, CHOICES, key, speeds)
    best = max(speeds, key=lambda name: speeds[name])
    found: Engine = reference
    if best != "torch":
        found = fast(next(threads for threads in layouts(cores) if str(threads) == best))
    listed = ", ".join(f"{name}: {speed:.0f}" for name, speed in speeds.items())
    say(f"Engine: {found.name} (sentences a second, workers x threads: {listed}).")
    wait = known_patience(run, record["fingerprint"], translator.recipe.decoding)
    if isinstance(found, CTranslate2Engine) and quantization is None and wait is not None:
        found.waits[wait_key(translator.recipe.decoding)] = wait.more
        say(
            f"A search waits for {wait.more} outputs more than its beam is wide: so "
            f"{wait.same:.1%} of {wait.sentences} sentences were as torch has them."
        )
    return found


def _sample(vocab: int) -> list[list[int]]:
    """Return sentences of random symbols, always the same; the speed does not ask what they say."""
    random = torch.Generator().manual_seed(1)
    return torch.randint(4, vocab, (SENTENCES, SOURCE), generator=random).tolist()


def _speed(engine: CTranslate2Engine, sources: list[list[int]], beam: int) -> float:
    """Return sentences a second, after a first search that warms up."""
    engine.translate_to_length(sources[:4], beam=beam, length=2)
    return _timed(
        lambda: engine.translate_to_length(sources, beam=beam, length=TARGET), len(sources)
    )


def _torch_speed(engine: TorchEngine, sources: list[list[int]], beam: int) -> float:
    settings = DecodingSettings(beam=beam, min_length=TARGET, max_length=TARGET)  # type: ignore[call-arg]
    engine.search(sources[:2], DecodingSettings(beam=beam, max_length=2))  # type: ignore[call-arg]
    return _timed(lambda: engine.search(sources, settings), len(sources))


def _timed(work: Callable[[], Any], sentences: int) -> float:
    start = time.perf_counter()
    work()
    return sentences / (time.perf_counter() - start)


def _say_nothing(sentence: str) -> None:
    return
