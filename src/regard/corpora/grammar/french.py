"""French: pronoun objects before the verb, most adjectives after the noun, two past tenses.

One right translation each, by these rules. An event is told in the passé composé; a state, and
what goes on in the background (under "while" and "that"), in the imparfait. The only commas end a
fronted subordinate clause and stand before "mais". I, we and a "they" without antecedent are
masculine.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from regard.corpora.grammar.french_forms import (
    BE,
    CONJUNCTIONS,
    DEGREES,
    DIRECTIONAL,
    ENCLOSING,
    HAVE,
    MODALS,
    PREPOSITIONS,
    WANTED,
    WAS,
    Agreement,
    Person,
    adjective_form,
    determiner_form,
    imperfect_form,
    is_state,
    joined,
    noun_agreement,
    noun_form,
    object_form,
    participle_form,
    present_form,
    subject_form,
)
from regard.corpora.grammar.lexicon import Verb
from regard.corpora.grammar.tree import (
    Clause,
    Coordination,
    Description,
    Language,
    Modal,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Subordinate,
    Tense,
    Token,
    words,
)

Frame: TypeAlias = Literal["plain", "background", "condition"]
"""What a clause stands under: nothing that matters, "while" or "that", or "if"."""
FRAMES: dict[str, Frame] = {"while": "background", "if": "condition"}

Reading: TypeAlias = Literal["generic", "some", "denied", "bare"]
"""How an indefinite is meant: all ("les"), some ("des"), none ("pas de"), or without article."""


def realise(sentence: Sentence) -> list[Token]:
    """Return the words of a sentence."""
    tokens: list[Token] = []
    if sentence.fronted is not None:
        tokens += _subordinate(sentence.fronted)
        tokens.append(Token(",", ((sentence.fronted, "close"),)))
    for index, clause in enumerate(sentence.clauses):
        if index:
            cause = (sentence, f"joint {index - 1}")
            but = sentence.joints[index - 1] == "but"
            tokens += words(", mais" if but else "et", cause)
        tokens += _clause(clause)
    for subordinate in sentence.subordinates:
        tokens += _subordinate(subordinate)
    return _join(tokens)


def _join(tokens: list[Token]) -> list[Token]:
    """Elide and contract neighbours; a joined word has the causes of both.

    From the right, because "de le animal" is "de l'animal" and not "du animal".
    """
    merged: list[Token] = []
    for token in reversed(tokens):
        text = joined(token.text, merged[-1].text) if merged else None
        if text is None:
            merged.append(token)
        else:
            merged[-1] = Token(text, token.causes + merged[-1].causes)
    return merged[::-1]


def _subordinate(subordinate: Subordinate) -> list[Token]:
    conjunction = CONJUNCTIONS[subordinate.conjunction]
    tokens = words(conjunction, (subordinate, "conjunction"))
    return tokens + _clause(subordinate.clause, FRAMES.get(subordinate.conjunction, "plain"))


def _clause(clause: Clause, frame: Frame = "plain") -> list[Token]:
    """Return [time] [que] subject verbs manner object place phrases time that-clause."""
    tokens: list[Token] = []
    if clause.fronted is not None:
        tokens += words(clause.fronted.french, (clause, "fronted"))
    if isinstance(clause.object, RelativePronoun):
        tokens.append(Token("que", ((clause.object, "pronoun"),)))
    tokens += _subject(clause)
    tokens += _verbs(clause, frame)
    if clause.predicate is not None:
        tokens += _description(clause.predicate, _agreement(clause.subject))
    if clause.manner is not None:
        tokens += words(clause.manner.french, (clause, "manner"))
    if isinstance(clause.object, NounPhrase | Coordination):
        tokens += _nominal(clause.object, _object_reading(clause))
    if clause.place is not None:
        tokens += words(clause.place.french, (clause, "place"))
    for phrase in clause.phrases:
        tokens += _prepositional(phrase, clause.verb)
    if clause.time is not None:
        tokens += words(clause.time.french, (clause, "time"))
    if clause.content is not None:
        tokens.append(Token("que", ((clause, "that"),)))
        tokens += _clause(clause.content, "background")
    return tokens


def _subject(clause: Clause) -> list[Token]:
    subject = clause.subject
    if isinstance(subject, RelativePronoun):
        return [Token("qui", ((subject, "pronoun"),))]
    if isinstance(subject, Pronoun):
        return [Token(subject_form(subject.word, _agreement(subject)), ((subject, "pronoun"),))]
    return _nominal(subject, _subject_reading(clause))


def _subject_reading(clause: Clause) -> Reading:
    """Return how a bare plural subject is meant: an event happens to some, a habit is of all."""
    dated = clause.fronted is not None or clause.time is not None
    event = not is_state(clause.verb) and (clause.tense == "past" or dated)
    return "some" if event else "generic"


def _object_reading(clause: Clause) -> Reading:
    """Return how an indefinite object is meant: one likes all of a kind, and sees some or none."""
    if clause.verb is not None and clause.verb.french_generic:
        return "generic"
    return "denied" if clause.negated else "some"


def _verbs(clause: Clause, frame: Frame) -> list[Token]:
    """Return the verbs with what stands around them: ne, object pronoun, pas, frequency."""
    finite, rest = _finite(clause, frame)
    pronoun: list[Token] = []
    if isinstance(clause.object, Pronoun):
        form = object_form(clause.object.word, _agreement(clause.object))
        pronoun = [Token(form, ((clause.object, "pronoun"),))]
    frequency = (
        words(clause.frequency.french, (clause, "frequency"))
        if clause.frequency is not None
        else []
    )
    if clause.modal is None:
        head = [*pronoun, finite]
    else:
        # The pronoun belongs to the full verb: "peut le voir".
        head = [finite]
        rest = [*pronoun, *rest]
    if not clause.negated:
        return [*head, *frequency, *rest]
    cause = (clause, "not")
    return [Token("ne", (cause,)), *head, Token("pas", (cause,)), *frequency, *rest]


def _finite(clause: Clause, frame: Frame) -> tuple[Token, list[Token]]:
    """Return the finite verb, and the infinitive or participle that goes with it."""
    person = _person(clause.subject)
    finite, full = (clause, "finite"), (clause, "verb")
    verb = clause.verb
    past = clause.tense == "past"
    if clause.modal is not None:
        infinitive = verb.french if verb is not None else "être"
        modal = Token(_modal(clause.modal, clause.tense, frame, person), (finite,))
        return modal, [Token(infinitive, (full,))]
    if verb is None:
        return Token((WAS if past else BE)[person], (finite,)), []
    if not past:
        return Token(present_form(verb, person), (finite,)), []
    if frame == "background" or is_state(verb):
        return Token(imperfect_form(verb, person), (finite,)), []
    auxiliary = BE if verb.french_auxiliary == "être" else HAVE
    participle = participle_form(verb, _participle_agreement(clause, verb))
    return Token(auxiliary[person], (finite,)), [Token(participle, (full,))]


def _modal(modal: Modal, tense: Tense, frame: Frame, person: Person) -> str:
    """Return the modal verb; only "want" has a past, and "devrait" may not follow "si"."""
    if tense == "past":
        return WANTED[person]
    if modal == "should" and frame == "condition":
        modal = "must"
    return MODALS[modal][person]


def _participle_agreement(clause: Clause, verb: Verb) -> Agreement:
    """Return that of the subject after être; after avoir that of an object which came before."""
    if verb.french_auxiliary == "être":
        return _agreement(clause.subject)
    if isinstance(clause.object, Pronoun | RelativePronoun):
        return _agreement(clause.object)
    return Agreement()


def _person(subject: Nominal) -> Person:
    if isinstance(subject, Pronoun) and subject.word in ("I", "we"):
        return "je" if subject.word == "I" else "nous"
    return "ils" if subject.plural else "il"


def _agreement(nominal: Nominal) -> Agreement:
    """Return gender and number; one masculine makes a coordination masculine."""
    if isinstance(nominal, NounPhrase | RelativePronoun):
        return noun_agreement(nominal.noun, nominal.plural)
    if isinstance(nominal, Coordination):
        both = (nominal.first, nominal.second)
        return Agreement(all(_agreement(each).feminine for each in both), plural=True)
    if nominal.antecedent is not None:
        return noun_agreement(nominal.antecedent.noun, nominal.plural)
    return Agreement(nominal.word == "she", nominal.plural)


def _nominal(nominal: NounPhrase | Coordination, reading: Reading) -> list[Token]:
    if isinstance(nominal, NounPhrase):
        return _noun_phrase(nominal, reading)
    joint = Token("et", ((nominal, "and"),))
    return [*_noun_phrase(nominal.first, reading), joint, *_noun_phrase(nominal.second, reading)]


def _noun_phrase(phrase: NounPhrase, reading: Reading) -> list[Token]:
    """Return article, adjective before or after, noun, and what describes it further."""
    agreement = noun_agreement(phrase.noun, phrase.plural)
    noun = noun_form(phrase.noun, phrase.plural)
    tokens = [Token(noun, ((phrase, "noun"),))]
    description = phrase.description
    before = description is not None and description.adjective.french_before
    if description is not None:
        if before:
            tokens = _description(description, agreement, following=noun) + tokens
        else:
            tokens += _description(description, agreement)
    article = _article(phrase, reading, before=before, following=tokens[0].text)
    if article:
        role = "determiner" if phrase.determiner else "noun"
        tokens.insert(0, Token(article, ((phrase, role),)))
    if phrase.place is not None:
        tokens += _prepositional(phrase.place, None)
    if phrase.relative is not None:
        tokens += _clause(phrase.relative)
    return tokens


def _article(phrase: NounPhrase, reading: Reading, *, before: bool, following: str) -> str:
    """Return the determiner, or the article that a bare plural takes.

    "des" is "de" before an adjective ("de grandes maisons") and after "pas" ("pas de maisons").
    """
    if phrase.indefinite and reading == "denied":
        return "de"
    if phrase.determiner:
        agreement = noun_agreement(phrase.noun, phrase.plural)
        return determiner_form(phrase.determiner, agreement, following=following)
    if reading == "bare":
        return ""
    if reading == "generic":
        return "les"
    return "de" if before else "des"


def _description(
    description: Description, agreement: Agreement, *, following: str = ""
) -> list[Token]:
    form = adjective_form(description.adjective, agreement, following=following)
    adjective = words(form, (description, "adjective"))
    if not description.degree:
        return adjective
    return [Token(DEGREES[description.degree], ((description, "degree"),)), *adjective]


def _prepositional(phrase: PrepositionalPhrase, verb: Verb | None) -> list[Token]:
    """Return preposition and noun phrase; "sans" and "de" take a bare plural without article."""
    preposition = _preposition(phrase, verb)
    bare = preposition == "sans" or preposition.endswith("de")
    tokens = words(preposition, (phrase, "preposition"))
    return tokens + _noun_phrase(phrase.complement, "bare" if bare else "some")


def _preposition(phrase: PrepositionalPhrase, verb: Verb | None) -> str:
    """Return the preposition that noun and verb ask for."""
    noun = phrase.complement.noun
    if phrase.preposition == "on" and noun.french in ENCLOSING:
        return "dans"
    if phrase.preposition not in ("to", "from"):
        return PREPOSITIONS[phrase.preposition]
    directional = verb is not None and verb.french in DIRECTIONAL
    home = noun.kind == "person"
    if phrase.preposition == "to":
        if not directional:
            return "vers"
        return "chez" if home else "à"
    origin = "de" if directional else "depuis"
    return f"{origin} chez" if home else origin


LANGUAGE = Language(realise=realise, conjunctions=tuple(CONJUNCTIONS))
