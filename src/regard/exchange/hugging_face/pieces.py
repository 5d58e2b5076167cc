"""SentencePiece models of Hugging Face without a `tokenizer.json`: how each numbers its pieces.

The id of a piece is often not that of the SentencePiece model: fairseq's models put four special
tokens first, Pegasus puts a hundred, and M2M100 has a list of its own and languages after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.base.files import write_file, write_json
from regard.exchange.sources import read_config
from regard.text.splitters import (
    ListedPieces,
    SentencePieceSplitter,
    ids_of_json,
    read_splitter,
)

VOCABULARY = "vocab.json"
SETTINGS, SPECIAL_TOKENS = "tokenizer_config.json", "special_tokens_map.json"
# The names under which tokenizers of different architectures keep their SentencePiece model.
SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
SOURCE, TARGET = "source.spm", "target.spm"
NAMES = {"t5": "spiece.model", "pegasus": "spiece.model", "m2m_100": "sentencepiece.bpe.model"}
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
PEGASUS = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 103)))
# The languages of M2M100 and of the WMT21 models, in the order of their ids.
M2M100 = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he
hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no
ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo
zh zu
"""
WMT21 = "en ha is ja cs ru zh de"
LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{2,3}_([A-Z]{2}|[A-Z][a-z]{3})|>>[\w-]+<<")


def is_language(token: str) -> bool:
    """Return whether a token is the mark of a language, as "__en__", "en_XX" or "eng_Latn"."""
    return LANGUAGE.fullmatch(token) is not None


def optional_config(path: Path) -> dict[str, Any]:
    """Return the table of a JSON file; empty if there is no such file."""
    return read_config(path) if path.is_file() else {}


def pieces_of(folder: Path, model_type: str) -> tuple[SentencePieceSplitter, Path] | None:
    """Return the SentencePiece model of a folder with the ids of the architecture."""
    path = next((path for name in SENTENCEPIECE if (path := folder / name).is_file()), None)
    if path is None:
        return None
    found = read_splitter(SentencePieceSplitter, {"model": path}, origin=path)
    listed = folder / VOCABULARY
    if listed.is_file():
        try:
            ids = ids_of_json(listed.read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{listed}: {error}.") from None
    elif model_type in ("m2m_100", "mbart"):  # NLLB is an M2M100
        ids = _shifted(found, path, first=FAIRSEQ, dropped=("<unk>", "<s>", "</s>"))
    elif model_type == "pegasus":
        ids = _shifted(found, path, first=PEGASUS, dropped=("<pad>", "</s>"))
    else:
        return found, path
    ids |= _added(folder, ids, model_type)
    try:
        return ListedPieces(path.read_bytes(), ids), path
    except ValueError as error:
        raise RunError(f"{listed}: {error}.") from None


def _shifted(
    found: SentencePieceSplitter, path: Path, *, first: Sequence[str], dropped: Sequence[str]
) -> dict[str, int]:
    """Return ids of special tokens, and after them those of all pieces but the dropped ones."""
    pieces = [found.token(number) for number in range(found.size)]
    if pieces[: len(dropped)] != list(dropped):
        raise RunError(
            f"{path} begins with {', '.join(pieces[: len(dropped)])} instead of "
            f"{', '.join(dropped)}: its ids are not those of this architecture. Save the model "
            "with its tokenizer.json."
        )
    return {token: n for n, token in enumerate([*first, *pieces[len(dropped) :]])}


def _added(folder: Path, ids: dict[str, int], model_type: str) -> dict[str, int]:
    """Return tokens that were added after the pieces: marks of languages above all."""
    settings = optional_config(folder / SETTINGS)
    names = settings.get("additional_special_tokens") or optional_config(
        folder / SPECIAL_TOKENS
    ).get("additional_special_tokens")
    if not names and model_type == "m2m_100" and (folder / VOCABULARY).is_file():
        codes = WMT21 if settings.get("language_codes") == "wmt21" else M2M100
        names = [f"__{code}__" for code in codes.split()]
    listed = [
        str(name.get("content")) if isinstance(name, dict) else str(name)
        for name in (names if isinstance(names, list) else [])
    ]
    fresh = [name for name in listed if name not in ids]
    found = {name: len(ids) + n for n, name in enumerate(fresh)}
    by_id = settings.get("added_tokens_decoder")
    for number, entry in by_id.items() if isinstance(by_id, dict) else ():
        if str(number).isdigit() and isinstance(entry, dict) and "content" in entry:
            found[str(entry["content"])] = int(number)
    return found


def write_pieces(
    splitter: SentencePieceSplitter, folder: Path, *, model_type: str, source: Sequence[str]
) -> None:
    """Write the SentencePiece model, and what gives its pieces the ids that they had."""
    write_file(folder / NAMES.get(model_type, SENTENCEPIECE[0]), splitter.model)
    vocabulary = splitter.vocabulary
    if vocabulary is None:
        write_json(folder / SETTINGS, {"add_bos_token": bool(source)})
        return
    marks = [name for name in vocabulary if is_language(name)]
    settings: dict[str, Any] = {"additional_special_tokens": marks}
    if any(name.startswith("__") for name in marks) or model_type not in ("m2m_100", "pegasus"):
        pieces = {name: n for name, n in vocabulary.items() if name not in marks}
        write_file(folder / VOCABULARY, json.dumps(pieces, ensure_ascii=False))
        settings = {"tokenizer_class": "M2M100Tokenizer"}
    if source and is_language(source[0]):
        settings["src_lang"] = source[0].strip("_")
    write_json(folder / SETTINGS, settings)
