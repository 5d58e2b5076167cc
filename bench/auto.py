"""`regard train auto` compared with the fixed recipe transformer-tiny, in the same minutes.

    python bench/auto.py --state FOLDER [--minutes 10] [--cells multi30k-2000 ...] [--threads 1]
                         [--clock wall]

Four corpora (Multi30k and Tatoeba and the Bible from English to German, and the spelling of English
words to their sounds in the CMU dictionary), each with 2,000, 20,000 and all training pairs: twelve
cells. In each cell both recipes train for these minutes on the same pairs, choose by the same
validation part and translate the same test part. BLEU (for the dictionary: the share of words that
are right) is compared by paired bootstrap; a difference with p < 0.05 is significant.

`auto` sees training pairs, minutes and the speed of the machine. Its constants were set on
validation parts. `--clock cpu` counts the minutes of the processor's time that the training had, so
that other programs on the machine do not matter; then a training has one thread.

What is done is kept in the state folder, a file a training, so a stopped benchmark goes on with
the next one. Each finished cell is written to results/auto.json at once, beneath the cells that
were measured in the same way before, which are not trained again.
The data is $REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import shutil
import string
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import regard
from regard.base.files import write_json
from regard.corpora.parallel import SentencePair
from regard.runs import plan
from regard.scoring.bleu import corpus_bleu
from regard.scoring.bootstrap import paired_bootstrap
from regard.training import loop
from result import commit, read_result, write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZES = {"2000": 2_000, "20000": 20_000, "all": None}
FIXED, AUTO = "transformer-tiny", "auto"
TEST, VALID = 1_000, 500
TEST_WORDS = 2_000  # of the dictionary: a word is worth less than a sentence
SEED, SAMPLES, SIGNIFICANT = 1, 1_000, 0.05


@dataclass(frozen=True)
class CellData:
    """The parts of a cell; `accepted` are the right answers to a test source, if one is not all."""

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    accepted: list[list[str]] | None = None
    tokenize: str = "13a"


def main() -> None:
    """Train what is missing, compare, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--state", type=Path, required=True, help="folder of what is done")
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--cells", nargs="+", choices=cell_names(), default=cell_names())
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.clock == "cpu":
        if given.threads != 1:
            options.error("--clock cpu needs --threads 1")
        count_processor_time()
    command = (
        f"python bench/auto.py --state FOLDER --minutes {given.minutes:g} "
        f"--threads {given.threads} --clock {given.clock}"
    )
    for name in given.cells:
        if name not in recorded(command):
            cell = compared(name, given)
            record(recorded(command) | {name: cell}, command, minutes=given.minutes)
        print(name, json.dumps(recorded(command)[name]["figures"]), flush=True)


def recorded(command: str) -> dict[str, Any]:
    """Return the cells that were measured by this command, now or before."""
    found = read_result("auto")
    cells: dict[str, Any] = found["details"]["cells"] if found.get("command") == command else {}
    return cells


def record(cells: dict[str, Any], command: str, *, minutes: float) -> None:
    """Write the result file with these cells, in their order."""
    ordered = {name: cells[name] for name in cell_names() if name in cells}
    figures = totals(ordered, minutes=minutes)
    write_result("auto", figures, command=command, details={"cells": ordered})


def cell_names() -> list[str]:
    """Return the names of all cells."""
    return [f"{corpus}-{size}" for corpus in CORPORA for size in SIZES]


def count_processor_time() -> None:
    """Let trainings and their plans measure the time that this process had on a processor."""

    class Clock:
        monotonic = perf_counter = staticmethod(time.process_time)

        def __getattr__(self, name: str) -> Any:
            return getattr(time, name)

    for module in (loop, plan):
        module.time = Clock()  # type: ignore[assignment]


def compared(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a cell, from its trainings."""
    corpus, size = name.rsplit("-", 1)
    data = CORPORA[corpus](SIZES[size])
    sides = {recipe: trained(name, recipe, data, given) for recipe in (FIXED, AUTO)}
    test = compare_words if data.accepted else compare_sentences
    figures = test(data, sides[FIXED]["outputs"], sides[AUTO]["outputs"])
    figures["better"] = int(figures["p_value"] < SIGNIFICANT and figures["difference"] > 0)
    figures["worse"] = int(figures["p_value"] < SIGNIFICANT and figures["difference"] < 0)
    return {
        "figures": figures,
        "pairs": len(data.train),
        **{recipe: {k: v for k, v in side.items() if k != "outputs"}
           for recipe, side in sides.items()},
    }  # fmt: skip


def trained(name: str, recipe: str, data: CellData, given: argparse.Namespace) -> dict[str, Any]:
    """Train one recipe in a cell and translate its test part, unless that is done."""
    path = given.state / f"{name}-{recipe}-{given.minutes:g}-{given.clock}-{given.threads}.json"
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)  # half a training has had half the time
    parts = {"train": data.train, "valid": data.valid}
    began = time.monotonic()
    run = regard.train(
        recipe,
        data=parts,
        minutes=given.minutes,
        set={"data.hold_out_test": 0},
        out=folder,
        progress=False,
    )
    outputs = [t.text for t in run.model.translate([p.source for p in data.test], attention=False)]
    progress = [json.loads(line) for line in run.run.metrics.read_text("utf-8").splitlines()]
    valid = [row for row in progress if row["kind"] == "valid"]
    found = {
        "commit": commit(),
        "wall_seconds": round(time.monotonic() - began),
        "updates": progress[-1]["step"],
        "validations": [
            {key: round(row[key], 3) for key in ("step", "loss", "bleu")} for row in valid
        ],
        "recipe": settings_of(run.run.table),
        "outputs": outputs,
    }
    given.state.mkdir(parents=True, exist_ok=True)
    write_json(path, found)
    shutil.rmtree(folder)
    return found


def settings_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return what `auto` decides."""
    training = table["training"]
    return {
        "title": table["title"],
        "tokenizer": table["tokenizer"],
        "model": {k: table["model"][k] for k in ("layers", "model_dim", "feed_forward", "dropout")},
        "batch_tokens": table["batches"]["tokens"],
        **{
            key: training[key]
            for key in ("learning_rate", "warmup", "label_smoothing", "word_dropout",
                        "subword_sampling", "average")
        },
    }  # fmt: skip


def compare_sentences(data: CellData, fixed: Sequence[str], auto: Sequence[str]) -> dict[str, Any]:
    """Return the BLEU of both and the certainty of the difference."""
    references = [pair.target for pair in data.test]
    found = paired_bootstrap(
        {FIXED: fixed, AUTO: auto}, references,
        baseline=FIXED, tokenize=data.tokenize, samples=SAMPLES,
    )  # fmt: skip
    return {
        "measure": "BLEU",
        "fixed": round(found[FIXED].bleu, 2),
        "fixed_interval": [
            round(found[FIXED].interval.low, 2),
            round(found[FIXED].interval.high, 2),
        ],
        "auto": round(found[AUTO].bleu, 2),
        "auto_interval": [round(found[AUTO].interval.low, 2), round(found[AUTO].interval.high, 2)],
        "difference": round(found[AUTO].difference, 2),
        "p_value": found[AUTO].p_value,
        "signature": corpus_bleu(auto, references, tokenize=data.tokenize).signature,
    }


def compare_words(data: CellData, fixed: Sequence[str], auto: Sequence[str]) -> dict[str, Any]:
    """Return the share of right words of both and the certainty of the difference."""
    right = np.array(
        [[one in allowed for one, allowed in zip(side, data.accepted or (), strict=True)]
         for side in (fixed, auto)], dtype=float
    )  # fmt: skip
    generator = np.random.default_rng(SEED)
    rows = generator.integers(0, right.shape[1], (SAMPLES, right.shape[1]))
    means = 100 * right[:, rows].mean(axis=2)
    shares = 100 * right.mean(axis=1)
    difference = shares[1] - shares[0]
    # As sacreBLEU does it: how often a resampled difference is as far from its mean as this from 0.
    resampled = means[1] - means[0]
    extreme = int((abs(resampled - resampled.mean()) >= abs(difference)).sum())
    intervals = np.percentile(means, [2.5, 97.5], axis=1).T.round(2).tolist()
    return {
        "measure": "words right",
        "fixed": round(float(shares[0]), 2),
        "fixed_interval": intervals[0],
        "auto": round(float(shares[1]), 2),
        "auto_interval": intervals[1],
        "difference": round(float(difference), 2),
        "p_value": (extreme + 1) / (SAMPLES + 1),
        "signature": f"match:exact|references:any|bs:{SAMPLES}|rs:{SEED}",
    }


def totals(cells: dict[str, dict[str, Any]], *, minutes: float) -> dict[str, float]:
    """Return the figures of all cells together."""
    figures = [cell["figures"] for cell in cells.values()]
    found: dict[str, float] = {
        "minutes": minutes,
        "cells": len(figures),
        "significantly_better": sum(one["better"] for one in figures),
        "significantly_worse": sum(one["worse"] for one in figures),
    }
    for name, cell in cells.items():
        key = name.replace("-", "_")
        found |= {f"{key}_{side}": cell["figures"][side] for side in ("fixed", "auto", "p_value")}
    return found


def multi30k(size: int | None) -> CellData:
    """Return image captions, lower-cased and tokenised, with the parts that they come in."""
    folder = DATA / "multi30k" / "tok"

    def part(name: str) -> list[SentencePair]:
        sides = (lines(folder / f"{name}.lc.norm.tok.{side}.gz") for side in ("en", "de"))
        return [SentencePair(*both) for both in zip(*sides, strict=True)]

    train = part("train")
    random.Random(SEED).shuffle(train)
    valid, test = part("val")[:VALID], part("test_2016_flickr")
    return CellData(train[:size], valid, test, tokenize="none")


def tatoeba(size: int | None) -> CellData:
    """Return short sentences."""
    with zipfile.ZipFile(DATA / "tatoeba" / "deu-eng.zip") as archive:
        text = archive.read("deu.txt").decode("utf-8")
    return held_out([SentencePair(*line.split("\t")[:2]) for line in text.splitlines()], size)


def bible(size: int | None) -> CellData:
    """Return verses."""
    sides = (lines(DATA / "bible" / f"{name}.txt.gz") for name in ("eng-engwebp", "deu-deu1912"))
    pairs = [(a.strip(), b.strip()) for a, b in zip(*sides, strict=True)]
    kept = [both for both in pairs if all(both) and "<range>" not in both]
    return held_out([SentencePair(*both) for both in kept], size)


def cmudict(size: int | None) -> CellData:
    """Return words and their sounds without stress, a letter a sound; variants are all right."""
    entries = []
    path = DATA / "cmudict" / "cmudict.dict"
    for line in path.read_text(encoding="utf-8").splitlines():
        word, *sounds = line.partition("#")[0].split()
        entries.append((re.sub(r"\(\d+\)$", "", word), [sound.rstrip("012") for sound in sounds]))
    names = sorted({sound for _, sounds in entries for sound in sounds})
    letters = dict(zip(names, string.ascii_letters, strict=False))
    pairs = [SentencePair(word, "".join(letters[s] for s in sounds)) for word, sounds in entries]
    found = held_out(pairs, size, test=TEST_WORDS)
    answers: dict[str, list[str]] = {}
    for pair in found.test:
        answers.setdefault(pair.source, []).append(pair.target)
    test = [SentencePair(word, variants[0]) for word, variants in answers.items()]
    return CellData(found.train, found.valid, test, accepted=list(answers.values()))


def held_out(pairs: list[SentencePair], size: int | None, *, test: int = TEST) -> CellData:
    """Return pairs in an order that is drawn by seed; all pairs of a source stay together."""
    sources = sorted({pair.source for pair in pairs})
    random.Random(SEED).shuffle(sources)
    place = {source: number for number, source in enumerate(sources)}
    ordered = sorted(pairs, key=lambda pair: place[pair.source])
    until = [sum(place[pair.source] < end for pair in ordered) for end in (test, test + VALID)]
    train = ordered[until[1] :]
    return CellData(train[:size], ordered[until[0] : until[1]], ordered[: until[0]])


def lines(path: Path) -> list[str]:
    """Return the lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


CORPORA: dict[str, Callable[[int | None], CellData]] = {
    "multi30k": multi30k,
    "tatoeba": tatoeba,
    "bible": bible,
    "cmudict": cmudict,
}


if __name__ == "__main__":
    main()
