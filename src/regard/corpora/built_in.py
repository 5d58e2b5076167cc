"""The built-in graph and text: small, generated, and the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from regard.corpora.grammar.choices import RandomStream
from regard.corpora.grammar.generate import generate
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.graph import FeatureMatrix, Graph, GraphSplit, checked

TOPICS = ("animal", "building", "clothing", "food", "vehicle")
DOCUMENTS = 500
WORDS_EACH = 8
ON_TOPIC_PERCENT = 35
"""Words of a document that belong to its topic: too few to tell it from its words alone."""
CITATIONS_EACH = 3
SAME_TOPIC_PERCENT = 75
TRAIN_EACH, VALID = 15, 125

SENTENCES = 6_000
LONGEST_SENTENCE = 14
PARAGRAPH = (3, 7)


def library_graph(*, seed: int = 1) -> Graph:
    """Return documents that cite each other; the class of each is what it is about.

    A document mentions nouns, some of its topic and most of any topic, and cites mostly documents
    of its own topic. So neither its words nor its neighbours say alone what it is about.
    """
    stream = RandomStream(seed)
    nouns = [noun for noun in lexicon(small=False).nouns if noun.kind in TOPICS]
    of_topic = [
        [place for place, noun in enumerate(nouns) if noun.kind == topic] for topic in TOPICS
    ]
    labels = [stream.below(len(TOPICS)) for _ in range(DOCUMENTS)]
    counts = np.zeros((DOCUMENTS, len(nouns)), dtype=np.float32)
    for document, topic in enumerate(labels):
        for _ in range(WORDS_EACH):
            own = stream.chance(ON_TOPIC_PERCENT)
            word = stream.choose(of_topic[topic]) if own else stream.below(len(nouns))
            counts[document, word] += 1
    citations = [
        (document, _cited(stream, labels, document))
        for document in range(DOCUMENTS)
        for _ in range(CITATIONS_EACH)
    ]
    graph = Graph(
        features=FeatureMatrix.from_dense(counts),
        labels=np.array(labels, dtype=np.int64),
        pairs=np.array(citations, dtype=np.int64).T,
        classes=TOPICS,
        split=_split(labels),
    )
    return checked(graph, path=Path("built-in"))


def _cited(stream: RandomStream, labels: list[int], document: int) -> int:
    """Return another document, most often of the same topic."""
    same = stream.chance(SAME_TOPIC_PERCENT)
    while True:
        other = stream.below(len(labels))
        if other != document and (not same or labels[other] == labels[document]):
            return other


def _split(labels: list[int]) -> GraphSplit:
    """Return the first documents of each topic to train on, and the others to valid and test."""
    train = [
        document
        for document, topic in enumerate(labels)
        if labels[:document].count(topic) < TRAIN_EACH
    ]
    rest = np.setdiff1d(np.arange(len(labels)), train)
    return GraphSplit(np.array(train, dtype=np.int64), rest[:VALID], rest[VALID:])


def story(*, sentences: int = SENTENCES, seed: int = 1) -> str:
    """Return English sentences of the grammar in paragraphs, a line each; some 250,000 letters."""
    drawn = iter(
        generate(
            pair="en-de",
            split="train",
            size=sentences,
            max_words=LONGEST_SENTENCE,
            style="written",
            seed=seed,
        )
    )
    stream = RandomStream(seed)
    lines: list[str] = []
    while True:
        size = stream.between(*PARAGRAPH)
        paragraph = [pair.source for pair, _ in zip(drawn, range(size), strict=False)]
        if not paragraph:
            return "\n".join(lines) + "\n"
        lines.append(" ".join(paragraph))
