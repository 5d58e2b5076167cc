"""`regard translate`: text, files or standard input through a trained model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder

if TYPE_CHECKING:
    from regard.tasks.translation.constraints import TranslationConstraints

FILES, SEARCH, WORDS, SAMPLING, LENGTH, ENGINE = (
    "Files",
    "Search",
    "Words",
    "Sampling",
    "Length and repetition",
    "Engine",
)


class SplitChoice(StrEnum):
    """When a text is split into sentences."""

    never = "never"
    long = "long"
    always = "always"


class EngineChoice(StrEnum):
    """What computes the translations."""

    auto = "auto"
    torch = "torch"
    ctranslate2 = "ctranslate2"


class QuantizationChoice(StrEnum):
    """How coarsely weights are stored."""

    int8 = "int8"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"


Input = Annotated[
    Path | None,
    typer.Option(
        "--input",
        rich_help_panel=FILES,
        help="File to translate: one sentence a line, or a document by its ending "
        "(.tsv .jsonl .tmx .po .xlf .srt .html .md .rst .docx .odt .epub).",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        rich_help_panel=FILES,
        help="File for the translations; stopped in the middle, the same command goes on.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        rich_help_panel=FILES,
        help="lines, text (paragraphs), tsv, jsonl, tmx, po, xliff, srt, html, markdown, rst, "
        "docx, odt or epub.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="NAME|NUMBER",
        rich_help_panel=FILES,
        help="Column of a TSV file, by its number from 1 or its name in the first line.",
    ),
]
FieldName = Annotated[
    str | None,
    typer.Option(
        "--field", metavar="NAME", rich_help_panel=FILES, help="Field of JSON lines, as text or a.b"
    ),
]
Splitting = Annotated[
    SplitChoice | None,
    typer.Option(
        "--split",
        rich_help_panel=FILES,
        help="Split into sentences: always (documents), only long lines (line files), never.",
    ),
]
SourceLanguage = Annotated[
    str,
    typer.Option(
        "--source-language", metavar="CODE", rich_help_panel=FILES, help="As en; for splitting."
    ),
]
TargetLanguage = Annotated[
    str,
    typer.Option(
        "--target-language", metavar="CODE", rich_help_panel=FILES, help="As de; for TMX, XLIFF."
    ),
]
Fuzzy = Annotated[
    bool,
    typer.Option(
        "--fuzzy/--no-fuzzy",
        rich_help_panel=FILES,
        help="Mark new translations of a PO file for a person to check.",
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window", min=1, rich_help_panel=FILES, help="Lines that are sorted and saved together."
    ),
]
Align = Annotated[
    Path | None,
    typer.Option("--align", rich_help_panel=FILES, help="File for word alignments, as 0-0 1-2."),
]
Beam = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=SEARCH, help="Width of the search; 1 = greedy."),
]
NBest = Annotated[
    int, typer.Option(min=1, rich_help_panel=SEARCH, help="Translations of each sentence.")
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(min=0, rich_help_panel=SEARCH, help="Higher prefers longer translations."),
]
ReplaceUnknown = Annotated[
    bool,
    typer.Option(
        "--replace-unknown", rich_help_panel=WORDS, help="Copy source words for unknown ones."
    ),
]
CopyVerbatim = Annotated[
    bool,
    typer.Option(
        "--copy-verbatim",
        rich_help_panel=WORDS,
        help="Placeholders, URLs and numbers must stand in the translation.",
    ),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        rich_help_panel=SEARCH,
        help="Change any setting of the search, as decoding.coverage_penalty=0.2.",
    ),
]
Prefix = Annotated[
    str,
    typer.Option(rich_help_panel=WORDS, help="What the translation begins with."),
]
Must = Annotated[
    list[str] | None,
    typer.Option("--must", rich_help_panel=WORDS, help="Word or phrase that must appear."),
]
MustNot = Annotated[
    list[str] | None,
    typer.Option("--must-not", rich_help_panel=WORDS, help="Word or phrase that must not appear."),
]
Terminology = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=WORDS,
        help="File of terms, source and target separated by a tab, to be used where they occur.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option("--sample", rich_help_panel=SAMPLING, help="Draw translations at random."),
]
Temperature = Annotated[
    float | None,
    typer.Option(rich_help_panel=SAMPLING, help="Below 1 more cautious, above 1 more daring."),
]
TopK = Annotated[
    int | None, typer.Option(min=1, rich_help_panel=SAMPLING, help="Only the K best tokens.")
]
TopP = Annotated[
    float | None,
    typer.Option(rich_help_panel=SAMPLING, help="Only the best tokens, up to this probability."),
]
Seed = Annotated[int | None, typer.Option(rich_help_panel=SAMPLING, help="Seed of the drawing.")]
NoRepeat = Annotated[
    int | None,
    typer.Option(
        "--no-repeat-ngram",
        min=0,
        rich_help_panel=LENGTH,
        help="N-grams of this size occur at most once.",
    ),
]
MinLength = Annotated[
    int | None, typer.Option(min=0, rich_help_panel=LENGTH, help="Fewest tokens.")
]
MaxLength = Annotated[int | None, typer.Option(min=1, rich_help_panel=LENGTH, help="Most tokens.")]
EngineOption = Annotated[
    EngineChoice,
    typer.Option("--engine", rich_help_panel=ENGINE, help="What computes the translations."),
]
Quantization = Annotated[
    QuantizationChoice | None,
    typer.Option(rich_help_panel=ENGINE, help="Coarser weights: faster, a little worse."),
]
Threads = Annotated[
    int | None, typer.Option(min=1, rich_help_panel=ENGINE, help="Most threads to use.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", rich_help_panel=ENGINE, help="Say what was chosen and why.")
]


def search_changes(overrides: Sequence[str], *, sample: bool, **flags: Any) -> dict[str, Any]:
    """Return the settings of decoding that the flags and `--set decoding.key=value` change."""
    from regard.settings.recipe import parse_value

    # Zero is a value: only what was not given is left out.
    changes = {
        name: value for name, value in flags.items() if value is not None and value is not False
    }
    if sample:
        changes["method"] = "sample"
    for override in overrides:
        key, equals, value = override.partition("=")
        room, _, name = key.strip().partition(".")
        if not equals or room != "decoding" or not name:
            raise SettingsError(
                f"--set {override!r}: only settings of the search can be changed here, as "
                "decoding.beam=8."
            )
        changes[name] = parse_value(value.strip())
    return changes


def translate(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="Text to translate; standard input if left out.")
    ] = None,
    source: Input = None,
    output: Output = None,
    format_name: Format = None,
    column: Column = None,
    field: FieldName = None,
    split: Splitting = None,
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    fuzzy: Fuzzy = True,
    window: Window = None,
    align: Align = None,
    json: AsJson = False,
    beam: Beam = None,
    n_best: NBest = 1,
    length_penalty: LengthPenalty = None,
    replace_unknown: ReplaceUnknown = False,
    copy_verbatim: CopyVerbatim = False,
    overrides: SearchSettings = None,
    prefix: Prefix = "",
    must: Must = None,
    must_not: MustNot = None,
    terminology: Terminology = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    no_repeat_ngram: NoRepeat = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    engine: EngineOption = EngineChoice.auto,
    quantization: Quantization = None,
    threads: Threads = None,
    verbose: Verbose = False,
) -> None:
    """Translate with a trained run.

    Example: regard translate runs/demo/attention "cats do not like dogs"

    Example: regard translate runs/demo/attention --input big.txt --output out.txt
    """
    from regard.corpora.formats.document import Languages
    from regard.documents import translation
    from regard.runs.display import ConsoleDisplay

    if text is not None and source is not None:
        raise SettingsError("Give either TEXT or --input, not both.")
    files = translation.FileOptions(
        source=source,
        output=output,
        align=align,
        json=json,
        format_name=format_name,
        column=column,
        field=field,
        split=None if split is None else split.value,
        languages=Languages(source_language, target_language),
        window=window,
        fuzzy=fuzzy,
    )
    files.check()
    search = translation.SearchOptions(
        changes=search_changes(
            overrides or [],
            sample=sample,
            beam=beam,
            length_penalty=length_penalty,
            replace_unknown=replace_unknown,
            copy_verbatim=copy_verbatim,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            no_repeat_ngram=no_repeat_ngram,
            min_length=min_length,
            max_length=max_length,
        ),
        n_best=n_best,
        constraints=_constraints(prefix, must, must_not, terminology),
        engine=engine.value,
        quantization=None if quantization is None else quantization.value,
        threads=threads,
    )
    model = translation.prepare_translator(
        run, search, measure=text is None and not files.short, report=_say if verbose else None
    )
    if text is not None:
        translation.translate_text(model, text.splitlines() or [""], files, write=_print)
        if model.unknown.parts:
            _say(str(model.unknown))
    else:
        translation.translate_input(model, files, write=_print, display=ConsoleDisplay())


def _constraints(
    prefix: str, must: list[str] | None, must_not: list[str] | None, terminology: Path | None
) -> TranslationConstraints | None:
    """Return what is asked of all translations, if anything is."""
    if not (prefix or must or must_not or terminology):
        return None
    from regard.tasks.translation.constraints import TranslationConstraints, read_terms

    return TranslationConstraints(
        prefix=prefix,
        required=tuple(must or ()),
        forbidden=tuple(must_not or ()),
        terms=read_terms(terminology) if terminology else None,
    )


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _print(text: str) -> None:
    typer.echo(text, nl=False)
    sys.stdout.flush()
