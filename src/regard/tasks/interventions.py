"""Interventions as people write them, and what they did: the part that all tasks share.

    off, mean    PLACE              heads, as [PART.]LAYER[.HEAD]: 1.3, encoder.0
    skip         PART.LAYER         a whole layer
    force        STEP=WORD          all weight of a step on a word, or STEP=WORD:0.7,WORD:0.3
    move         STEP=WORD:WORD     the weight on one word to another
    hide         WORD               a word gets no weight
    swap         WORD=WORD          two words change values
    patch        WORD=WORD          the state of a word is that of a word of another text

Each of the last five may end in @PLACE, as `hide dogs@1.3`. A step is a number from 0 or a word of
the output; `dogs#2` is the second one of its kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from regard.attention.probe import Change, Recorder
from regard.base.errors import SettingsError
from regard.base.shapes import Tensor
from regard.models import interventions as changes
from regard.models.interventions import Place
from regard.tasks.attention import SPACES, AttentionMap

PARTS = ("cross", "encoder", "decoder", "graph")


@dataclass(frozen=True, kw_only=True)
class InterventionRequest:
    """What is to be changed, as text."""

    off: Sequence[str] = ()
    mean: Sequence[str] = ()
    skip: Sequence[str] = ()
    force: Sequence[str] = ()
    move: Sequence[str] = ()
    hide: Sequence[str] = ()
    swap: Sequence[str] = ()
    patch: Sequence[str] = ()
    other: str | None = None
    """The text that states are taken from."""
    examples: Sequence[str] = ()
    """The texts over which a head is averaged."""

    def described(self) -> tuple[str, ...]:
        """Return each intervention as it was written."""
        names = ("off", "mean", "skip", "force", "move", "hide", "swap", "patch")
        found = tuple(f"{name} {each}" for name in names for each in getattr(self, name))
        if not found:
            raise SettingsError(
                "There is nothing to change: name at least one of off, mean, skip, force, move, "
                "hide, swap and patch, as --off 0.1 or --hide dogs."
            )
        if self.patch and self.other is None:
            raise SettingsError("patch takes states from another text: give it with --from TEXT.")
        return found

    def refuse(self, *names: str, task: str) -> None:
        """Refuse interventions that a task does not have."""
        for name in names:
            if getattr(self, name):
                raise SettingsError(f"{name} has no meaning for {task}: leave it out.")


@dataclass(frozen=True)
class Outcome:
    """What a model wrote or chose: its tokens (or labels) with their probabilities."""

    text: str
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    attention: AttentionMap | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "text": self.text,
            "tokens": list(self.tokens),
            "probabilities": [round(value, 6) for value in self.probabilities],
            **({"attention": self.attention.to_dict()} if self.attention else {}),
        }


@dataclass(frozen=True)
class Effect:
    """The output with interventions beside the one without them, and what changed."""

    source: str
    interventions: tuple[str, ...]
    before: Outcome
    after: Outcome
    kept: tuple[float, ...]
    """The probability, under the interventions, of each token of the output before them."""

    @property
    def changes(self) -> list[tuple[str, str]]:
        """The words that were replaced, each with those in their place."""
        old, new = self.before.text.split(), self.after.text.split()
        found = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
        return [
            (" ".join(old[begin:end]), " ".join(new[start:stop]))
            for tag, begin, end, start, stop in found
            if tag != "equal"
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "interventions": list(self.interventions),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "kept": [round(value, 6) for value in self.kept],
            "changes": [{"before": old, "after": new} for old, new in self.changes],
        }

    def __str__(self) -> str:
        changed = ", ".join(f"{old or '(nothing)'} -> {new or '(nothing)'}"
                            for old, new in self.changes)  # fmt: skip
        width = max([len(token) for token in self.before.tokens] or [1])
        lines = [
            "; ".join(self.interventions),
            f"before   {self.before.text}",
            f"after    {self.after.text}",
            f"changed  {changed or 'nothing'}",
            "",
            f"{'token before':<{max(width, 12)}}  p before  p after",
        ]
        for token, old, new in zip(
            self.before.tokens, self.before.probabilities, self.kept, strict=True
        ):
            lines.append(f"{token:<{max(width, 12)}}  {old:8.4f}  {new:7.4f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show both outputs, changed words marked, and both maps of attention."""
        from regard.pictures.svg import notebook_lines

        parts = [notebook_lines(("", "; ".join(self.interventions)))]
        for title, outcome, other in (
            ("before", self.before, self.after),
            ("after", self.after, self.before),
        ):
            parts.append(f"<p>{title}: {_marked(outcome.text, other.text)}</p>")
            if outcome.attention is not None and outcome.tokens:
                parts.append(outcome.attention._repr_html_())
        return "".join(parts)

    def save(self, path: Path) -> None:
        """Draw the attention before above that after, or write it as data (.csv, .json)."""
        from regard.pictures.heat_map import write_map

        old, new = self.before.attention, self.after.attention
        if old is None or new is None:
            raise SettingsError("There is no map of attention to draw here: ask for --json.")
        between = np.zeros((1, old.weights.shape[1]))
        write_map(
            np.concatenate([old.weights, between, new.weights]),
            source=old.source,
            target=(*old.target, "—", *new.target),
            path=path,
            title=f"before; below: {'; '.join(self.interventions)}",
        )


def _marked(text: str, other: str) -> str:
    """Return a text with the words marked that the other one does not have there."""
    words, others = text.split(), other.split()
    found = difflib.SequenceMatcher(a=words, b=others, autojunk=False).get_opcodes()
    parts = []
    for tag, begin, end, *_ in found:
        part = escape(" ".join(words[begin:end]))
        parts.append(part if tag == "equal" or not part else f"<mark>{part}</mark>")
    return " ".join(parts)


def place_of(text: str, *, part: str | None) -> Place:
    """Return the heads that `[PART.]LAYER[.HEAD]` names; `part` is meant where none is named."""
    first, _, rest = text.partition(".")
    named = first in PARTS
    numbers = (rest.split(".") if rest else []) if named else text.split(".")
    good = all(number.isascii() and number.isdigit() for number in numbers)
    if not good or len(numbers) > 2 or (not numbers and not named):
        raise SettingsError(
            f"{text!r} names no heads: write [PART.]LAYER[.HEAD], as 1.3 or encoder.0, with one of "
            f"the parts {', '.join(PARTS)}; layers and heads count from 0."
        )
    layer, head = [*(int(number) for number in numbers), None, None][:2]
    return Place(first if named else part, layer, head)


def two_sides(text: str, mark: str, *, what: str, form: str) -> tuple[str, str]:
    """Return what stands before and behind a mark."""
    left, found, right = text.partition(mark)
    if not (found and left.strip() and right.strip()):
        raise SettingsError(f"{what} {text!r} cannot be read: write {form}.")
    return left.strip(), right.strip()


@dataclass(frozen=True)
class Words:
    """A text as a model reads it: its words, and the tokens of each; -1 belongs to no word."""

    words: tuple[str, ...]
    of_token: tuple[int, ...]
    end_mark: str | None = None
    name: str = "text"

    def tokens(self, word: str) -> tuple[int, ...]:
        """Return the tokens of a word: `it#2` is the second one, `#3` the word at place 3."""
        if self.end_mark is not None and word == self.end_mark:
            return (len(self.of_token) - 1,)
        place = self._place(word)
        found = tuple(token for token, owner in enumerate(self.of_token) if owner == place)
        if not found:
            raise SettingsError(f"The word {word!r} has no token of its own.")
        return found

    def _place(self, word: str) -> int:
        wanted, _, number = word.rpartition("#")
        plain = [each.strip(SPACES) for each in self.words]
        if not wanted and number.isdigit() and int(number) < len(plain):
            return int(number)
        if word in plain or not wanted or not number.isdigit():
            wanted, number = word, "1"
        for compared in (lambda each: each == wanted, lambda each: _bare(each) == _bare(wanted)):
            places = [place for place, each in enumerate(plain) if compared(each)]
            if 1 <= int(number) <= len(places):
                return places[int(number) - 1]
        raise SettingsError(
            f"The {self.name} has no word {word!r}. Its words are: {' '.join(plain)}."
        )

    def step(self, text: str) -> int:
        """Return the number of a step: a number, or the first token of a word."""
        if text.isascii() and text.isdigit():
            return int(text)
        return self.tokens(text)[0]

    def weights(self, text: str) -> tuple[float, ...]:
        """Return the weights of `WORD` or `WORD:0.7,WORD:0.3`, equal for the tokens of a word."""
        found = [0.0] * len(self.of_token)
        for each in text.split(","):
            word, colon, share = each.rpartition(":")
            try:
                value = float(share) if colon and word else 1.0
            except ValueError:
                word, value = each, 1.0
            places = self.tokens((word if colon and word else each).strip())
            for place in places:
                found[place] += value / len(places)
        if min(found) < 0 or abs(sum(found) - 1) > 1e-4:
            raise SettingsError(
                f"The weights {text!r} sum to {sum(found):g}: weights are not negative and sum to "
                "1, as dogs:0.7,cats:0.3."
            )
        return tuple(found)


def _bare(word: str) -> str:
    """Return a word without case and punctuation."""
    return "".join(letter for letter in word.casefold() if letter.isalnum())


@dataclass(frozen=True, kw_only=True)
class InterventionSubject:
    """What interventions in a text are about: its words, and what a model has to change."""

    source: Words
    """The words that are attended to."""
    target: Words
    """The words that attend, by which steps are named."""
    part: str
    """The part that is meant where none is named."""
    parts: Mapping[str, tuple[int, int]]
    """The layers and heads of each part that attends."""
    states: tuple[str, str]
    """The part whose states are patched, and what they are called without a layer."""
    means: Callable[[], Mapping[tuple[str, int], Tensor]]
    """Return the mean context of each head over some texts."""
    record: Callable[[str], tuple[Words, Recorder]]
    """Return the words of another text, and what a probe sees of it."""

    def place(self, text: str, *, part: str | None) -> Place:
        """Return the heads that a text names, or say which there are."""
        return self._known(place_of(text, part=part))

    def split(self, text: str, *, part: str | None) -> tuple[str, Place]:
        """Return what stands before @PLACE, and the place."""
        what, at, place = text.rpartition("@")
        if not (at and what):
            return text, Place(part)
        return what, self.place(place, part=part)

    def _known(self, place: Place) -> Place:
        parts = self.parts if place.part is None else {place.part: self.parts.get(place.part)}
        for part, size in parts.items():
            if size is None:
                raise SettingsError(
                    f"This model has no attention in {part}; it has it in {', '.join(self.parts)}."
                )
            for name, number, count in zip(
                ("layer", "head"), (place.layer, place.head), size, strict=True
            ):
                if number is not None and number >= count:
                    raise SettingsError(
                        f"There is no {name} {number} in {part}: it has {count}, counted from 0."
                    )
        return place


def changes_of(request: InterventionRequest, subject: InterventionSubject) -> list[Change]:
    """Return the interventions that a request means for a text."""
    part, source, target = subject.part, subject.source, subject.target
    found: list[Change] = [changes.Off(subject.place(each, part=part)) for each in request.off]
    found += [_skip(each, subject) for each in request.skip]
    if request.mean:
        means = subject.means()
        found += [changes.Mean(subject.place(each, part=part), means) for each in request.mean]
    for each in request.force:
        what, place = subject.split(each, part=part)
        step, words = two_sides(what, "=", what="force", form="STEP=WORD, as 2=dogs")
        found.append(changes.Force(target.step(step), source.weights(words), place))
    for each in request.move:
        what, place = subject.split(each, part=part)
        form = "STEP=WORD:WORD, as 2=dogs:cats"
        step, words = two_sides(what, "=", what="move", form=form)
        taken, given = two_sides(words, ":", what="move", form=form)
        moved = source.tokens(taken), source.tokens(given)
        found.append(changes.Move(target.step(step), *moved, place))
    for each in request.hide:
        what, place = subject.split(each, part=None)
        hidden = [part for part in subject.parts if _reads_source(part, subject)]
        for where in hidden if place.part is None else [place.part]:
            here = Place(where, place.layer, place.head)
            found.append(changes.Hide(source.tokens(what), here))
    for each in request.swap:
        what, place = subject.split(each, part=part)
        one, other = two_sides(what, "=", what="swap", form="WORD=WORD, as cats=dogs")
        found.append(changes.Swap(source.tokens(one), source.tokens(other), place))
    if request.patch and request.other is not None:
        found += _patches(subject, request.patch, request.other)
    return found


def _reads_source(part: str, subject: InterventionSubject) -> bool:
    """Return whether the source is what this part attends to."""
    return part != "decoder" or "cross" not in subject.parts


def _skip(text: str, subject: InterventionSubject) -> changes.Skip:
    place = subject.place(text, part=subject.states[0])
    if place.part == "cross" or place.layer is None or place.head is not None:
        raise SettingsError(f"skip {text!r} names no layer: write encoder.0 or decoder.1.")
    return changes.Skip(place.part or subject.part, place.layer)


def _patches(subject: InterventionSubject, wanted: Sequence[str], other: str) -> list[Change]:
    """Return what puts states of another text in the place of some of this one."""
    theirs, recorder = subject.record(other)
    part, name = subject.states
    found: list[Change] = []
    for each in wanted:
        what, _, where = each.rpartition("@") if "@" in each else (each, "", "")
        layer = place_of(where, part=part).layer if where else None
        here, _, there = what.partition("=")
        ours, others = subject.source.tokens(here), theirs.tokens(there or here)
        key = (part, 0, name) if layer is None else (part, layer, "features")
        if key not in recorder.values:
            raise SettingsError(
                f"patch {each!r}: this model has no such states. Give the layer whose input is to "
                f"be changed, as {here}@{part}.1."
            )
        states = recorder.get(*key)[0]
        rows = [others[min(number, len(others) - 1)] for number in range(len(ours))]
        found.append(changes.Patch(ours, states[rows], part, layer))
    return found
