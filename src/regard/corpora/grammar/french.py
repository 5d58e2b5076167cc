"""French: pronoun objects before the verb, most adjectives after the noun, two past tenses.

One right translation each, by these rules. An event is told in the passé composé; a state, and
what goes on in the background (under "while" and "that"), in the imparfait. The only commas end a
fronted subordinate clause and stand before "mais". I, we and a "they" without antecedent are
masculine.
"""

from typing import Literal, TypeAlias

from regard.corpora.grammar import french_forms as forms
from regard.corpora.grammar import tree
from regard.corpora.grammar.lexicon import Verb

Frame: TypeAlias = Literal["plain", "background", "condition"]
"""What a clause stands under: nothing that matters, "while" or "that", or "if"."""
FRAMES: dict[str, Frame] = {"while": "background", "if": "condition"}

IndefiniteReading: TypeAlias = Literal["generic", "some", "denied", "bare"]
"""How an indefinite is meant: all ("les"), some ("des"), none ("pas de"), or without article."""


def realise(sentence: tree.SentenceTree) -> list[tree.LinkedWord]:
    """Return the words of a sentence."""
    tokens: list[tree.LinkedWord] = []
    if sentence.fronted is not None:
        tokens += _subordinate(sentence.fronted)
        tokens.append(tree.LinkedWord(",", ((sentence.fronted, "close"),)))
    for index, clause in enumerate(sentence.clauses):
        if index:
            cause = (sentence, f"joint {index - 1}")
            but = sentence.joints[index - 1] == "but"
            tokens += tree.words(", mais" if but else "et", cause)
        tokens += _clause(clause)
    for subordinate in sentence.subordinates:
        tokens += _subordinate(subordinate)
    return join(tokens)


def join(tokens: list[tree.LinkedWord]) -> list[tree.LinkedWord]:
    """Elide and contract neighbours; a joined word has the causes of both.

    From the right, because "de le animal" is "de l'animal" and not "du animal".
    """
    merged: list[tree.LinkedWord] = []
    for token in reversed(tokens):
        text = forms.joined(token.text, merged[-1].text) if merged else None
        if text is None:
            merged.append(token)
        else:
            merged[-1] = tree.LinkedWord(text, token.causes + merged[-1].causes)
    return merged[::-1]


def _subordinate(subordinate: tree.Subordinate) -> list[tree.LinkedWord]:
    conjunction = forms.CONJUNCTIONS[subordinate.conjunction]
    tokens = tree.words(conjunction, (subordinate, "conjunction"))
    return tokens + _clause(subordinate.clause, FRAMES.get(subordinate.conjunction, "plain"))


def _clause(clause: tree.Clause, frame: Frame = "plain") -> list[tree.LinkedWord]:
    """Return [time] [que] subject verbs manner object place phrases time that-clause."""
    tokens: list[tree.LinkedWord] = []
    if clause.fronted is not None:
        tokens += tree.words(clause.fronted.french, (clause, "fronted"))
    if isinstance(clause.object, tree.RelativePronoun):
        tokens.append(tree.LinkedWord("que", ((clause.object, "pronoun"),)))
    tokens += _subject(clause)
    tokens += _verbs(clause, frame)
    if clause.predicate is not None:
        tokens += _description(clause.predicate, _agreement(clause.subject))
    if clause.manner is not None:
        tokens += tree.words(clause.manner.french, (clause, "manner"))
    if isinstance(clause.object, tree.NounPhrase | tree.Coordination):
        tokens += _nominal(clause.object, _object_reading(clause))
    if clause.place is not None:
        tokens += tree.words(clause.place.french, (clause, "place"))
    for phrase in clause.phrases:
        tokens += _prepositional(phrase, clause.verb)
    if clause.time is not None:
        tokens += tree.words(clause.time.french, (clause, "time"))
    if clause.content is not None:
        tokens.append(tree.LinkedWord("que", ((clause, "that"),)))
        tokens += _clause(clause.content, "background")
    return tokens


def _subject(clause: tree.Clause) -> list[tree.LinkedWord]:
    subject = clause.subject
    if isinstance(subject, tree.RelativePronoun):
        return [tree.LinkedWord("qui", ((subject, "pronoun"),))]
    if isinstance(subject, tree.Pronoun):
        return [
            tree.LinkedWord(
                forms.subject_form(subject.word, _agreement(subject)), ((subject, "pronoun"),)
            )
        ]
    return _nominal(subject, _subject_reading(clause))


def _subject_reading(clause: tree.Clause) -> IndefiniteReading:
    """Return how a bare plural subject is meant: an event happens to some, a habit is of all."""
    dated = clause.fronted is not None or clause.time is not None
    event = not forms.is_state(clause.verb) and (clause.tense == "past" or dated)
    return "some" if event else "generic"


def _object_reading(clause: tree.Clause) -> IndefiniteReading:
    """Return how an indefinite object is meant: one likes all of a kind, and sees some or none."""
    if clause.verb is not None and clause.verb.french_generic:
        return "generic"
    return "denied" if clause.negated else "some"


def _verbs(clause: tree.Clause, frame: Frame) -> list[tree.LinkedWord]:
    """Return the verbs with what stands around them: ne, object pronoun, pas, frequency."""
    finite, rest = _finite(clause, frame)
    pronoun: list[tree.LinkedWord] = []
    if isinstance(clause.object, tree.Pronoun):
        form = forms.object_form(clause.object.word, _agreement(clause.object))
        pronoun = [tree.LinkedWord(form, ((clause.object, "pronoun"),))]
    frequency = (
        tree.words(clause.frequency.french, (clause, "frequency"))
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
    return [
        tree.LinkedWord("ne", (cause,)),
        *head,
        tree.LinkedWord("pas", (cause,)),
        *frequency,
        *rest,
    ]


def _finite(clause: tree.Clause, frame: Frame) -> tuple[tree.LinkedWord, list[tree.LinkedWord]]:
    """Return the finite verb, and the infinitive or participle that goes with it."""
    person = _person(clause.subject)
    finite, full = (clause, "finite"), (clause, "verb")
    verb = clause.verb
    past = clause.tense == "past"
    if clause.modal is not None:
        infinitive = verb.french if verb is not None else "être"
        modal = tree.LinkedWord(_modal(clause.modal, clause.tense, frame, person), (finite,))
        return modal, [tree.LinkedWord(infinitive, (full,))]
    if verb is None:
        return tree.LinkedWord((forms.WAS if past else forms.BE)[person], (finite,)), []
    if not past:
        return tree.LinkedWord(forms.present_form(verb, person), (finite,)), []
    if frame == "background" or forms.is_state(verb):
        return tree.LinkedWord(forms.imperfect_form(verb, person), (finite,)), []
    auxiliary = forms.BE if verb.french_auxiliary == "être" else forms.HAVE
    participle = forms.participle_form(verb, _participle_agreement(clause, verb))
    return tree.LinkedWord(auxiliary[person], (finite,)), [tree.LinkedWord(participle, (full,))]


def _modal(modal: tree.Modal, tense: tree.Tense, frame: Frame, person: forms.Person) -> str:
    """Return the modal verb; only "want" has a past, and "devrait" may not follow "si"."""
    if tense == "past":
        return forms.WANTED[person]
    if modal == "should" and frame == "condition":
        modal = "must"
    return forms.MODALS[modal][person]


def _participle_agreement(clause: tree.Clause, verb: Verb) -> forms.Agreement:
    """Return that of the subject after être; after avoir that of an object which came before."""
    if verb.french_auxiliary == "être":
        return _agreement(clause.subject)
    if isinstance(clause.object, tree.Pronoun | tree.RelativePronoun):
        return _agreement(clause.object)
    return forms.Agreement()


def _person(subject: tree.Nominal) -> forms.Person:
    if isinstance(subject, tree.Pronoun) and subject.word in ("I", "we"):
        return "je" if subject.word == "I" else "nous"
    return "ils" if subject.plural else "il"


def _agreement(nominal: tree.Nominal) -> forms.Agreement:
    """Return gender and number; one masculine makes a coordination masculine."""
    if isinstance(nominal, tree.NounPhrase | tree.RelativePronoun):
        return forms.noun_agreement(nominal.noun, nominal.plural)
    if isinstance(nominal, tree.Coordination):
        both = (nominal.first, nominal.second)
        return forms.Agreement(all(_agreement(each).feminine for each in both), plural=True)
    if nominal.antecedent is not None:
        return forms.noun_agreement(nominal.antecedent.noun, nominal.plural)
    return forms.Agreement(nominal.word == "she", nominal.plural)


def _nominal(
    nominal: tree.NounPhrase | tree.Coordination, reading: IndefiniteReading
) -> list[tree.LinkedWord]:
    if isinstance(nominal, tree.NounPhrase):
        return _noun_phrase(nominal, reading)
    joint = tree.LinkedWord("et", ((nominal, "and"),))
    return [*_noun_phrase(nominal.first, reading), joint, *_noun_phrase(nominal.second, reading)]


def _noun_phrase(phrase: tree.NounPhrase, reading: IndefiniteReading) -> list[tree.LinkedWord]:
    """Return article, adjective before or after, noun, and what describes it further."""
    agreement = forms.noun_agreement(phrase.noun, phrase.plural)
    noun = forms.noun_form(phrase.noun, phrase.plural)
    tokens = [tree.LinkedWord(noun, ((phrase, "noun"),))]
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
        tokens.insert(0, tree.LinkedWord(article, ((phrase, role),)))
    if phrase.place is not None:
        tokens += _prepositional(phrase.place, None)
    if phrase.relative is not None:
        tokens += _clause(phrase.relative)
    return tokens


def _article(
    phrase: tree.NounPhrase, reading: IndefiniteReading, *, before: bool, following: str
) -> str:
    """Return the determiner, or the article that a bare plural takes.

    "des" is "de" before an adjective ("de grandes maisons") and after "pas" ("pas de maisons").
    """
    if phrase.indefinite and reading == "denied":
        return "de"
    if phrase.determiner:
        agreement = forms.noun_agreement(phrase.noun, phrase.plural)
        return forms.determiner_form(phrase.determiner, agreement, following=following)
    if reading == "bare":
        return ""
    if reading == "generic":
        return "les"
    return "de" if before else "des"


def _description(
    description: tree.Description, agreement: forms.Agreement, *, following: str = ""
) -> list[tree.LinkedWord]:
    form = forms.adjective_form(description.adjective, agreement, following=following)
    adjective = tree.words(form, (description, "adjective"))
    if not description.degree:
        return adjective
    return [
        tree.LinkedWord(forms.DEGREES[description.degree], ((description, "degree"),)),
        *adjective,
    ]


def _prepositional(phrase: tree.PrepositionalPhrase, verb: Verb | None) -> list[tree.LinkedWord]:
    """Return preposition and noun phrase; "sans" and "de" take a bare plural without article."""
    preposition = _preposition(phrase, verb)
    bare = preposition == "sans" or preposition.endswith("de")
    tokens = tree.words(preposition, (phrase, "preposition"))
    return tokens + _noun_phrase(phrase.complement, "bare" if bare else "some")


def _preposition(phrase: tree.PrepositionalPhrase, verb: Verb | None) -> str:
    """Return the preposition that noun and verb ask for."""
    noun = phrase.complement.noun
    if phrase.preposition == "on" and noun.french in forms.ENCLOSING:
        return "dans"
    if phrase.preposition not in ("to", "from"):
        return forms.PREPOSITIONS[phrase.preposition]
    directional = verb is not None and verb.french in forms.DIRECTIONAL
    home = noun.kind == "person"
    if phrase.preposition == "to":
        if not directional:
            return "vers"
        return "chez" if home else "à"
    origin = "de" if directional else "depuis"
    return f"{origin} chez" if home else origin


LANGUAGE = tree.Language(realise=realise, conjunctions=tuple(forms.CONJUNCTIONS))
