"""Filters of a corpus: precision and recall on planted noise, and BLEU with and without it.

    python bench/filter.py [--pairs 20000] [--steps 1500] [--runs FOLDER]

Eleven kinds of noise are planted into Multi30k (en-de) and Tatoeba (en-de) text, each into the same
number of pairs, by a seed. A kind's recall is the share of it that is dropped by any filter; a
filter's precision is the share of what it dropped that was noise. The pairs of both corpora count
as clean, although some are not. Then transformer-tiny is trained on Multi30k with six times as much
noise, on what the filters keep of that, and on the clean pairs, for the same number of updates;
BLEU is that of test 2016 (cased, 13a, greedy). `--steps 0` keeps the BLEU that is on record. Writes
results/filter.json.
"""

from __future__ import annotations

import argparse
import json
import random
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import small_training
from regard.corpora.cleaning import Account, filter_pairs, judged
from regard.corpora.filters import FilterSettings, TextPair, choose_filters
from regard.corpora.parallel import SentencePair
from result import read_result, write_result
from small_training import DATA

SHARE = 0.01  # of the pairs for each kind of noise
TRAINED_SHARE = 0.06


def main() -> None:
    """Plant noise, filter and count; train on noisy, filtered and clean pairs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=20_000)
    options.add_argument("--steps", type=int, default=1_500)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/filter"))
    given = options.parse_args()
    figures: dict[str, float] = {}
    details: dict[str, object] = {}
    for name, read in {"multi30k": multi30k, "tatoeba": tatoeba}.items():
        clean = read(given.pairs)
        found, account = measure(clean, seed=1)
        figures |= {f"{name}_{key}": value for key, value in found.items()}
        details[name] = shortened(account)
        print(name, json.dumps(found, indent=1), account, sep="\n")
    if given.steps:
        learned, training = trainings(given.runs, given.pairs, given.steps)
        figures |= learned
        details["training"] = training
    else:
        before = read_result("filter")
        figures |= {k: v for k, v in before.get("figures", {}).items() if k.startswith("bleu")}
        details |= {k: v for k, v in before.get("details", {}).items() if k == "training"}
    command = f"python bench/filter.py --pairs {given.pairs} --steps {given.steps}"
    print(f"wrote {write_result('filter', figures, command=command, details=details)}")


def shortened(account: Account) -> dict[str, object]:
    """Return an account with the beginnings of its examples."""
    table = account.to_dict()
    table["examples"] = {
        name: [[side[:100] for side in pair] for pair in found]
        for name, found in table["examples"].items()
    }
    return table


def trainings(runs: Path, pairs: int, steps: int) -> tuple[dict[str, float], dict[str, object]]:
    """Return BLEU after training on noisy, filtered and clean pairs."""
    clean = multi30k(pairs)
    noisy = [pair for pair, _ in planted(clean, seed=2, share=TRAINED_SHARE)]
    random.Random(3).shuffle(noisy)
    filters = choose_filters(FilterSettings(), noisy, pair="en-de")
    filtered = list(filter_pairs(noisy, filters, Account()))
    valid, test = small_training.multi30k("valid"), small_training.multi30k("test")
    figures: dict[str, float] = {}
    details: dict[str, object] = {"steps": steps, "noise": round(len(noisy) / len(clean) - 1, 3)}
    for name, chosen in {"noisy": noisy, "filtered": filtered, "clean": clean}.items():
        before = small_training.cpu_minutes()
        trained = small_training.train(runs / name, _sentences(chosen), valid, steps=steps)
        used = small_training.cpu_minutes() - before
        figures[f"bleu_{name}"] = small_training.bleu(trained, test)
        details[name] = {"pairs": len(chosen), "cpu_minutes": round(used, 1)}
        print(name, figures[f"bleu_{name}"], details[name], flush=True)
    return figures, details


def _sentences(pairs: Sequence[TextPair]) -> list[SentencePair]:
    return [SentencePair(*pair) for pair in pairs]


def multi30k(count: int) -> list[TextPair]:
    """Return pairs of Multi30k."""
    found = small_training.multi30k("train")[:count]
    return [TextPair(pair.source, pair.target) for pair in found]


def tatoeba(count: int) -> list[TextPair]:
    """Return pairs of Tatoeba, one for each English sentence."""
    with zipfile.ZipFile(DATA / "tatoeba" / "deu-eng.zip") as archive:
        text = archive.read("deu.txt").decode()
    rows = [line.split("\t")[:2] for line in text.splitlines()]
    random.Random(1).shuffle(rows)
    once = {row[0]: TextPair(*row) for row in rows}
    return list(once.values())[:count]


def kinds(clean: list[TextPair], draw: random.Random) -> dict[str, Callable[[TextPair], TextPair]]:
    """Return the kinds of noise by the filter that is meant for them."""

    def other() -> TextPair:
        return clean[draw.randrange(len(clean))]

    return {
        "alignment": lambda p: TextPair(p.source, other().target),
        "identical sides": lambda p: TextPair(p.source, p.source),
        "ratio": lambda p: TextPair(
            p.source, " ".join([p.target, *(other().target for _ in range(6))])
        ),
        "length": lambda p: TextPair(" ".join([p.source] * 201), " ".join([p.target] * 201)),
        "markup": lambda p: TextPair(f"<b>{p.source}</b>", f"<i>{p.target}"),
        "control characters": lambda p: TextPair(p.source + "\x02", p.target.replace("e", "Ã©", 1)),
        "script": lambda p: TextPair(p.source, "Мы не знаем, что это такое на самом деле."),
        "language": lambda p: TextPair(p.source, other().source),
        "numbers": lambda p: TextPair(f"{p.source} 1984", f"{p.target} 1989"),
        "duplicates": lambda p: other(),
        "near-duplicates": lambda p: TextPair(p.source.upper() + " !", p.target.lower() + " !"),
    }


def planted(
    clean: list[TextPair], *, seed: int, share: float = SHARE
) -> list[tuple[TextPair, str | None]]:
    """Return the pairs with noise among them; copies come last, behind their originals."""
    draw = random.Random(seed)
    mixed: list[tuple[TextPair, str | None]] = [(pair, None) for pair in clean]
    copies: list[tuple[TextPair, str | None]] = []
    for name, spoil in kinds(clean, draw).items():
        place = copies if "duplicates" in name else mixed
        for _ in range(int(share * len(clean))):
            place.append((spoil(clean[draw.randrange(len(clean))]), name))
    draw.shuffle(mixed)
    return mixed + copies


def measure(clean: list[TextPair], *, seed: int) -> tuple[dict[str, float], Account]:
    """Return the recall of each kind of noise and the precision of each filter."""
    noisy = planted(clean, seed=seed)
    account = Account()
    pairs = [pair for pair, _ in noisy]
    filters = choose_filters(FilterSettings(), pairs, pair="en-de")
    reasons = chain.from_iterable(found.reasons for _, found in judged(pairs, filters))
    dropped, total = Counter[str | None](), Counter[str | None]()
    rightly, wrongly = Counter[str](), Counter[str]()
    for (pair, kind), reason in zip(noisy, reasons, strict=True):
        account.add(pair, reason)
        total[kind] += 1
        dropped[kind] += reason is not None
        if reason is not None:
            (wrongly if kind is None else rightly)[reason] += 1
    figures = {
        f"recall_{_key(kind)}": round(100 * dropped[kind] / count, 2)
        for kind, count in sorted(total.items(), key=str)
        if kind is not None
    }
    for name in sorted(rightly | wrongly):
        share = rightly[name] / (rightly[name] + wrongly[name])
        figures[f"precision_{_key(name)}"] = round(100 * share, 2)
    noise = sum(rightly.values())
    figures["precision"] = round(100 * noise / (noise + sum(wrongly.values())), 2)
    figures["clean_dropped"] = round(100 * dropped[None] / len(clean), 2)
    figures["account_difference"] = account.read - account.kept - sum(account.dropped.values())
    return figures, account


def _key(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_")


if __name__ == "__main__":
    main()
