"""Requests to look inside a model: the arithmetic of a head, interventions, the layer lens.

Each has fields and a function of a loaded model, which a worker calls in its turn. What is asked
is bounded by its fields, and what is read is the model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from regard.base.errors import SettingsError
from regard.base.special_tokens import END
from regard.corpora.parallel import SentencePair
from regard.models.inspection import Trace
from regard.runs.film import film_of
from regard.serving.attention import require_tokens
from regard.serving.errors import ApiError, bad_request
from regard.serving.limits import ServerSettings
from regard.tasks import task_of
from regard.tasks.interventions import InterventionRequest
from regard.tasks.lens import Lens
from regard.tasks.translation.data import grammar_splits
from regard.tasks.translation.settings import GrammarSettings

MOST_SEARCHED = 5_000  # training pairs of the built-in corpus
MODEL = Field(None, description="name of a model, as /models lists them")
KEY = Field("", description="where the server requires one")
TOKENS = Field(None, description="token ids of the translation; none: the model's own")
WrittenChange = Annotated[str, Field(max_length=2_000)]
WrittenChanges = Annotated[list[WrittenChange], Field(max_length=100)]


class HeadRequest(BaseModel):
    """Every number of one head of attention, named as `regard trace` names it."""

    q: str = Field(description="a sentence, a text")
    model: str | None = MODEL
    tokens: list[int] | None = TOKENS
    part: str = Field("cross", max_length=20, description="cross, encoder or decoder")
    layer: int = Field(0, ge=0, description="layer, counted from 0")
    head: int = Field(0, ge=0, description="head, counted from 0")
    api_key: str = KEY


class LensRequest(BaseModel):
    """What each layer would have said at each step."""

    q: str = Field(description="a sentence, a text")
    model: str | None = MODEL
    tokens: list[int] | None = TOKENS
    api_key: str = KEY


class ChangeRequest(BaseModel):
    """A text, and what is to be changed inside the model, as `regard intervene` has it."""

    q: str = Field(description="a sentence, a text, a node")
    model: str | None = MODEL
    off: WrittenChanges = Field([], description="heads off, as 1.3 or encoder.0")
    mean: WrittenChanges = Field([], description="heads replaced by their mean")
    skip: WrittenChanges = Field([], description="layers off, as encoder.0")
    force: WrittenChanges = Field([], description="weights of a step, as 2=#1 or 2=#0:0.7,#1:0.3")
    move: WrittenChanges = Field([], description="weight moved at a step, as 2=#1:#0")
    hide: WrittenChanges = Field([], description="words hidden, as dogs or #1@cross.0")
    swap: WrittenChanges = Field([], description="words whose values are exchanged, as cats=dogs")
    patch: WrittenChanges = Field([], description="states taken from another text, as dogs=horses")
    other: str | None = Field(None, description="the text that states are taken from")
    api_key: str = KEY


class WhereRequest(BaseModel):
    """Two words and a head: where in the training examples does it attend from one to the other?"""

    model: str | None = MODEL
    attends: str = Field(min_length=1, max_length=100, description="the word that attends")
    attended: str = Field(min_length=1, max_length=100, description="the word attended to")
    part: str = Field("cross", max_length=20, description="cross, encoder or decoder")
    layer: int | None = Field(None, ge=0, description="layer, counted from 0; none: the last")
    head: int | None = Field(None, ge=0, description="head; none: the mean of the layer")
    least: float = Field(0.3, ge=0.01, le=1, description="smallest weight that counts")
    api_key: str = KEY


def places_found(loaded: Any, request: WhereRequest, settings: ServerSettings) -> dict[str, Any]:
    """Return the places in the built-in corpus, the only examples that a run does not name."""
    data: Any = getattr(loaded.recipe, "data", None)
    if loaded.recipe.task != "translate" or not getattr(data, "built_in", False):
        raise bad_request(
            "The server searches the built-in corpus only, for a run may name any file as its "
            "data: search with regard look RUN --where WORD:WORD."
        )
    from regard.tasks.translation.search import MOST_SHOWN, GazeQuery, find_gazes

    if not loaded.attends:
        raise bad_request("This model has no attention.")
    asked = request.model_dump(include={"attends", "attended", "part", "layer", "head", "least"})
    pairs = _training_pairs(data.grammar.model_dump_json())
    found = find_gazes(loaded, pairs, GazeQuery(**asked))
    shown = [gaze.to_dict() for gaze in found[:MOST_SHOWN]]
    return {"searched": len(pairs), "count": len(found), "places": shown}


@lru_cache(maxsize=2)
def _training_pairs(grammar: str) -> list[SentencePair]:
    """Return training pairs of the built-in corpus, at most as many as are searched."""
    settings = GrammarSettings.model_validate_json(grammar)
    sizes = {"size": min(settings.size, MOST_SEARCHED), "valid_size": 1, "test_size": 1}
    return list(grammar_splits(settings.model_copy(update=sizes)).train)


class FilmRequest(BaseModel):
    """The frames of a training that was filmed."""

    model: str | None = MODEL
    api_key: str = KEY


def film_frames(folder: Path | None) -> dict[str, Any]:
    """Return the frames that a run has kept."""
    frames = film_of(folder) if folder is not None else []
    if not frames:
        raise bad_request(
            "This training was not filmed: train with --set training.film=true to see what the "
            "model looks at change."
        )
    return {"frames": frames}


def head_numbers(loaded: Any, request: HeadRequest, settings: ServerSettings) -> dict[str, Any]:
    """Return the vectors, scores and weights of one head, in the digits of `regard trace`."""
    text = bounded_text(loaded, request.q, settings)
    task = task_of(loaded.recipe.task)
    if task.trace is None:
        raise bad_request("This model has no trace.")
    given = _target(loaded, request.tokens, settings)
    trace: Trace = task.trace(loaded, text, **({} if given is None else {"target": given}))
    prefix = f"{request.part}.{request.layer}."
    found = [array for array in trace.inside if array.name.startswith(prefix)]
    if not any(array.name == f"{prefix}weights" for array in found):
        raise bad_request(
            f"There is no attention in layer {request.layer} of {request.part[:20]!r}."
        )
    arrays = {}
    for array in found:
        axes, values = array.axes, array.values
        if axes[0] == "head":
            if request.head >= len(values):
                raise bad_request(
                    f"There is no head {request.head}: the layer has {len(values)}, counted from 0."
                )
            axes, values = axes[1:], values[request.head]
        name = array.name.removeprefix(prefix)
        arrays[name] = {"axes": axes, "formula": array.formula, "values": values.tolist()}
    labels = {axis: list(names) for axis, names in trace.labels.items() if axis != "vocab"}
    return {"output": trace.output, "labels": labels, "arrays": arrays}


def lens_numbers(loaded: Any, request: LensRequest, settings: ServerSettings) -> dict[str, Any]:
    """Return what each layer would have said."""
    text = bounded_text(loaded, request.q, settings)
    task = loaded.recipe.task
    found: Lens
    if task == "translate":
        from regard.tasks.translation.views import lens_of_translation

        given = _target(loaded, request.tokens, settings)
        target = None if given is None else [token for token in given if token != END]
        found = lens_of_translation(loaded, text, target)
    elif task == "language-model":
        from regard.tasks.language_modelling.views import lens_of_text

        found = lens_of_text(loaded, text)
    else:
        raise bad_request(f"A model of the task {task!r} has no layer lens.")
    return found.to_dict()


def changed_output(loaded: Any, request: ChangeRequest, settings: ServerSettings) -> dict[str, Any]:
    """Return the output with interventions beside the one without them."""
    task = task_of(loaded.recipe.task)
    if task.intervene is None:
        raise SettingsError(f"A run of the task {loaded.recipe.task!r} takes no interventions.")
    text = bounded_text(loaded, request.q, settings)
    other = None if request.other is None else bounded_text(loaded, request.other, settings)
    names = ("off", "mean", "skip", "force", "move", "hide", "swap", "patch")
    wanted = {name: tuple(getattr(request, name)) for name in names}
    effect = task.intervene(loaded, text, InterventionRequest(**wanted, other=other))
    return effect.to_dict()


def bounded_text(loaded: Any, text: str, settings: ServerSettings) -> str:
    """Return a text that a view may be asked of, or refuse one that is empty or too long."""
    if len(text) > settings.max_characters:
        most = settings.max_characters
        raise ApiError(413, f"The text has {len(text)} characters, more than {most}.")
    text = " ".join(text.split()) if hasattr(loaded, "source_tokenizer") else text
    if not text.strip():
        raise bad_request("There is nothing to look at: q is empty.")
    size = _tokens(loaded, text)
    if size > settings.view_tokens:
        raise ApiError(
            413, f"The text has {size} tokens; a view is for at most {settings.view_tokens}."
        )
    return text


def _tokens(loaded: Any, text: str) -> int:
    """Return how many tokens a model makes of a text; 0 for what it does not cut into tokens."""
    if hasattr(loaded, "source_tokenizer"):
        return len(loaded.source_tokenizer.encode(text))
    return len(loaded.text.encode(text)) if hasattr(loaded, "text") else 0


def _target(
    loaded: Any, tokens: Sequence[int] | None, settings: ServerSettings
) -> list[int] | None:
    """Return a translation that is given, with its end mark; None if none is."""
    if tokens is None or not hasattr(loaded, "target_tokenizer"):
        return None
    ids = [*tokens[:-1]] if tokens[-1:] == [END] else [*tokens]
    size = loaded.target_tokenizer.size
    require_tokens(ids, size, most=4 * settings.view_tokens, name="tokens")
    return [*ids, END]
