"""A head that is taught to align: alignment error, tags and BLEU, with the loss and without it.

    python bench/alignment_head.py [--grammar-steps 300] [--tatoeba-steps 300] [--runs FOLDER]

Trains a Transformer of 2 + 2 layers of width 64 twice on each of two corpora, for the same number
of updates: as it is, and with training.alignment_loss on links of IBM model 1. The gold links of
the built-in grammar are never trained on. English to French is trained on Tatoeba, lower-cased and
split at punctuation as the 447 gold sentences of the Hansards are. Without the loss, the error is
that of the shown layer's mean and of the head that is best on other gold (grammar) or on the sure
gold links themselves (French). Tags: around each word of a test sentence, placed in the reference;
right if it encloses the words that the gold links name. Writes results/alignment-head.json; a
stopped measurement is continued.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import small_training
from regard.batching.alignments import WordAligner
from regard.corpora.alignments import read_gold
from regard.corpora.formats.inline import Tag, place_tags
from regard.corpora.parallel import SentencePair
from regard.documents.segments import LinkedText, aligned_words
from regard.runs.run import finish_or_start
from regard.scoring.alignment import GoldLinks, Links, alignment_error_rate
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits, read_splits
from regard.tasks.translation.evaluation import align, score_heads
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

WAYS = {
    "plain": [],
    "taught": ["model.alignment_head=0", "model.alignment_layer=-2", "training.alignment_loss=0.2"],
}
SETTINGS = [
    "training.optimizer=adam", "training.learning_rate=0.005", "training.warmup=50",
    "training.average=0", "training.processes=1", "training.validate_sentences=50",
    "batches.tokens=1024", "model.dropout=0.1", "decoding.beam=1",
    # A minute of one core each: what is compared is the loss, not what the model can learn.
    "model.layers=2", "model.model_dim=64", "model.feed_forward=128",
]  # fmt: skip
GRAMMAR = [
    "data.built_in=true", "tokenizer.kind=word", "tokenizer.shared=false", "model.tie=target",
]  # fmt: skip
TATOEBA = ["data.from_memory=true", "tokenizer.size=2000"]
WORD = re.compile(r"\w+['’]|\w+|[^\w\s]")
HELD_OUT = 300


def main() -> None:
    """Train, measure and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--grammar-steps", type=int, default=300)
    options.add_argument("--tatoeba-steps", type=int, default=300)
    options.add_argument("--pairs", type=int, default=30_000, help="of Tatoeba")
    options.add_argument("--sentences", type=int, default=300, help="of the built-in test")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/alignment-head"))
    given = options.parse_args()
    before = small_training.cpu_minutes()
    figures = grammar(given) | french(given)
    command = (
        f"python bench/alignment_head.py --grammar-steps {given.grammar_steps} --tatoeba-steps "
        f"{given.tatoeba_steps} --pairs {given.pairs}"
    )
    details = {
        "settings": SETTINGS, "grammar": GRAMMAR, "tatoeba": TATOEBA, "ways": WAYS,
        "cpu_minutes": round(small_training.cpu_minutes() - before, 1),
        "sentences": {"grammar": given.sentences, "hansards": 447, "tatoeba_bleu": HELD_OUT},
    }  # fmt: skip
    print(f"wrote {write_result('alignment-head', figures, command=command, details=details)}")


def trained(
    folder: Path, splits: Splits, *, steps: int, settings: Sequence[str]
) -> LoadedTranslator:
    """Return the model after so many updates; what is there is not trained again."""
    limits = [f"training.steps={steps}", f"training.validate_every={steps}"]
    overrides = [*SETTINGS, *limits, *settings]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    return train_translator(recipe, finish_or_start(folder, recipe), splits=splits).model


def grammar(given: argparse.Namespace) -> dict[str, float]:
    """Return the figures on the built-in corpus, whose gold links are known."""
    recipe = expect(find_recipe("transformer-tiny", overrides=GRAMMAR), TranslationRecipe)
    splits = read_splits(recipe.data)
    hidden = replace(splits, train=[replace(pair, alignment=None) for pair in splits.train])
    valid, test = splits.valid[: given.sentences], splits.test[: given.sentences]
    gold = [GoldLinks(frozenset(p.alignment or ()), frozenset(p.alignment or ())) for p in test]
    found = {"grammar_ibm_aer": error(WordAligner.learn(hidden.train), test, gold)}
    for way, settings in WAYS.items():
        model = trained(given.runs / f"grammar-{way}", hidden, steps=given.grammar_steps,
                        settings=[*GRAMMAR, *settings])  # fmt: skip
        links = [one.links() for one in align(model, test)]
        found[f"grammar_{way}_aer"] = rate(links, gold)
        found[f"grammar_{way}_tags"] = tags_right(test, links)
        if way == "plain":
            place = score_heads(model, valid)[0].place
            best = [one.links() for one in align(model, test, head=place)]
            found["grammar_plain_best_head_aer"] = rate(best, gold)
            found["grammar_plain_best_head_tags"] = tags_right(test, best)
        found[f"grammar_{way}_bleu"] = small_training.bleu(model, test)
        print(json.dumps(found, indent=1), flush=True)
    return found


def french(given: argparse.Namespace) -> dict[str, float]:
    """Return the figures on the gold of the Hansards, with models of Tatoeba."""
    every = tatoeba()
    chosen = every[:: max(1, len(every) // (given.pairs + 2 * HELD_OUT))]
    valid, held, train = chosen[:HELD_OUT], chosen[HELD_OUT : 2 * HELD_OUT], chosen[2 * HELD_OUT :]
    folder = small_training.DATA / "alignments"
    gold = read_gold(folder / "enfr.gold", first=1)
    lines = (folder / "enfr.src-tgt").read_text(encoding="utf-8").splitlines()
    test = [SentencePair(*line.split(" ||| ")) for line in lines]
    found = {"french_ibm_aer": error(WordAligner.learn(train), test, gold)}
    for way, settings in WAYS.items():
        model = trained(given.runs / f"french-{way}", Splits(train, valid, []),
                        steps=given.tatoeba_steps, settings=[*TATOEBA, *settings])  # fmt: skip
        found[f"french_{way}_aer"] = rate([one.links() for one in align(model, test)], gold)
        if way == "plain":
            sure = [replace(p, alignment=tuple(g.sure)) for p, g in zip(test, gold, strict=True)]
            place = score_heads(model, sure)[0].place
            best = [one.links() for one in align(model, test, head=place)]
            found["french_plain_best_head_aer"] = rate(best, gold)
        found[f"french_{way}_bleu"] = small_training.bleu(model, held)
        print(json.dumps(found, indent=1), flush=True)
    return found


def tatoeba() -> list[SentencePair]:
    """Return the English-French pairs, lower-cased and split at punctuation."""
    with zipfile.ZipFile(small_training.DATA / "tatoeba" / "fra-eng.zip") as archive:
        lines = archive.read("fra.txt").decode("utf-8").splitlines()
    sides = (line.split("\t")[:2] for line in lines)
    return [SentencePair(*(" ".join(WORD.findall(text.lower())) for text in two)) for two in sides]


def error(aligner: WordAligner, pairs: Sequence[SentencePair], gold: Sequence[GoldLinks]) -> float:
    """Return the error rate of IBM model 1 itself."""
    return rate([aligner(pair) for pair in pairs], gold)


def rate(links: Sequence[Links], gold: Sequence[GoldLinks]) -> float:
    """Return the alignment error rate in percent."""
    sure, possible = [one.sure for one in gold], [one.possible for one in gold]
    return round(alignment_error_rate(links, sure, possible).value, 2)


def tags_right(pairs: Sequence[SentencePair], links: Sequence[Links]) -> float:
    """Return the share of tags around one source word that enclose its gold words, in percent."""
    right = tags = 0
    for pair, found in zip(pairs, links, strict=True):
        words = aligned_words(pair.source, LinkedText(pair.target, frozenset(found)))
        for number, match in enumerate(re.finditer(r"\S+", pair.source)):
            wanted = [target for source, target in pair.alignment or () if source == number]
            if not wanted:
                continue
            tag = [
                Tag(match.start(), "<", "open", partner=1),
                Tag(match.end(), ">", "close", partner=0),
            ]
            placed = place_tags(pair.source, tag, target=pair.target, words=words)
            inside = placed.partition("<")[2].partition(">")[0].split()
            before = len(placed.partition("<")[0].split())
            right += list(range(before, before + len(inside))) == sorted(wanted)
            tags += 1
    return round(100 * right / tags, 2)


if __name__ == "__main__":
    main()
