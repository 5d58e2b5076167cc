"""Export of a run for other programs, and the shortlist that is learned for CTranslate2."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError, RunError, SettingsError
from regard.base.files import require_free
from regard.base.special_tokens import SPECIALS
from regard.batching.batch import encode_pairs
from regard.compute.device import available_cores
from regard.corpora.parallel import SentencePair
from regard.engines.choice import PlannedSearch
from regard.engines.ctranslate2_engine import Threads
from regard.engines.preparation import converted, converted_engine, engine_folder, fingerprint
from regard.engines.torch_engine import TorchEngine
from regard.exchange import ctranslate2
from regard.exchange.argos import require_packable, write_argos
from regard.exchange.formats import ModelParts
from regard.exchange.hugging_face import bart, marian, t5, trained
from regard.exchange.onnx.files import require_onnx, write_onnx
from regard.scoring.bootstrap import BleuChange, bleu_change
from regard.settings.models import TransformerSettings
from regard.tasks.translation.data import read_splits, read_valid
from regard.tasks.translation.model import LoadedTranslator, load
from regard.text.imported import ImportedTokenizer
from regard.text.lexical_table import learn_lexical_table
from regard.text.sentencepiece import SentencePieceTokenizer

MOST_PAIRS = 50_000  # more would improve little and cost memory
LIKELY, FREQUENT = 40, 100


def learn_shortlist(
    translator: LoadedTranslator,
    *,
    likely: int = LIKELY,
    frequent: int = FREQUENT,
    report: Callable[[str], None] | None = None,
) -> list[str]:
    """Return the lines of CTranslate2's vocabulary map, learned from the run's training pairs.

    A line is a source token, a tab and its `likely` target tokens. The first has no source
    token: the `frequent` target tokens are always considered.
    """
    if not isinstance(translator.source_tokenizer, SentencePieceTokenizer):
        raise SettingsError(
            "A shortlist needs subwords (tokenizer.kind=sentencepiece): the names of other tokens "
            "may hold spaces, which separate the entries of CTranslate2's table."
        )
    pairs = read_splits(translator.recipe.data).train
    if not pairs:
        raise RegardError("There are no training pairs to learn a shortlist from.")
    pairs = pairs[:: 1 + (len(pairs) - 1) // MOST_PAIRS]
    if report is not None:
        report(f"Learning a shortlist from {len(pairs)} pairs.")
    examples = encode_pairs(
        pairs,
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
    )
    sources, targets = translator.source_tokenizer, translator.target_tokenizer
    table = learn_lexical_table(
        [(example.source, example.target) for example in examples],
        source_size=sources.size,
        target_size=targets.size,
    )
    counts = Counter(token for example in examples for token in example.target)
    names = ctranslate2.token_names(targets)

    def line(name: str, tokens: list[int]) -> str:
        return f"{name}\t{' '.join(names[token] for token in tokens)}"

    always = [token for token, _ in counts.most_common(frequent)]
    rows = (
        (name, table.best(token, likely))
        for token, name in enumerate(ctranslate2.token_names(sources))
    )
    known = [line(name, best) for name, best in list(rows)[len(SPECIALS) :] if best]
    return [line("", always), *known]


# Enough for a tenth of a BLEU point to mean something, and a matter of seconds.
VALIDATION_SENTENCES = 500
PACKAGE = "translate-{source}_{target}.argosmodel"
Report = Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """What was written, and the change in BLEU by quantisation; None if it was not measured."""

    path: Path
    change: BleuChange | None = None

    @property
    def bleu_change(self) -> float | None:
        """The change in BLEU."""
        return None if self.change is None else round(self.change.difference, 3)


def export_ctranslate2(
    run: Path,
    *,
    output: Path | None = None,
    quantization: ctranslate2.Quantization | None = None,
    shortlist: bool = False,
    report: Report | None = None,
    force: bool = False,
) -> Exported:
    """Write a run for plain CTranslate2, by default into the folder of the run's engines.

    An `output` that exists is replaced only with `force`, and only if it is an earlier export.
    A quantised model is compared with the float32 one on validation sentences, if they can be
    read, and the change in BLEU is recorded in `export.json`. `shortlist` adds a table of the
    likely target tokens of each source token, learned from the training pairs.
    """
    translator = load(run)
    settings = ctranslate2.require_exportable(translator.recipe.model)
    folder = output or engine_folder(run, quantization)
    if output is not None:
        require_free(output, force=force)
    ctranslate2.require_replaceable(folder)
    lines = learn_shortlist(translator, report=report) if shortlist else None
    record: dict[str, Any] = {"fingerprint": fingerprint(translator)}
    try:
        ctranslate2.write_ctranslate2(
            folder,
            model=translator.model,
            settings=settings,
            source_tokenizer=translator.source_tokenizer,
            target_tokenizer=translator.target_tokenizer,
            quantization=quantization,
            shortlist=lines,
            record=record,
        )
    except OSError as error:
        raise SettingsError(f"Cannot write {folder}: {error.strerror}.") from error
    if quantization is None and not shortlist:
        return Exported(folder)
    return _measured(translator, folder, shortlist=shortlist, report=report)


def export_argos(
    run: Path,
    *,
    source: str,
    target: str,
    output: Path | None = None,
    quantization: ctranslate2.Quantization | None = None,
    force: bool = False,
) -> Exported:
    """Write a run as a package that Argos Translate installs; the languages are codes as "en".

    An `output` that exists is replaced only with `force`.
    """
    if output is not None:
        require_free(output, force=force)
    translator = load(run)
    settings = ctranslate2.require_exportable(translator.recipe.model)
    require_packable(translator.source_tokenizer, translator.target_tokenizer)
    path = output or run / PACKAGE.format(source=source, target=target)
    write_argos(
        path,
        model=translator.model,
        settings=settings,
        source_tokenizer=translator.source_tokenizer,
        target_tokenizer=translator.target_tokenizer,
        source=source,
        target=target,
        quantization=quantization,
    )
    return Exported(path)


def export_onnx(
    run: Path,
    *,
    output: Path | None = None,
    int8: bool = False,
    weights: bool = False,
    report: Report | None = None,
    force: bool = False,
) -> Exported:
    """Write a run for onnxruntime; by default into the folder `onnx` of the run.

    An `output` that exists is replaced only with `force`, and only if it is an earlier export.
    `weights` adds the attention weights of every head to the outputs. What 8 bits cost is measured
    on validation sentences, as far as they can be read.
    """
    translator = load(run)
    settings = require_onnx(translator.recipe.model)
    folder = output or run / ("onnx-int8" if int8 else "onnx")
    if output is not None:
        require_free(output, force=force)
    ctranslate2.require_replaceable(folder)
    try:
        write_onnx(
            folder,
            model=translator.model,
            settings=settings,
            source_tokenizer=translator.source_tokenizer,
            target_tokenizer=translator.target_tokenizer,
            int8=int8,
            weights=weights,
            record={"fingerprint": fingerprint(translator)},
        )
    except OSError as error:
        raise SettingsError(f"Cannot write {folder}: {error.strerror}.") from error
    pairs = _validation(translator, report) if int8 else []
    if not pairs:
        return Exported(folder)
    sources = [pair.source for pair in pairs]
    exact = [one.text for one in translator.translate(sources, attention=False)]
    translator.engine = onnx_engine(folder)
    found = [one.text for one in translator.translate(sources, attention=False)]
    return _recorded(folder, bleu_change(found, exact, [pair.target for pair in pairs]), pairs)


def export_hugging_face(run: Path, output: Path | None = None, *, force: bool = False) -> Path:
    """Write a translator for `transformers`; by default into the folder `hugging-face` of the run.

    An imported model goes back to its own architecture; one that was trained here becomes a
    MarianMT (post-norm) or a Pegasus (pre-norm).
    """
    translator = load(run)
    parts = ModelParts(
        model=translator.model,
        settings=translator.recipe.model,
        tokenizers={
            "source": translator.source_tokenizer,
            "target": translator.target_tokenizer,
        },
    )
    folder = output or run / "hugging-face"
    if output is not None:
        require_free(output, force=force)
        if force and output.exists() and not (output / "config.json").is_file():
            raise RunError(f"{output} holds no earlier export; choose another with --output.")
    writer_of(parts)(parts, folder)
    return folder


def writer_of(parts: ModelParts) -> Callable[[ModelParts, Path], None]:
    """Return what writes a translator: the architecture that it was imported from, or ours."""
    settings = parts.settings
    if not isinstance(parts.tokenizers["target"], ImportedTokenizer):
        return trained.write_trained
    if isinstance(settings, TransformerSettings) and bart.kind_of(settings) is not None:
        return bart.write
    return t5.write if t5.fits(settings) else marian.write


def onnx_engine(folder: Path) -> TorchEngine:
    """Return an engine whose searches are ours and whose steps onnxruntime computes."""
    from regard.exchange.onnx.session import OnnxTranslator

    model: Any = OnnxTranslator(folder)
    return TorchEngine(model)


def _measured(
    translator: LoadedTranslator, folder: Path, *, shortlist: bool, report: Report | None
) -> Exported:
    """Compare the export with the float32 model on validation sentences, and record it."""
    pairs = _validation(translator, report)
    if not pairs:
        return Exported(folder)
    found = _outputs(translator, folder, pairs, compute_type="default", shortlist=shortlist)
    with converted(translator, run=None) as plain:
        exact = _outputs(translator, plain, pairs, compute_type="float32", shortlist=False)
    return _recorded(folder, bleu_change(found, exact, [pair.target for pair in pairs]), pairs)


def _recorded(folder: Path, change: BleuChange, pairs: list[SentencePair]) -> Exported:
    """Add what the export costs to its record."""
    figures = {
        "bleu_change": round(change.difference, 3),
        "bleu_change_low": round(change.interval.low, 3),
        "bleu_change_high": round(change.interval.high, 3),
        "bleu": round(change.bleu, 3),
        "bleu_float32": round(change.baseline, 3),
        "sentences": len(pairs),
    }
    ctranslate2.write_export_record(folder, {**ctranslate2.read_export_record(folder), **figures})
    return Exported(folder, change)


def _validation(translator: LoadedTranslator, report: Report | None) -> list[SentencePair]:
    """Return validation pairs; none if they cannot be read, or CTranslate2 lacks the search."""
    lacking = PlannedSearch(translator.recipe.decoding).lacking()
    try:
        if lacking is not None:
            raise SettingsError(f"CTranslate2 lacks this run's decoding.{lacking}.")
        return read_valid(translator.recipe.data)[:VALIDATION_SENTENCES]
    except RegardError as error:
        if report is not None:
            report(f"The change in BLEU was not measured: {error}")
        return []


def _outputs(
    translator: LoadedTranslator,
    folder: Path,
    pairs: list[SentencePair],
    *,
    compute_type: str,
    shortlist: bool,
) -> list[str]:
    """Return what an export writes."""
    translator.engine = converted_engine(
        translator,
        folder,
        threads=Threads(available_cores(), 1),
        compute_type=compute_type,
        shortlist=shortlist,
    )
    found = translator.translate([pair.source for pair in pairs], attention=False)
    return [one.text for one in found]
