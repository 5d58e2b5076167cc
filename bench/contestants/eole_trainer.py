"""eole as a contestant: its own training, which waits before its next batch until it is asked.

python eole_trainer.py FOLDER SIZE THREADS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from pieces import corpus_settings, training_settings
from protocol import SIDE_TOKENS, SIZES, VOCABULARY, answer, orders

MANY = 1_000_000


def settings_of(work: Path, size: str) -> dict[str, Any]:
    """Return eole's settings of the same model and the same training."""
    sizes = SIZES[size]
    dropout = float(sizes["dropout"])
    training = training_settings(updates=MANY, side_tokens=SIDE_TOKENS, dropout=dropout)
    return corpus_settings(work, size=VOCABULARY) | {
        "src_vocab": str(work / "vocab"),
        "share_vocab": True,
        "report_every": MANY,
        "training": training
        | {
            "compute_dtype": "fp32",
            "attention_dropout": [dropout],
            "model_path": str(work / "eole-model"),
        },
        "model": {
            "architecture": "transformer",
            "layers": sizes["layers"],
            "hidden_size": sizes["model_dim"],
            "heads": sizes["heads"],
            "transformer_ff": sizes["feed_forward"],
            "add_qkvbias": True,
            "add_ffnbias": True,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {
                "word_vec_size": sizes["model_dim"],
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }


def train(config: Path) -> None:
    """Run eole's command, with a gate before its batches."""
    from eole.bin.main import main
    from eole.trainer import Trainer

    ungated = Trainer._accum_batches

    def gated(trainer: Any, iterator: Any) -> Iterator[Any]:
        taken = ungated(trainer, iterator)
        for count in orders():
            began, tokens = time.perf_counter(), 0
            for batches, normalization in islice(taken, count):
                unread = trainer.train_loss.padding_idx
                tokens += sum(int(batch["tgt"][:, 1:].ne(unread).sum()) for batch in batches)
                yield batches, normalization
            answer(tokens, time.perf_counter() - began)
        sys.exit()

    Trainer._accum_batches = gated
    sys.argv = ["eole", "train", "-config", str(config)]
    main()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    path = folder / f"eole-{sys.argv[2]}.json"
    path.write_text(json.dumps(settings_of(folder, sys.argv[2]), indent=1))  # JSON is YAML
    torch.set_num_threads(int(sys.argv[3]))
    train(path)
