"""Augmentation: BLEU on clean and on perturbed Multi30k test 2016, with it and without.

    python bench/augmentation.py [--steps 1500] [--pairs 29000] [--runs FOLDER]

Trains transformer-tiny (en-de, raw text) twice for the same number of updates: on the pairs as they
are, and with every kind of augmentation for a share of the sentences. Both translate test 2016, and
test 2016 with each kind of change in every sentence; the references of changes to the source alone
stay as they are. BLEU is cased, 13a, greedy. Writes results/augmentation.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

import small_training
from regard.corpora.parallel import SentencePair
from regard.text.perturbation import KINDS, perturbed
from result import write_result

SHARES = {
    "case": 0.1,
    "typos": 0.15,
    "punctuation": 0.1,
    "diacritics": 0.05,
    "joined": 0.05,
    "markup": 0.05,
    "copied": 0.05,
}


def main() -> None:
    """Train with and without, and test on every kind of change."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=1_500)
    options.add_argument("--pairs", type=int, default=29_000)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/augmentation"))
    given = options.parse_args()
    pairs = small_training.multi30k("train")[: given.pairs]
    valid, test = small_training.multi30k("valid"), small_training.multi30k("test")
    tests = {"clean": test, **{kind: changed(test, kind) for kind in KINDS}}
    figures: dict[str, float] = {}
    details: dict[str, object] = {"steps": given.steps, "shares": SHARES}
    ways = {"plain": [], "augmented": [f"augmentation.{k}={v}" for k, v in SHARES.items()]}
    for way, settings in ways.items():
        before = small_training.cpu_minutes()
        model = small_training.train(
            given.runs / way, pairs, valid, steps=given.steps, settings=settings
        )
        used = small_training.cpu_minutes() - before
        details[way] = {"cpu_minutes": round(used, 1), "settings": settings}
        for kind, texts in tests.items():
            figures[f"bleu_{kind}_{way}"] = small_training.bleu(model, texts)
            print(way, kind, figures[f"bleu_{kind}_{way}"], flush=True)
    for kind in tests:
        gain = figures[f"bleu_{kind}_augmented"] - figures[f"bleu_{kind}_plain"]
        figures[f"gain_{kind}"] = round(gain, 2)
    details["examples"] = {kind: texts[0].source for kind, texts in tests.items()}
    command = f"python bench/augmentation.py --steps {given.steps} --pairs {given.pairs}"
    print(f"wrote {write_result('augmentation', figures, command=command, details=details)}")


def changed(pairs: Sequence[SentencePair], kind: str) -> list[SentencePair]:
    """Return the pairs, each with this kind of change."""
    found = []
    for number, pair in enumerate(pairs):
        following = pairs[(number + 1) % len(pairs)]
        texts = perturbed(
            (pair.source, pair.target),
            {kind: 1.0},
            Random(number),
            other=lambda one=following: (one.source, one.target),  # type: ignore[misc]
        )
        found.append(SentencePair(*texts))
    return found


if __name__ == "__main__":
    main()
