"""The lexicon: enough words, none of them ambiguous, and every form there."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources

import pytest

from regard.corpora.grammar.lexicon import (
    Adjective,
    Adverb,
    Lexicon,
    Noun,
    Verb,
    clause_verbs,
    lexicon,
)

KINDS = frozenset(
    {"person", "animal", "food", "drink", "thing", "clothing", "tool", "vehicle", "document",
     "building", "place", "plant"}
)  # fmt: skip
LIVING = frozenset({"person", "animal"})
ADVERB_KINDS = {"time-past", "time-present", "frequency", "manner", "place"}
# Words that the grammar itself says; an open-class word must not look like one of them.
CLOSED_CLASS = frozenset(
    {"a", "an", "the", "this", "these", "that", "every", "my", "his", "her", "our", "their",
     "two", "three", "four", "i", "we", "he", "she", "it", "they", "me", "us", "him", "them",
     "who", "whom", "and", "but", "because", "although", "if", "before", "while", "in", "on",
     "with", "without", "near", "behind", "beside", "under", "for", "to", "from", "very",
     "too", "not", "do", "does", "did", "am", "is", "are", "was", "were", "be", "can", "must",
     "should", "want", "wants", "wanted"}
)  # fmt: skip
# Letters with which an English word may begin although its sound asks for the other article.
MISLEADING_STARTS = ("hour", "honest", "honour", "heir", "uni", "use", "usu", "eu", "ewe", "one")
FULL = lexicon(small=False)
SMALL = lexicon(small=True)
SIZES = [pytest.param(FULL, id="full"), pytest.param(SMALL, id="small")]


def english_forms(words: Lexicon) -> Iterator[str]:
    for noun in words.nouns:
        yield from (noun.english, noun.english_plural)
    for verb in words.verbs:
        yield from (verb.english, verb.english_third, verb.english_past)
    for word in (*words.adjectives, *words.adverbs):
        yield word.english


def lemmas(words: Lexicon, language: str) -> set[str]:
    if language == "french":
        adjectives = {adjective.french_masculine for adjective in words.adjectives}
    else:
        adjectives = {getattr(adjective, language) for adjective in words.adjectives}
    verbs = {
        (verb.german_prefix if language == "german" else "") + getattr(verb, language)
        for verb in words.verbs
    }
    others = {getattr(word, language) for word in (*words.nouns, *words.adverbs)}
    return adjectives | verbs | others


def verb(english: str) -> Verb:
    return next(verb for verb in FULL.verbs if verb.english == english)


def noun(english: str) -> Noun:
    return next(noun for noun in FULL.nouns if noun.english == english)


@pytest.mark.parametrize(
    ("word_class", "at_least"),
    [("nouns", 270), ("verbs", 140), ("adjectives", 110), ("adverbs", 40)],
)
def test_there_are_enough_words_of_every_class(word_class: str, at_least: int) -> None:
    assert len(getattr(FULL, word_class)) >= at_least


@pytest.mark.parametrize("language", ["english", "german", "french"])
def test_every_language_has_500_open_class_lemmas(language: str) -> None:
    assert len(lemmas(FULL, language)) >= 500


def test_every_english_form_belongs_to_one_word_only() -> None:
    counts = Counter(english_forms(FULL))
    assert [form for form, count in counts.items() if count > 1] == []


def test_no_open_class_word_looks_like_a_closed_class_word() -> None:
    assert CLOSED_CLASS.isdisjoint(english_forms(FULL))


def test_english_forms_are_single_lower_case_words() -> None:
    assert [form for form in english_forms(FULL) if not (form.isalpha() and form.islower())] == []


def test_the_letter_decides_between_a_and_an() -> None:
    described = [word.english for word in (*FULL.nouns, *FULL.adjectives)]
    assert [word for word in described if word.startswith(MISLEADING_STARTS)] == []


@pytest.mark.parametrize("language", ["german", "french"])
def test_each_meaning_has_its_own_lemma_within_its_class(language: str) -> None:
    for words in (FULL.nouns, FULL.adverbs):
        counts = Counter(getattr(word, language) for word in words)
        assert max(counts.values()) == 1


def test_each_meaning_has_its_own_verb_and_adjective() -> None:
    for translations in (
        [verb.german_prefix + verb.german for verb in FULL.verbs],
        [verb.french for verb in FULL.verbs],
        [adjective.german for adjective in FULL.adjectives],
        [adjective.french_masculine for adjective in FULL.adjectives],
    ):
        assert len(set(translations)) == len(translations)


@pytest.mark.parametrize(
    ("file", "kind"),
    [("nouns", Noun), ("verbs", Verb), ("adjectives", Adjective), ("adverbs", Adverb)],
)
def test_the_files_are_tables_of_exactly_the_declared_columns(file: str, kind: type) -> None:
    folder = resources.files("regard.corpora.grammar").joinpath("words")
    text = folder.joinpath(f"{file}.tsv").read_text("utf-8")
    header, *rows = csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert header == [field.name for field in fields(kind)]
    assert {len(row) for row in rows} == {len(header)}
    assert all(cell == cell.strip() for row in rows for cell in row)
    flags = [index for index, field in enumerate(fields(kind)) if field.type == "bool"]
    assert {row[index] for row in rows for index in flags} == {"yes", ""}


def test_the_verbs_of_saying_take_persons_and_no_objects() -> None:
    assert [verb.english for verb in clause_verbs()] == ["think", "know", "believe", "say", "hope"]
    for verb in clause_verbs():
        assert (verb.subjects, verb.objects) == ({"person"}, frozenset())
        assert not (verb.german_prefix or verb.german_case or verb.french_generic)
        assert verb.french_auxiliary == "avoir"


# The cells that a rule fills where they are empty.
MAY_BE_EMPTY = {
    "german_weak", "german_prefix", "german_stem", "french_masculine_plural",
    "french_before_vowel",
}  # fmt: skip


def test_every_form_that_no_rule_gives_is_written() -> None:
    for word in (*FULL.nouns, *FULL.verbs, *FULL.adjectives, *FULL.adverbs):
        for field in fields(word):
            needed = field.type == "str" and field.name not in MAY_BE_EMPTY
            intransitive = field.name == "german_case" and not getattr(word, "objects", True)
            if needed and not intransitive:
                assert getattr(word, field.name), (word.english, field.name)


def test_nouns_have_a_known_class_and_gender() -> None:
    for word in FULL.nouns:
        assert word.kind in KINDS, word.english
        assert word.german_gender in {"masculine", "feminine", "neuter"}, word.english
        assert word.french_gender in {"masculine", "feminine"}, word.english
        assert word.german[0].isupper() and word.german_plural[0].isupper(), word.english
        assert word.french.islower() and word.french_plural.islower(), word.english


def test_every_semantic_class_has_many_nouns_and_each_some_in_the_small_lexicon() -> None:
    counts = Counter(noun.kind for noun in FULL.nouns)
    assert set(counts) == KINDS
    assert min(counts.values()) >= 12
    assert {noun.kind for noun in SMALL.nouns} == KINDS


def test_weak_nouns_are_masculine_and_end_in_n() -> None:
    weak = [word for word in FULL.nouns if word.german_weak]
    assert len(weak) >= 20
    for word in weak:
        assert word.german_gender == "masculine", word.english
        assert word.german_weak in {word.german + "n", word.german + "en"}, word.english


def test_masculine_nouns_that_look_weak_are_marked_so() -> None:
    for word in FULL.nouns:
        looks_weak = word.german.endswith("e") and word.german_plural == word.german + "n"
        if looks_weak and word.german_gender == "masculine" and word.kind in LIVING:
            assert word.german_weak == word.german_plural, word.english


# The endings of French nouns decide their plural, with these exceptions.
FRENCH_PLURALS = {"bijou": "bijoux", "hibou": "hiboux", "monsieur": "messieurs"}


def test_french_plurals_follow_their_rule() -> None:
    for word in FULL.nouns:
        singular = word.french
        if singular.endswith(("s", "x", "z")):
            expected = singular
        elif singular.endswith(("eau", "eu")):
            expected = singular + "x"
        elif singular.endswith("al"):
            expected = singular[:-2] + "aux"
        else:
            expected = singular + "s"
        assert word.french_plural == FRENCH_PLURALS.get(singular, expected), word.english


def test_only_words_on_h_are_aspirate() -> None:
    aspirate = {word.french for word in FULL.nouns if word.french_aspirate}
    assert aspirate == {"haie", "hamster", "haricot", "hache", "hibou", "hérisson", "héros"}


# Suffixes that decide the German gender, and the nouns that only look as if they had one.
FEMININE_SUFFIXES = ("ung", "keit", "heit", "schaft", "ei", "ion", "in", "ette")
NO_SUFFIX = {"Ei", "Wein", "Apfelwein", "Stein", "Schwein", "Cousin", "Delfin"}
DIMINUTIVES = {
    "Mädchen", "Kaninchen", "Eichhörnchen", "Kätzchen", "Veilchen", "Gänseblümchen"
}  # fmt: skip


def test_german_suffixes_decide_the_gender() -> None:
    for word in FULL.nouns:
        if word.german.endswith(FEMININE_SUFFIXES) and word.german not in NO_SUFFIX:
            assert word.german_gender == "feminine", word.english
        if word.german in DIMINUTIVES:
            assert (word.german_gender, word.german_plural) == ("neuter", word.german)


@pytest.mark.parametrize(
    ("english", "german", "french"),
    [
        ("cat", "Katze", "chat"),
        ("dog", "Hund", "chien"),
        ("animal", "Tier", "animal"),
        ("street", "Straße", "rue"),
        ("child", "Kind", "enfant"),
        ("teacher", "Lehrer", "professeur"),
        ("house", "Haus", "maison"),
        ("apple", "Apfel", "pomme"),
    ],
)
def test_the_demo_has_the_nouns_of_its_examples(english: str, german: str, french: str) -> None:
    word = noun(english)
    assert word.small
    assert (word.german, word.french) == (german, french)


@pytest.mark.parametrize("words", SIZES)
def test_every_verb_finds_a_subject_and_an_object(words: Lexicon) -> None:
    kinds = {noun.kind for noun in words.nouns}
    for word in words.verbs:
        assert word.subjects and word.subjects <= KINDS, word.english
        assert word.objects <= KINDS, word.english
        assert word.subjects & kinds, word.english
        assert not word.objects or word.objects & kinds, word.english


def test_only_transitive_verbs_have_a_case() -> None:
    for word in FULL.verbs:
        cases = {"accusative", "dative"} if word.objects else {""}
        assert word.german_case in cases, word.english


@pytest.mark.parametrize("words", SIZES)
def test_there_are_verbs_of_every_build(words: Lexicon) -> None:
    assert any(word.german_case == "dative" for word in words.verbs)
    assert any(word.german_prefix and word.objects for word in words.verbs)
    assert any(word.german_prefix and not word.objects for word in words.verbs)
    assert any(word.french_auxiliary == "être" for word in words.verbs)
    assert any(word.french_generic for word in words.verbs)


def test_there_are_enough_separable_and_dative_verbs() -> None:
    assert len([word for word in FULL.verbs if word.german_prefix]) >= 15
    assert len([word for word in FULL.verbs if word.german_case == "dative"]) >= 6


def test_german_verb_forms_have_their_endings() -> None:
    for word in FULL.verbs:
        assert word.german.endswith("n"), word.english
        if word.english != "like":
            assert word.german_first.endswith("e"), word.english
            assert word.german_third.endswith(("t", "st")), word.english
        expected = word.german_past + ("n" if word.german_past.endswith("e") else "en")
        assert word.german_past_plural == expected, word.english


def test_french_verb_forms_have_their_endings() -> None:
    for word in FULL.verbs:
        assert word.french.endswith(("er", "ir", "re")), word.english
        assert word.french_nous.endswith("ons"), word.english
        assert word.french_ils.endswith("ent"), word.english
        assert word.french_participle.endswith(("é", "i", "u", "t", "s")), word.english
        if word.french.endswith("er"):
            assert word.french_je == word.french_il == word.french_ils[:-2], word.english
            assert word.french_participle == word.french[:-2] + "é", word.english
        assert word.french_auxiliary in {"avoir", "être"}, word.english
        # The grammar elides je and ne before every h of a verb.
        assert not word.french.startswith("h") or word.french == "hésiter", word.english


def test_only_intransitive_french_verbs_take_etre() -> None:
    for word in FULL.verbs:
        assert word.french_auxiliary == "avoir" or not word.objects, word.english


VERB_FORMS = """
like: mögen mag mag mochte mochten, aimer aime aime aimons aiment aimé
see: sehen sehe sieht sah sahen, voir vois voit voyons voient vu
work: arbeiten arbeite arbeitet arbeitete arbeiteten, travailler travaille travaille travaillons travaillent travaillé
sleep: schlafen schlafe schläft schlief schliefen, dormir dors dort dormons dorment dormi
eat: essen esse isst aß aßen, manger mange mange mangeons mangent mangé
smile: lächeln lächle lächelt lächelte lächelten, sourire souris sourit sourions sourient souri
shout: schreien schreie schreit schrie schrien, crier crie crie crions crient crié
throw: werfen werfe wirft warf warfen, lancer lance lance lançons lancent lancé
breathe: atmen atme atmet atmete atmeten, respirer respire respire respirons respirent respiré
prefer: bevorzugen bevorzuge bevorzugt bevorzugte bevorzugten, préférer préfère préfère préférons préfèrent préféré
"""  # noqa: E501


@pytest.mark.parametrize("row", VERB_FORMS.strip().splitlines())
def test_irregular_verbs_have_their_forms(row: str) -> None:
    english, forms = row.split(": ")
    word = verb(english)
    german = f"{word.german} {word.german_first} {word.german_third} {word.german_past}"
    french = f"{word.french} {word.french_je} {word.french_il} {word.french_nous}"
    assert forms == (
        f"{german} {word.german_past_plural}, {french} {word.french_ils} {word.french_participle}"
    )


@pytest.mark.parametrize("english", ["like", "love", "hate"])
def test_verbs_of_liking_are_generic(english: str) -> None:
    assert verb(english).small
    assert verb(english).french_generic


def test_one_crosses_streets() -> None:
    assert verb("cross").small
    assert noun("street").kind in verb("cross").objects


def test_adjectives_fit_known_classes() -> None:
    for word in FULL.adjectives:
        assert word.nouns and word.nouns <= KINDS, word.english


@pytest.mark.parametrize("words", SIZES)
def test_every_noun_finds_an_adjective(words: Lexicon) -> None:
    fitting = frozenset().union(*(adjective.nouns for adjective in words.adjectives))
    assert {noun.kind for noun in words.nouns} <= fitting


@pytest.mark.parametrize("words", SIZES)
def test_a_predicate_tells_the_living_from_the_lifeless(words: Lexicon) -> None:
    predicates = [adjective for adjective in words.adjectives if adjective.predicate]
    living = [word for word in predicates if word.nouns <= LIVING]
    lifeless = [word for word in predicates if not word.nouns & LIVING]
    assert len(living) + len(lifeless) == len(predicates)
    assert len(living) >= 3 and len(lifeless) >= 3
    assert any("animal" in word.nouns for word in living)
    assert any("place" in word.nouns for word in lifeless)


@pytest.mark.parametrize(
    ("english", "german", "stem", "french"),
    [
        ("dark", "dunkel", "dunkl", "sombre"),
        ("expensive", "teuer", "teur", "cher"),
        ("sour", "sauer", "saur", "acide"),
        ("high", "hoch", "hoh", "haut"),
        ("tired", "müde", "müd", "fatigué"),
        ("wise", "weise", "weis", "sage"),
        ("wide", "breit", "", "large"),
    ],
)
def test_german_stems(english: str, german: str, stem: str, french: str) -> None:
    word = next(word for word in FULL.adjectives if word.english == english)
    assert (word.german, word.german_stem, word.french_masculine) == (german, stem, french)


def test_german_adjectives_on_e_el_and_auer_have_a_stem() -> None:
    for word in FULL.adjectives:
        if word.german.endswith(("e", "el", "auer", "euer")):
            assert word.german_stem, word.english


def test_few_french_adjectives_stand_before_the_noun() -> None:
    before = {word.french_masculine: word for word in FULL.adjectives if word.french_before}
    assert set(before) == {
        "grand", "petit", "vieux", "jeune", "beau", "nouveau", "bon", "mauvais", "joli", "gros",
        "long",
    }  # fmt: skip
    assert {word.french_before_vowel for word in FULL.adjectives if word.french_before_vowel} == {
        "vieil",
        "bel",
        "nouvel",
    }


def test_french_adjectives_on_eau_and_al_give_their_plural() -> None:
    for word in FULL.adjectives:
        irregular = word.french_masculine.endswith(("eau", "al"))
        assert bool(word.french_masculine_plural) == irregular, word.english
        assert word.french_feminine.endswith("e"), word.english


@pytest.mark.parametrize("words", SIZES)
def test_there_are_adverbs_of_every_kind(words: Lexicon) -> None:
    assert {adverb.kind for adverb in words.adverbs} == ADVERB_KINDS
    assert "never" not in {adverb.english for adverb in words.adverbs}


def test_the_small_lexicon_is_a_small_part_of_the_full_one() -> None:
    sizes = [(len(SMALL.nouns), 30, 60), (len(SMALL.verbs), 15, 35),
             (len(SMALL.adjectives), 10, 25), (len(SMALL.adverbs), 6, 15)]  # fmt: skip
    assert all(low <= size <= high for size, low, high in sizes)
    assert set(SMALL.nouns) < set(FULL.nouns)
    assert set(SMALL.verbs) < set(FULL.verbs)
    assert set(SMALL.adjectives) < set(FULL.adjectives)
    assert set(SMALL.adverbs) < set(FULL.adverbs)
