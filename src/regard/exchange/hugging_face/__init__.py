"""Models in the layout of Hugging Face: `config.json`, weights and tokenizer files in one folder.

`model_type` in the configuration says which architecture it is; `ARCHITECTURES` maps it to the
module that reads and writes it. A module defines `ARCHITECTURE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from regard.base.errors import RunError
from regard.exchange.formats import ForeignFiles, ForeignModel, Format, ModelParts
from regard.exchange.sources import Options, Tensors, read_config, read_tensors

CONFIG, WEIGHTS = "config.json", "model.safetensors"

# model_type, and the module that reads and writes it.
ARCHITECTURES = {
    "bart": "regard.exchange.hugging_face.bart",
    "bert": "regard.exchange.hugging_face.bert",
    "gpt2": "regard.exchange.hugging_face.gpt2",
    "llama": "regard.exchange.hugging_face.llama",
    "m2m_100": "regard.exchange.hugging_face.bart",
    "marian": "regard.exchange.hugging_face.marian",
    "mbart": "regard.exchange.hugging_face.bart",
    "pegasus": "regard.exchange.hugging_face.bart",
    "qwen2": "regard.exchange.hugging_face.llama",
    "qwen3": "regard.exchange.hugging_face.llama",
    "t5": "regard.exchange.hugging_face.t5",
}


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture: reading it and, where that is possible, writing it."""

    read: Callable[[Options, Tensors, ForeignFiles], ForeignModel]
    write: Callable[[ModelParts, Path], None] | None = None


def architecture(model_type: str) -> Architecture:
    """Return an architecture by the name that configurations give it."""
    found: Architecture = import_module(ARCHITECTURES[model_type]).ARCHITECTURE
    return found


def detect(weights: Path) -> bool:
    """Return whether the folder of the weights has a configuration that names an architecture."""
    config = weights.parent / CONFIG
    if not config.is_file() or weights.suffix == ".npz":
        return False
    try:
        return "model_type" in read_config(config)
    except RunError:
        return weights.name.startswith(("model.", "pytorch_model."))  # reading says what is wrong


def read(files: ForeignFiles) -> ForeignModel:
    """Return the model; an architecture that is not known is refused with those that are."""
    path = files.folder / CONFIG
    options = Options(read_config(path), path)
    model_type = options.get("model_type")
    if model_type not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise RunError(f"{path}: model_type {model_type!r} is not known. Known are: {known}.")
    return architecture(model_type).read(options, read_tensors(files.weights), files)


FORMAT = Format(
    name="hugging-face",
    title="Hugging Face (config.json with model.safetensors or pytorch_model.bin)",
    detect=detect,
    read=read,
)
