"""Write the README's result tables from the result files.

    python bench/readme.py [--check]

Each table stands between `<!-- results: NAME -->` and `<!-- end -->`. With --check nothing is
written and the exit code says whether the README is up to date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def grammar_en_de(result: dict[str, Any]) -> str:
    """Return attention against none, by sentence length."""
    figures, notes = result["figures"], result["notes"]
    bands = list(notes["attention"])
    lines = [
        f"| BLEU, {figures['training_minutes']:g} minutes of training each | all | "
        + " | ".join(f"{band} words" for band in bands)
        + " |",
        "|---" * (len(bands) + 2) + "|",
    ]
    names = {"plain": "encoder-decoder without attention", "attention": "with attention"}
    for name, title in names.items():
        cells = [figures[f"{name}_bleu"], *notes[name].values()]
        lines.append(f"| {title} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")
    return (
        "\n".join(lines)
        + f"\n\nAlignment error rate of the attention: {figures['alignment_error_rate']:.1f} %."
    )


def graph_accuracy(result: dict[str, Any]) -> str:
    """Return test accuracies on the standard splits."""
    figures = result["figures"]
    names = {
        "cora": ("graph attention, Cora", "83.0 ± 0.7"),
        "citeseer": ("graph attention, Citeseer", "72.5 ± 0.7"),
        "gcn_cora": ("graph convolution, Cora", "81.5"),
    }
    lines = [f"| test accuracy, {figures['seeds']} seeds | measured | the paper |", "|---|---|---|"]
    for key, (title, published) in names.items():
        measured = f"{figures[f'{key}_mean']:.1f} ± {figures[f'{key}_std']:.1f}"
        lines.append(f"| {title} | {measured} | {published} |")
    return "\n".join(lines)


def graph_speed(result: dict[str, Any]) -> str:
    """Return how much faster an epoch is than in PyTorch Geometric."""
    figures = result["figures"]
    return (
        "| an epoch, beside PyTorch Geometric | times as fast |\n|---|---|\n"
        f"| Cora (its bag-of-words features kept sparse here, dense there) | "
        f"{figures['cora_ratio']:.2f} |\n"
        f"| Cora, dense features in both | {figures['cora_dense_ratio']:.2f} |\n"
        f"| 200,000 nodes, 2 million edges | {figures['large_ratio']:.2f} "
        f"(with {figures['large_memory_ratio']:.2f} of the memory) |"
    )


def cmudict(result: dict[str, Any]) -> str:
    """Return the error rates of letters to phonemes."""
    figures = result["figures"]
    names = {
        "plain": "`char-lstm`, no attention",
        "bahdanau": "`bahdanau`, attention before the state update",
        "luong": "`luong`, attention after it",
    }
    lines = [
        f"| {figures['training_minutes']:g} minutes of training each | words wrong | "
        "phonemes wrong |",
        "|---|---|---|",
    ]
    for name, title in names.items():
        wrong, sounds = figures[f"wer_{name}"], figures[f"per_{name}"]
        lines.append(f"| {title} | {wrong:.1f} % | {sounds:.1f} % |")
    return "\n".join(lines)


def recurrent_speed(result: dict[str, Any]) -> str:
    """Return the training speed beside the faster of OpenNMT-py and eole."""
    figures = result["figures"]
    lines = [
        "| target tokens a second, as a multiple of the faster peer's | as shipped | "
        "with our allocator settings |",
        "|---|---|---|",
    ]
    names = {
        "like_for_like_ratio": "the same model, with input feeding",
        "luong_ratio": "`luong` without input feeding",
    }
    for key, title in names.items():
        lines.append(f"| {title} | {figures[key]:.2f} | {figures[f'{key}_same_allocator']:.2f} |")
    return "\n".join(lines)


def table(head: str, rows: list[str]) -> str:
    """Return a table of Markdown; cells are separated by bars."""
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows])


def multi30k(result: dict[str, Any]) -> str:
    """Return BLEU on test 2016."""
    figures, pair = result["figures"], result["name"].removeprefix("multi30k-")
    published = {"en-de": 41.02, "en-fr": 61.8}[pair]
    rows = [
        f"| lower-cased, tokenised ({figures['training_minutes']:.0f} minutes of training) | "
        f"{figures['bleu_tokenised']:.2f} | {published} |"
    ]
    if "bleu_cased_13a" in figures:
        rows.append(f"| cased, detokenised, 13a | {figures['bleu_cased_13a']:.2f} | – |")
    return table(f"| Multi30k {pair}, test 2016, text only | BLEU | published |", rows)


def train_speed(result: dict[str, Any]) -> str:
    """Return training speed beside the fastest of eole, MarianMT and torch.nn.Transformer."""
    figures = result["figures"]
    rows = []
    for size in ("tiny", "base"):
        same = figures.get(f"{size}_ratio_same_allocator")
        shares = [figures[f"{size}_peak_share"], figures.get(f"{size}_peak_share_onednn")]
        rows.append(
            f"| `transformer-{size}` | {figures[f'{size}_ratio']:.2f} | "
            f"{'–' if same is None else f'{same:.2f}'} | "
            f"{' / '.join('–' if share is None else f'{share:.0%}' for share in shares)} | "
            f"{figures[f'{size}_memory_ratio']:.2f} |"
        )
    head = (
        "| training, beside the fastest peer | target tokens/s, times theirs | "
        "with our allocator settings | of the peak of torch's / oneDNN's matrix product | "
        "memory, times the least |"
    )
    return table(head, rows)


def decode_speed(result: dict[str, Any]) -> str:
    """Return decoding speed beside CTranslate2 and Hugging Face."""
    figures = result["figures"]
    rows = []
    for size in ("tiny", "base"):
        for search, title in (("greedy", "greedy"), ("beam5", "beam 5")):
            prefix = "" if size == "tiny" else "base_"
            cells = [
                figures[f"{size}_{search}_vs_ctranslate2"],
                figures[f"{size}_{search}_vs_hf"],
                figures[f"{prefix}torch_{search}_vs_hf"],
            ]
            rows.append(
                f"| `transformer-{size}`, {title} | " + " | ".join(f"{x:.2f}" for x in cells) + " |"
            )
    head = (
        "| text to text, as a multiple of | plain CTranslate2 at its best | "
        "Hugging Face `generate` | our torch engine: `generate` |"
    )
    return table(head, rows)


def shakespeare(result: dict[str, Any]) -> str:
    """Return the losses of the character models and the speed of their training."""
    figures = result["figures"]
    return table(
        "| Tiny Shakespeare, `gpt-nano` | |",
        [
            f"| validation loss, nats a character | {figures['validation_loss']:.3f} |",
            f"| a better recipe in the same time | {figures['best_loss_same_time']:.3f} |",
            "| speed of an update, times that of `transformers` | "
            f"{figures['speed_ratio_vs_hf']:.2f} |",
            "| the same by bare operations, without modules and autograd | "
            f"{figures['speed_ratio_vs_hf_bare']:.2f} |",
        ],
    )


def transfer(result: dict[str, Any]) -> str:
    """Return what pre-training was worth, by task and share of the labels."""
    figures = result["figures"]
    rows = [
        f"| {title}, {share} % of the labels | {figures[f'{task}_{share}_scratch']:.1%} | "
        f"{figures[f'{task}_{share}_pretrained']:.1%} | "
        f"{100 * figures[f'{task}_{share}_gain']:+.1f} "
        f"({100 * figures[f'{task}_{share}_gain_low']:+.1f} to "
        f"{100 * figures[f'{task}_{share}_gain_high']:+.1f}) |"
        for task, title in (("sst2", "SST-2"), ("trec", "TREC"))
        for share in (100, 10, 1)
    ]
    head = "| test accuracy | from scratch | pre-trained | gain in points (95 % interval) |"
    return table(head, rows)


def generation(result: dict[str, Any]) -> str:
    """Return what a cache is worth."""
    figures = result["figures"]
    return table(
        "| 512 symbols in the layout of GPT-2 small | symbols a second |",
        [
            f"| every symbol reads all before it again | "
            f"{figures['tokens_per_second_without_cache']:.1f} |",
            f"| keys and values kept ({figures['cache_speedup_512']:.1f} times as fast) | "
            f"{figures['tokens_per_second']:.1f} |",
        ],
    )


def alignment(result: dict[str, Any]) -> str:
    """Return alignment error rates."""
    figures = result["figures"]
    return table(
        "| alignment error rate | counted | published |",
        [
            f"| GIZA++, English-French | {figures['giza_enfr']:.2f} % | 8.0 % |",
            f"| GIZA++, Romanian-English | {figures['giza_roen']:.2f} % | 28.7 % |",
            "| best head of `transformer-tiny` on the built-in corpus | "
            f"{figures['best_head_grammar']:.2f} % | – |",
        ],
    )


def serving(result: dict[str, Any]) -> str:
    """Return throughput and latency of the server."""
    figures = result["figures"]
    rows = [
        f"| {clients} | {figures[f'p50_ms_{clients}']:.0f} ms | "
        f"{figures[f'p95_ms_{clients}']:.0f} ms | "
        f"{figures[f'batching_gain_{clients}']:.2f} |"
        for clients in (1, 8, 64)
        if f"batching_gain_{clients}" in figures
    ]
    head = "| clients at once | half answered within | 95 % within | throughput, times one by one |"
    return table(head, rows)


def model_series(result: dict[str, Any]) -> str:
    """Return BLEU of the model series, by sentence length."""
    figures, notes = result["figures"], result["notes"]
    bands = [band for band, count in notes["sentences_in_bands"].items() if count]
    names = {
        "plain": "encoder-decoder without attention",
        "dot": "dot-product attention",
        "bilinear": "bilinear attention",
        "additive": "additive attention",
        "convolutional": "convolutional encoder",
        "transformer": "Transformer",
    }
    rows = []
    for name, title in names.items():
        found = [
            value for key, value in figures.items() if re.fullmatch(rf"{name}_bleu_\d+_\d+", key)
        ]
        cells = " | ".join(f"{value:.1f}" for value in [figures[f"{name}_bleu"], *found])
        rows.append(f"| {title} | {cells} |")
    head = f"| BLEU, {figures['training_minutes']:g} minutes of training each | all | "
    return table(head + " | ".join(f"{band} words" for band in bands) + " |", rows)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "grammar-en-de": grammar_en_de,
    "graph-accuracy": graph_accuracy,
    "graph-speed": graph_speed,
    "cmudict": cmudict,
    "recurrent-speed": recurrent_speed,
    "multi30k-en-de": multi30k,
    "multi30k-en-fr": multi30k,
    "train-speed": train_speed,
    "decode-speed": decode_speed,
    "shakespeare": shakespeare,
    "transfer": transfer,
    "generation": generation,
    "alignment": alignment,
    "serving": serving,
    "model-series-built-in": model_series,
    "model-series-multi30k": model_series,
    "model-series-bible": model_series,
}


def filled(text: str) -> str:
    """Return the README with every table made anew."""

    def block(match: re.Match[str]) -> str:
        path = RESULTS / f"{match[2]}.json"
        if not path.exists():
            return match[0]
        result = json.loads(path.read_text(encoding="utf-8"))
        source = f"`bench/results/{path.name}`, {result['date']}: `{result['command']}`"
        return f"{match[1]}{TABLES[match[2]](result)}\n\n{source}\n{match[3]}"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    after = filled(before)
    if "--check" in sys.argv:
        sys.exit(before != after)
    readme.write_text(after, encoding="utf-8")
