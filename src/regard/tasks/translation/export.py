"""Export of a run to CTranslate2 or Argos Translate, and the shortlist that is learned for it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError, SettingsError
from regard.base.special_tokens import SPECIALS
from regard.batching.batch import encode_pairs
from regard.compute.processes import available_cores
from regard.corpora.parallel import SentencePair
from regard.engines.choice import PlannedSearch
from regard.engines.ctranslate2_engine import Threads
from regard.engines.preparation import converted, converted_engine, engine_folder, fingerprint
from regard.exchange import ctranslate2
from regard.exchange.argos import require_packable, write_argos
from regard.scoring.bleu import corpus_bleu
from regard.tasks.translation.data import read_splits, read_valid
from regard.tasks.translation.model import LoadedTranslator, load
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
    bleu: float | None = None
    bleu_change: float | None = None


def export_ctranslate2(
    run: Path,
    *,
    output: Path | None = None,
    quantization: ctranslate2.Quantization | None = None,
    shortlist: bool = False,
    report: Report | None = None,
) -> Exported:
    """Write a run for plain CTranslate2, by default into the folder of the run's engines.

    A quantised model is compared with the float32 one on validation sentences, if they can be
    read, and the change in BLEU is recorded in `export.json`. `shortlist` adds a table of the
    likely target tokens of each source token, learned from the training pairs.
    """
    translator = load(run)
    settings = ctranslate2.require_exportable(translator.recipe.model)
    folder = output or engine_folder(run, quantization)
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
) -> Exported:
    """Write a run as a package that Argos Translate installs; the languages are codes as "en"."""
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


def _measured(
    translator: LoadedTranslator, folder: Path, *, shortlist: bool, report: Report | None
) -> Exported:
    """Compare the export with the float32 model on validation sentences, and record it."""
    pairs = _validation(translator, report)
    if not pairs:
        return Exported(folder)
    found = _bleu(translator, folder, pairs, compute_type="default", shortlist=shortlist)
    with converted(translator, run=None) as plain:
        exact = _bleu(translator, plain, pairs, compute_type="float32", shortlist=False)
    figures = {
        "bleu_change": round(found - exact, 3),
        "bleu": round(found, 3),
        "bleu_float32": round(exact, 3),
        "sentences": len(pairs),
    }
    ctranslate2.write_export_record(folder, {**ctranslate2.read_export_record(folder), **figures})
    return Exported(folder, bleu=figures["bleu"], bleu_change=figures["bleu_change"])


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


def _bleu(
    translator: LoadedTranslator,
    folder: Path,
    pairs: list[SentencePair],
    *,
    compute_type: str,
    shortlist: bool,
) -> float:
    """Return the BLEU of an export."""
    translator.engine = converted_engine(
        translator,
        folder,
        threads=Threads(available_cores(), 1),
        compute_type=compute_type,
        shortlist=shortlist,
    )
    found = translator.translate([pair.source for pair in pairs], attention=False)
    return corpus_bleu([one.text for one in found], [pair.target for pair in pairs]).value
