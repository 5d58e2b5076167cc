"""Decoding speed, text to text, compared with plain CTranslate2 and Hugging Face `generate`.

    python bench/decode_speed.py --tiny RUN [--base RUN] [--sentences 1000] [--rounds 3]

RUN is a transformer-tiny (or -base) trained on Multi30k with one SentencePiece model for both
languages. All engines have the same weights and translate the English sentences of test 2016 in
turn, pass by pass, until each has run for some seconds. A figure is the median over such rounds of
our speed divided by theirs. Plain CTranslate2 uses the threads and batch size that were fastest in
some first passes; Regard chooses its own. Where Regard asks CTranslate2 for AVX-512,
`*_vs_ctranslate2_told` compares with a plain CTranslate2 that is asked for it too. Our torch engine
uses one process per core, the default of `regard translate --engine torch`. Without --base, base
has random weights, whose outputs never end: there all outputs have exactly 15 tokens.
Conversion, choice of the engine and measurement of the patience, which `regard train` does at the
end of a training, are not timed.
Writes results/decode-speed.json. The data is $REGARD_DATA/multi30k, or ../shared/data/multi30k.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import torch

from decode_peers import Layout, PlainCTranslate2, Search, Translate, hugging_face
from regard.compute.device import available_cores, has_idle_avx512
from regard.corpora.lines import read_lines
from regard.engines.choice import choose_engine, layouts
from regard.engines.ctranslate2_engine import CTranslate2Engine
from regard.engines.preparation import converted, prepare_patience
from regard.engines.torch_engine import Engine, TorchEngine
from regard.models.build import build_translator
from regard.scoring.bleu import corpus_bleu
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import read_valid
from regard.tasks.translation.export import export_ctranslate2
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEARCHES = {"greedy": 1, "beam5": 5}
BATCHES = (32, 64, 128)  # sentences, tried for plain CTranslate2
TURN_SECONDS = 4.0  # at least; a turn of one second scatters by a fifth
TRIALS = 3  # of each layout of plain CTranslate2 that is not far behind; the fastest pass counts
LENGTH = 15
MIDDLE = {"tok": ".lc.norm.tok", "raw": ""}


def main() -> None:
    """Measure all and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tiny", type=Path, required=True, help="run of transformer-tiny")
    options.add_argument("--base", type=Path, help="run of transformer-base; random if left out")
    options.add_argument("--text", choices=list(MIDDLE), default="tok", help="that was trained on")
    options.add_argument("--data", type=Path, default=DATA / "multi30k")
    options.add_argument("--sentences", type=int, default=1_000)
    options.add_argument("--base-sentences", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", choices=["tiny", "base"], help="measure this size alone")
    given = options.parse_args()
    torch.set_num_threads(available_cores())
    files = [
        given.data / given.text / f"test_2016_flickr{MIDDLE[given.text]}.{x}.gz"
        for x in ("en", "de")
    ]
    source, reference = (list(read_lines(file))[: given.sentences] for file in files)
    figures: dict[str, float] = {}
    details: dict[str, object] = {}
    tiny = load(given.tiny)
    valid = [pair.source for pair in read_valid(tiny.recipe.data)]
    if patience := prepare_patience(tiny, given.tiny, valid):
        details["tiny_patience"] = asdict(patience)
    if given.only != "base":
        for name, beam in SEARCHES.items():
            found = measured(tiny, given.tiny, source, Search(beam), rounds=given.rounds)
            figures |= ratios(found, f"tiny_{name}", details)
        figures |= agreement(tiny, given.tiny, source)
        figures |= shortlisted(given.tiny, source, reference, rounds=given.rounds, details=details)
    if given.only != "tiny":
        base = load(given.base) if given.base else random_base(tiny)
        length = None if given.base else LENGTH
        lines = source[: given.base_sentences]
        for name, beam in SEARCHES.items():
            search = Search(beam, length)
            found = measured(base, given.base, lines, search, rounds=given.rounds)
            figures |= ratios(found, f"base_{name}", details)
        details["base"] = "trained" if given.base else f"random weights, outputs of {LENGTH} tokens"
    figures = {
        key.removeprefix("tiny_") if "torch" in key else key: v for key, v in figures.items()
    }
    print(json.dumps(figures, indent=1))
    if given.only or given.sentences < 1_000:
        return
    details["sentences"] = {"tiny": len(source), "base": given.base_sentences}
    details["rounds"] = given.rounds
    command = "python bench/decode_speed.py --tiny RUN" + (" --base RUN" if given.base else "")
    command += f" --rounds {given.rounds}"
    packages = ("ctranslate2", "transformers")
    path = write_result(
        "decode-speed", figures, command=command, packages=packages, details=details
    )
    print(f"wrote {path}")


def random_base(tiny: LoadedTranslator) -> LoadedTranslator:
    """Return transformer-base with tiny's vocabulary and weights that know nothing."""
    recipe = expect(find_recipe("transformer-base"), TranslationRecipe)
    torch.manual_seed(1)
    model = build_translator(
        recipe.model,
        source_vocab=tiny.source_tokenizer.size,
        target_vocab=tiny.target_tokenizer.size,
    ).eval()
    model.requires_grad_(False)
    return LoadedTranslator(
        model=model,
        source_tokenizer=tiny.source_tokenizer,
        target_tokenizer=tiny.target_tokenizer,
        recipe=recipe,
    )


def measured(
    ours: LoadedTranslator, run: Path | None, lines: Sequence[str], search: Search, *, rounds: int
) -> dict[str, list[float]]:
    """Return sentences a second of every contestant in every round."""
    reported: list[str] = []
    engine = choose_engine(ours, folder=run, report=reported.append)
    print(*reported)
    with converted(ours, run=run) as folder:
        contestants = {
            "regard": own(ours, engine, search),
            "ctranslate2": best_ctranslate2(folder, search, lines),
            "torch": own(ours, choose_engine(ours, engine="torch"), search),
            "hf": hugging_face(ours, search),
        }
        if has_idle_avx512():
            told = best_ctranslate2(folder, search, lines, instructions="AVX512")
            contestants["ctranslate2_told"] = told
        found = alternate(contestants, lines, rounds=rounds)
        reference = contestants["torch"](lines)
        shares = {
            name: same_share(contestants[name](lines), reference)
            for name in ("regard", "ctranslate2", "hf")
        }
        print("the same text as our torch engine:", shares)
        return found


def agreement(ours: LoadedTranslator, run: Path, lines: Sequence[str]) -> dict[str, float]:
    """Return how often CTranslate2 finds the torch engine's tokens, and how far scores differ."""
    settings = ours.decoding(beam=5)
    encoded = [ours.source_tokenizer.encode(line) for line in lines]
    engines = [TorchEngine(ours.model), choose_engine(ours, folder=run, engine="ctranslate2")]
    pairs = [
        (one[0], other[0])
        for first in range(0, len(encoded), 50)
        for one, other in zip(
            *(engine.search(encoded[first : first + 50], settings) for engine in engines),
            strict=True,
        )
    ]
    same = [(one, other) for one, other in pairs if one.tokens == other.tokens]
    return {
        "ctranslate2_same_tokens": round(len(same) / len(pairs), 4),
        "ctranslate2_score_difference": round(max(abs(a.score - b.score) for a, b in same), 6),
    }


def same_share(texts: Sequence[str], others: Sequence[str]) -> float:
    """Return the share of lines on which two contestants say the same."""
    return round(sum(map(str.__eq__, texts, others)) / len(texts), 4)


def own(ours: LoadedTranslator, engine: Engine, search: Search) -> Translate:
    """Return our own translation with this engine, as `regard.load(...).translate`."""

    def translate(lines: Sequence[str]) -> list[str]:
        if search.length is None:
            ours.engine = engine
            plain = {"attention": False, "scores": False}  # as `regard translate` asks
            return [one.text for one in ours.translate(lines, beam=search.beam, **plain)]
        if isinstance(engine, CTranslate2Engine):
            encoded = [ours.source_tokenizer.encode(line) for line in lines]
            found = engine.translate_to_length(encoded, beam=search.beam, length=search.length)
            return [ours.target_tokenizer.decode(ids) for ids in found]
        ours.engine = engine
        fixed = {"min_length": search.length, "max_length": search.length, "max_extra": 100}
        found_texts = ours.translate(lines, beam=search.beam, attention=False, **fixed)
        return [one.text for one in found_texts]

    return translate


def best_ctranslate2(
    folder: Path,
    search: Search,
    lines: Sequence[str],
    *,
    compute_type: str = "float32",
    instructions: str | None = None,
) -> Translate:
    """Return plain CTranslate2 with the threads and batches that a first pass found fastest."""
    peer = PlainCTranslate2(folder, search, instructions=instructions)
    possible = [
        Layout(threads.workers, threads.each, batch, compute_type)
        for threads in layouts(available_cores())
        for batch in BATCHES
    ]
    tried: dict[Layout, float] = {}
    for _ in range(TRIALS):
        for layout in possible:
            if tried.get(layout, math.inf) > max(tried.values(), default=0.0) / 2:
                peer.set_up(layout)
                peer(lines[:4])
                tried[layout] = max(tried.get(layout, 0.0), speed(peer, lines))
    shown = {f"{one.workers} x {one.threads}, {one.batch}": round(tried[one]) for one in tried}
    print("plain CTranslate2", compute_type, instructions or "as it is", shown)
    peer.set_up(max(tried, key=lambda layout: tried[layout]))
    return peer


def shortlisted(
    run: Path,
    source: Sequence[str],
    reference: Sequence[str],
    *,
    rounds: int,
    details: dict[str, object],
) -> dict[str, float]:
    """Return how far int8 and a shortlist go beyond plain CTranslate2, and at what BLEU."""
    search = Search(5)
    with tempfile.TemporaryDirectory() as place:
        small = export_ctranslate2(run, output=Path(place) / "int8", quantization="int8")
        short = export_ctranslate2(run, output=Path(place) / "short", shortlist=True)
        ours = load(run)
        engines = {"int8": choose_engine(ours, folder=run, quantization="int8")}
        engines["short"] = CTranslate2Engine(
            short.path,
            reference=TorchEngine(ours.model),
            source_tokenizer=ours.source_tokenizer,
            target_tokenizer=ours.target_tokenizer,
            threads=layouts(available_cores())[0],
            shortlist=True,
        )
        exact = choose_engine(ours, folder=run)
        contestants = {
            "int8": own(ours, engines["int8"], search),
            "ctranslate2_int8": best_ctranslate2(small.path, search, source, compute_type="int8"),
            "shortlist": own(ours, engines["short"], search),
            "ctranslate2": best_ctranslate2(short.path, search, source),
        }
        speeds = alternate(contestants, source, rounds=rounds)
        scores = {
            name: corpus_bleu(own(ours, engine, search)(source), reference, tokenize="none").value
            for name, engine in {"float32": exact, **engines}.items()
        }
    details["tiny_beam5_quantised"] = {name: rounded(values) for name, values in speeds.items()}
    details["tiny_bleu"] = {name: round(value, 2) for name, value in scores.items()}
    return {
        "tiny_beam5_int8_vs_ctranslate2": ratio(speeds["int8"], speeds["ctranslate2_int8"]),
        "shortlist_beam5_vs_ctranslate2": ratio(speeds["shortlist"], speeds["ctranslate2"]),
        "shortlist_bleu_change": round(scores["short"] - scores["float32"], 2),
        "int8_bleu_change": round(scores["int8"] - scores["float32"], 2),
    }


def alternate(
    contestants: dict[str, Translate], lines: Sequence[str], *, rounds: int
) -> dict[str, list[float]]:
    """Return the speeds of all, measured in turn, after a pass that warms up."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for translate in contestants.values():
        speed(translate, lines)
    for _ in range(rounds):
        seconds = dict.fromkeys(contestants, 0.0)
        passes = dict.fromkeys(contestants, 0)
        while least := [name for name in contestants if seconds[name] < TURN_SECONDS]:
            for name in least:  # pass by pass, so that changes of load affect all
                seconds[name] += len(lines) / speed(contestants[name], lines)
                passes[name] += 1
        for name in contestants:
            found[name].append(passes[name] * len(lines) / seconds[name])
    print({name: rounded(values) for name, values in found.items()})
    return found


def speed(translate: Translate, lines: Sequence[str]) -> float:
    """Return sentences a second."""
    start = time.perf_counter()
    outputs = translate(lines)
    if len(outputs) != len(lines):
        raise RuntimeError(f"{len(outputs)} outputs of {len(lines)} sentences")
    return len(lines) / (time.perf_counter() - start)


def ratios(
    found: dict[str, list[float]], name: str, details: dict[str, object]
) -> dict[str, float]:
    """Return the figures of one search, and note the speeds behind them."""
    details[name] = {contestant: rounded(values) for contestant, values in found.items()}
    size, search = name.split("_")
    told = found.get("ctranslate2_told")
    same = {} if told is None else {f"{name}_vs_ctranslate2_told": ratio(found["regard"], told)}
    return {
        f"{name}_vs_ctranslate2": ratio(found["regard"], found["ctranslate2"]),
        **same,
        f"{name}_vs_hf": ratio(found["regard"], found["hf"]),
        f"{size}_torch_{search}_vs_hf": ratio(found["torch"], found["hf"]),
    }


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of how many times faster we were, round by round."""
    return round(median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


def rounded(values: list[float]) -> list[float]:
    """Return speeds as people read them."""
    return [round(value, 1) for value in values]


if __name__ == "__main__":
    main()
