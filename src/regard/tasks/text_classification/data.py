"""The labelled texts of a recipe: what is trained, validated and tested on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.base.files import fingerprint
from regard.corpora import labelled
from regard.runs.run import require_files
from regard.settings.recipe import require_known, validate
from regard.tasks.text_classification.settings import LabelledSettings, TextClassificationRecipe

PARTS = ("train", "valid", "test")
MEMORY = Path("data")
# Texts with labels to train on, or such texts or the name of a file for each part.
GivenTexts = Mapping[str, Any] | Iterable[Any]


@dataclass(frozen=True)
class LabelledSplits:
    """The parts of labelled data, the labels, and what looks doubtful."""

    train: list[labelled.LabelledText]
    valid: list[labelled.LabelledText]
    test: list[labelled.LabelledText]
    labels: list[str]
    warnings: list[str]

    def fingerprint(self) -> str:
        """Return a short digest, which tells one corpus from another."""
        texts = chain(self.train, self.valid, self.test)
        return fingerprint(f"{one.label}\t{one.text}\n" for one in texts)


def read_labelled_splits(settings: LabelledSettings) -> LabelledSplits:
    """Return the texts that the settings name."""
    require_files(settings.from_memory, what="labelled texts")
    if settings.train is None:
        raise SettingsError("There are no labelled texts to learn from: set data.train=FILE.")
    paths = {part: Path(file) for part in PARTS if (file := getattr(settings, part)) is not None}
    return _split(
        {part: labelled.read_labelled(path) for part, path in paths.items()}, settings, paths
    )


def _split(
    texts: Mapping[str, list[labelled.LabelledText]],
    settings: LabelledSettings,
    paths: Mapping[str, Path] | None = None,
) -> LabelledSplits:
    """Return the parts, with validation texts held out of the training texts if there are none.

    `paths` says where each part comes from, for messages.
    """
    origin = paths or dict.fromkeys(PARTS, MEMORY)
    labels = labelled.labels_of(texts["train"], path=origin["train"])
    for part in ("valid", "test"):
        if part in texts:
            labelled.require_labels(texts[part], labels, path=origin[part])
    train, valid = texts["train"], texts.get("valid", [])
    if "valid" not in texts:
        train, valid = labelled.hold_out(train, share=settings.hold_out, seed=settings.seed)
    if settings.share < 1:  # what is held out here is what is used
        train = labelled.hold_out(train, share=settings.share, seed=settings.seed + 1).valid
        labelled.labels_of(train, path=origin["train"])
    warnings = labelled.single_example_warnings(texts["train"])
    return LabelledSplits(train, valid or train, texts.get("test", []), labels, warnings)


def given_texts(
    recipe: TextClassificationRecipe, data: GivenTexts | None
) -> tuple[TextClassificationRecipe, LabelledSplits]:
    """Return the texts that are given in Python as (text, label), or else those of the recipe."""
    if data is None:
        return recipe, read_labelled_splits(recipe.data)
    if not isinstance(data, Mapping):
        data = {"train": data}
    for part in data:
        require_known(part, PARTS, what="part of the data")
    files = {part: str(given) for part, given in data.items() if isinstance(given, str | Path)}
    if files:
        if len(files) != len(data):
            raise SettingsError("The data has files and texts from memory: give one kind only.")
        table = {**recipe.data.model_dump(), **files, "from_memory": False}
        settings = validate(table, LabelledSettings, origin="data")
        return recipe.model_copy(update={"data": settings}), read_labelled_splits(settings)
    texts = {part: _checked_texts(given, part) for part, given in data.items()}
    if "train" not in texts:
        raise SettingsError('The data has no part "train" to learn from.')
    settings = recipe.data.model_copy(
        update={"from_memory": True, **dict.fromkeys(PARTS)},
    )
    return recipe.model_copy(update={"data": settings}), _split(texts, settings)


def _checked_texts(given: Iterable[Any], part: str) -> list[labelled.LabelledText]:
    texts = []
    for number, one in enumerate(given, start=1):
        if isinstance(one, labelled.LabelledText):
            texts.append(one)
            continue
        sides = tuple(one) if isinstance(one, tuple | list) else ()
        if len(sides) != 2 or not all(isinstance(side, str) and side.strip() for side in sides):
            raise SettingsError(
                f"Item {number} of the {part} data is not a text with its label: {one!r:.80}"
            )
        texts.append(labelled.LabelledText(text=sides[0], label=sides[1]))
    if not texts:
        raise SettingsError(f"The {part} data has no texts.")
    return texts
