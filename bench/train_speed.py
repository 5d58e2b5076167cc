"""Training speed of Transformers compared with eole, MarianMT and torch.nn.Transformer.

    python bench/train_speed.py [--eole PYTHON] [--hugging-face PYTHON] [--rounds 3] [--batches 20]

PYTHON is the interpreter of an environment that holds the peer. Without --eole, an environment
with eole 0.6.4 is made in runs/bench/peers; without --hugging-face, transformers is that of this
environment (it also serves torch.nn.Transformer). All train the same model on the same pieces
of Multi30k (lower-cased, tokenised; a shared SentencePiece vocabulary of 8,000), with the same
dropout on embeddings, attention, activations and sublayers, clipping at 1, Adam, 4,096 tokens a
side and batch, made inside the timed loop; eole's layers have their norms first, the others last.
Each is a process of its own; they take turns, and the figure of each is the median over the rounds.
The peers run as they are shipped, and on `tiny` once more with our allocator settings.

`*_peak_share` is the share of the speed of torch's matrix product (2048 x 2048, single precision,
the best of all in the run) that the products of the training reach; `*_peak_share_in_turn` takes
the product measured right before each turn instead, as the machine is not always equally fast, and
the median. Where we multiply with oneDNN, which is faster there than torch's product, a share can
be above 1, and `*_peak_share_onednn` is the share of the faster one.
Writes results/train-speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from contestants.allocator import ALLOCATOR
from contestants.environment import peer_python
from contestants.pieces import read_pairs, write_pieces, write_vocabulary
from contestants.protocol import ANSWER, SIZES, VOCABULARY
from regard.base.shapes import Tensor
from regard.compute.device import has_idle_avx512
from regard.compute.linear import product
from regard.corpora.lines import read_lines
from regard.text.tokenizers import train_tokenizer
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
CONTESTANTS = Path(__file__).parent / "contestants"
SIDE = 2048


@dataclass
class Contestant:
    """A running process that makes updates when it is asked, and what was measured of it."""

    name: str
    process: subprocess.Popen[str]
    speeds: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)  # speed of the product before each turn
    onednn: list[float] = field(default_factory=list)  # and of oneDNN's, where we use it
    megabytes: float = 0.0

    def run(self, batches: int) -> float:
        """Make this many updates; return the target tokens per second."""
        if self.process.stdin is None or self.process.stdout is None:
            raise SystemExit(f"{self.name} has no pipes")
        self.process.stdin.write(f"go {batches}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                tokens, seconds, self.megabytes = map(float, line.split()[1:])
                return tokens / seconds
        raise SystemExit(f"{self.name} ended without an answer")

    def end(self) -> None:
        """Close its input, which ends it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def main() -> None:
    """Prepare the data once, let everyone train in turn, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--eole", type=Path, help="the Python that has eole")
    options.add_argument("--hugging-face", default=sys.executable, metavar="PYTHON")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--batches", type=int, default=20, help="of tiny a round; a fifth of base")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    options.add_argument("--data", type=Path, default=DATA / "multi30k" / "tok")
    options.add_argument("--work", type=Path, default=Path("runs/bench/train-speed"))
    given = options.parse_args()
    given.eole = given.eole or peer_python("eole")
    prepare(given.data, given.work)
    report({size: measure(size, given) for size in given.sizes}, given)


def prepare(data: Path, work: Path) -> None:
    """Write Multi30k as ids between spaces, with one vocabulary, as all can read it."""
    work.mkdir(parents=True, exist_ok=True)
    if (work / "vocab").exists():
        return
    lines = {side: read_lines(data / f"train.lc.norm.tok.{side}.gz") for side in ("en", "de")}
    tokenizer = train_tokenizer([*lines["en"], *lines["de"]], kind="sentencepiece", size=VOCABULARY)
    for side, texts in lines.items():
        write_pieces(work / f"train.{side}", map(tokenizer.encode, texts))
    write_vocabulary(work / "vocab", tokenizer.size)


def measure(size: str, given: argparse.Namespace) -> list[Contestant]:
    """Let all contestants of a size take turns; the first turn of each warms it up."""
    batches = given.batches if size == "tiny" else max(1, given.batches // 5)
    contestants = start_all(size, given)
    for one in contestants:
        print(f"{size}, warm-up: {one.name} {one.run(batches):.0f} target tokens/s", flush=True)
    for number in range(given.rounds):
        for one in contestants:
            one.products.append(product_speed(given.threads))
            if has_idle_avx512():
                one.onednn.append(product_speed(given.threads, multiply=product))
            one.speeds.append(one.run(batches))
            print(f"{size}, round {number + 1}: {one.name} {one.speeds[-1]:.0f} target tokens/s")
    for one in contestants:
        one.end()
    return contestants


def start_all(size: str, given: argparse.Namespace) -> list[Contestant]:
    """Start a process for each contestant."""
    scripts = {
        "eole": [str(given.eole), "eole_trainer.py"],
        "marian": [str(given.hugging_face), "plain_loop.py", "marian"],
        "torch": [str(given.hugging_face), "plain_loop.py", "torch"],
    }
    found = [start("regard", [sys.executable, "own.py"], size, given, {})]
    for name, script in scripts.items():
        found.append(start(name, script, size, given, {}))
        if size == "tiny":
            found.append(start(f"{name}_same_allocator", script, size, given, ALLOCATOR))
    return found


def start(
    name: str,
    script: list[str],
    size: str,
    given: argparse.Namespace,
    environment: dict[str, str],
) -> Contestant:
    """Start a contestant's process, whose messages go to a file."""
    python, file, *rest = script
    command = [python, str(CONTESTANTS / file), str(given.work.resolve()), size, str(given.threads)]
    threads = {"OMP_NUM_THREADS": str(given.threads), "CUDA_VISIBLE_DEVICES": ""}
    with (given.work / f"{size}-{name}.log").open("w") as log:
        process = subprocess.Popen(
            [*command, *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | threads | environment,
        )
    return Contestant(name, process)


def product_speed(
    threads: int, *, multiply: Callable[[Tensor, Tensor], Tensor] = torch.mm, repeats: int = 5
) -> float:
    """Return the floating point operations a second of a large matrix product, at best."""
    torch.set_num_threads(threads)
    left, right = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        multiply(left, right)
        best = min(best, time.perf_counter() - began)
    return 2 * SIDE**3 / best


def operations_per_token(size: str, work: Path) -> float:
    """Return the floating point operations that training costs a target token, products alone.

    A product of [n, a] and [a, b] costs 2 n a b. With width d, feed-forward width f, and per
    sentence S source and T target positions:
      encoder layer, a source position:    3 + 1 products d x d, d x f and f x d, and attention
                                           over S positions twice (scores and context)
      decoder layer, a source position:    2 products d x d (keys and values of the memory)
      decoder layer, a target position:    3 + 1 + 1 + 1 products d x d, d x f and f x d, attention
                                           over T and over S positions, twice each
      projection, a target position:       d x V
    The two gradients of a product cost as much as the product each: all that three times.
    """
    sizes = SIZES[size]
    layers, d, f = int(sizes["layers"]), int(sizes["model_dim"]), int(sizes["feed_forward"])
    total = targets = 0
    for source, target in read_pairs(work):
        s, t = len(source) + 1, len(target) + 1
        encoder = s * (4 * d * d + 2 * d * f + 2 * s * d)
        decoder = s * 2 * d * d + t * (6 * d * d + 2 * d * f + 2 * t * d + 2 * s * d)
        total += layers * (encoder + decoder) + t * d * VOCABULARY
        targets += t
    return 3 * 2 * total / targets


def report(found: dict[str, list[Contestant]], given: argparse.Namespace) -> None:
    """Write the ratios to the fastest peer, and the share of the matrix product's speed."""
    everyone = [one for contestants in found.values() for one in contestants]
    peak = max(product for one in everyone for product in one.products)
    figures: dict[str, float] = {"product_gflops": round(peak / 1e9, 1)}
    fastest = [speed for one in everyone for speed in one.onednn]
    if fastest:
        figures["onednn_product_gflops"] = round(max(fastest) / 1e9, 1)
    for size, contestants in found.items():
        medians = {one.name: statistics.median(one.speeds) for one in contestants}
        figures |= {f"{size}_{name}_tokens_per_second": round(v) for name, v in medians.items()}
        memory = {one.name: one.megabytes for one in contestants}
        figures |= {f"{size}_{name}_megabytes": round(value) for name, value in memory.items()}
        own = medians.pop("regard")
        operations = operations_per_token(size, given.work)
        figures[f"{size}_peak_share"] = round(own * operations / peak, 3)
        ours = next(one for one in contestants if one.name == "regard")
        turns = [a * operations / b for a, b in zip(ours.speeds, ours.products, strict=True)]
        figures[f"{size}_peak_share_in_turn"] = round(statistics.median(turns), 3)
        if fastest:
            figures[f"{size}_peak_share_onednn"] = round(own * operations / max(fastest), 3)
        same = {name: value for name, value in medians.items() if name.endswith("_same_allocator")}
        shipped = {name: value for name, value in medians.items() if name not in same}
        if shipped:
            figures[f"{size}_ratio"] = round(own / max(shipped.values()), 3)
            least = min(memory[name] for name in shipped)
            figures[f"{size}_memory_ratio"] = round(memory["regard"] / least, 3)
        if same:
            figures[f"{size}_ratio_same_allocator"] = round(own / max(same.values()), 3)
    print(json.dumps(figures, indent=1))
    if set(given.sizes) != set(SIZES):
        print("a size is missing: nothing was written")
        return
    command = f"python bench/train_speed.py --rounds {given.rounds} --batches {given.batches}"
    command += f" --threads {given.threads}"
    rounds = {
        size: {one.name: [round(speed) for speed in one.speeds] for one in contestants}
        for size, contestants in found.items()
    }
    details = {"rounds": rounds, "threads": given.threads}
    print(f"wrote {write_result('train-speed', figures, command=command, details=details)}")


if __name__ == "__main__":
    main()
