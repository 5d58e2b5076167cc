"""Training speed of the recurrent translator against OpenNMT-py and eole, in one alternating run.

    python bench/recurrent_speed.py --opennmt PYTHON --eole PYTHON [--rounds 12] [--updates 4]

PYTHON is the interpreter of an environment that holds the peer: OpenNMT-py 3.5.1 installed with
`--no-deps` (empty modules can stand in for spacy, fasttext and ahocorasick), and eole 0.6.4 with
aiohttp. All train the same model on the same pieces of Multi30k: a bidirectional LSTM of 512, the
bilinear ("general") score, input feeding, dropout 0.1, clipping at 1, Adam, batches of at most
2,048 tokens per side. Each is a process that is stopped by a signal while the others have their
turn. A turn is a few updates, so that changes of load affect all; the update during which a process
is stopped does not count. Figures are medians over the rounds. `luong` without input feeding is
listed separately. The peers run as they are shipped, and again with our allocator settings.
Writes results/recurrent-speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
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
from regard.text.tokenizers import train_tokenizer
from result import write_result

DATA = Path(__file__).parents[2] / "shared" / "data" / "multi30k" / "raw"
VOCABULARY, SIDE_TOKENS = 8_000, 2_048
SAME = "_same_allocator"
WARM, FOREVER = 5, 1_000_000
REPORT = re.compile(r"(?:Step|step)\s+(\d+)/.*?([\d.]+)/\s*([\d.]+) tok/s")


@dataclass
class Racer:
    """A training in a process of its own, which reports the speed of every update to a file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    speeds: list[float] = field(default_factory=list)

    def turn(self, updates: int, *, skip: int) -> float:
        """Let it go on for some updates, leaving out the first ones; return its tokens a second."""
        before = len(self._reports()) + skip
        self._send(signal.SIGCONT)
        while len(reports := self._reports()) < before + updates:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)
        self._send(signal.SIGSTOP)
        # Batches are of nearly one size: the harmonic mean of the speeds is that of the whole.
        return statistics.harmonic_mean(reports[before : before + updates])

    def end(self) -> None:
        """End the process."""
        self._send(signal.SIGKILL)
        self.process.wait()

    def _send(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def _reports(self) -> list[float]:
        return [float(target) for _, _, target in REPORT.findall(self.log.read_text())]


def main() -> None:
    """Prepare the data once, let everyone train in turn, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--opennmt", type=Path, help="the Python that has OpenNMT-py")
    options.add_argument("--eole", type=Path, help="the Python that has eole")
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--updates", type=int, default=4, help="of a turn")
    options.add_argument("--layers", type=int, default=1)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--work", type=Path, default=Path("runs/bench/recurrent-speed"))
    options.add_argument("--own", choices=["feeding", "luong"], help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.own:
        train_own(given)
        return
    prepare(given.work)
    commands = {name: own_command(name, given) for name in ("feeding", "luong")}
    for name, command_of in (("opennmt", opennmt_command), ("eole", eole_command)):
        if getattr(given, name):
            commands |= {name: command_of(given), f"{name}{SAME}": command_of(given)}
    racers: list[Racer] = []
    try:
        for name, command in commands.items():
            racers.append(start(name, command, given))
            racers[-1].turn(WARM, skip=0)
        for number in range(given.rounds):
            for racer in racers:
                racer.speeds.append(racer.turn(given.updates, skip=1))
            print(number + 1, {r.name: round(r.speeds[-1]) for r in racers}, flush=True)
    finally:
        for racer in racers:
            racer.end()
    report({racer.name: racer.speeds for racer in racers}, given)


def start(name: str, command: list[str], given: argparse.Namespace) -> Racer:
    """Start a training as a group of its own, so that signals reach its children too."""
    environment = os.environ | {"OMP_NUM_THREADS": str(given.threads), "CUDA_VISIBLE_DEVICES": ""}
    environment |= ALLOCATOR if name.endswith(SAME) else {}
    log = given.work / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, start_new_session=True
        )
    return Racer(name, process, log)


def report(speeds: dict[str, list[float]], given: argparse.Namespace) -> None:
    """Write the ratios to the faster peer."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    peers = [medians[name] for name in ("opennmt", "eole") if name in medians]
    same = [value for name, value in medians.items() if name.endswith(SAME)]
    figures: dict[str, float] = {
        f"{name}_tokens_per_second": round(value) for name, value in medians.items()
    }
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
    details = {"rounds": speeds, "layers": given.layers, "threads": given.threads}
    print(f"wrote {write_result('recurrent-speed', figures, command=command, details=details)}")


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


def train_own(given: argparse.Namespace) -> None:
    """Train here, with the parts that `regard train` is made of, and report every update."""
    from functools import partial

    import torch

    from regard.batching.batch import Example
    from regard.batching.order import BatchOrder, BatchPosition, iterate
    from regard.compute.device import keep_memory
    from regard.models.build import build_translator
    from regard.settings.models import RecurrentSettings
    from regard.tasks.translation.objective import batch_loss
    from regard.training.update import add_gradient, update

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
    batches = iterate(order, examples, BatchPosition(epoch=0, batch=0))
    learn = partial(
        update,
        add_gradient=partial(add_gradient, partial(batch_loss, model, smoothing=0.0)),
        parameters=list(model.parameters()),
        optimizer=optimizer,
        clip=1.0,
    )
    for number, (_, batch) in enumerate(batches, start=1):
        began = time.perf_counter()
        learn([batch])
        speed = batch.target_tokens / (time.perf_counter() - began)
        print(f"step {number}/ -; 0/ {speed:.1f} tok/s", flush=True)


def own_command(name: str, given: argparse.Namespace) -> list[str]:
    """Return how our own training is started."""
    command = [sys.executable, __file__, "--own", name]
    for option in ("layers", "threads", "work"):
        command += [f"--{option}", str(getattr(given, option))]
    return command


def opennmt_command(given: argparse.Namespace) -> list[str]:
    """Return how OpenNMT-py is started."""
    config = _write_config(
        given.work / "opennmt.yaml",
        _data(given)
        | _training()
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
    return [str(given.opennmt), "-m", "onmt.bin.train", "-config", config]


def eole_command(given: argparse.Namespace) -> list[str]:
    """Return how eole is started.

    Its architecture "rnn" reads in one direction only, whatever is asked for; "custom" obeys.
    """
    layers = {"layers": given.layers, "hidden_size": 512, "rnn_type": "LSTM"}
    config = _write_config(
        given.work / "eole.yaml",
        _data(given)
        | {
            "report_every": 1,
            "training": _training() | {"model_path": str(given.work / "eole-model")},
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
    return [str(given.eole), "-c", script, "train", "-config", config]


def _data(given: argparse.Namespace) -> dict[str, object]:
    sides = {"src_vocab": str(given.work / "vocab.en"), "tgt_vocab": str(given.work / "vocab.de")}
    return corpus_settings(given.work, size=VOCABULARY) | sides


def _training() -> dict[str, object]:
    return training_settings(updates=FOREVER, side_tokens=SIDE_TOKENS, dropout=0.1)


def _write_config(path: Path, settings: dict[str, object]) -> str:
    path.write_text(json.dumps(settings, indent=1))  # JSON is YAML
    return str(path)


if __name__ == "__main__":
    main()
