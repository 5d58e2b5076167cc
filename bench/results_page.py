"""Write docs/results.md, and the table of results in the README, from the result files.

    python bench/results_page.py [--check]

`docs/results.md` is written whole; the README's table stands between `<!-- results -->` and
`<!-- end -->`. With --check nothing is written, and the exit code says whether both are up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import result_tables as tables
import system_tables as systems
from result import read_result
from result_tables import Result

ROOT = Path(__file__).parent.parent
PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
BLOCK = re.compile(r"(<!-- results -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """# Results

<!-- Written by bench/results_page.py from bench/results/*.json: do not edit by hand. -->

Every table comes from the result file named below it, which also holds the versions, the machine,
the commit and notes on how the figures were reached. Commands run from the root of the repository
and read their data from `$REGARD_DATA` or `../shared/data`. RUN is the folder of a trained model;
PYTHON is the interpreter of an environment in which the peer is installed, as the docstring of the
script describes. A speed is always a ratio of two programs that took turns in one run.
"""


class Entry(NamedTuple):
    """A result on the page: the name of its file, a heading, one line of comment, and its table."""

    name: str
    title: str
    comment: str
    make: Callable[[Result], str]
    picture: str = ""
    """What the picture of this name in docs/pictures shows, if there is one."""


SECTIONS: dict[str, list[Entry]] = {
    "Translation": [
        Entry(
            "multi30k-en-de",
            "Multi30k, English to German",
            "`transformer-tiny`, text only, beam 5, test 2016; the cased text is `--text raw`.",
            tables.multi30k,
        ),
        Entry(
            "multi30k-en-fr",
            "Multi30k, English to French",
            "The same model and search.",
            tables.multi30k,
        ),
        Entry(
            "grammar-en-de",
            "The built-in corpus, long sentences",
            "A fixed-size state cannot hold a long sentence; attention reads it again.",
            tables.grammar_en_de,
        ),
        Entry(
            "model-series-built-in",
            "From no attention to the Transformer, built-in corpus",
            "Six models with the same pairs, vocabulary and training time, as `regard compare "
            "--series` trains them.",
            tables.model_series,
            "BLEU against sentence length: it falls without attention and stays level with it",
        ),
        Entry(
            "model-series-multi30k",
            "From no attention to the Transformer, Multi30k",
            "The Transformer is still improving when the time is over.",
            tables.model_series,
            "BLEU against sentence length on Multi30k for six models",
        ),
        Entry(
            "model-series-bible",
            "From no attention to the Transformer, Bible",
            "One or two epochs of long verses show which model learns faster.",
            tables.model_series,
            "BLEU against sentence length on the Bible for six models",
        ),
    ],
    "What attention finds": [
        Entry(
            "alignment",
            "Word alignments",
            "The GIZA++ rows check our count of errors against published ones.",
            tables.alignment,
        ),
        Entry(
            "alignment-head",
            "A head that is taught to align",
            "Short trainings with the loss and without it; the notes say how long.",
            tables.alignment_head,
        ),
        Entry(
            "antecedent",
            "The noun that a pronoun stands for",
            "The head is chosen on validation sentences and counted on others; three trainings. "
            "The picture is of the first.",
            tables.antecedent,
            "Arcs from the pronoun it: to animal in the first sentence, to street in the second",
        ),
    ],
    "Sequence models": [
        Entry(
            "cmudict",
            "Letters to phonemes",
            "Words of the CMU dictionary that were not trained on.",
            tables.cmudict,
        ),
        Entry(
            "fibonacci",
            "Fibonacci numbers",
            "A few large test values hold nearly all of the error, so the spread over seeds is "
            "wider than the differences between the models.",
            tables.fibonacci,
        ),
    ],
    "The Transformer's parts": [
        Entry(
            "length-extrapolation",
            "Beyond the length of training",
            "Share of tokens copied correctly after training on up to 20 tokens.",
            tables.length_extrapolation,
            "Share of tokens copied correctly against length for six kinds of positions",
        ),
        Entry(
            "attention-cost",
            "What attention costs",
            "Forward and backward pass of one layer; time relative to full attention on 128 "
            "tokens, memory kept for the gradient.",
            tables.attention_cost,
            "Time and memory against length: full attention grows with the square",
        ),
    ],
    "Language models": [
        Entry(
            "shakespeare",
            "Characters",
            "Mean of three seeds; without `--part speed` the command measures the losses too.",
            tables.shakespeare,
        ),
        Entry(
            "transfer",
            "What pre-training is worth",
            "A small language model, fine-tuned, and the same network trained from scratch.",
            tables.transfer,
        ),
        Entry(
            "generation",
            "Generation with a cache",
            "One greedy sample from random weights.",
            tables.generation,
        ),
        Entry(
            "pretrain-memory",
            "Memory of pre-training",
            "The corpus is mapped into memory, so its size does not matter.",
            tables.pretrain_memory,
        ),
    ],
    "Graphs": [
        Entry(
            "graph-accuracy",
            "Node classification",
            "Standard splits; the model of each seed is chosen on the validation nodes.",
            tables.graph_accuracy,
        ),
        Entry(
            "graph-speed",
            "Training speed of graph attention",
            "Above 1 in the first column, ours is faster; below 1 in the second, it is smaller.",
            tables.graph_speed,
        ),
    ],
    "Speed": [
        Entry(
            "train-speed",
            "Training Transformers",
            "Compared with the best of eole, MarianMT and `torch.nn.Transformer` on two cores.",
            tables.train_speed,
        ),
        Entry(
            "scale",
            "Long outputs and bf16",
            "Compared with this program before the change, or with single precision; the outputs "
            "of both searches are the same.",
            tables.scale,
        ),
        Entry(
            "recurrent-speed",
            "Training recurrent translators",
            "Bidirectional LSTM of 512 units, compared with OpenNMT-py and eole.",
            tables.recurrent_speed,
        ),
        Entry(
            "decode-speed",
            "Translating",
            "The same weights everywhere; `transformer-base` has random ones and outputs of fixed "
            "length.",
            tables.decode_speed,
        ),
        Entry(
            "serving",
            "Serving",
            "Batching requests, compared with a server that takes one at a time.",
            tables.serving,
        ),
        Entry(
            "bulk",
            "Memory of translating a file",
            "Memory does not grow with the file.",
            tables.bulk,
        ),
        Entry(
            "bounded",
            "Memory of what grows with the data",
            "Of the whole process, libraries included.",
            tables.bounded,
        ),
    ],
    "Data": [
        Entry(
            "stores",
            "Corpora of any size",
            "Ten million pairs are the stores of a million ten times over.",
            tables.stores,
        ),
        Entry(
            "filter",
            "Filters on planted noise",
            "1 % of each kind of noise among the pairs; precision counts every good pair that a "
            "filter drops.",
            tables.filters,
        ),
        Entry(
            "augmentation",
            "Robustness by augmentation",
            "BLEU on Multi30k test 2016 with a kind of change in every sentence, after short "
            "trainings.",
            tables.augmentation,
        ),
    ],
    "Efficiency and scale": [
        Entry(
            "experts",
            "Mixtures of experts",
            "Character models of Tiny Shakespeare, 300 updates or the same CPU seconds, 3 seeds.",
            systems.experts,
        ),
        Entry(
            "factorised",
            "LSTMs in factors and in groups",
            "Two layers of width 384, the same CPU seconds, 3 seeds.",
            systems.factorised,
        ),
        Entry(
            "long-span",
            "Longer spans with less memory",
            "The same CPU seconds for all; costs of an update of 4,096 tokens in windows of n.",
            systems.long_span,
        ),
        Entry(
            "efficiency",
            "Sequential and parallel",
            "Models of one size, on one thread; the path is the steps from first to last position.",
            systems.efficiency,
            "Time, memory and path length against the length of texts, for recurrent models and "
            "kinds of attention",
        ),
        Entry(
            "scaling",
            "Laws of scale in miniature",
            "L = E + A / N^alpha + B / D^beta, fitted to small models of Tiny Shakespeare.",
            systems.scaling,
            "Loss against parameters, tokens and compute, with the fitted law",
        ),
        Entry(
            "graph-kinds",
            "Kinds of graph layers",
            "Layers of equal width; accuracy after 100 updates, without choosing by validation.",
            systems.graph_kinds,
        ),
    ],
    "The code": [
        Entry(
            "house",
            "Size and speed of the second edition",
            "Files whose functions run in one command, and speed relative to the first edition.",
            tables.every_figure,
        ),
    ],
}


class Row(NamedTuple):
    """A row of the README: what was measured, our figure, and the one to compare it with."""

    name: str
    task: str
    ours: str
    """A format string over figures and details."""
    other: str


ROWS = [
    Row("multi30k-en-de", "Multi30k English-German, BLEU", "{bleu_tokenised:.2f}",
        "{published[bleu_tokenised]} published"),
    Row("multi30k-en-fr", "Multi30k English-French, BLEU", "{bleu_tokenised:.2f}",
        "{published[bleu_tokenised]} published"),
    Row("grammar-en-de", "Built-in corpus, up to 60 words, BLEU", "{attention_bleu:.1f}",
        "{plain_bleu:.1f} without attention"),
    Row("cmudict", "Letters to phonemes, words wrong", "{wer_bahdanau:.1f} %",
        "{wer_plain:.1f} % without attention"),
    Row("transfer", "TREC with 10 % of the labels, accuracy", "{trec_10_pretrained:.1%}",
        "{trec_10_scratch:.1%} without pre-training"),
    Row("graph-accuracy", "Cora, graph attention, accuracy", "{cora_mean:.1f} ± {cora_std:.1f}",
        "{published[cora]} published"),
    Row("graph-speed", "Graph attention, 2 million edges, speed", "{large_ratio:.2f} times",
        "PyTorch Geometric"),
    Row("train-speed", "Training `transformer-tiny`, tokens/s", "{tiny_ratio:.2f} times",
        "best of eole, MarianMT, `torch.nn`"),
]  # fmt: skip


def results_page() -> str:
    """Return docs/results.md; results that have no file yet are left out."""
    parts = [HEAD]
    for section, entries in SECTIONS.items():
        shown = [shown_entry(entry) for entry in entries if read_result(entry.name)]
        if shown:
            parts += [f"## {section}\n", *shown]
    return "\n".join(parts)


def shown_entry(entry: Entry) -> str:
    """Return a result with its heading, comment, table, picture and source."""
    result = read_result(entry.name)
    source = f"[`{entry.name}.json`](../bench/results/{entry.name}.json), {result['date']}"
    lines = [f"### {entry.title}", entry.comment, entry.make(result)]
    if entry.picture:
        lines.append(f'<img src="pictures/{entry.name}.png" width="560" alt="{entry.picture}">')
    return "\n\n".join([*lines, f"{source}: `{result['command']}`"]) + "\n"


def readme_table() -> str:
    """Return the README's table."""
    rows = []
    for row in ROWS:
        result = read_result(row.name)
        values = result.get("details", {}) | result["figures"]
        cells = [row.task, row.ours.format(**values), row.other.format(**values)]
        rows.append([*cells, f"`{result['command']}`"])
    return tables.table(["task", "Regard", "compared with", "command"], rows)


def filled(readme: str) -> str:
    """Return the README with its table made anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{readme_table()}\n{match[2]}", readme)


def main() -> None:
    """Write both files, or check that they are up to date."""
    wanted = {PAGE: results_page(), README: filled(README.read_text(encoding="utf-8"))}
    if "--check" in sys.argv:
        old = [
            path.name
            for path, text in wanted.items()
            if not path.exists() or path.read_text(encoding="utf-8") != text
        ]
        sys.exit(
            f"Run python bench/results_page.py: {', '.join(old)} is out of date." if old else 0
        )
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
