"""Tables of Markdown, one function for each kind of result file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NONE = "–"
TRANSFER = ("scratch", "pretrained", "gain", "gain_low", "gain_high")

Result = Mapping[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def rows_of(result: Result, rows: Mapping[str, Sequence[str]], form: str) -> list[list[str]]:
    """Return a row for each title, with the figures of its keys; what is missing is a dash."""
    figures = result["figures"]
    return [
        [title, *(format(figures[key], form) if key in figures else NONE for key in keys)]
        for title, keys in rows.items()
    ]


def grammar_en_de(result: Result) -> str:
    """Return attention against none, by sentence length."""
    figures, details = result["figures"], result["details"]
    names = {"plain": "without attention", "attention": "with attention"}
    head = [f"BLEU after {figures['training_minutes']:g} minutes of training", "all"]
    rows = [
        [title, *(f"{x:.1f}" for x in (figures[f"{name}_bleu"], *details[name].values()))]
        for name, title in names.items()
    ]
    made = table([*head, *(f"{band} words" for band in details["attention"])], rows)
    rate = figures["alignment_error_rate"]
    return f"{made}\n\nThe attention has an alignment error rate of {rate:.1f} %."


def multi30k(result: Result) -> str:
    """Return BLEU on test 2016."""
    figures, details = result["figures"], result["details"]
    texts = {"bleu_tokenised": "lower-cased, tokenised", "bleu_cased_13a": "cased, detokenised"}
    rows = [
        [
            title,
            f"{figures[key]:.2f}",
            str(details["published"].get(key, NONE)),
            f"{sum(details[text]['minutes']):.0f}",
        ]
        for (key, title), text in zip(texts.items(), ("tok", "raw"), strict=True)
    ]
    return table(["text", "BLEU", "published", "minutes of training"], rows)


def model_series(result: Result) -> str:
    """Return BLEU of the models from no attention to the Transformer, by sentence length."""
    figures, details = result["figures"], result["details"]
    bands = [band for band, count in details["sentences_in_bands"].items() if count]
    names = {
        "plain": "encoder-decoder without attention",
        "dot": "dot-product attention",
        "bilinear": "bilinear attention",
        "additive": "additive attention",
        "convolutional": "convolutional encoder",
        "transformer": "Transformer",
    }
    keys = {
        title: [key for key in figures if re.fullmatch(rf"{name}_bleu(_\d+_\d+)?", key)]
        for name, title in names.items()
    }
    head = [f"BLEU after {figures['training_minutes']:g} minutes of training each", "all"]
    return table([*head, *(f"{band} words" for band in bands)], rows_of(result, keys, ".1f"))


def alignment(result: Result) -> str:
    """Return alignment error rates."""
    figures, published = result["figures"], result["details"]["published"]
    rows = [
        ["GIZA++, English-French", f"{figures['giza_enfr']:.2f} %", f"{published['enfr']} %"],
        ["GIZA++, Romanian-English", f"{figures['giza_roen']:.2f} %", f"{published['roen']} %"],
        ["best head on the built-in corpus", f"{figures['best_head_grammar']:.2f} %", NONE],
    ]
    return table(["alignment error rate", "counted by us", "published"], rows)


def alignment_head(result: Result) -> str:
    """Return alignment error, tags and BLEU with and without the loss that teaches a head."""
    names = {"grammar": "built-in corpus", "french": "Tatoeba, gold of the Hansards"}
    rows = {
        f"{title}, {what}": [f"{corpus}_{key}" for key in keys]
        for corpus, title in names.items()
        for what, keys in {
            "alignment error": (
                "plain_aer", "plain_best_head_aer", "taught_aer", "ibm_aer",
            ),
            "tags in the right place (%)": (
                "plain_tags", "plain_best_head_tags", "taught_tags", "none",
            ),
            "BLEU": ("plain_bleu", "none", "taught_bleu", "none"),
        }.items()
        if f"{corpus}_{keys[0]}" in result["figures"]
    }  # fmt: skip
    head = ["", "mean of the layer", "best head", "taught head", "IBM 1 alone"]
    return table(head, rows_of(result, rows, ".1f"))


def antecedent(result: Result) -> str:
    """Return how often a head finds the noun behind a pronoun."""
    rows = {
        "the best head looks from it at its noun (%)": "head_accuracy_two_candidates",
        "it is translated rightly (%)": "pronoun_accuracy_two_candidates",
        "a guess of the nearest noun (%)": "nearest_noun_accuracy",
        "a guess of any noun (%)": "random_noun_accuracy",
    }
    seeds = result["details"]["seeds"]
    cells = [[title, *(f"{seed[key]:.1f}" for seed in seeds)] for title, key in rows.items()]
    names = [f"seed {number}" for number in range(1, len(seeds) + 1)]
    return table(["two nouns or more could be meant", *names], cells)


def length_extrapolation(result: Result) -> str:
    """Return the share of tokens copied right, by kind of positions and length."""
    figures = result["figures"]
    kinds = dict.fromkeys(re.findall(r"accuracy_(\w+)_\d+", " ".join(figures)))
    lengths = (10, 20, 25, 30, 40)
    rows = {f"`{kind}`": [f"accuracy_{kind}_{length}" for length in lengths] for kind in kinds}
    return table(["`model.positions`", *map(str, lengths)], rows_of(result, rows, ".0%"))


def attention_cost(result: Result) -> str:
    """Return time and memory of kinds of attention, by length."""
    lengths = (128, 1024, 4096)
    head = ["", *(f"time, {n} tokens" for n in lengths), *(f"MB, {n} tokens" for n in lengths)]
    rows = {
        title: [f"{what}_{name}_{length}" for what in ("time", "mb") for length in lengths]
        for name, title in {
            "full": "full, weights kept",
            "fused": "full, fused kernel",
            "window": "window",
            "linear": "linear",
        }.items()
    }
    return table(head, rows_of(result, rows, ".1f"))


def cmudict(result: Result) -> str:
    """Return the error rates of letters to phonemes."""
    rows = {
        "`char-lstm`, no attention": ("wer_plain", "per_plain"),
        "`bahdanau`, attention before the state update": ("wer_bahdanau", "per_bahdanau"),
        "`luong`, attention after it": ("wer_luong", "per_luong"),
    }
    minutes = result["figures"]["training_minutes"]
    head = [f"after {minutes:g} minutes of training", "words wrong (%)", "phonemes wrong (%)"]
    return table(head, rows_of(result, rows, ".1f"))


def fibonacci(result: Result) -> str:
    """Return the squared errors over seeds."""
    names = {"plain": "no attention", "attention": "softmax attention", "lecture": "free weights"}
    rows = {
        title: [f"{what}_mse_{name}" for what in ("median", "quartile1", "quartile3")]
        for name, title in names.items()
    }
    rows["repeating the last value"] = ["median_mse_naive", "", ""]
    head = ["mean squared error", "median", "first quartile", "third quartile"]
    return table(head, rows_of(result, rows, ".1e"))


def shakespeare(result: Result) -> str:
    """Return the losses of the character models and the speed of their training."""
    losses = {
        "validation loss (nats per character)": ["validation_loss"],
        "validation loss of a better recipe in the same time": ["best_loss_same_time"],
    }
    speeds = {
        "speed of an update, relative to `transformers`": ["speed_ratio_vs_hf"],
        "the same with bare operations (no modules, no autograd)": ["speed_ratio_vs_hf_bare"],
    }
    rows = [*rows_of(result, losses, ".3f"), *rows_of(result, speeds, ".2f")]
    return table(["`gpt-nano` on Tiny Shakespeare", ""], rows)


def transfer(result: Result) -> str:
    """Return what pre-training was worth, by task and share of the labels."""
    rows = []
    for task, title in (("sst2", "SST-2"), ("trec", "TREC")):
        for share in (100, 10, 1):
            cells = {name: result["figures"][f"{task}_{share}_{name}"] for name in TRANSFER}
            low, high = 100 * cells["gain_low"], 100 * cells["gain_high"]
            gain = f"{100 * cells['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
            accuracy = [f"{cells[name]:.1%}" for name in ("scratch", "pretrained")]
            rows.append([f"{title}, {share} % of the labels", *accuracy, gain])
    head = ["test accuracy", "from scratch", "pre-trained", "gain in points (95 % interval)"]
    return table(head, rows)


def generation(result: Result) -> str:
    """Return what a cache is worth."""
    figures = result["figures"]
    rows = {
        "without a cache": ["tokens_per_second_without_cache"],
        f"with cached keys and values ({figures['cache_speedup_512']:.1f} times as fast)": [
            "tokens_per_second"
        ],
    }
    return table(["512 tokens, the size of GPT-2 small", "tokens/s"], rows_of(result, rows, ".1f"))


def pretrain_memory(result: Result) -> str:
    """Return the peak memory of pre-training on a small and a large corpus."""
    figures = result["figures"]
    rows = {
        f"{figures[f'megabytes_{size}']} MB": [f"peak_mib_{size}"] for size in ("small", "large")
    }
    return table(["size of the text", "peak memory (MiB)"], rows_of(result, rows, ".0f"))


def graph_accuracy(result: Result) -> str:
    """Return test accuracies on the standard splits."""
    figures, published = result["figures"], result["details"]["published"]
    names = {
        "cora": "graph attention, Cora",
        "citeseer": "graph attention, Citeseer",
        "gcn_cora": "graph convolution, Cora",
    }
    rows = [[title, spread(figures, key), published[key]] for key, title in names.items()]
    return table([f"test accuracy, {figures['seeds']} seeds", "ours", "published"], rows)


def spread(figures: Mapping[str, float], key: str) -> str:
    """Return a mean with its standard deviation."""
    return f"{figures[f'{key}_mean']:.1f} ± {figures[f'{key}_std']:.1f}"


def graph_speed(result: Result) -> str:
    """Return how much faster an epoch is than in PyTorch Geometric."""
    rows = {
        "Cora (bag-of-words features sparse here, dense there)": ["cora_ratio", ""],
        "Cora, dense features in both": ["cora_dense_ratio", ""],
        "200,000 nodes, 2 million edges": ["large_ratio", "large_memory_ratio"],
    }
    head = ["relative to PyTorch Geometric", "speed of an epoch", "peak memory"]
    return table(head, rows_of(result, rows, ".2f"))


def train_speed(result: Result) -> str:
    """Return training speed compared with eole, MarianMT and torch.nn.Transformer."""
    speeds = {
        f"`transformer-{size}`": [
            f"{size}_ratio",
            f"{size}_ratio_same_allocator",
            f"{size}_memory_ratio",
            f"{size}_peak_share",
            f"{size}_peak_share_onednn",
        ]
        for size in ("tiny", "base")
    }
    head = [
        "relative to the best peer",
        "target tokens/s",
        "the same, peers with our allocator settings",
        "peak memory",
        "share of the peak of torch's matrix product",
        "of oneDNN's",
    ]
    return table(head, rows_of(result, speeds, ".2f"))


def scale(result: Result) -> str:
    """Return what has been measured of devices, processes and precisions so far."""
    titles = {
        "beam_long_speedup": "beam 5, 300 tokens, 8 sentences, sizes of `transformer-tiny`: "
        "times as fast as when keys and values were copied",
        "beam_long_speedup_base": "the same with `transformer-base`",
        "bf16_base_speedup": "training `transformer-base` in bf16: times as fast as in fp32",
    }
    known = {title: [key] for key, title in titles.items() if key in result["figures"]}
    return table(["on one core", ""], rows_of(result, known, ".2f"))


def recurrent_speed(result: Result) -> str:
    """Return the training speed compared with the faster of OpenNMT-py and eole."""
    rows = {
        title: [key, f"{key}_same_allocator"]
        for key, title in {
            "like_for_like_ratio": "the same model, with input feeding",
            "luong_ratio": "`luong`, without input feeding",
        }.items()
    }
    head = ["target tokens/s, relative to the faster peer", "as shipped", "our allocator settings"]
    return table(head, rows_of(result, rows, ".2f"))


def decode_speed(result: Result) -> str:
    """Return decoding speed compared with CTranslate2 and Hugging Face."""
    rows = {
        f"`transformer-{size}`, {title}": [
            f"{size}_{search}_vs_ctranslate2",
            f"{size}_{search}_vs_hf",
            f"{'' if size == 'tiny' else 'base_'}torch_{search}_vs_hf",
        ]
        for size in ("tiny", "base")
        for search, title in (("greedy", "greedy"), ("beam5", "beam 5"))
    }
    head = [
        "sentences/s, text to text",
        "ours / plain CTranslate2",
        "ours / Hugging Face `generate`",
        "our torch engine / `generate`",
    ]
    return table(head, rows_of(result, rows, ".2f"))


def serving(result: Result) -> str:
    """Return throughput and latency of the server."""
    figures = result["figures"]
    rows = [
        [
            str(clients),
            *(f"{figures[f'{what}_ms_{clients}']:.0f} ms" for what in ("p50", "p95")),
            f"{figures[f'batching_gain_{clients}']:.2f}",
        ]
        for clients in (1, 8, 64)
    ]
    return table(["clients", "median latency", "95th percentile", "throughput gain"], rows)


def bulk(result: Result) -> str:
    """Return the peak memory of translating short and long files."""
    figures = result["figures"]
    rows = {f"{figures[f'lines_{size}']:,}": [f"peak_mib_{size}"] for size in ("few", "many")}
    return table(["lines", "peak memory (MiB)"], rows_of(result, rows, ".0f"))


def bounded(result: Result) -> str:
    """Return the peak memory of what grows with the data."""
    figures, sizes = result["figures"], result["details"]
    titles = {
        "training_end_peak_mb": "`transformer-tiny` on Multi30k, test and report included",
        "forecast_peak_mb": f"forecast of {sizes['rows']:,} rows",
        "graph_peak_mb": f"graph of {sizes['nodes']:,} nodes and {sizes['edges']:,} edges",
        "line_peak_mb": f"translation of a line of {sizes['words']:,} words",
        "served_memory_peak_mb": f"{sizes['models']} served models, --memory {sizes['limit_mb']}MB",
    }
    rows = {title: [key] for key, title in titles.items() if key in figures}
    return table(["", "peak memory (MB)"], rows_of(result, rows, ",.0f"))


def stores(result: Result) -> str:
    """Return time and memory of large corpora."""
    titles = {
        "first_update_seconds": "first update on a million pairs (s)",
        "before_first_update_seconds_line": "the same before stores, a line through two sizes (s)",
        "resume_seconds": "first update when ten million pairs are resumed (s)",
        "tokenizer_peak_mb": "memory until the first update, a million pairs (MB)",
        "training_mb_one_million": "memory of training on a million pairs (MB)",
        "training_mb_ten_million": "memory of training on ten million pairs (MB)",
        "tokenise_ratio_vs_sentencepiece": "speed of tokenising, as a share of SentencePiece alone",
        "exact_resumes": "killed trainings that ended with the same bytes",
        "kills": "trainings that were killed",
    }
    rows = {title: [key] for key, title in titles.items() if key in result["figures"]}
    return table(["", "measured"], rows_of(result, rows, ",.4g"))


def filters(result: Result) -> str:
    """Return recall by kind of noise, and precision by filter."""
    names = [
        key.removeprefix("multi30k_recall_")
        for key in result["figures"]
        if key.startswith("multi30k_recall_")
    ]
    corpora, what = ("multi30k", "tatoeba"), ("recall", "precision")
    rows = {
        name.replace("_", " "): [f"{one}_{key}_{name}" for one in corpora for key in what]
        for name in names
    }
    rows["all"] = [key for one in corpora for key in ("none", f"{one}_precision")]
    head = ["noise (%)", *(f"{one}, {key}" for one in ("Multi30k", "Tatoeba") for key in what)]
    return table(head, rows_of(result, rows, ".1f"))


def augmentation(result: Result) -> str:
    """Return BLEU on clean and on changed test texts."""
    kinds = [key.removeprefix("gain_") for key in result["figures"] if key.startswith("gain_")]
    rows = {k: [f"bleu_{k}_plain", f"bleu_{k}_augmented", f"gain_{k}"] for k in kinds}
    return table(["test text", "plain", "augmented", "gain"], rows_of(result, rows, ".1f"))


def every_figure(result: Result) -> str:
    """Return all figures of a result as they are."""
    rows = [[f"`{key}`", f"{value:g}"] for key, value in result["figures"].items()]
    return table(["figure", "value"], rows)
