"""A trained language model, ready to use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.base.errors import RegardError
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import UNKNOWN
from regard.decoding.continuation import Choice
from regard.models.language_model import LanguageModel, build_language_model
from regard.recipes.generate import Generated, Told, generate, prompt_ids
from regard.recipes.run import Run
from regard.recipes.text_data import TOKENIZER
from regard.settings.language_model import GenerationSettings, LanguageModelRecipe
from regard.settings.read import validate
from regard.text.character import CharacterTokenizer
from regard.text.tokenizers import NEWLINE, RunningText, load_tokenizer
from regard.training.checkpoint import load_weights


@dataclass(frozen=True)
class HeadView:
    """What every layer and head looked at, with the symbols that it was."""

    pieces: tuple[str, ...]
    weights: Float[Tensor, "layers heads time time"]


class LoadedLanguageModel:
    """A model, its tokenizer and its recipe."""

    def __init__(
        self, *, model: LanguageModel[Any], text: RunningText, recipe: LanguageModelRecipe
    ):
        self.model = model
        self.text = text
        self.recipe = recipe

    def generate(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        seed: int = 1,
        stop: Sequence[str] = (),
        cache: bool = True,
        tell: Told | None = None,
        **settings: Any,
    ) -> list[Generated]:
        """Continue a prompt by the recipe's `decoding`, or by settings that are given here.

        A model that was trained on prompts with answers gives one line: its answer.
        """
        chosen = self.generation(**settings)
        if self.recipe.data.pairs:
            prompt, stop = prompt.removesuffix(NEWLINE) + NEWLINE, [*stop, NEWLINE]
        return generate(
            self.model,
            self.text,
            prompt,
            choice=Choice(
                temperature=chosen.temperature,
                top_k=chosen.top_k,
                top_p=chosen.top_p,
                min_p=chosen.min_p,
                repetition_penalty=chosen.repetition_penalty,
            ),
            max_tokens=chosen.max_tokens,
            samples=samples,
            seed=seed,
            stop=stop,
            cache=cache,
            tell=tell,
        )

    def generation(self, **settings: Any) -> GenerationSettings:
        """Return the recipe's settings of generation with these in their place."""
        given = {name: value for name, value in settings.items() if value is not None}
        table = self.recipe.decoding.model_dump() | given
        return validate(table, GenerationSettings, origin="generate")

    def doubts(self, prompt: str) -> list[str]:
        """Return what a user should know about a prompt: a sentence for each doubt."""
        ids = prompt_ids(self.text, prompt)
        found = []
        context = self.model.context
        if context is not None and len(ids) > context:
            found.append(
                f"The prompt has {len(ids)} symbols and the model reads {context} at once: only "
                "the last of them count."
            )
        if isinstance(self.text.tokenizer, CharacterTokenizer) and UNKNOWN in ids:
            unknown = {letter for letter in prompt if UNKNOWN in self.text.encode(letter)}
            listed = " ".join(repr(letter) for letter in sorted(unknown))
            found.append(f"The model has never seen these characters of the prompt: {listed}.")
        return found

    @torch.no_grad()
    def bits_per_character(self, text: str) -> float:
        """Return how many bits each character of a text costs, after the end of a line."""
        ids = [*self.text.opening, *self.text.encode(text)]
        if not text:
            raise RegardError("There is nothing to measure: the text is empty.")
        nats, first = 0.0, len(self.text.opening) or 1
        context = self.model.context or len(ids)
        for start in range(0, len(ids) - 1, context):
            window = torch.tensor([ids[start : start + context + 1]])
            features = self.model(window[:, :-1]).features[0]
            logs = torch.log_softmax(self.model.project(features), dim=-1)
            chosen = logs.gather(1, window[0, 1:, None]).squeeze(1)
            nats -= float(chosen[max(0, first - 1 - start) :].sum())
        return nats / math.log(2) / len(text)

    @torch.no_grad()
    def heads(self, text: str) -> HeadView:
        """Return what every head of every layer looks at, at each symbol of a text."""
        ids = prompt_ids(self.text, text)[-(self.model.context or 0) :]
        maps = self.model.head_maps(torch.tensor([ids]))
        return HeadView(tuple(self.text.pieces(ids)), maps[:, 0])


def load_language_model(folder: str | Path) -> LoadedLanguageModel:
    """Load the best language model of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(LanguageModelRecipe)
    text = RunningText(load_tokenizer(run.folder, TOKENIZER))
    model = build_language_model(recipe.model, vocab=text.size)
    load_weights(model, run.weights())
    model.eval()
    return LoadedLanguageModel(model=model, text=text, recipe=recipe)
