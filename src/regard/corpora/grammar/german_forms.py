"""German forms: articles, endings and pronouns in case, gender and number; verbs in tense."""

from typing import Literal, TypeAlias

from regard.corpora.grammar import tree
from regard.corpora.grammar.lexicon import Adjective, Noun, Verb

Case: TypeAlias = Literal["nominative", "accusative", "dative"]
Number: TypeAlias = Literal["first", "third", "plural"]
"""The forms that German verbs distinguish here: ich, er, and wir or sie."""

CASES: tuple[Case, ...] = ("nominative", "accusative", "dative")
Declension: TypeAlias = dict[Case, dict[str, str]]
"""Forms or endings by case, then by gender or "plural"; "" is no ending."""

DEFINITE: Declension = {
    "nominative": {"masculine": "der", "feminine": "die", "neuter": "das", "plural": "die"},
    "accusative": {"masculine": "den", "feminine": "die", "neuter": "das", "plural": "die"},
    "dative": {"masculine": "dem", "feminine": "der", "neuter": "dem", "plural": "den"},
}
RELATIVE: Declension = DEFINITE | {"dative": DEFINITE["dative"] | {"plural": "denen"}}
# Endings of dieser and jeder, and of adjectives that no article marks ("große Katzen").
STRONG: Declension = {
    "nominative": {"masculine": "er", "feminine": "e", "neuter": "es", "plural": "e"},
    "accusative": {"masculine": "en", "feminine": "e", "neuter": "es", "plural": "e"},
    "dative": {"masculine": "em", "feminine": "er", "neuter": "em", "plural": "en"},
}
# Endings of ein, kein, mein: three cells have none, and there the adjective is strong.
EIN: Declension = {
    "nominative": {"masculine": "", "feminine": "e", "neuter": "", "plural": "e"},
    "accusative": {"masculine": "en", "feminine": "e", "neuter": "", "plural": "e"},
    "dative": {"masculine": "em", "feminine": "er", "neuter": "em", "plural": "en"},
}
WEAK: Declension = {
    "nominative": {"masculine": "e", "feminine": "e", "neuter": "e", "plural": "en"},
    "accusative": {"masculine": "en", "feminine": "e", "neuter": "e", "plural": "en"},
    "dative": {"masculine": "en", "feminine": "en", "neuter": "en", "plural": "en"},
}
MIXED: Declension = {
    "nominative": {"masculine": "er", "feminine": "e", "neuter": "es", "plural": "en"},
    "accusative": {"masculine": "en", "feminine": "e", "neuter": "es", "plural": "en"},
    "dative": {"masculine": "en", "feminine": "en", "neuter": "en", "plural": "en"},
}

STEMS: dict[tree.Determiner, str] = {
    "a": "ein", "my": "mein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
STRONG_STEMS: dict[tree.Determiner, str] = {"this": "dies", "every": "jed"}
NUMERALS: dict[tree.Determiner, str] = {"two": "zwei", "three": "drei", "four": "vier"}

PRONOUNS: dict[tree.PronounWord, tuple[str, str, str]] = {
    "I": ("ich", "mich", "mir"),
    "we": ("wir", "uns", "uns"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "it": ("es", "es", "ihm"),
    "they": ("sie", "sie", "ihnen"),
}
BOUND: dict[str, tree.PronounWord] = {"masculine": "he", "feminine": "she", "neuter": "it"}

PREPOSITIONS: dict[tree.Preposition, tuple[str, Case]] = {
    "in": ("in", "dative"),
    "on": ("auf", "dative"),
    "with": ("mit", "dative"),
    "without": ("ohne", "accusative"),
    "near": ("bei", "dative"),
    "behind": ("hinter", "dative"),
    "beside": ("neben", "dative"),
    "under": ("unter", "dative"),
    "for": ("für", "accusative"),
    "to": ("zu", "dative"),
    "from": ("von", "dative"),
}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("bei", "dem"): "beim",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}
CONJUNCTIONS: dict[tree.Conjunction, str] = {
    "because": "weil",
    "although": "obwohl",
    "if": "wenn",
    "before": "bevor",
    "while": "während",
}
DEGREES = {"very": "sehr", "too": "zu"}
BE: dict[tuple[tree.Tense, Number], str] = {
    ("present", "first"): "bin",
    ("present", "third"): "ist",
    ("present", "plural"): "sind",
    ("past", "first"): "war",
    ("past", "third"): "war",
    ("past", "plural"): "waren",
}
MODALS: dict[tuple[tree.Modal, tree.Tense], tuple[str, str]] = {
    ("can", "present"): ("kann", "können"),
    ("must", "present"): ("muss", "müssen"),
    ("should", "present"): ("sollte", "sollten"),
    ("want", "present"): ("will", "wollen"),
    ("want", "past"): ("wollte", "wollten"),
}


def column(noun: Noun, plural: bool) -> str:
    """Return the column of the tables in which a noun stands."""
    return "plural" if plural else noun.german_gender


def determiner_form(determiner: tree.Determiner, case: Case, noun: Noun, plural: bool) -> str:
    """Return der, ein, mein, dieser ... in case, gender and number."""
    gender = column(noun, plural)
    if determiner == "the":
        return DEFINITE[case][gender]
    if determiner in STRONG_STEMS:
        return STRONG_STEMS[determiner] + STRONG[case][gender]
    if determiner in NUMERALS:
        return NUMERALS[determiner]
    return STEMS[determiner] + EIN[case][gender]


def kein_form(case: Case, noun: Noun, plural: bool) -> str:
    """Return kein in case, gender and number."""
    return "kein" + EIN[case][column(noun, plural)]


def adjective_form(
    adjective: Adjective, determiner: tree.Determiner, case: Case, column: str
) -> str:
    """Return the adjective with its weak, mixed or strong ending."""
    stem = adjective.german_stem or adjective.german
    if determiner == "the" or determiner in STRONG_STEMS:
        endings = WEAK
    elif determiner in STEMS:
        endings = MIXED
    else:
        endings = STRONG
    return stem + endings[case][column]


def noun_form(noun: Noun, case: Case, plural: bool) -> str:
    """Return the noun in case and number."""
    if plural:
        form = noun.german_plural
        return form + "n" if case == "dative" and not form.endswith(("n", "s")) else form
    if noun.german_weak and case != "nominative":
        return noun.german_weak
    return noun.german


def verb_form(verb: Verb, tense: tree.Tense, number: Number) -> str:
    """Return the finite verb without its separable prefix."""
    if tense == "past":
        return verb.german_past_plural if number == "plural" else verb.german_past
    if number == "plural":
        return verb.german
    return verb.german_first if number == "first" else verb.german_third
