"""Models in the layout of Hugging Face: `config.json`, weights and tokenizer files in one folder.

`model_type` in the configuration says which architecture it is; `ARCHITECTURES` maps it to the
module that reads and writes it. A module defines `ARCHITECTURE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.exchange.formats import ForeignFiles, ForeignModel, Format, ModelParts
from regard.exchange.sources import Options, Tensors, read_config, read_tensors

CONFIG, WEIGHTS = "config.json", "model.safetensors"
GENERATION = "generation_config.json"
# What that file says about search; in older models `config.json` says it.
OF_SEARCH = (
    "bos_token_id",
    "decoder_start_token_id",
    "eos_token_id",
    "forced_bos_token_id",
    "length_penalty",
    "num_beams",
    "pad_token_id",
)

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
    config = read_config(path)
    options = Options(config | _options_of_search(files.folder, config), path)
    model_type = options.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise RunError(f"{path}: model_type {model_type!r} is not known. Known are: {known}.")
    options.expect(quantization_config=None)
    return architecture(model_type).read(options, read_tensors(files.weights), files)


def _options_of_search(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return what a model says about search besides its configuration.

    An impossible id in the configuration stays, so that it is refused.
    """
    path, rows = folder / GENERATION, config.get("vocab_size")
    table = read_config(path) if path.is_file() else {}

    def possible(name: str) -> bool:
        given = config.get(name)
        if given is None or not name.endswith("_token_id") or not isinstance(rows, int):
            return True
        ids = given if isinstance(given, list) else [given]
        return all(type(number) is int and 0 <= number < rows for number in ids)

    return {
        name: table[name] for name in OF_SEARCH if table.get(name) is not None and possible(name)
    }


def search_settings(options: Options) -> dict[str, Any]:
    """Return the settings of decoding that a translator recommends; else its search is greedy."""
    beam, penalty = options.get("num_beams", 1), options.get("length_penalty", 1.0)
    found: dict[str, Any] = {"beam": beam if isinstance(beam, int) and beam > 0 else 1}
    if isinstance(penalty, int | float) and not isinstance(penalty, bool) and 0 <= penalty < 100:
        found["length_penalty"] = float(penalty)
    return found


FORMAT = Format(
    name="hugging-face",
    title="Hugging Face (config.json with model.safetensors or pytorch_model.bin)",
    detect=detect,
    read=read,
)
