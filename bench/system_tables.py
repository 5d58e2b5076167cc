"""Tables of results about efficiency and scale, one function for each kind of result file."""

from __future__ import annotations

from result_tables import NONE, Result, rows_of, table


def experts(result: Result) -> str:
    """Return losses and loads with experts and without, and what a layer of them costs."""
    names = {
        "dense": "one network",
        "dense_same_time": "one network, the CPU seconds of the experts",
        "dense_same_parameters": "one network 8 times as wide, the same seconds",
        "experts": "8 experts, balance loss",
        "experts_bias": "8 experts, bias of the gate",
        "experts_free": "8 experts, nothing that balances",
    }
    head = ["", "loss", "largest share of tokens", "experts with less than 1 %"]
    keys = {
        title: [f"{name}_{what}" for what in ("loss", "largest_load", "idle")]
        for name, title in names.items()
    }
    ratios = [f"{result['figures'][f'layer_{width}_time_ratio']:.2f}" for width in (128, 256, 512)]
    return (
        f"{table(head, rows_of(result, keys, '.2f'))}\n\nA layer of 8 experts, one a token, takes "
        f"{', '.join(ratios)} times as long a token as one of that size (widths 128, 256, 512)."
    )


def factorised(result: Result) -> str:
    """Return parameters, speed and loss of divided LSTMs."""
    figures = result["figures"]
    names = {
        "whole": "whole matrices",
        "rank_96": "F-LSTM, rank 96",
        "rank_48": "F-LSTM, rank 48",
        "groups_2": "G-LSTM, 2 groups",
        "groups_4": "G-LSTM, 4 groups",
        "narrow": "whole, narrower",
    }
    rows = [
        [
            title,
            f"{figures[f'{name}_parameters_of_cells']:,}",
            f"{figures[f'{name}_tokens_a_second']:,}",
            f"{figures[f'{name}_loss']:.2f}",
        ]
        for name, title in names.items()
    ]
    head = ["", "parameters of the cells", "tokens a second"]
    return table([*head, f"loss after {figures['cpu_seconds']:g} CPU seconds"], rows)


def long_span(result: Result) -> str:
    """Return losses at two contexts, and how costs grow with the length."""
    names = {
        "full": "full",
        "window": "window of 32",
        "strided": "strided, 16",
        "fixed": "fixed, 16",
        "hashed": "hashed",
        "span": "learned spans",
        "memory": "memory (Transformer-XL)",
    }
    what = ("loss_64", "loss_256", "time_exponent", "memory_exponent", "state_growth")
    rows = {title: [f"{name}_{key}" for key in what] for name, title in names.items()}
    head = ["", "loss, context 64", "loss, context 256", "time ~ n^", "memory ~ n^"]
    return table([*head, "state, 2,048 / 128 tokens"], rows_of(result, rows, ".2f"))


def efficiency(result: Result) -> str:
    """Return time and path length of models of one size, by length of the texts."""
    lengths = result["details"]["lengths"]
    rows = []
    for name, each in result["details"].items():
        if name != "lengths":
            times = [f"{each['milliseconds'][str(n)]['mean']:.0f}" for n in lengths]
            path = each["path"][str(lengths[-1])]
            rows.append([name.replace("_", ", "), *times, NONE if path is None else str(path)])
    head = ["ms for 4,096 tokens", *(f"texts of {n}" for n in lengths)]
    return table([*head, f"path through {lengths[-1]}"], rows)


def scaling(result: Result) -> str:
    """Return the exponents with their intervals."""
    figures = result["figures"]
    names = {
        "alpha": "alpha (parameters)",
        "beta": "beta (tokens)",
        "floor": "E, the loss that is left",
        "best_size_exponent": "best size ~ compute^",
        "parameters_slope": "loss ~ parameters^, at most tokens",
        "data_slope": "loss ~ tokens^, largest model",
        "compute_slope": "loss ~ compute^, best models",
    }
    rows = [
        [
            title,
            f"{figures[name]:.3f}",
            f"[{figures[f'{name}_low']:.3f}, {figures[f'{name}_high']:.3f}]",
        ]
        for name, title in names.items()
    ]
    return table(["", "value", "95 % interval"], rows)


def graph_kinds(result: Result) -> str:
    """Return cost, accuracy and early loss of each kind of layer."""
    names = {
        "convolution": "convolution (GCN)",
        "additive": "attention, additive (GAT)",
        "dynamic": "attention, dynamic (GATv2)",
        "scaled_dot": "attention, scaled dot",
        "distance": "vertex attention",
        "gaussian": "Gaussian kernels",
        "edge_types": "messages, vectors of edge types",
        "edge_learned": "messages, a vector for each edge",
    }
    what = ("ms", "kept_mb", "accuracy", "loss_left")
    rows = {title: [f"{name}_{key}" for key in what] for name, title in names.items()}
    head = ["Cora", "ms an update", "MB for the gradient", "test accuracy (%)", "loss left"]
    figures = result["figures"]
    return (
        f"{table(head, rows_of(result, rows, '.2f'))}\n\nWhere only edges tell the class: "
        f"attention {figures['marked_edges_attention_accuracy']:.1f} %, messages with given "
        f"vectors {figures['marked_edges_given_accuracy']:.1f} %."
    )
