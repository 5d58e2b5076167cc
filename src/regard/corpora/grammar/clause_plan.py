"""Decides what a clause says beside its verb and nouns: negation, modal verb, adverbs, phrases."""

from __future__ import annotations

from dataclasses import dataclass

from regard.corpora.grammar.lexicon import Adverb, Verb
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.selection import (
    DIRECTED,
    FOR_SOMEONE,
    NO_MANNER,
    NO_PLACE,
    STATES,
    Selection,
)
from regard.corpora.grammar.style import Style
from regard.corpora.grammar.tree import Modal, Preposition, Tense

DIRECTIONS: tuple[Preposition, ...] = ("to", "to", "from")
MODALS: dict[Tense, tuple[Modal, ...]] = {
    "present": ("can", "must", "should", "want"),
    "past": ("want",),
}


@dataclass(slots=True)
class Plan:
    """The decisions, and the words that are left for nouns and phrases."""

    words: int
    negated: bool = False
    modal: Modal | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverb | None = None
    time: Adverb | None = None
    fronted: Adverb | None = None

    @property
    def trailing(self) -> bool:
        """Whether an adverb follows the object."""
        return not (self.manner is None and self.place is None and self.time is None)


def draw_plan(
    stream: RandomStream,
    selection: Selection,
    style: Style,
    *,
    verb: Verb,
    words: int,
    keep: int,
    tense: Tense,
    timed: bool,
    affirmative: bool,
    living: bool,
    relative: bool,
) -> Plan:
    """Draw the decisions; at least `keep` of the words stay for the nouns.

    A negated clause has no adverb but of time: "he does not sleep everywhere" is not "he sleeps
    nowhere". A relative clause ends in none: "the man who sings loudly laughs".
    """
    plan = Plan(words)
    if style.modals and living and verb.english not in STATES and stream.chance(17):
        modal = stream.choose(MODALS[tense])
        cost = 2 if modal == "want" else 1
        if plan.words - cost >= keep:
            plan.modal = modal
            plan.words -= cost
    # "must not" forbids, which is another verb in German and French.
    if plan.modal != "must" and not affirmative and stream.chance(24):
        cost = 1 if plan.modal in ("can", "should") else 2
        if plan.words - cost >= keep:
            plan.negated = True
            plan.words -= cost
    if style.adverbs and plan.words > keep:
        _draw_adverb(
            plan,
            stream,
            selection,
            tense=tense,
            timed=timed,
            manner=living and not relative and verb.english not in NO_MANNER,
            place=not relative and verb.english not in NO_PLACE,
        )
    return plan


def _draw_adverb(
    plan: Plan,
    stream: RandomStream,
    selection: Selection,
    *,
    tense: Tense,
    timed: bool,
    manner: bool,
    place: bool,
) -> None:
    """Draw at most one adverb for the clause."""
    kind = stream.below(100)
    free = not plan.negated and plan.modal is None
    if kind < 8 and free:
        plan.frequency = stream.choose(selection.adverbs["frequency"])
    elif kind < 16 and free and manner:
        plan.manner = stream.choose(selection.adverbs["manner"])
    elif kind < 21 and place and not plan.negated:
        plan.place = stream.choose(selection.adverbs["place"])
    elif kind < 36 and timed:
        adverb = stream.choose(selection.adverbs[f"time-{tense}"])
        if kind < 30:
            plan.fronted = adverb
        else:
            plan.time = adverb
    else:
        return
    plan.words -= 1


def phrase_options(
    style: Style, verb: Verb, plan: Plan, *, living: bool
) -> list[tuple[Preposition, ...]]:
    """Return the prepositions that may follow: first those of company, then those of place."""
    options: list[tuple[Preposition, ...]] = []
    name = verb.english
    if living and name not in NO_MANNER:
        options.append(style.company_or_for if name in FOR_SOMEONE else style.company)
    if name in DIRECTED:
        options.append(DIRECTIONS)
    elif plan.place is None and name not in NO_PLACE:
        options.append(style.places)
    return options
