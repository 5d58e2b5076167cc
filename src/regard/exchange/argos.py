"""A package for Argos Translate and LibreTranslate: a zip of a CTranslate2 model and its subwords.

Inside one folder: `metadata.json`, `model/` as CTranslate2 reads it, `sentencepiece.model` for both
languages, and a README. Argos Translate splits sentences itself.
"""

import json
import re
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.base.files import whole_file
from regard.base.protocols import Tokenizer
from regard.exchange.ctranslate2 import Quantization, shares_model, write_ctranslate2
from regard.models.translator import Translator
from regard.settings.models import TransformerSettings

LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
LANGUAGES = {"cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French"}
# The oldest version of Argos Translate that may install a package.
OLDEST_ARGOS = "1.9.0"
INSIDE = ("config.json", "model.bin", "shared_vocabulary.json")
PAGE = """# {source} to {target}

A package for Argos Translate, made with Regard: `argospm install FILE`.
"""


def require_packable(source: Tokenizer, target: Tokenizer) -> None:
    """Refuse tokenizers that do not fit into a package, which holds one SentencePiece model."""
    if not shares_model(source, target):
        raise SettingsError(
            "A package for Argos Translate holds one SentencePiece model for both languages: train "
            "with tokenizer.kind=sentencepiece and tokenizer.shared=true, or export to ctranslate2."
        )


def write_argos(
    path: Path,
    *,
    model: Translator[Any],
    settings: TransformerSettings,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    source: str,
    target: str,
    quantization: Quantization | None = None,
) -> Path:
    """Write the package; the languages are codes, as "en"."""
    require_packable(source_tokenizer, target_tokenizer)
    for code in (source, target):
        if LANGUAGE.fullmatch(code) is None:
            raise SettingsError(f"{code!r} is not the code of a language, as en, de or pt-BR.")
    name = f"translate-{source}_{target}"
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        folder = write_ctranslate2(
            Path(place) / "model",
            model=model,
            settings=settings,
            source_tokenizer=source_tokenizer,
            target_tokenizer=target_tokenizer,
            quantization=quantization,
        )
        texts = {
            "metadata.json": json.dumps(_metadata(source, target), indent=1) + "\n",
            "README.md": PAGE.format(source=_language(source), target=_language(target)),
        }
        _write_zip(path, name, folder, texts)
    return path


def _write_zip(path: Path, name: str, model: Path, texts: dict[str, str]) -> None:
    """Write the zip, complete or not at all."""
    try:
        with (
            whole_file(path) as writing,
            zipfile.ZipFile(writing, "w", zipfile.ZIP_DEFLATED) as package,
        ):
            for file, text in texts.items():
                package.writestr(f"{name}/{file}", text)
            package.write(model / "sentencepiece.model", f"{name}/sentencepiece.model")
            for file in INSIDE:
                package.write(model / file, f"{name}/model/{file}")
    except OSError as error:
        raise SettingsError(f"Cannot write {path}: {error.strerror}.") from error


def _metadata(source: str, target: str) -> dict[str, str]:
    return {
        "type": "translate",
        "package_version": "1.0",
        "argos_version": OLDEST_ARGOS,
        "from_code": source,
        "from_name": _language(source),
        "to_code": target,
        "to_name": _language(target),
        "target_prefix": "",
        "made_with": f"regard {version('regard')}",
    }


def _language(code: str) -> str:
    """Return a name for people; Argos Translate shows it in its lists."""
    return LANGUAGES.get(code, code)
