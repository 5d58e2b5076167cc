"""The small JSON file `name.json` that says what kind of tokenizer a folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.text.vocabulary import Vocabulary


def write_record(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write `folder/name.json`, one symbol a line; JSON gives any symbol back as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, ensure_ascii=False, indent=0)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def read_record(folder: Path, name: str) -> dict[str, Any]:
    """Read `folder/name.json`; a file that is missing or damaged is a RunError that names it."""
    path = folder / f"{name}.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is missing, so the tokenizer cannot be read") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise RunError(f"{path} is cut short or is not a tokenizer's JSON file") from None
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise RunError(f"{path} does not say what kind of tokenizer it holds")
    return record


def vocabulary_of_record(folder: Path, name: str) -> Vocabulary:
    """Return the vocabulary that `folder/name.json` lists."""
    symbols = read_record(folder, name).get("symbols")
    problem = None
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        problem = "has no list of symbols"
    elif len(set(symbols)) != len(symbols):
        problem = "lists a symbol twice"
    if problem is not None or symbols is None:
        raise RunError(f"{folder / f'{name}.json'} {problem}, so the tokenizer cannot be read")
    return Vocabulary(symbols)
