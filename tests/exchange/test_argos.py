from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

from regard.base.errors import SettingsError
from regard.exchange.argos import write_argos
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.tokenizers import train_tokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

TEXTS = [f"the {noun} sees a {other}" for noun in ("cat", "dog") for other in ("mouse", "bird")]


def package(path: Path, **chosen: Any) -> dict[str, Any]:
    tokenizer = train_tokenizer(TEXTS, kind="sentencepiece", size=300)
    settings = TransformerSettings(
        layers=1, model_dim=16, heads=2, feed_forward=16, tie="all", output_bias=True
    )
    torch.manual_seed(3)
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    with torch.no_grad():
        model.projection.bias[3] = 2.0
        model.projection.bias[:3] = model.projection.bias[4:260] = -20.0  # no specials, no bytes
    parts: dict[str, Any] = {
        "model": model,
        "settings": settings,
        "source_tokenizer": tokenizer,
        "target_tokenizer": tokenizer,
        "source": "en",
        "target": "de",
        **chosen,
    }
    write_argos(path, **parts)
    return parts


def test_a_package_holds_what_argos_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "translate-en_de.argosmodel"
    parts = package(path)
    with zipfile.ZipFile(path) as opened:
        names = set(opened.namelist())
        metadata = json.loads(opened.read("translate-en_de/metadata.json"))
        subwords = opened.read("translate-en_de/sentencepiece.model")
        opened.extractall(tmp_path)
    inside = ("config.json", "model.bin", "shared_vocabulary.json")
    assert names == {
        *(f"translate-en_de/{file}" for file in ("metadata.json", "README.md")),
        "translate-en_de/sentencepiece.model",
        *(f"translate-en_de/model/{file}" for file in inside),
    }
    assert (metadata["from_code"], metadata["to_code"]) == ("en", "de")
    assert (metadata["from_name"], metadata["to_name"]) == ("English", "German")
    assert subwords == parts["source_tokenizer"].model
    ctranslate2.Translator(str(tmp_path / "translate-en_de" / "model"), intra_threads=1)


def test_mistakes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "package.argosmodel"
    with pytest.raises(SettingsError, match="'English' is not the code of a language"):
        package(path, source="English")
    other = train_tokenizer(["other words"], kind="sentencepiece", size=300)
    assert isinstance(other, SentencePieceTokenizer)
    with pytest.raises(SettingsError, match="one SentencePiece model for both languages"):
        package(path, target_tokenizer=other)
    with pytest.raises(SettingsError, match=r"Cannot write .*No such file"):
        package(tmp_path / "no-folder" / "package.argosmodel")
    assert list(tmp_path.iterdir()) == []


# Argos Translate downloads the splitter of sentences when it first needs it. Without a network it
# is replaced by one that leaves a text in one piece; so are the libraries behind it, if missing.
SCRIPT = """
import sys, types
for name in ("stanza", "onnxruntime"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
from argostranslate import package, settings, translate
print("beam", settings.beam_size)
package.install_from_path(sys.argv[1])
(found,) = [p for p in package.get_installed_packages() if p.from_code == "en"]
class Whole:
    def split_sentences(self, text):
        return [text]
made = translate.PackageTranslation(None, None, found)
made.sentencizer = Whole()
for line in sys.argv[2:]:
    print("=" + made.hypotheses(line, 1)[0].value.replace(chr(10), " "))
"""


def test_argos_translate_installs_it_and_translates_the_same(tmp_path: Path) -> None:
    elsewhere = os.environ.get("REGARD_ARGOS") or None
    if elsewhere is None and find_spec("argostranslate") is None:
        pytest.skip("argostranslate is not installed; name a folder that has it in REGARD_ARGOS")
    path = tmp_path / "translate-en_de.argosmodel"
    parts = package(path)
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    environment |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {"OMP_NUM_THREADS": "1", "ARGOS_COMPUTE_TYPE": "float32"}
    environment |= {"PYTHONPATH": elsewhere} if elsewhere else {}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), *TEXTS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    theirs = [line[1:] for line in answer.stdout.splitlines() if line.startswith("=")]
    with zipfile.ZipFile(path) as opened:
        opened.extractall(tmp_path)
    plain = ctranslate2.Translator(str(tmp_path / "translate-en_de" / "model"), intra_threads=1)
    tokenizer = parts["source_tokenizer"]
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    beam = int(answer.stdout.partition("beam ")[2].split()[0])
    found = plain.translate_batch(
        pieces.encode(TEXTS, out_type=str), beam_size=beam, length_penalty=0.2
    )
    assert theirs == [pieces.decode(one.hypotheses[0]).strip() for one in found]
