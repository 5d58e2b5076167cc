"""`regard translate`: text, files or standard input through a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import RegardError, SettingsError
from regard.cli import translate_options as options
from regard.cli.options import AsJson, RunFolder


def translate(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="Text to translate; standard input if left out.")
    ] = None,
    source: options.Input = None,
    output: options.Output = None,
    format_name: options.Format = None,
    column: options.Column = None,
    field: options.FieldName = None,
    split: options.Splitting = None,
    source_language: options.SourceLanguage = "",
    target_language: options.TargetLanguage = "",
    window: options.Window = None,
    align: options.Align = None,
    json: AsJson = False,
    beam: options.Beam = None,
    n_best: options.NBest = 1,
    length_penalty: options.LengthPenalty = None,
    replace_unknown: options.ReplaceUnknown = False,
    copy_verbatim: options.CopyVerbatim = False,
    overrides: options.SearchSettings = None,
    prefix: options.Prefix = "",
    must: options.Must = None,
    must_not: options.MustNot = None,
    terminology: options.Terminology = None,
    sample: options.Sample = False,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    no_repeat_ngram: options.NoRepeat = None,
    min_length: options.MinLength = None,
    max_length: options.MaxLength = None,
    engine: options.EngineOption = options.EngineChoice.auto,
    quantization: options.Quantization = None,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
) -> None:
    """Translate with a trained run.

    Example: regard translate runs/demo/attention "cats do not like dogs"

    Example: regard translate runs/demo/attention --input big.txt --output out.txt
    """
    from regard.cli.translate_files import FileOptions, translate_input
    from regard.cli.translate_model import ready_model, translate_text
    from regard.corpora.formats.document import Languages
    from regard.tasks.translation.constraints import TranslationConstraints, read_terms

    if text is not None and source is not None:
        raise SettingsError("Give either TEXT or --input, not both.")
    for path in (output, align):
        _check_writable(path, source)
    changes = options.search_changes(
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
    )
    model = ready_model(
        run,
        changes,
        constraints=TranslationConstraints(
            prefix=prefix,
            required=tuple(must or ()),
            forbidden=tuple(must_not or ()),
            terms=read_terms(terminology) if terminology else None,
        ),
        n_best=n_best,
        engine=engine,
        quantization=quantization,
        threads=threads,
        verbose=verbose,
        measure=text is None,
    )
    if align is not None and not model.attends:
        raise RegardError(f"The model of {run} has no attention to align by.")
    if text is not None:
        translate_text(model, text.splitlines() or [""], output=output, align=align, json=json)
        return
    translate_input(
        model,
        FileOptions(
            source=source,
            output=output,
            align=align,
            json=json,
            format_name=format_name,
            column=column,
            field=field,
            split=split,
            languages=Languages(source_language, target_language),
            window=window,
        ),
    )


def _check_writable(path: Path | None, source: Path | None) -> None:
    if path is None:
        return
    if not path.parent.is_dir():
        raise SettingsError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise SettingsError(f"Cannot write {path}: it is a folder.")
    if source is not None and source.exists() and path.exists() and path.samefile(source):
        raise SettingsError(f"Cannot write {path}: it is the input. Choose another name.")
