"""The labelled texts of a recipe: what is trained, validated and tested on."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.base.files import fingerprint
from regard.batching.order import BatchOrder
from regard.corpora import labelled, sources, store
from regard.corpora.cache import Told
from regard.settings.recipe import require_known, validate, with_paths
from regard.tasks.text_classification.settings import LabelledSettings, TextClassificationRecipe
from regard.training.progress import DataFacts, Fact

PARTS = sources.PARTS
MEMORY = Path("data")
# A file, a folder, texts with labels to train on, or any of these for each part.
GivenTexts = Mapping[str, Any] | Iterable[Any] | str | Path


@dataclass(frozen=True)
class LabelledSplits:
    """The parts of labelled data, the labels, what looks doubtful and what was held out."""

    train: Sequence[labelled.LabelledText]
    """Of a large corpus they are in a store, not in memory."""
    valid: Sequence[labelled.LabelledText]
    test: Sequence[labelled.LabelledText]
    labels: list[str]
    warnings: list[str]
    notes: tuple[str, ...] = ()
    digest: str = ""
    """The fingerprint, where it is known already."""

    def fingerprint(self) -> str:
        """Return a short digest, which tells one corpus from another."""
        if self.digest:
            return self.digest
        texts = chain(self.train, self.valid, self.test)
        return fingerprint(f"{one.label}\t{one.text}\n" for one in texts)


def data_facts(splits: LabelledSplits, order: BatchOrder, *, vocabulary: int) -> DataFacts:
    """Return what a plan says of texts, labels and vocabulary."""
    sizes = {part: len(getattr(splits, part)) for part in PARTS}
    shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
    tokens = float(order.lengths[:, 0].mean())
    named = ", ".join(splits.labels[:6]) + (", ..." if len(splits.labels) > 6 else "")
    return DataFacts(
        facts=(
            Fact("texts", sizes, f"{shown}; on average {tokens:.1f} tokens"),
            Fact("labels", splits.labels, f"{len(splits.labels)}: {named}"),
            Fact("vocabulary", vocabulary, f"{vocabulary:,} tokens"),
        ),
        batches=len(order.epoch(0)),
        unit="texts",
    )


def read_labelled_splits(settings: LabelledSettings, told: Told | None = None) -> LabelledSplits:
    """Return the texts that the settings name."""
    sources.require_files(settings.from_memory, what="labelled texts")
    settings = located(settings)
    paths = {part: Path(files[0]) for part in PARTS if (files := getattr(settings, part))}
    stream = _texts(settings, "train")
    first = list(islice(stream, store.MOST_IN_MEMORY + 1))
    if len(first) > store.MOST_IN_MEMORY:
        return _stored_splits(settings, chain(first, stream), paths, told or Told())
    others = {part: list(_texts(settings, part)) for part in paths if part != "train"}
    return _split({"train": first, **others}, settings, paths)


def _texts(settings: LabelledSettings, part: str) -> Iterator[labelled.LabelledText]:
    """Yield the texts in the files of a part."""
    for file in getattr(settings, part):
        yield from labelled.iterate_labelled(Path(file), columns=settings.columns)


def _stored_splits(
    settings: LabelledSettings,
    texts: Iterator[labelled.LabelledText],
    paths: Mapping[str, Path],
    told: Told,
) -> LabelledSplits:
    """Return texts that are too many for memory: from their store, which is built if need be."""
    from regard.corpora import labelled_store  # of no use for all smaller corpora

    named = with_paths(settings, os.path.abspath)
    seeds = {"valid": (settings.hold_out, settings.seed)}
    seeds["test"] = (settings.hold_out_test, settings.seed + 2)
    reading = labelled_store.LabelledReading(
        settings=named.model_dump(mode="json"),
        files=[str(file) for part in paths for file in getattr(named, part)],
        hold_out={part: one for part, one in seeds.items() if one[0] and part not in paths},
        share=(settings.share, settings.seed + 1),
    )
    corpus = labelled_store.open_labelled(reading, say=told.say)
    if corpus is None:
        labels: list[str] = []

        def facts(counts: Mapping[str, int], held: Mapping[str, int]) -> dict[str, Any]:
            labels.extend(labelled.labels_of(counts, path=paths["train"]))
            total = sum(counts.values())
            note = sources.held_out_note(total, "texts", held, seed=settings.seed)
            warnings = labelled.single_example_warnings(counts)
            return {"labels": labels, "notes": [note] if held else [], "warnings": warnings}

        def known(part: str) -> Iterator[labelled.LabelledText]:
            for one in _texts(settings, part):
                labelled.require_labels([one.label], labels, path=paths[part])
                yield one

        others = {part: known(part) for part in paths if part != "train"}
        corpus = labelled_store.build_labelled(
            reading, texts, others, facts=facts, watch=told.watch
        )
    made_of = corpus.made_of
    return LabelledSplits(
        corpus.train,
        corpus.valid or corpus.train,
        corpus.test,
        list(made_of["labels"]),
        list(made_of["warnings"]),
        tuple(made_of["notes"]),
        made_of["fingerprint"],
    )


def located(settings: LabelledSettings) -> LabelledSettings:
    """Return the settings with the files of a folder in its place; refuse settings without data."""
    if settings.from_memory:
        return settings
    if not settings.train:
        raise sources.no_data("labelled texts")
    named = {part: getattr(settings, part) for part in PARTS}
    return settings.model_copy(update=sources.locate(named, records="labelled texts"))


def _split(
    texts: Mapping[str, list[labelled.LabelledText]],
    settings: LabelledSettings,
    paths: Mapping[str, Path] | None = None,
) -> LabelledSplits:
    """Return the parts, with validation texts held out of the training texts if there are none.

    `paths` says where each part comes from, for messages.
    """
    origin = paths or dict.fromkeys(PARTS, MEMORY)
    counts = Counter(one.label for one in texts["train"])
    labels = labelled.labels_of(counts, path=origin["train"])
    for part in ("valid", "test"):
        if part in texts:
            found = (one.label for one in texts[part])
            labelled.require_labels(found, labels, path=origin[part])
    train, valid, test = texts["train"], texts.get("valid", []), texts.get("test", [])
    held = {}
    if "valid" not in texts:
        train, valid = labelled.hold_out(train, share=settings.hold_out, seed=settings.seed)
        held["valid"] = len(valid)
    if "test" not in texts and settings.hold_out_test:
        seed = settings.seed + 2
        train, test = labelled.hold_out(train, share=settings.hold_out_test, seed=seed)
        held["test"] = len(test)
    total = len(texts["train"])
    notes = [sources.held_out_note(total, "texts", held, seed=settings.seed)] if held else []
    if settings.share < 1:  # what is held out here is what is used
        train = labelled.hold_out(train, share=settings.share, seed=settings.seed + 1).valid
        labelled.labels_of((one.label for one in train), path=origin["train"])
    warnings = labelled.single_example_warnings(counts)
    return LabelledSplits(train, valid or train, test, labels, warnings, tuple(notes))


def given_texts(
    recipe: TextClassificationRecipe, data: GivenTexts | None, told: Told | None = None
) -> tuple[TextClassificationRecipe, LabelledSplits]:
    """Return the texts that are given in Python as (text, label), or else those of the recipe."""
    if data is None:
        settings = located(recipe.data)
        return recipe.model_copy(update={"data": settings}), read_labelled_splits(settings, told)
    parts = sources.as_parts(data)
    for part in parts:
        require_known(part, PARTS, what="part of the data")
    if "train" not in parts:
        raise SettingsError('The data has no part "train" to learn from.')
    none: dict[str, Any] = dict.fromkeys(PARTS, ())
    files = sources.named_files(parts, what="texts")
    if files is not None:
        table = {**recipe.data.model_dump(), **none, **files, "from_memory": False}
        settings = located(validate(table, LabelledSettings, origin="data"))
        return recipe.model_copy(update={"data": settings}), read_labelled_splits(settings, told)
    texts = {part: _checked_texts(given, part) for part, given in parts.items()}
    settings = recipe.data.model_copy(update={**none, "from_memory": True})
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
