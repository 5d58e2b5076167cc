"""Filters of a corpus: precision and recall on planted noise.

    python bench/filter.py [--pairs 20000]

Eleven kinds of noise are planted into Multi30k (en-de) and Tatoeba (en-de) text, each into the same
number of pairs, by a seed. A filter's recall is the share of its kind of noise that is dropped by
any filter; precision is the share of all dropped pairs that were noise. The pairs of both corpora
count as clean, although some are not. Writes results/filter.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from regard.corpora.filters import (
    Account,
    FilterSettings,
    TextPair,
    choose_filters,
)
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHARE = 0.01  # of the pairs for each kind of noise


def main() -> None:
    """Plant noise, filter and count."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=20_000)
    given = options.parse_args()
    figures: dict[str, float] = {}
    details: dict[str, object] = {}
    for name, read in {"multi30k": multi30k, "tatoeba": tatoeba}.items():
        clean = read(given.pairs)
        found, account = measure(clean, seed=1)
        figures |= {f"{name}_{key}": value for key, value in found.items()}
        details[name] = account.to_dict()
        print(name, json.dumps(found, indent=1), account, sep="\n")
    command = f"python bench/filter.py --pairs {given.pairs}"
    print(f"wrote {write_result('filter', figures, command=command, details=details)}")


def multi30k(count: int) -> list[TextPair]:
    """Return pairs of Multi30k."""
    folder = DATA / "multi30k" / "raw"
    sides = [
        gzip.decompress((folder / f"train.{code}.gz").read_bytes()).decode().splitlines()
        for code in ("en", "de")
    ]
    return [TextPair(*pair) for pair in zip(*sides, strict=True)][:count]


def tatoeba(count: int) -> list[TextPair]:
    """Return pairs of Tatoeba, one for each English sentence."""
    with zipfile.ZipFile(DATA / "tatoeba" / "deu-eng.zip") as archive:
        text = archive.read("deu.txt").decode()
    rows = [line.split("\t")[:2] for line in text.splitlines()]
    random.Random(1).shuffle(rows)
    once = {row[0]: TextPair(*row) for row in rows}
    return list(once.values())[:count]


def kinds(clean: list[TextPair], draw: random.Random) -> dict[str, Callable[[TextPair], TextPair]]:
    """Return the ten kinds of noise by the filter that is meant for them."""

    def other() -> TextPair:
        return clean[draw.randrange(len(clean))]

    return {
        "alignment": lambda p: TextPair(p.source, other().target),
        "identical sides": lambda p: TextPair(p.source, p.source),
        "ratio": lambda p: TextPair(
            p.source, " ".join([p.target, *(other().target for _ in range(6))])
        ),
        "length": lambda p: TextPair(" ".join([p.source] * 40), " ".join([p.target] * 40)),
        "markup": lambda p: TextPair(f"<b>{p.source}</b>", f"<i>{p.target}"),
        "control characters": lambda p: TextPair(p.source + "\x02", p.target.replace("e", "Ã©", 1)),
        "script": lambda p: TextPair(p.source, "Мы не знаем, что это такое на самом деле."),
        "language": lambda p: TextPair(p.source, other().source),
        "numbers": lambda p: TextPair(f"{p.source} 1984", f"{p.target} 1989"),
        "duplicates": lambda p: other(),
        "near-duplicates": lambda p: TextPair(p.source.upper() + " !", p.target.lower() + " !"),
    }


def planted(clean: list[TextPair], *, seed: int) -> list[tuple[TextPair, str | None]]:
    """Return the pairs with noise among them; copies come last, behind their originals."""
    draw = random.Random(seed)
    mixed: list[tuple[TextPair, str | None]] = [(pair, None) for pair in clean]
    copies: list[tuple[TextPair, str | None]] = []
    for name, spoil in kinds(clean, draw).items():
        place = copies if "duplicates" in name else mixed
        for _ in range(int(SHARE * len(clean))):
            place.append((spoil(clean[draw.randrange(len(clean))]), name))
    draw.shuffle(mixed)
    return mixed + copies


def measure(clean: list[TextPair], *, seed: int) -> tuple[dict[str, float], Account]:
    """Return recall of each kind of noise, and precision over all."""
    noisy = planted(clean, seed=seed)
    account = Account()
    filters = choose_filters(FilterSettings(), (pair for pair, _ in noisy), pair="en-de")
    dropped, total = Counter[str | None](), Counter[str | None]()
    wrongly = Counter[str]()
    for pair, kind in noisy:
        reason = next((name for name, keeps in filters.items() if not keeps(pair)), None)
        account.add(pair, reason)
        total[kind] += 1
        dropped[kind] += reason is not None
        if kind is None and reason is not None:
            wrongly[reason] += 1
    noise = sum(count for kind, count in dropped.items() if kind is not None)
    figures = {
        f"recall_{kind.replace(' ', '_').replace('-', '_')}": round(100 * dropped[kind] / count, 2)
        for kind, count in total.items()
        if kind is not None
    }
    figures["precision"] = round(100 * noise / (noise + dropped[None]), 2)
    for name, count in wrongly.items():
        key = name.replace(" ", "_").replace("-", "_")
        figures[f"clean_dropped_{key}"] = round(100 * count / len(clean), 2)
    figures["clean_dropped"] = round(100 * dropped[None] / len(clean), 2)
    return figures, account


if __name__ == "__main__":
    main()
