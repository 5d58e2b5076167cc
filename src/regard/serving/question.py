"""What a view of attention is asked for, as a request carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import BaseModel, Field

from regard.base.special_tokens import BEGIN, END, PAD
from regard.decoding.constraints.phrases import Constraints
from regard.recipes.loaded import LoadedTranslator, Sentence
from regard.recipes.text_constraints import TextConstraints
from regard.serving.errors import ApiError, bad_request
from regard.settings.decoding import DecodingSettings


class Question(BaseModel):
    """A sentence whose translation is to be seen from inside."""

    q: str = Field(description="a sentence")
    model: str | None = Field(None, description="name of a model, as /models lists them")
    prefix: str = Field("", description="text that the translation begins with")
    prefix_tokens: list[int] | None = Field(
        None, description="the same as ids, exactly; the end mark may be the last of them"
    )
    beam: int | None = Field(None, ge=1, description="width of the search")
    top: int = Field(8, ge=0, le=50, description="alternatives at each step")
    api_key: str = Field("", description="where the server wants one")


class Task(NamedTuple):
    """A question in the symbols of a model."""

    text: str
    source: list[int]
    settings: DecodingSettings
    constraints: Constraints
    ended: bool
    """Whether the whole translation was given, end mark included."""
    top: int


def read_task(
    translator: LoadedTranslator, question: Question, *, view_symbols: int, max_beam: int
) -> Task:
    """Return what is to be done, or say why it cannot be."""
    text = " ".join(question.q.split())
    if not text:
        raise bad_request("There is nothing to look at: q is empty.")
    source = translator.source_tokenizer.encode(text)
    if len(source) > view_symbols:
        raise ApiError(
            413,
            f"The sentence has {len(source)} symbols; attention is shown for at most "
            f"{view_symbols}.",
        )
    if question.beam is not None and question.beam > max_beam:
        raise bad_request(f"beam ({question.beam}) must not exceed {max_beam}.")
    given = question.prefix_tokens
    ended = given is not None and given[-1:] == [END]
    settings = _settings(translator, question.beam)
    wishes = TextConstraints(prefix=question.prefix if given is None else "")
    found = translator.all_constraints([Sentence(text, source, wishes)], settings)
    constraints = found[0] if found else Constraints()
    if given is not None:
        ids = given[:-1] if ended else given
        _require_symbols(ids, translator.target_tokenizer.size, most=4 * view_symbols)
        constraints = replace(constraints, prefix=tuple(ids))
    return Task(text, source, settings, constraints, ended, question.top)


def _settings(translator: LoadedTranslator, beam: int | None) -> DecodingSettings:
    """Return the recipe's beam search; one that draws by chance has no beam to show."""
    if translator.recipe.decoding.method == "beam":
        return translator.decoding(beam=beam)
    plain = DecodingSettings()  # type: ignore[call-arg]
    return plain if beam is None else plain.model_copy(update={"beam": beam})


def _require_symbols(ids: Sequence[int], vocab: int, *, most: int) -> None:
    if len(ids) > most:
        raise ApiError(413, f"prefix_tokens has {len(ids)} ids, more than {most}.")
    for number in ids:
        if not 0 <= number < vocab or number in (PAD, BEGIN, END):
            raise bad_request(
                f"prefix_tokens holds {number}, which cannot stand in a translation; ids lie "
                f"between {END + 1} and {vocab - 1}, or are 1 for an unknown word."
            )
