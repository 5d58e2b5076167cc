"""Tokenizer files in the layout of Hugging Face: `tokenizer.json`, or those of older models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_file, write_json
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, PAD
from regard.exchange.formats import ForeignFiles
from regard.exchange.hugging_face.pieces import (
    SENTENCEPIECE,
    SETTINGS,
    SOURCE,
    TARGET,
    is_language,
    optional_config,
    pieces_of,
    write_pieces,
)
from regard.exchange.sources import Options
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.splitters import (
    LibrarySplitter,
    SentencePieceSplitter,
    Splitter,
    read_splitter,
)

LIBRARY = "tokenizer.json"
VOCABULARY, MERGES, WORD_PIECES = "vocab.json", "merges.txt", "vocab.txt"
UNKNOWN_NAMES = ("<unk>", "[UNK]")
# Ids of padding, end and what a decoder begins with, where a configuration does not say.
USUAL_IDS = {
    "bart": (1, 2, 2),
    "m2m_100": (1, 2, 2),
    "mbart": (1, 2, 2),
    "pegasus": (0, 1, 0),
    "t5": (0, 1, 0),
}


def splitter_of(files: ForeignFiles, options: Options, *, rows: int) -> Splitter:
    """Return what splits text as the model wants it; ids beyond the model's rows are refused."""
    found, path = _read_splitter(files.folder, str(options.get("model_type")))
    if found.size > rows:
        raise RunError(
            f"{path} has {found.size} entries, but the model has rows for {rows} only: the files "
            "belong to different models."
        )
    return found


def _read_splitter(folder: Path, model_type: str) -> tuple[Splitter, Path]:
    library, merges, words = (folder / name for name in (LIBRARY, MERGES, WORD_PIECES))
    if library.is_file():
        return read_splitter(LibrarySplitter, {LIBRARY: library}, origin=library), library
    if found := pieces_of(folder, model_type):
        return found
    if model_type == "bart" and merges.is_file():
        return _byte_pairs(folder), folder / VOCABULARY
    if model_type == "bert" and words.is_file():
        return _word_pieces(folder), words
    known = ", ".join((LIBRARY, *SENTENCEPIECE))
    raise RunError(f"{folder} has no tokenizer; one of {known} is needed.")


def _byte_pairs(folder: Path) -> LibrarySplitter:
    """Return BART's tokenizer of its two older files, GPT-2's with marks around a text."""
    plain = ByteBpeTokenizer.read_files(folder / VOCABULARY, folder / MERGES)
    marks = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    specials = [name for name in marks if name in plain.vocabulary]
    return LibrarySplitter(plain.description(specials=specials, around=("<s>", "</s>")).encode())


def _word_pieces(folder: Path) -> LibrarySplitter:
    """Return BERT's tokenizer of its older file, a piece on each line."""
    path = folder / WORD_PIECES
    try:
        pieces = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from None
    settings = optional_config(folder / SETTINGS)
    try:
        return LibrarySplitter.of_word_pieces(
            pieces,
            lowercase=settings.get("do_lower_case", True) is not False,
            strip_accents=settings.get("strip_accents"),
        )
    except ValueError as error:
        raise RunError(f"{path}: {error}.") from None


def _unknown(splitter: Splitter) -> int | None:
    found = (splitter.find(name) for name in UNKNOWN_NAMES)
    return next((number for number in found if number is not None), None)


def text_ids(options: Options, *, rows: int) -> Numbering:
    """Return the ids of a language model as they are, with those that end a text."""
    given = options.get("eos_token_id")
    ends = given if isinstance(given, list) else [] if given is None else [given]
    known = [options.one_of_ids("eos_token_id", number, rows=rows) for number in ends]
    end, *others = known or [None]
    further = tuple(number for number in others if number is not None)
    return Numbering(size=rows, end=end, ends=further, identity=True)


def text_tokenizer(
    options: Options, files: ForeignFiles, numbering: Numbering, *, closed: bool = False
) -> ImportedTokenizer:
    """Return the tokenizer of a language model, with the begin mark that it wants before a text.

    `closed` says whether a text also has its end mark: for a model that reads both ways.
    """
    splitter = splitter_of(files, options, rows=numbering.size)
    numbering = replace(numbering, unknown=_unknown(splitter))
    suffix: list[str] = []
    if isinstance(splitter, LibrarySplitter):
        opening, closing = splitter.marks()
        prefix = [splitter.token(number) for number in opening]
        suffix = [splitter.token(number) for number in closing if closed]
    else:
        begin = options.get("bos_token_id")
        wanted = optional_config(files.folder / SETTINGS).get("add_bos_token", True)
        prefix = [splitter.token(begin)] if wanted and isinstance(begin, int) else []
    return ImportedTokenizer(splitter, numbering, prefix=prefix, suffix=suffix)


def pair_ids(options: Options, *, rows: int) -> Numbering:
    """Return the special ids of an encoder-decoder; those that it does not have are problems."""
    usual = USUAL_IDS[str(options.get("model_type"))]
    pad, end = options.get("pad_token_id", usual[0]), options.get("eos_token_id", usual[1])
    begin = options.get("decoder_start_token_id", usual[2])
    if (forced := options.get("forced_bos_token_id")) is not None:
        options.one_of_ids("forced_bos_token_id", forced, rows=rows)
    return Numbering(
        size=rows,
        pad=options.one_of_ids("pad_token_id", pad, rows=rows),
        begin=options.one_of_ids("decoder_start_token_id", begin, rows=rows),
        end=options.one_of_ids("eos_token_id", end, rows=rows),
    )


def pair_tokenizers(
    options: Options, files: ForeignFiles, numbering: Numbering
) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    """Return the tokenizers of a model with one vocabulary, with the marks before each text."""
    if (files.folder / SOURCE).is_file() and (files.folder / TARGET).is_file():
        return _two_models(files.folder, numbering)
    splitter = splitter_of(files, options, rows=numbering.size)
    numbering = replace(numbering, unknown=_unknown(splitter))
    source = _source_marks(splitter, files, numbering)
    forced = options.get("forced_bos_token_id")
    target = [] if forced is None else [splitter.token(forced)]
    if files.languages is not None:
        source, target = ([_language_mark(splitter, each)] for each in files.languages)
    return (
        ImportedTokenizer(splitter, numbering, prefix=source),
        ImportedTokenizer(splitter, numbering, prefix=target),
    )


def _two_models(folder: Path, numbering: Numbering) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    """Return the tokenizers of a Pegasus that was exported by us: MarianMT's files."""
    found = []
    for side in (SOURCE, TARGET):
        files = {"model": folder / side, VOCABULARY: folder / VOCABULARY}
        splitter = read_splitter(SentencePieceSplitter, files, origin=folder / VOCABULARY)
        found.append(ImportedTokenizer(splitter, replace(numbering, unknown=_unknown(splitter))))
    return found[0], found[1]


def _source_marks(splitter: Splitter, files: ForeignFiles, numbering: Numbering) -> list[str]:
    """Return the tokens before a source; what should stand after its end mark is refused."""
    if isinstance(splitter, LibrarySplitter):
        opening, closing = splitter.marks()
        if closing not in ([], [numbering.end]):
            listed = " ".join(splitter.token(number) for number in closing)
            raise RunError(
                f"{files.folder / LIBRARY} ends a source with {listed}: only the end mark is "
                "supported there."
            )
        return [splitter.token(number) for number in opening]
    language = optional_config(files.folder / SETTINGS).get("src_lang") or "en"
    mark = f"__{language}__" if splitter.find(f"__{language}__") is not None else str(language)
    return [mark] if is_language(mark) and splitter.find(mark) is not None else []


def language_notes(tokenizer: ImportedTokenizer, files: ForeignFiles) -> list[str]:
    """Return how to choose languages, for a model of many of which none was chosen."""
    splitter = tokenizer.splitter
    marks = [token for token in splitter.added_tokens() if is_language(token)]
    if files.languages is not None or len(marks) < 2 or tokenizer.prefix:
        return []
    listed = " ".join(marks[:8]) + (" ..." if len(marks) > 8 else "")
    return [
        f"The model knows {len(marks)} languages ({listed}): import it with --languages "
        "source-target, or it chooses one by itself."
    ]


def _language_mark(splitter: Splitter, language: str) -> str:
    """Return the token of a language, as "eng_Latn", or "__en__" for "en"."""
    for token in (f"__{language}__", f">>{language}<<", language):
        if splitter.find(token) is not None:
            return token
    raise RunError(
        f"The vocabulary has no mark for the language {language!r}; give its name there, as "
        "eng_Latn."
    )


def write_pair_tokenizers(
    source: Tokenizer, target: Tokenizer, folder: Path, *, model_type: str
) -> dict[str, Any]:
    """Write the one tokenizer of both languages; return what the configuration says of it."""
    if not isinstance(target, ImportedTokenizer) or not isinstance(source, ImportedTokenizer):
        raise SettingsError("Only a model with an imported tokenizer has this form.")
    write_splitter(target.splitter, folder, model_type=model_type, source=source.prefix)
    numbering, forced = target.numbering, None
    if target.prefix:
        forced = target.splitter.find(target.prefix[0])
    return _present(
        {
            "pad_token_id": numbering.pad,
            "eos_token_id": numbering.end,
            "decoder_start_token_id": numbering.begin,
            "forced_bos_token_id": forced,
        }
    )


def write_text_tokenizer(tokenizer: Tokenizer, folder: Path) -> dict[str, Any]:
    """Write the tokenizer of a language model; return what the configuration says of it."""
    if isinstance(tokenizer, ImportedTokenizer):
        write_splitter(tokenizer.splitter, folder, model_type="llama", source=tokenizer.prefix)
        begin = tokenizer.opening[0] if tokenizer.opening else None
        ends = list(tokenizer.ends)
        return _present(
            {"eos_token_id": ends if len(ends) > 1 else tokenizer.end, "bos_token_id": begin}
        )
    if isinstance(tokenizer, ByteBpeTokenizer):
        write_file(folder / LIBRARY, tokenizer.description())
        token = tokenizer.pieces([tokenizer.end])[0] if tokenizer.end is not None else None
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": token}
        write_json(folder / SETTINGS, _present(config))
        return _present({"eos_token_id": tokenizer.end, "bos_token_id": tokenizer.end})
    if isinstance(tokenizer, SentencePieceTokenizer):
        write_file(folder / SENTENCEPIECE[0], tokenizer.model)
        write_json(folder / SETTINGS, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False})
        return {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
    raise SettingsError(
        f"Hugging Face has no form for a {type(tokenizer).__name__}: train with "
        'tokenizer.kind="byte-bpe" to export a language model.'
    )


def write_splitter(
    splitter: Splitter, folder: Path, *, model_type: str, source: tuple[str, ...] = ()
) -> None:
    """Write the files of an imported tokenizer as they were."""
    if isinstance(splitter, SentencePieceSplitter):
        write_pieces(splitter, folder, model_type=model_type, source=source)
        return
    for name, content in splitter.files().items():
        write_file(folder / name, content)
    write_json(folder / SETTINGS, {"tokenizer_class": "PreTrainedTokenizerFast"})


def _present(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}
