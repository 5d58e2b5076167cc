"""A folder that plain `ctranslate2` loads, with the tokenizers and a page that says how."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import sentencepiece

from regard.base.errors import RunError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import SPECIALS
from regard.exchange.export_page import export_page
from regard.models.translator import Translator
from regard.settings.model import RecurrentSettings
from regard.settings.transformer import TransformerSettings
from regard.text.sentencepiece import SentencePieceTokenizer

Quantization = Literal["int8", "int16", "float16", "bfloat16"]
# Sinusoids have no end, but CTranslate2 reads them from a table.
MOST_POSITIONS = 2_048
RECORD = "export.json"
SHORTLIST = "vmap.txt"


def require_exportable(settings: TransformerSettings | RecurrentSettings) -> TransformerSettings:
    """Return the settings, or say which of them CTranslate2 has no layer for."""
    from regard.exchange.ctranslate2_spec import unsupported

    problem = unsupported(settings)
    if problem is not None or not isinstance(settings, TransformerSettings):
        raise SettingsError(
            f"CTranslate2 has no layer for {problem}, so this model cannot be exported to it. "
            "Translate with the torch engine, or train a Transformer without that setting."
        )
    return settings


def write_ctranslate2(
    folder: Path,
    *,
    model: Translator[Any],
    settings: TransformerSettings,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    quantization: Quantization | None = None,
    shortlist: Iterable[str] | None = None,
    record: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model as CTranslate2 reads it, whole or not at all; a folder there is replaced.

    `shortlist` are the lines of a vocabulary map. `record` is kept as `export.json`.
    """
    from regard.exchange.ctranslate2_spec import translator_spec

    spec = translator_spec(model, settings=settings, most_positions=MOST_POSITIONS)
    spec.register_source_vocabulary(token_names(source_tokenizer))
    spec.register_target_vocabulary(token_names(target_tokenizer))
    spec.validate()
    spec.optimize(quantization)
    with whole_folder(folder) as writing:
        spec.save(str(writing))
        copy_tokenizers(writing, source_tokenizer, target_tokenizer)
        if shortlist is not None:
            text = "".join(line + "\n" for line in shortlist)
            (writing / SHORTLIST).write_text(text, encoding="utf-8", newline="\n")
        page = export_page(source_tokenizer, target_tokenizer, shortlist=shortlist is not None)
        (writing / "README.md").write_text(page, encoding="utf-8")
        write_export_record(
            writing,
            {
                "quantization": quantization or "float32",
                "regard": version("regard"),
                "ctranslate2": version("ctranslate2"),
                **(record or {}),
            },
        )
    return folder


def token_names(tokenizer: Tokenizer) -> list[str]:
    """Return the name of every id, each another: what CTranslate2 calls the tokens.

    They are the pieces of SentencePiece and the symbols of other tokenizers, as they are.
    A symbol that is spelled like a special one ("</s>") gets its id after it.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(tokenizer.model)
        names: list[str] = processor.id_to_piece(list(range(tokenizer.size)))
        return names
    vocabulary: Any = getattr(tokenizer, "vocabulary", None)
    if vocabulary is None:
        raise SettingsError(
            f"A {type(tokenizer).__name__} has no list of symbols that could be exported."
        )
    symbols = [
        f"{symbol}#{number}" if symbol in SPECIALS else symbol
        for number, symbol in enumerate(vocabulary.symbols, len(SPECIALS))
    ]
    return [*SPECIALS, *symbols]


def copy_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write the tokenizers' own files: one `sentencepiece.model` if both languages share it."""
    if isinstance(source, SentencePieceTokenizer) and shares_model(source, target):
        (folder / "sentencepiece.model").write_bytes(source.model)
        return
    for name, tokenizer in (("source", source), ("target", target)):
        if isinstance(tokenizer, SentencePieceTokenizer):
            (folder / f"{name}.model").write_bytes(tokenizer.model)


def shares_model(source: Tokenizer, target: Tokenizer) -> bool:
    """Return whether both languages are cut by one SentencePiece model."""
    return (
        isinstance(source, SentencePieceTokenizer)
        and isinstance(target, SentencePieceTokenizer)
        and source.model == target.model
    )


def write_export_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write what is known of an export beside it."""
    text = json.dumps(dict(record), indent=1, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def read_export_record(folder: Path) -> dict[str, Any]:
    """Return what is known of an export; nothing if it is not there or not whole."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def require_replaceable(folder: Path) -> None:
    """Refuse to write where something other than an earlier export would be lost."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; choose another folder with --output.")
    if folder.exists() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        raise RunError(
            f"{folder} is not empty and holds no earlier export; choose another folder with "
            "--output."
        )


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to write into, which takes its name, and another's place, when it is whole."""
    require_replaceable(folder)
    writing = folder.with_name(f".{folder.name}.writing")
    old = folder.with_name(f".{folder.name}.old")
    for left_over in (writing, old):
        shutil.rmtree(left_over, ignore_errors=True)
    writing.mkdir(parents=True)
    try:
        yield writing
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise
    if folder.exists():
        folder.rename(old)
    writing.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
