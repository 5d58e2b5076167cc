"""Text that a language model writes: streamed as it is drawn, with strings to stop at."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from regard.base.errors import RegardError
from regard.base.shapes import Float, Tensor
from regard.compute.device import beside, device_of, placed
from regard.decoding.sampling import Choice, Drawn, continuation
from regard.models.language_model import LanguageModel, build_language_model
from regard.models.pretrained import add_adapters, merge_adapters
from regard.models.sizes import build_for
from regard.runs.run import Run, TrainedRun, quoted
from regard.settings.recipe import validate
from regard.tasks.language_modelling import data
from regard.tasks.language_modelling import settings as schema
from regard.text.tokenizers import NEWLINE, RunningText, load_tokenizer, unknown_parts
from regard.training.checkpoint import load_weights

CUT_LETTER = "\ufffd"  # what bytes that do not yet make a letter are shown as

OnText = Callable[[int, str], None]


@dataclass(frozen=True)
class Generated:
    """One continuation of a prompt, and why it ended."""

    prompt: str
    text: str
    tokens: int
    reason: Literal["length", "stop", "end"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


class _Sample:
    """The text of one sample as it grows, told of in parts that will not change any more."""

    def __init__(
        self,
        text: RunningText,
        prompt: Sequence[int],
        *,
        stop: Sequence[str],
        on_text: OnText | None,
    ):
        self._text = text
        self._ids = list(prompt)
        self._before = len(text.decode(self._ids))
        self._stop = [string for string in stop if string]
        self._on_text = on_text
        self._told = 0
        self.tokens = 0
        self.reason: Literal["length", "stop", "end"] = "length"
        self.written = ""

    def add(self, drawn: Drawn) -> bool:
        """Take in one more token; return whether the sample ends with it."""
        if drawn.token in self._text.ends:
            self.reason = "end"
            return True
        self._ids.append(drawn.token)
        self.tokens += 1
        self.written = self._text.decode(self._ids)[self._before :]
        found = [place for stop in self._stop if (place := self.written.find(stop)) >= 0]
        if found:
            self.written = self.written[: min(found)]
            self.reason = "stop"
            return True
        self._on_text_until(drawn.sample, len(self.written) - self._unsure())
        return False

    def close(self, number: int) -> None:
        """Tell what was held back."""
        self._on_text_until(number, len(self.written))

    def _on_text_until(self, number: int, end: int) -> None:
        if self._on_text is not None and end > self._told:
            self._on_text(number, self.written[self._told : end])
            self._told = end

    def _unsure(self) -> int:
        """Return how many characters at the end may still change, or begin a string to stop at."""
        whole = len(self.written.rstrip(CUT_LETTER))
        sure = whole
        for stop in self._stop:
            for length in range(1, len(stop)):
                if self.written.endswith(stop[:length]):
                    sure = min(sure, len(self.written) - length)
        return len(self.written) - sure


def prompt_ids(text: RunningText, prompt: str) -> list[int]:
    """Return what the model reads first: the prompt, or for an empty one the end of a line."""
    ids = text.encode(prompt) or text.opening
    if not ids:
        raise RegardError("This model knows no line ends to begin after: give it a prompt.")
    return ids


@dataclass(frozen=True)
class HeadView:
    """What every layer and head looked at, with the tokens that it was."""

    pieces: tuple[str, ...]
    weights: Float[Tensor, "layers heads time time"]


class LoadedLanguageModel:
    """A model, its tokenizer and its recipe."""

    def __init__(
        self, *, model: LanguageModel[Any], text: RunningText, recipe: schema.LanguageModelRecipe
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
        on_text: OnText | None = None,
        **settings: Any,
    ) -> list[Generated]:
        """Return continuations of a prompt, by the recipe's `decoding` or by settings given here.

        A model that was trained on prompts with answers gives one line: its answer. `on_text` is
        called with the number of a sample and each new part of it.
        """
        chosen = self.generation(**settings)
        if self.recipe.data.pairs:
            prompt, stop = prompt.removesuffix(NEWLINE) + NEWLINE, [*stop, NEWLINE]
        ids = prompt_ids(self.text, prompt)
        found = [_Sample(self.text, ids, stop=stop, on_text=on_text) for _ in range(samples)]
        for _ in continuation(
            self.model,
            ids,
            choice=Choice(
                temperature=chosen.temperature,
                top_k=chosen.top_k,
                top_p=chosen.top_p,
                min_p=chosen.min_p,
                repetition_penalty=chosen.repetition_penalty,
                seed=seed,
            ),
            finished=lambda drawn: found[drawn.sample].add(drawn),
            max_tokens=chosen.max_tokens,
            samples=samples,
            context=self.model.context,
            cache=cache,
            device=device_of(self.model),
        ):
            pass  # `finished` adds each token to its sample
        for number, sample in enumerate(found):
            sample.close(number)
        return [Generated(prompt, one.written, one.tokens, one.reason) for one in found]

    def generation(self, **settings: Any) -> schema.GenerationSettings:
        """Return the recipe's settings of generation with these in their place."""
        given = {name: value for name, value in settings.items() if value is not None}
        table = self.recipe.decoding.model_dump() | given
        return validate(table, schema.GenerationSettings, origin="generate")

    def prompt_warnings(self, prompt: str) -> list[str]:
        """Return what a user should know about a prompt: a sentence for each warning."""
        ids = prompt_ids(self.text, prompt)
        found = []
        context = self.model.context
        if context is not None and len(ids) > context:
            found.append(
                f"The prompt has {len(ids)} tokens and the model reads {context} at once: only "
                "the last of them count."
            )
        unknown = unknown_parts(self.text.tokenizer, prompt, self.text.encode(prompt))
        if unknown:
            listed = " ".join(repr(letter) for letter in sorted(unknown))
            found.append(f"The model has never seen these characters of the prompt: {listed}.")
        return found

    @torch.no_grad()
    def bits_per_character(self, text: str) -> float:
        """Return how many bits each character of a text costs, after the end of a line."""
        ids = [*self.text.opening, *self.text.encode(text)]
        if not text:
            raise RegardError("There is nothing to measure: the text is empty.")
        self.model.start(1)  # refuses a model that reads both ways
        nats, first = 0.0, len(self.text.opening) or 1
        context = self.model.context or len(ids)
        for start in range(0, len(ids) - 1, context):
            window = beside(self.model, torch.tensor([ids[start : start + context + 1]]))
            features = self.model(window[:, :-1]).features[0]
            logs = torch.log_softmax(self.model.project(features), dim=-1)
            chosen = logs.gather(1, window[0, 1:, None]).squeeze(1)
            nats -= float(chosen[max(0, first - 1 - start) :].sum())
        return nats / math.log(2) / len(text)

    @torch.no_grad()
    def heads(self, text: str) -> HeadView:
        """Return what every head of every layer looks at, at each token of a text."""
        ids = self.read_ids(text)
        maps = self.model.head_maps(beside(self.model, torch.tensor([ids])))
        return HeadView(tuple(self.text.pieces(ids)), maps[:, 0].cpu())

    def read_ids(self, text: str) -> Sequence[int]:
        """Return the tokens of a text, the last ones that fit into the context."""
        return prompt_ids(self.text, text)[-(self.model.context or 0) :]


def load(folder: str | Path) -> LoadedLanguageModel:
    """Load the best language model of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(schema.LanguageModelRecipe)
    text = RunningText(load_tokenizer(run.folder, data.TOKENIZER))
    weights = run.weights()
    model = build_for(lambda: build_language_model(recipe.model, vocab=text.size), weights)
    if recipe.training.adapter_rank:
        add_adapters(model, rank=recipe.training.adapter_rank)
    load_weights(model, weights)
    merge_adapters(model)
    model.eval()
    return LoadedLanguageModel(model=placed(model), text=text, recipe=recipe)


# A recipe does not know its vocabulary before it has seen text; this stands in for characters.
ASSUMED_CHARACTERS = 100


def build(recipe: schema.LanguageModelRecipe) -> LanguageModel[Any]:
    """Return the untrained language model of a recipe."""
    vocab = recipe.model.vocab or recipe.tokenizer.size or ASSUMED_CHARACTERS
    return build_language_model(recipe.model, vocab=vocab)


SAMPLES = "samples.jsonl"


@dataclass(frozen=True)
class TrainedLanguageModel(TrainedRun):
    """A finished training: its run, its best model, and what its validation found."""

    model: LoadedLanguageModel
    metrics: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the validation, as plain values."""
        return {**super().to_dict(), "samples": str(self.run.folder / SAMPLES), **self.metrics}

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        run = quoted(self.run.folder)
        return [f'regard generate {run} "..."', f'regard look {run} "..."']

    def lines(self) -> list[str]:
        """Return the validation as a person reads it."""
        found, bits = self.metrics, self.metrics.get("bits_per_character")
        by_character = "" if bits is None else f", {bits:.4f} bits a character"
        folder = self.run.folder
        return [
            f"Validation: loss {found['loss']:.4f}, perplexity {found['perplexity']:.4g}"
            f"{by_character}.",
            f"Run: {folder}   samples: {folder / SAMPLES}   report: {self.report}",
        ]
