"""The figures of the guide by name: illustrations, diagrams, positions, and what a model reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from regard.base.errors import SettingsError
from regard.lectures.illustrations import ILLUSTRATIONS, illustrate, read_options
from regard.settings.recipe import require_known

if TYPE_CHECKING:
    from regard.tasks.attention import AttentionMap
    from regard.tasks.translation.model import LoadedTranslator

EXAMPLE = Path(__file__).with_name("example.json")
LONGEST = 400  # characters of a sentence that is to be drawn

# What a figure that reads a model or a recipe can be given, with what it has by itself.
OPTIONS: dict[str, dict[str, str]] = {
    "diagram": {"recipe": "bahdanau"},
    "positions": {"kind": "sinusoidal"},
    "step": {"step": "4"},
    "heat-map": {},
}


@dataclass
class Figures:
    """Draws the figures of the guide, with a user's translator where there is one."""

    run: Path | None = None
    sentence: str | None = None
    drawn: dict[tuple[str, tuple[tuple[str, str], ...]], str] = field(default_factory=dict)
    """Pictures that were drawn before, by name and numbers."""
    _seen: dict[str, AttentionMap] = field(default_factory=dict)
    _model: LoadedTranslator | None = None

    def svg(self, name: str, numbers: Mapping[str, str], *, sentence: str | None = None) -> str:
        """Return a figure as SVG text; `numbers` are as they stand in a page or an address."""
        require_known(name, [*ILLUSTRATIONS, *OPTIONS], what="figure")
        if name in ILLUSTRATIONS:
            given = [f"{key}={value}" for key, value in numbers.items()]
            return illustrate(name, **read_options(name, given)).svg()
        for key in numbers:
            require_known(key, OPTIONS[name], what=f"number of the figure {name}")
        draw: dict[str, Callable[..., str]] = {
            "diagram": _diagram,
            "positions": _positions,
            "step": self._step,
            "heat-map": self._heat_map,
        }
        chosen = {**OPTIONS[name], **numbers}
        if name in ("step", "heat-map"):
            return draw[name](self.attention(sentence), **chosen)
        return draw[name](**chosen)

    def command(self, name: str, numbers: Mapping[str, str], *, sentence: str | None = None) -> str:
        """Return the command that draws the same figure."""
        if name in ILLUSTRATIONS:
            settings = "".join(f" --set {key}={value}" for key, value in numbers.items())
            return f"regard illustrate {name}{settings} --out {name}.svg"
        run = str(self.run or "runs/demo/attention")
        text = quote(sentence or self.sentence or str(example()["source_text"]))
        return {
            "diagram": f"regard summary {numbers.get('recipe', 'bahdanau')} --diagram model.svg",
            "positions": f"regard look --positions {numbers.get('kind', 'sinusoidal')} "
            "--out positions.svg",
            "step": f"regard look {run} {text} --step {numbers.get('step', '4')} --out step.svg",
            "heat-map": f"regard look {run} {text} --out attention.svg",
        }[name]

    def attention(self, sentence: str | None = None) -> AttentionMap:
        """Return what the user's translator reads, or the recorded example."""
        text = (sentence or self.sentence or str(example()["source_text"])).strip()
        if len(text) > LONGEST:
            raise SettingsError(
                f"The sentence has {len(text)} characters; a figure has room for {LONGEST}."
            )
        if self.run is None:
            return _recorded()
        if text not in self._seen:
            translation = self._translator().translate(text)
            if translation.attention is None or not translation.text:
                raise SettingsError(f"The model of {self.run} shows no attention for {text!r}.")
            self._seen[text] = translation.by_word()
        return self._seen[text]

    def _translator(self) -> LoadedTranslator:
        if self._model is None:
            from regard.tasks.translation.model import load

            self._model = load(self.run or "")
        return self._model

    def _step(self, seen: AttentionMap, *, step: str) -> str:
        from regard.pictures.steps import step_svg

        if not step.isdigit():
            raise SettingsError(f"step = {step}: it must be a whole number from 1 on.")
        number = min(int(step), len(seen.target))  # a slider may be longer than the translation
        return step_svg(seen.weights, source=seen.source, target=seen.target, step=number)

    def _heat_map(self, seen: AttentionMap) -> str:
        from regard.pictures.heat_map import heat_map_svg

        return heat_map_svg(seen.weights, source=seen.source, target=seen.target)


def example() -> dict[str, Any]:
    """Return the recorded example: a sentence as the demo's model with attention reads it."""
    found: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return found


def _recorded() -> AttentionMap:
    import numpy as np

    from regard.tasks.attention import AttentionMap

    stored = example()
    source, target = tuple(stored["source"]), tuple(stored["target"])
    places = tuple(range(len(source))), tuple(range(len(target)))
    return AttentionMap(np.array(stored["weights"]), source, target, *places)


def _diagram(*, recipe: str) -> str:
    from regard.runs.catalogue import recipe_names
    from regard.tasks.architecture import summary

    require_known(recipe, recipe_names(), what="recipe")  # by name, never a file
    return summary(recipe).svg()


def _positions(*, kind: str) -> str:
    from regard.studies.positions import positions_of

    return positions_of(kind, None, layer=None).svg()
