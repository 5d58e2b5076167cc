"""Text that a language model writes: streamed as it is drawn, with strings to stop at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from regard.base.errors import RegardError
from regard.decoding.continuation import Choice, Drawn, continuation
from regard.models.language_model import LanguageModel
from regard.text.tokenizers import RunningText

CUT_LETTER = "\ufffd"  # what bytes that do not yet make a letter are shown as

Told = Callable[[int, str], None]


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
        self, text: RunningText, prompt: Sequence[int], *, stop: Sequence[str], tell: Told | None
    ):
        self._text = text
        self._ids = list(prompt)
        self._before = len(text.decode(self._ids))
        self._stop = [string for string in stop if string]
        self._tell = tell
        self._told = 0
        self.tokens = 0
        self.reason: Literal["length", "stop", "end"] = "length"
        self.written = ""

    def add(self, drawn: Drawn) -> bool:
        """Take in one more symbol; return whether the sample ends with it."""
        if drawn.token == self._text.end:
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
        self._tell_until(drawn.sample, len(self.written) - self._unsure())
        return False

    def close(self, number: int) -> None:
        """Tell what was held back."""
        self._tell_until(number, len(self.written))

    def _tell_until(self, number: int, end: int) -> None:
        if self._tell is not None and end > self._told:
            self._tell(number, self.written[self._told : end])
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


def generate(
    model: LanguageModel[Any],
    text: RunningText,
    prompt: str,
    *,
    choice: Choice,
    max_tokens: int,
    samples: int = 1,
    seed: int = 1,
    stop: Sequence[str] = (),
    cache: bool = True,
    tell: Told | None = None,
) -> list[Generated]:
    """Return continuations of a prompt; `tell` hears the number and each new part of a sample."""
    ids = prompt_ids(text, prompt)
    found = [_Sample(text, ids, stop=stop, tell=tell) for _ in range(samples)]

    def finished(drawn: Drawn) -> bool:
        return found[drawn.sample].add(drawn)

    for _ in continuation(
        model,
        ids,
        choice=choice,
        finished=finished,
        max_tokens=max_tokens,
        samples=samples,
        seed=seed,
        context=model.context,
        cache=cache,
    ):
        pass  # each symbol is taken in by `finished`
    for number, sample in enumerate(found):
        sample.close(number)
    return [Generated(prompt, one.written, one.tokens, one.reason) for one in found]


def prompt_ids(text: RunningText, prompt: str) -> list[int]:
    """Return what the model reads first: the prompt, or for an empty one the end of a line."""
    ids = text.encode(prompt) or text.opening
    if not ids:
        raise RegardError("This model knows no line ends to begin after: give it a prompt.")
    return ids
