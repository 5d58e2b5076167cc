"""What holds for every sentence that the grammar draws."""

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora.grammar import generate, german
from regard.corpora.grammar.choices import RandomStream, Selection, possible, share
from regard.corpora.grammar.generate import split_of
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.grammar.sampling import Sampler, noun_phrases
from regard.corpora.parallel import SentencePair

# Name, options, sizes; drawn once in a process of its own, where no types are checked at run time:
# with the checks it takes a hundred times as long.
CORPORA: dict[str, dict[str, Any]] = {
    "short": {"size": 4000, "max_words": 12, "seed": 1},
    "short again": {"size": 4000, "max_words": 12, "seed": 2},
    "long": {"size": 2000, "max_words": 62, "seed": 1},
    "small": {"size": 5000, "max_words": 12, "words": "small", "seed": 1},
    "small again": {"size": 5000, "max_words": 12, "words": "small", "seed": 2},
    "five words": {"size": 1500, "min_words": 5, "max_words": 5, "words": "small"},
    "very long": {"size": 20, "min_words": 80, "max_words": 120},
    "very long and small": {"size": 20, "min_words": 80, "max_words": 120, "words": "small"},
    "train": {"size": 200, "max_words": 6, "words": "small"},
    "valid": {"size": 200, "max_words": 6, "words": "small", "split": "valid", "seed": 2},
    "test": {"size": 200, "max_words": 6, "words": "small", "split": "test", "seed": 3},
    "few valid": {"size": 50, "max_words": 6, "words": "small", "split": "valid", "seed": 2},
}
CORPORA["contested"] = {"size": 400, "min_words": 10, "max_words": 13, "words": "small"}
CORPORA["contested"]["contested"] = 0.9
SCRIPT = """
import json, sys
from regard.corpora.grammar import generate
for name, options in json.load(sys.stdin).items():
    pairs = generate(**{"pair": "en-de", "split": "train", **options})
    print(json.dumps([[p.source, p.target, p.alignment, p.antecedents] for p in pairs]))
"""


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[SentencePair]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(CORPORA),
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
        env={**environment, "PYTHONUTF8": "1"},
    )
    return {
        name: [
            SentencePair(
                source, target, tuple(map(tuple, alignment)), tuple(map(tuple, antecedents))
            )
            for source, target, alignment, antecedents in json.loads(line)
        ]
        for name, line in zip(CORPORA, done.stdout.splitlines(), strict=True)
    }


def draw(size: int, **options: Any) -> list[SentencePair]:
    return generate(**{"pair": "en-de", "split": "train", "size": size, **options})


def well_formed(pair: SentencePair) -> None:
    """Check what every pair must be."""
    source, target = pair.source.split(" "), pair.target.split(" ")
    assert "" not in source + target
    assert source[-1] != "," and target[-1] != "," and target[0] != ","
    assert (",", ",") not in set(pairwise(target))
    assert pair.alignment is not None
    assert {j for _, j in pair.alignment} == set(range(len(target)))
    assert {i for i, _ in pair.alignment} <= set(range(len(source)))
    for pronoun, noun in pair.antecedents:
        assert source[pronoun] in ("it", "they")
        assert noun < pronoun


@settings(deadline=None, max_examples=8)
@given(
    words=st.sampled_from(["full", "small"]),
    low=st.integers(3, 70),
    more=st.integers(0, 20),
    seed=st.integers(0, 2**63),
)
def test_every_pair_is_well_formed(words: str, low: int, more: int, seed: int) -> None:
    for pair in draw(1, min_words=low, max_words=low + more, words=words, seed=seed):
        assert low <= len(pair.source.split()) <= low + more
        well_formed(pair)


def test_all_drawn_pairs_are_well_formed(corpora: dict[str, list[SentencePair]]) -> None:
    for name, options in CORPORA.items():
        assert len(corpora[name]) == options["size"]
        for pair in corpora[name]:
            words = len(pair.source.split())
            assert options.get("min_words", 3) <= words <= options["max_words"]
            well_formed(pair)


def test_a_source_has_one_target(corpora: dict[str, list[SentencePair]]) -> None:
    """Two seeds meet in many short sentences, and must have said the same."""
    targets: dict[str, str] = {}
    for pair in (pair for pairs in corpora.values() for pair in pairs):
        assert targets.setdefault(pair.source, pair.target) == pair.target
    assert len(targets) < sum(len(pairs) for pairs in corpora.values()) - 100


def test_lengths_are_uniform_and_pronouns_a_visible_share(
    corpora: dict[str, list[SentencePair]],
) -> None:
    pairs = corpora["long"]
    lengths = Counter(len(pair.source.split()) for pair in pairs)
    assert sorted(lengths) == list(range(3, 63))
    assert min(lengths.values()) > 10 and max(lengths.values()) < 65
    with_pronoun = [pair for pair in pairs if pair.antecedents]
    assert 0.10 < len(with_pronoun) / len(pairs) < 0.17
    assert sum(len(pair.source.split()) > 40 for pair in with_pronoun) > 40


def test_a_larger_size_starts_with_the_same_sentences(
    corpora: dict[str, list[SentencePair]],
) -> None:
    assert corpora["valid"][:50] == corpora["few valid"]


def test_splits_never_meet_and_hold_no_sentence_twice(
    corpora: dict[str, list[SentencePair]],
) -> None:
    for split in ("train", "valid", "test"):
        drawn = [pair.source for pair in corpora[split]]
        assert len(set(drawn)) == len(drawn)
        assert {split_of(source) for source in drawn} == {split}


def test_the_small_words_say_what_cats_do_not_like(
    corpora: dict[str, list[SentencePair]],
) -> None:
    found = [pair for pair in corpora["five words"] if " do not like " in pair.source]
    assert found
    assert all("mögen keine" in pair.target for pair in found)
    pairs = corpora["small"] + corpora["five words"]
    assert any(pair.source.startswith("cats do not ") for pair in pairs)
    assert any(pair.source.endswith(" dogs") for pair in pairs)


def test_more_than_a_million_million_sentences() -> None:
    """Count one kind of sentence alone: "the old man sees the big dog", in two tenses."""
    selection = Selection(lexicon(small=False))

    def described(kinds: frozenset[str]) -> int:
        return sum(len(selection.adjectives[noun.kind]) for noun in selection.nouns(kinds))

    simple = sum(
        prod((described(verb.subjects), described(verb.objects), 2))
        for verb in selection.transitive
    )
    assert simple * simple > 10**12  # such a clause, "because", and another


def test_no_two_words_look_the_same() -> None:
    """A form that belonged to two words would have two right translations."""
    selection = Selection(lexicon(small=False))
    nouns = [form for each in selection.all_nouns for form in (each.english, each.english_plural)]
    verbs = [
        form
        for each in (*selection.transitive, *selection.intransitive)
        for form in (each.english, each.english_third, each.english_past)
    ]
    assert [form for form, count in Counter(nouns).items() if count > 1] == []
    assert [form for form, count in Counter(verbs).items() if count > 1] == []


def test_every_noun_can_be_described_and_acted_on() -> None:
    for small in (False, True):
        selection = Selection(lexicon(small=small))
        for kind in {noun.kind for noun in selection.all_nouns}:
            assert selection.gradable[kind]
            assert selection.undergoing[kind]
        assert all(selection.complements.values()) or small


def test_pronouns_stand_for_a_noun_that_alone_fits() -> None:
    stream = RandomStream(9)
    sampler = Sampler(lexicon(small=False), stream, german.LANGUAGE, small=False)
    seen = 0
    for _ in range(40):
        sentence = sampler.sentence(stream.between(9, 16))
        described = [*sentence.clauses[1:2], *(each.clause for each in sentence.subordinates[:1])]
        for clause in described:
            antecedent = getattr(clause.subject, "antecedent", None)
            if antecedent is None:
                continue
            assert clause.predicate is not None
            fitting = [
                phrase
                for phrase in noun_phrases(sentence.clauses[0])
                if phrase.plural == antecedent.plural
                and (phrase.plural or phrase.noun.kind != "person")
                and phrase.noun.kind in clause.predicate.adjective.nouns
            ]
            assert fitting == [antecedent]
            seen += 1
    assert seen


@given(bounds=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1), data=st.data())
def test_shares_add_up_within_their_bounds(bounds: list[tuple[int, int]], data: Any) -> None:
    bounds = [(low, low + more) for low, more in bounds]
    total = data.draw(st.integers(sum(b[0] for b in bounds), sum(b[1] for b in bounds)))
    assert possible(total, bounds)
    shares = share(RandomStream(data.draw(st.integers(0, 99))), total, bounds)
    assert sum(shares) == total
    assert all(low <= each <= high for each, (low, high) in zip(shares, bounds, strict=True))


def test_random_numbers_never_change() -> None:
    """The corpus of a seed is the same for ever; so are these numbers."""
    stream = RandomStream(1)
    assert [stream.below(1000) for _ in range(6)] == [368, 53, 796, 778, 331, 333]
    assert [stream.choose("abcdef") for _ in range(4)] == list("cbfa")
    assert all(3 <= stream.between(3, 5) <= 5 for _ in range(50))
    assert not any(stream.chance(0) for _ in range(50))
    assert all(stream.chance(100) for _ in range(50))


def test_contested_pronouns_have_rivals_on_either_side(
    corpora: dict[str, list[SentencePair]],
) -> None:
    nouns = {each.english for each in lexicon(small=True).nouns if each.kind != "person"}
    nearest, found = 0, 0
    for pair in corpora["contested"]:
        words = pair.source.split()
        for pronoun, noun in pair.antecedents:
            places = [place for place, word in enumerate(words[:pronoun]) if word in nouns]
            if words[pronoun] == "it" and len(places) > 1:
                found += 1
                nearest += places[-1] == noun
    assert found > 300  # of 400; the rest are plain, or no host was found
    assert 0.35 < nearest / found < 0.55
