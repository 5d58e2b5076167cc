"""Tokenizer files in the layout of Hugging Face: `tokenizer.json`, or a SentencePiece model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_file, write_json
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, PAD, SPECIALS, UNKNOWN
from regard.exchange.formats import ForeignFiles
from regard.exchange.sources import Options, read_config
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.splitters import (
    LibrarySplitter,
    SentencePieceSplitter,
    Splitter,
    ids_of_json,
    read_splitter,
)

LIBRARY, VOCABULARY = "tokenizer.json", "vocab.json"
# The names under which tokenizers of different architectures keep their SentencePiece model.
SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
SETTINGS = "tokenizer_config.json"


def splitter_of(files: ForeignFiles, *, rows: int) -> Splitter:
    """Return what splits text as the model wants it; ids beyond the model's rows are refused."""
    library = files.folder / LIBRARY
    found: Splitter
    if library.is_file():
        found, path = read_splitter(LibrarySplitter, {LIBRARY: library}, origin=library), library
    else:
        models = [path for name in SENTENCEPIECE if (path := files.folder / name).is_file()]
        if not models:
            known = ", ".join((LIBRARY, *SENTENCEPIECE))
            raise RunError(f"{files.folder} has no tokenizer; one of {known} is needed.")
        path = models[0]
        found = read_splitter(SentencePieceSplitter, {"model": path}, origin=path)
        if (files.folder / VOCABULARY).is_file() and isinstance(found, SentencePieceSplitter):
            found = SentencePieceSplitter(found.model, _vocabulary(files.folder))
    if found.size > rows:
        raise RunError(
            f"{path} has {found.size} entries, but the model has rows for {rows} only: the files "
            "belong to different models."
        )
    return found


def _vocabulary(folder: Path) -> dict[str, int]:
    """Return the ids in `vocab.json`, and those of language marks, which come after them."""
    ids = ids_of_json((folder / VOCABULARY).read_bytes())
    path = folder / SETTINGS
    added = read_config(path).get("added_tokens_decoder", {}) if path.is_file() else {}
    if isinstance(added, dict):
        ids |= {
            str(entry["content"]): int(number)
            for number, entry in added.items()
            if str(number).isdigit() and isinstance(entry, dict) and "content" in entry
        }
    return ids


def text_tokenizer(options: Options, files: ForeignFiles, *, rows: int) -> ImportedTokenizer:
    """Return the tokenizer of a language model, with the begin mark that it wants before a text."""
    splitter = splitter_of(files, rows=rows)
    end = options.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    numbering = Numbering(
        size=splitter.size,
        end=end if isinstance(end, int) else None,
        unknown=splitter.find(SPECIALS[UNKNOWN]),
        identity=True,
    )
    return ImportedTokenizer(splitter, numbering, prefix=_begin_marks(splitter, options, files))


def _begin_marks(splitter: Splitter, options: Options, files: ForeignFiles) -> list[str]:
    if isinstance(splitter, LibrarySplitter):
        return [splitter.token(number) for number in splitter.marks()[0]]
    path = files.folder / SETTINGS
    begin = options.get("bos_token_id")
    wanted = read_config(path).get("add_bos_token", True) if path.is_file() else True
    return [splitter.token(begin)] if wanted and isinstance(begin, int) else []


def pair_tokenizers(
    options: Options, files: ForeignFiles, *, rows: int
) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    """Return the tokenizers of a model with one vocabulary, with the marks before each text."""
    splitter = splitter_of(files, rows=rows)
    pad, end = options.get("pad_token_id"), options.get("eos_token_id")
    begin = options.get("decoder_start_token_id", pad)
    for name, number in (("pad", pad), ("eos", end), ("decoder_start", begin)):
        if not isinstance(number, int) or not 0 <= number < rows:
            options.problems.append(f"{name}_token_id = {number!r} (must be one of its ids)")
    options.finish()
    numbering = Numbering(
        size=rows, pad=pad, unknown=splitter.find(SPECIALS[UNKNOWN]), begin=begin, end=end
    )
    if files.languages is not None:
        marks = [[_language_mark(splitter, language)] for language in files.languages]
    else:
        forced = options.get("forced_bos_token_id")
        marks = [
            _begin_marks(splitter, options, files) if _marks_source(options) else [],
            [splitter.token(forced)] if isinstance(forced, int) else [],
        ]
    source, target = (ImportedTokenizer(splitter, numbering, prefix=each) for each in marks)
    return source, target


def _marks_source(options: Options) -> bool:
    """Return whether the model reads a begin mark before a source: T5 and Pegasus do not."""
    return options.get("model_type") not in ("t5", "pegasus")


def _language_mark(splitter: Splitter, language: str) -> str:
    """Return the token of a language, as "eng_Latn", or "__en__" for "en"."""
    for token in (language, f"__{language}__", f">>{language}<<"):
        if splitter.find(token) is not None:
            return token
    raise RunError(
        f"The vocabulary has no mark for the language {language!r}; give its name there, as "
        "eng_Latn."
    )


def write_pair_tokenizers(source: Tokenizer, target: Tokenizer, folder: Path) -> dict[str, Any]:
    """Write the one tokenizer of both languages; return what the configuration says of it."""
    if not isinstance(target, ImportedTokenizer):
        raise SettingsError("Only a model with an imported tokenizer has this form.")
    write_splitter(target.splitter, folder)
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
        write_splitter(tokenizer.splitter, folder)
        begin = tokenizer.opening[0] if tokenizer.opening else None
        return _present({"eos_token_id": tokenizer.end, "bos_token_id": begin})
    if isinstance(tokenizer, ByteBpeTokenizer):
        write_file(folder / LIBRARY, tokenizer.description())
        token = tokenizer.pieces([tokenizer.end])[0] if tokenizer.end is not None else None
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": token}
        write_json(folder / SETTINGS, _present(config))
        return _present({"eos_token_id": tokenizer.end, "bos_token_id": tokenizer.end})
    if isinstance(tokenizer, SentencePieceTokenizer):
        write_file(folder / "tokenizer.model", tokenizer.model)
        return {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
    raise SettingsError(
        f"Hugging Face has no form for a {type(tokenizer).__name__}: train with "
        'tokenizer.kind="byte-bpe" to export a language model.'
    )


def write_splitter(splitter: Splitter, folder: Path) -> None:
    """Write the files of an imported tokenizer as they were."""
    names = {"model": SENTENCEPIECE[0]}
    for name, content in splitter.files().items():
        write_file(folder / names.get(name, name), content)


def _present(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}
