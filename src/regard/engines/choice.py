"""The choice of an engine: what can do the planned search, and of that the fastest here."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch

from regard.base.errors import SettingsError
from regard.compute.device import HOST, available_cores, can_fork, device_of
from regard.engines import preparation
from regard.engines.ctranslate2_engine import (
    CTranslate2Engine,
    Threads,
    computes_on,
    lacking,
    patience_key,
)
from regard.engines.preparation import Patience, TranslatorParts
from regard.engines.torch_engine import MIN_SENTENCES, Engine, TorchEngine, TorchProcesses
from regard.exchange.ctranslate2 import Quantization, read_export_record
from regard.settings.decoding import DecodingSettings

EngineName = Literal["auto", "torch", "ctranslate2"]
Report = Callable[[str], None]
Speeds = dict[str, float]
CHOICES = "choice.json"
# The sample: large enough to compare speeds, and done in a second or two.
SENTENCES, TORCH_SENTENCES, SOURCE, TARGET = 32, 8, 15, 15
ROUNDS = 2  # alternating; the better one counts, since another process may disturb one
MAX_BLEU_LOSS = 0.1  # of a quantised model that is chosen without a request
MAX_PROCESSES = 8  # of torch; each needs a batch of its own


@dataclass(frozen=True)
class PlannedSearch:
    """The search that an engine is chosen for."""

    settings: DecodingSettings
    constrained: bool = False
    """Whether outputs have prefixes, required or forbidden words."""
    short: bool = False
    """Whether the text is too short for measuring engines to pay off."""

    def lacking(self) -> str | None:
        """Return the name of what CTranslate2 lacks for this search; None if it has all."""
        if self.settings.copy_verbatim:  # these words become constraints
            return "copy_verbatim"
        return lacking(self.settings, constrained=self.constrained)


def choose_engine(
    translator: TranslatorParts,
    search: PlannedSearch | None = None,
    *,
    folder: Path | None = None,
    engine: EngineName = "auto",
    threads: int | None = None,
    quantization: Quantization | None = None,
    processes: bool = True,
    report: Report | None = None,
) -> Engine:
    """Return the fastest engine here for this model and search; the output is the same with all.

    Without `search`, the engine is chosen for the decoding settings of the recipe. If CTranslate2
    cannot do the search, nothing is converted or measured, and torch searches on all cores.

    `folder` is the run's, where conversions and measurements are kept; `threads` is the most that
    may be used; without `processes`, torch shares a search among threads alone. `report` is called
    with sentences about what was chosen and why. A quantised model is used on request, or if its
    export recorded a loss of at most 0.1 BLEU.
    """
    search = search or PlannedSearch(translator.recipe.decoding)
    report = report or _ignore
    if engine == "torch" and quantization is not None:
        raise SettingsError("quantization belongs to the engine ctranslate2, not to torch.")
    wanted = engine == "ctranslate2" or quantization is not None
    if search.short and engine == "auto" and not wanted and threads is None:
        report("Engine: torch (a short text is not worth a measurement).")
        return TorchEngine(translator.model)
    cores = threads or available_cores()
    forks = _processes(translator, cores) if processes else 1
    if threads is not None:
        torch.set_num_threads(threads)
    problem = None if engine == "torch" else _problem(translator, search)
    if wanted and problem is not None:
        hint = " Use the engine torch." if search.lacking() else ""
        raise SettingsError(f"The engine ctranslate2 cannot be used: {problem}{hint}")
    if engine == "torch" or problem is not None:
        reason = f" (ctranslate2 cannot be used: {problem.rstrip('.')})" if problem else ""
        report(f"Engine: torch{reason}.")
        return _torch_engine(translator, forks)
    if quantization is None and engine == "auto":
        quantization = _harmless_quantization(translator, folder)
    with preparation.converted(translator, run=folder, quantization=quantization) as model:
        candidates = _Candidates(
            translator,
            model,
            cores=cores,
            processes=forks,
            quantization=quantization,
            with_torch=engine == "auto" and quantization is None,
        )
        found = candidates.fastest(folder, report)
    if isinstance(found, CTranslate2Engine) and quantization is None:
        measured = preparation.measured_of(candidates.record["fingerprint"], candidates.device)
        planned = {patience_key(s): s for s in (translator.recipe.decoding, search.settings)}
        for settings in planned.values():
            known = preparation.known_patience(folder, measured, settings)
            _set_patience(found, settings, known, report)
    return found


def layouts(cores: int) -> list[Threads]:
    """Return the ways to divide the cores that are worth trying."""
    each = [number for number in (1, 2, 4, cores) if number <= cores]
    return list(dict.fromkeys(Threads(cores // number, number) for number in each))


def _problem(translator: TranslatorParts, search: PlannedSearch) -> str | None:
    """Return why CTranslate2 cannot do the search; None if it can."""
    missing = search.lacking()
    if missing is not None:
        return f"it lacks {missing}."
    return preparation.problem_with_ctranslate2(translator)


def _processes(translator: TranslatorParts, cores: int) -> int:
    return min(cores, MAX_PROCESSES) if can_fork(device_of(translator.model)) else 1


def _torch_engine(translator: TranslatorParts, processes: int) -> TorchEngine | TorchProcesses:
    """Return the engine that can do every search, in so many processes."""
    engine = TorchEngine(translator.model)
    return TorchProcesses(engine, processes=processes) if processes > 1 else engine


def _harmless_quantization(translator: TranslatorParts, run: Path | None) -> Quantization | None:
    """Return int8 if its export to the run's folder recorded that it costs next to nothing."""
    if run is None:
        return None
    record = read_export_record(preparation.engine_folder(run, "int8"))
    change = record.get("bleu_change")
    measured = isinstance(change, int | float) and change >= -MAX_BLEU_LOSS
    same = measured and record.get("fingerprint") == preparation.fingerprint(translator)
    return "int8" if same else None


def _are_speeds(found: Any, names: list[str]) -> bool:
    """Return whether a file of the run holds the speeds of these engines."""
    return (
        isinstance(found, dict)
        and list(found) == names
        and all(isinstance(speed, int | float) and speed > 0 for speed in found.values())
    )


class _Candidates:
    """The engines that can do the search: CTranslate2 in several thread layouts, and torch."""

    def __init__(
        self,
        translator: TranslatorParts,
        model: Path,
        *,
        cores: int,
        processes: int,
        quantization: Quantization | None,
        with_torch: bool,
    ):
        self.translator = translator
        self.cores = cores
        self.processes = processes
        self.device = device_of(translator.model)
        alone = self.device == HOST or not computes_on(self.device)
        self.layouts = {str(threads): threads for threads in layouts(cores if alone else 2)}
        self.with_torch = with_torch
        self.beam: int = translator.recipe.decoding.beam
        self.record = read_export_record(model)
        self.arithmetic = quantization or "float32"
        self._fast = partial(
            preparation.converted_engine,
            translator,
            model,
            compute_type="float32" if quantization is None else "default",
        )

    def fastest(self, run: Path | None, report: Report) -> Engine:
        """Return the engine that was the fastest before, or measure all and remember."""
        key, names = self._key(), [*self.layouts, *(["torch"] if self.with_torch else [])]
        speeds: Any = preparation.remembered(run, CHOICES).get(key)
        if not _are_speeds(speeds, names):
            speeds = self._measure()
            preparation.remember(run, CHOICES, key, speeds)
        best = max(speeds, key=lambda name: speeds[name])
        found: Engine
        if best == "torch":
            found = _torch_engine(self.translator, self.processes)
        else:
            found = self._fast(threads=self.layouts[best])
        listed = ", ".join(f"{name}: {speed:.0f}" for name, speed in speeds.items())
        report(f"Engine: {found.name} (sentences per second, workers x threads: {listed}).")
        return found

    def _key(self) -> str:
        """Return what the speeds depend on."""
        model = preparation.measured_of(self.record["fingerprint"], self.device)
        parts = [model, "ctranslate2 " + self.record["ctranslate2"]]
        if self.with_torch:
            parts.append(f"torch {version('torch')} in {self.processes} processes")
        return ", ".join([*parts, f"cores {self.cores}", f"beam {self.beam}", self.arithmetic])

    def _measure(self) -> Speeds:
        """Return the sentences per second of each engine."""
        sources = _sample(self.translator.source_tokenizer.size)
        torch_speed = self._measure_torch(sources) if self.with_torch else None
        engines = {name: self._fast(threads=threads) for name, threads in self.layouts.items()}
        rounds = [
            {name: _speed(engine, sources, self.beam) for name, engine in engines.items()}
            for _ in range(ROUNDS)
        ]
        speeds = {name: max(one[name] for one in rounds) for name in engines}
        return speeds if torch_speed is None else {**speeds, "torch": torch_speed}

    def _measure_torch(self, sources: list[list[int]]) -> float:
        """Return the speed of the engine that would be used; its processes end afterwards."""
        engine = _torch_engine(self.translator, self.processes)
        count = max(TORCH_SENTENCES, MIN_SENTENCES * self.processes)
        try:
            return _torch_speed(engine, sources[:count], self.beam)
        finally:
            if isinstance(engine, TorchProcesses):
                engine.close()


def _set_patience(
    engine: CTranslate2Engine, settings: DecodingSettings, known: Patience | None, report: Report
) -> None:
    """Give the engine the patience that was measured for such a search, if any."""
    if known is not None:
        engine.patience[patience_key(settings)] = known.extra
        report(
            f"Patience with a beam of {settings.beam}: a search ends with {known.extra} finished "
            f"hypotheses more than that; {known.agreement:.1%} of {known.sentences} outputs were "
            "equal to torch's."
        )


def _sample(vocab: int) -> list[list[int]]:
    """Return sentences of random tokens, always the same; their meaning does not affect speed."""
    random = torch.Generator().manual_seed(1)
    return torch.randint(4, vocab, (SENTENCES, SOURCE), generator=random).tolist()


def _speed(engine: CTranslate2Engine, sources: list[list[int]], beam: int) -> float:
    """Return sentences per second, after a first search as a warm-up."""
    engine.translate_to_length(sources[:4], beam=beam, length=2)
    return _timed(
        lambda: engine.translate_to_length(sources, beam=beam, length=TARGET), len(sources)
    )


def _torch_speed(engine: Engine, sources: list[list[int]], beam: int) -> float:
    settings = DecodingSettings(beam=beam, min_length=TARGET, max_length=TARGET)  # type: ignore[call-arg]
    engine.search(sources, DecodingSettings(beam=beam, max_length=2))  # type: ignore[call-arg]
    return _timed(lambda: engine.search(sources, settings), len(sources))


def _timed(work: Callable[[], Any], sentences: int) -> float:
    start = time.perf_counter()
    work()
    return sentences / (time.perf_counter() - start)


def _ignore(sentence: str) -> None:
    return
