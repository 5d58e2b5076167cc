"""French forms: articles, adjectives and pronouns in gender and number; verbs in tense."""

from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from regard.corpora.grammar.lexicon import Adjective, Noun, Verb, lexicon
from regard.corpora.grammar.tree import Conjunction, Determiner, Modal, Preposition, PronounWord

Person: TypeAlias = Literal["je", "il", "nous", "ils"]
"""The forms that French verbs distinguish here."""

Forms: TypeAlias = dict[Person, str]
PERSONS: tuple[Person, ...] = ("je", "il", "nous", "ils")
VOWELS = frozenset("aeiouàâéèêëîïôùûœ")
ELIDING = frozenset({"de", "je", "la", "le", "me", "ne", "que"})
CONTRACTIONS = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}


class Agreement(NamedTuple):
    """The gender and number in which words agree."""

    feminine: bool = False
    plural: bool = False


HAVE: Forms = {"je": "ai", "il": "a", "nous": "avons", "ils": "ont"}
BE: Forms = {"je": "suis", "il": "est", "nous": "sommes", "ils": "sont"}
WAS: Forms = {"je": "étais", "il": "était", "nous": "étions", "ils": "étaient"}
IMPERFECT_ENDINGS: Forms = {"je": "ais", "il": "ait", "nous": "ions", "ils": "aient"}
MODALS: dict[Modal, Forms] = {
    "can": {"je": "peux", "il": "peut", "nous": "pouvons", "ils": "peuvent"},
    "must": {"je": "dois", "il": "doit", "nous": "devons", "ils": "doivent"},
    "should": {"je": "devrais", "il": "devrait", "nous": "devrions", "ils": "devraient"},
    "want": {"je": "veux", "il": "veut", "nous": "voulons", "ils": "veulent"},
}
WANTED: Forms = {
    "je": "voulais",
    "il": "voulait",
    "nous": "voulions",
    "ils": "voulaient",
}

POSSESSIVES: dict[Determiner, tuple[str, str, str]] = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
NUMERALS: dict[Determiner, str] = {"two": "deux", "three": "trois", "four": "quatre"}

PREPOSITIONS: dict[Preposition, str] = {
    "in": "dans",
    "on": "sur",
    "with": "avec",
    "without": "sans",
    "near": "près de",
    "behind": "derrière",
    "beside": "à côté de",
    "under": "sous",
    "for": "pour",
    "to": "à",
    "from": "de",
}
# One is "on" them in English and "dans" in French.
ENCLOSING = frozenset({"champ", "pré", "rue"})
# Verbs of direction take "à" and "de"; those of manner (courir, marcher) "vers" and "depuis".
DIRECTIONAL = frozenset({"aller", "revenir", "venir"})

# "before" is missing: "avant que" asks for the subjunctive. "même si" does not, "bien que" would.
CONJUNCTIONS: dict[Conjunction, str] = {
    "because": "parce que",
    "although": "même si",
    "if": "si",
    "while": "pendant que",
}
DEGREES = {"very": "très", "too": "trop"}
THOUGHTS = frozenset({"croire", "espérer", "penser", "savoir"})


@cache
def aspirates() -> frozenset[str]:
    """Return the noun forms on h before which nothing is elided."""
    nouns = [noun for noun in lexicon(small=False).nouns if noun.french_aspirate]
    return frozenset(form for noun in nouns for form in (noun.french, noun.french_plural))


def begins_with_vowel(word: str) -> bool:
    """Whether a word begins with a vowel sound: "animal", "homme", but not "hibou"."""
    return word[0] in VOWELS or (word[0] == "h" and word not in aspirates())


def joined(word: str, following: str) -> str | None:
    """Return two neighbours as the one word that they become, or None if they stay two."""
    if word in ELIDING and begins_with_vowel(following):
        return f"{word[:-1]}'{following}"
    if word == "si" and following in ("il", "ils"):
        return f"s'{following}"
    return CONTRACTIONS.get((word, following))


def noun_agreement(noun: Noun, plural: bool) -> Agreement:
    """Return gender and number of a noun."""
    return Agreement(noun.french_gender == "feminine", plural)


def noun_form(noun: Noun, plural: bool) -> str:
    """Return the noun in its number."""
    return noun.french_plural if plural else noun.french


def determiner_form(determiner: Determiner, agreement: Agreement, *, following: str) -> str:
    """Return the determiner, with the forms before a vowel ("mon école", "cet arbre").

    Articles stay whole ("le animal"): `joined` elides and contracts them.
    """
    feminine, plural = agreement
    vowel = begins_with_vowel(following)
    if determiner == "the":
        return "les" if plural else "la" if feminine else "le"
    if determiner == "a":
        return "une" if feminine else "un"
    if determiner == "this":
        if plural:
            return "ces"
        return "cette" if feminine else "cet" if vowel else "ce"
    if determiner == "every":
        return "chaque"
    if determiner in NUMERALS:
        return NUMERALS[determiner]
    masculine_form, feminine_form, plural_form = POSSESSIVES[determiner]
    if plural:
        return plural_form
    return feminine_form if feminine and not vowel else masculine_form


def adjective_form(adjective: Adjective, agreement: Agreement, *, following: str = "") -> str:
    """Return the adjective in gender and number; `following` is the noun that it stands before."""
    if agreement.feminine:
        return _plural(adjective.french_feminine) if agreement.plural else adjective.french_feminine
    if agreement.plural:
        return adjective.french_masculine_plural or _plural(adjective.french_masculine)
    if following and adjective.french_before_vowel and begins_with_vowel(following):
        return adjective.french_before_vowel
    return adjective.french_masculine


def _plural(form: str) -> str:
    return form if form.endswith(("s", "x")) else form + "s"


def subject_form(word: PronounWord, agreement: Agreement) -> str:
    """Return the pronoun as a subject; "it" and "they" have the gender of their noun."""
    if word in ("I", "we"):
        return "je" if word == "I" else "nous"
    return ("elle" if agreement.feminine else "il") + "s" * agreement.plural


def object_form(word: PronounWord, agreement: Agreement) -> str:
    """Return the pronoun as a direct object."""
    if word in ("I", "we"):
        return "me" if word == "I" else "nous"
    return "les" if agreement.plural else "la" if agreement.feminine else "le"


def present_form(verb: Verb, person: Person) -> str:
    """Return the verb in the present."""
    if person == "je":
        return verb.french_je
    if person == "il":
        return verb.french_il
    return verb.french_nous if person == "nous" else verb.french_ils


def imperfect_form(verb: Verb, person: Person) -> str:
    """Return the verb in the imparfait, whose stem is that of "nous" in the present."""
    stem = verb.french_nous.removesuffix("ons")
    if person == "nous":
        # The letters that keep g and c soft before a are not needed before i.
        stem = stem.removesuffix("e") if stem.endswith("ge") else stem
        stem = stem.removesuffix("ç") + "c" if stem.endswith("ç") else stem
    return stem + IMPERFECT_ENDINGS[person]


def participle_form(verb: Verb, agreement: Agreement) -> str:
    """Return the past participle in gender and number."""
    form = verb.french_participle + "e" * agreement.feminine
    return _plural(form) if agreement.plural else form


def is_state(verb: Verb | None) -> bool:
    """Whether a clause says how things are: "être", liking, fearing and thinking."""
    return verb is None or verb.french_generic or verb.french in THOUGHTS
