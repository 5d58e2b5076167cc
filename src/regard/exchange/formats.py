"""The one registry of foreign models: which there are, how each is recognised, read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from regard.base.errors import RegardError, RunError
from regard.base.protocols import Tokenizer
from regard.exchange.layout import WeightLayout
from regard.exchange.sources import weight_map
from regard.settings.recipe import Settings


@dataclass(frozen=True, kw_only=True)
class ModelParts:
    """What a model is made of: all that is written in a foreign layout."""

    model: nn.Module
    settings: Settings
    tokenizers: Mapping[str, Tokenizer] = field(default_factory=dict)
    """By their names in a run: "source" and "target", or "text"."""


@dataclass(frozen=True, kw_only=True)
class ForeignModel(ModelParts):
    """A model of another program, read whole; its task makes a run of it."""

    task: str
    layout: WeightLayout
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Further tables of the recipe, as {"decoding": {"beam": 1}}."""
    notes: Sequence[str] = ()
    """What the user should know: a file that is absent and not needed."""
    leftovers: Mapping[str, str] = field(default_factory=dict)
    """Tensors that were not used, and why."""


@dataclass(frozen=True, kw_only=True)
class ForeignFiles:
    """Where a foreign model lies, and what the user said about it."""

    weights: Path
    languages: tuple[str, str] | None = None
    """Source and target language, for a model of many."""

    @property
    def folder(self) -> Path:
        """The folder of the weights, where all other files are."""
        return self.weights.parent


@dataclass(frozen=True, kw_only=True)
class Format:
    """One kind of foreign model."""

    name: str
    title: str
    """What it is called in messages."""
    detect: Callable[[Path], bool]
    """Return whether this file holds weights of the kind; looks at names and headers only."""
    read: Callable[[ForeignFiles], ForeignModel]


# Modules that define `FORMAT`, in the order in which they are asked.
FORMATS = [
    "regard.exchange.hugging_face",
    "regard.exchange.marian",
    "regard.exchange.fairseq",
    "regard.exchange.ctranslate2_layout",
    "regard.exchange.gat",
]
INDEX = ".index.json"
ENDINGS = (".safetensors", ".npz", ".bin", ".pt", ".pth", ".ckpt")
# What trainers leave beside the weights of a model.
OF_TRAINING = ("training_args", "optimizer", "scheduler", "rng_state", "scaler")


def formats() -> list[Format]:
    """Return all formats."""
    return [import_module(name).FORMAT for name in FORMATS]


def find_weights(path: Path, *, weights: Path | None = None) -> tuple[Path, Format]:
    """Return the weight file of a folder, or the file itself, and its format.

    `weights` names one of several. What is not recognised is an error that lists what is known.
    """
    if weights is not None:
        inside = path / weights
        chosen = inside if path.is_dir() and inside.is_file() else weights
        return _recognised([chosen], chosen)
    if path.is_file():
        return _recognised([path], path)
    if not path.is_dir():
        raise RunError(f"There is no file or folder {path}.")
    return _recognised(_weight_files(path), path)


def read_foreign(
    path: Path, *, weights: Path | None = None, languages: tuple[str, str] | None = None
) -> ForeignModel:
    """Return the model in a folder or file, whatever program it is from."""
    file, kind = find_weights(path, weights=weights)
    return read_as(kind, ForeignFiles(weights=file, languages=languages))


def read_as(kind: Format, files: ForeignFiles) -> ForeignModel:
    """Return the model that a format finds in these files; whatever is wrong with them is said.

    A foreign configuration may hold anything: what no reader expects is a RunError too.
    """
    try:
        return kind.read(files)
    except (RegardError, MemoryError, OSError):
        raise
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise RunError(
            f"{files.weights} or a file beside it is damaged, or no model of {kind.title} "
            f"({type(error).__name__}: {said[0][:200]})."
        ) from error


def _weight_files(folder: Path) -> list[Path]:
    """Return the files of a folder that may hold weights; parts that an index names count once."""
    endings = (*ENDINGS, *(f"{ending}{INDEX}" for ending in ENDINGS))
    files = sorted(
        file
        for file in folder.iterdir()
        if file.name.endswith(endings) and not file.name.startswith(OF_TRAINING) and file.is_file()
    )
    indexes = [file for file in files if file.name.endswith(INDEX)]
    parts = {name for index in indexes for name in _parts(index)}
    files = [file for file in files if file.name not in parts]
    if any(".safetensors" in file.name for file in files):  # the same weights, only as pickle
        files = [file for file in files if not file.name.startswith("pytorch_model")]
    return files


def _parts(index: Path) -> set[str]:
    """Return the files that an index names; none if it is damaged, which reading it will say."""
    try:
        return set(weight_map(index).values())
    except RunError:
        return set()


def _recognised(files: Sequence[Path], path: Path) -> tuple[Path, Format]:
    for file in files:
        if not file.is_file():
            raise RunError(f"There is no file {file}.")
    known = formats()
    found = [(file, kind) for file in files for kind in known if kind.detect(file)]
    by_file = dict(reversed(found))  # the first format that knows a file reads it
    if len(by_file) == 1:
        return next(iter(by_file.items()))
    if by_file:
        listed = ", ".join(file.name for file in sorted(by_file))
        raise RunError(f"{path} holds several files of weights: {listed}. Name one with --weights.")
    titles = ", ".join(kind.title for kind in known)
    seen = f" (weight files seen: {', '.join(file.name for file in files)})" if files else ""
    raise RunError(f"{path} holds no model that can be imported{seen}. Known are: {titles}.")
