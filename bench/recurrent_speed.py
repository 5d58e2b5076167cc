"""Training speed of the recurrent translator against OpenNMT-py and eole, in one alternating run.

    python bench/recurrent_speed.py --opennmt PYTHON --eole PYTHON [--rounds 3] [--updates 60]

PYTHON is the interpreter of an environment that holds the peer: OpenNMT-py 3.5.1 installed with
`--no-deps` (empty modules can stand in for spacy, fasttext and ahocorasick), and eole 0.6.4 with
aiohttp. All train the same model on the same pieces of Multi30k: a bidirectional LSTM of 512, the
bilinear ("general") score, input feeding, dropout 0.1, clipping at 1, Adam, batches of at most
2,048 symbols a side. Each in turn makes some updates; the speed is that of all updates but the
first third, and the figure of each is the median over the rounds. `luong` without input feeding is
apart. The peers run as they are shipped, and once more with our allocator settings.
Writes results/recurrent-speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from contestants.allocator import ALLOCATOR
from contestants.pieces import (
    corpus_settings,
    read_pairs,
    training_settings,
    write_pieces,
    write_vocabulary,
)
from regard.corpora.lines import read_lines
from regard.text.build import train_tokenizer
from result import write_result

DATA = Path(__file__).parents[2] / "shared" / "data" / "multi30k" / "raw"
VOCABULARY, SIDE_TOKENS = 8_000, 2_048
SAME = "_same_allocator"
REPORT = re.compile(r"(?:Step|step)\s+(\d+)/.*?([\d.]+)/\s*([\d.]+) tok/s")

Speeds = dict[str, list[float]]


def main() -> None:
    """Prepare the data once, let everyone train in turn, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--opennmt", type=Path, help="the Python that has OpenNMT-py")
    options.add_argument("--eole", type=Path, help="the Python that has eole")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--updates", type=int, default=60)
    options.add_argument("--layers", type=int, default=1)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--work", type=Path, default=Path("runs/bench/recurrent-speed"))
    options.add_argument("--own", choices=["feeding", "luong"], help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.own:
        print(f"target tokens/s {own_speed(given):.1f}")
        return
    prepare(given.work)
    contestants = {"feeding": run_own, "luong": run_own}
    for name, run in (("opennmt", run_opennmt), ("eole", run_eole)):
        if getattr(given, name):
            contestants |= {name: run, f"{name}{SAME}": run}
    speeds: Speeds = {name: [] for name in contestants}
    for number in range(given.rounds):
        for name, run in contestants.items():
            speeds[name].append(run(name, given))
            print(f"round {number + 1}: {name} {speeds[name][-1]:.0f} target tokens/s", flush=True)
    report(speeds, given)


def report(speeds: Speeds, given: argparse.Namespace) -> None:
    """Write the ratios to the faster peer."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    peers = [medians[name] for name in ("opennmt", "eole") if name in medians]
    same = [value for name, value in medians.items() if name.endswith(SAME)]
    figures = {f"{name}_tokens_per_second": round(value) for name, value in medians.items()}
    if peers:
        figures |= {
            "like_for_like_ratio": round(medians["feeding"] / max(peers), 3),
            "luong_ratio": round(medians["luong"] / max(peers), 3),
            f"like_for_like_ratio{SAME}": round(medians["feeding"] / max(same), 3),
            f"luong_ratio{SAME}": round(medians["luong"] / max(same), 3),
        }
    print(json.dumps(figures, indent=1))
    if len(peers) < 2:
        print("a peer is missing: nothing was written")
        return
    command = (
        "python bench/recurrent_speed.py --opennmt PYTHON --eole PYTHON "
        f"--rounds {given.rounds} --updates {given.updates} --layers {given.layers}"
    )
    notes = {"rounds": speeds, "layers": given.layers, "threads": given.threads}
    print(f"wrote {write_result('recurrent-speed', figures, command=command, notes=notes)}")


def prepare(work: Path) -> None:
    """Write Multi30k as pieces between spaces, with a vocabulary a side, as all can read it."""
    work.mkdir(parents=True, exist_ok=True)
    for side in ("en", "de"):
        if (work / f"vocab.{side}").exists():
            continue
        lines = read_lines(DATA / f"train.{side}.gz")
        tokenizer = train_tokenizer(lines, kind="sentencepiece", size=VOCABULARY)
        write_pieces(work / f"train.{side}", map(tokenizer.encode, lines))
        write_vocabulary(work / f"vocab.{side}", tokenizer.size)


def own_speed(given: argparse.Namespace) -> float:
    """Train here, with the parts that `regard train` is made of; return target tokens a second."""
    from functools import partial

    import torch

    from regard.batching.batch import Example
    from regard.batching.order import BatchOrder, Position, iterate
    from regard.models.build import build_translator
    from regard.recipes.translate import batch_loss
    from regard.settings.model import RecurrentSettings
    from regard.training.allocator import keep_memory
    from regard.training.update import update

    keep_memory()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    examples = [Example(*pair) for pair in read_pairs(given.work)]
    settings = RecurrentSettings.model_validate(
        {
            "hidden": 512,
            "embedding": 512,
            "layers": given.layers,
            "attention": "bilinear",
            "input_feeding": given.own == "feeding",
            "dropout": 0.1,
        }
    )
    model = build_translator(settings, source_vocab=VOCABULARY, target_vocab=VOCABULARY).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )
    order = BatchOrder([e.lengths for e in examples], token_budget=2 * SIDE_TOKENS, seed=1)
    batches = iterate(order, examples, Position(epoch=0, batch=0))
    learn = partial(
        update,
        loss_sum=partial(batch_loss, model, smoothing=0.0),
        parameters=list(model.parameters()),
        optimizer=optimizer,
        clip=1.0,
    )
    warm, tokens, began = given.updates // 3, 0, 0.0
    for number in range(given.updates):
        if number == warm:
            began = time.perf_counter()
        _, batch = next(batches)
        learn([batch])
        tokens += batch.target_tokens if number >= warm else 0
    return tokens / (time.perf_counter() - began)


def run_own(name: str, given: argparse.Namespace) -> float:
    """Return our speed, in a process of its own as the peers have."""
    command = [sys.executable, __file__, "--own", name]
    for option in ("updates", "layers", "threads", "work"):
        command += [f"--{option}", str(getattr(given, option))]
    found = re.search(r"target tokens/s ([\d.]+)", _output(command, given, name))
    return float(found[1]) if found else float("nan")


def run_opennmt(name: str, given: argparse.Namespace) -> float:
    """Return the speed of OpenNMT-py, as it reports it."""
    config = _write_config(
        given.work / "opennmt.yaml",
        _data(given)
        | _training(given)
        | {
            "report_every": 1,
            "save_model": str(given.work / "opennmt-model"),
            "encoder_type": "brnn",
            "decoder_type": "rnn",
            "rnn_type": "LSTM",
            "enc_layers": given.layers,
            "dec_layers": given.layers,
            "hidden_size": 512,
            "word_vec_size": 512,
            "global_attention": "general",
            "input_feed": 1,
        },
    )
    return _reported([str(given.opennmt), "-m", "onmt.bin.train", "-config", config], given, name)


def run_eole(name: str, given: argparse.Namespace) -> float:
    """Return the speed of eole, as it reports it.

    Its architecture "rnn" reads in one direction only, whatever is asked for; "custom" obeys.
    """
    layers = {"layers": given.layers, "hidden_size": 512, "rnn_type": "LSTM"}
    config = _write_config(
        given.work / "eole.yaml",
        _data(given)
        | {
            "report_every": 1,
            "training": _training(given) | {"model_path": str(given.work / "eole-model")},
            "model": {
                "architecture": "custom",
                "input_feed": 1,
                "hidden_size": 512,
                "embeddings": {"word_vec_size": 512},
                "encoder": {"encoder_type": "brnn"} | layers,
                "decoder": {
                    "decoder_type": "rnn",
                    "global_attention": "general",
                    "bidirectional_encoder": True,
                }
                | layers,
            },
        },
    )
    script = "import sys; from eole.bin.main import main; sys.argv[0] = 'eole'; main()"
    return _reported([str(given.eole), "-c", script, "train", "-config", config], given, name)


def _data(given: argparse.Namespace) -> dict[str, object]:
    sides = {"src_vocab": str(given.work / "vocab.en"), "tgt_vocab": str(given.work / "vocab.de")}
    return corpus_settings(given.work, size=VOCABULARY) | sides


def _training(given: argparse.Namespace) -> dict[str, object]:
    return training_settings(updates=given.updates, side_tokens=SIDE_TOKENS, dropout=0.1)


def _write_config(path: Path, settings: dict[str, object]) -> str:
    path.write_text(json.dumps(settings, indent=1))  # JSON is YAML
    return str(path)


def _reported(command: list[str], given: argparse.Namespace, name: str) -> float:
    """Return target tokens a second over all updates but the first third.

    The reports tell the speed of one update each. As batches are of nearly one size, the harmonic
    mean of these speeds is that of the whole.
    """
    output = _output(command, given, name)
    speeds = [
        float(target)
        for step, _, target in REPORT.findall(output)
        if int(step) > given.updates // 3
    ]
    if not speeds:
        raise SystemExit(f"{' '.join(command[:3])} reported no speed:\n{output[-3000:]}")
    return statistics.harmonic_mean(speeds)


def _output(command: list[str], given: argparse.Namespace, name: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": str(given.threads), "CUDA_VISIBLE_DEVICES": ""}
    environment |= ALLOCATOR if name.endswith(SAME) else {}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if found.returncode:
        raise SystemExit(
            f"{' '.join(command[:3])} failed:\n{(found.stdout + found.stderr)[-3000:]}"
        )
    return found.stdout + found.stderr


if __name__ == "__main__":
    main()
