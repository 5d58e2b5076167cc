"""Generation with and without a cache, in the layout of GPT-2 small (124 million parameters).

    python bench/generation.py [--tokens 512] [--rounds 3]

Random weights, one sample, greedy, from a prompt of one token. The first `--tokens` tokens are
drawn with a cache, in full. Without one, a token costs a pass over all tokens before it, so only
some of them are timed, spread evenly from the first to the last, and the sum is estimated by their
mean. Both ways give the same tokens there; this is checked. Writes results/generation.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import torch

from regard.decoding.sampling import Choice, continuation
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from result import write_result

PLACES = 16  # passes that are timed without a cache
TIE = 1e-3  # logits that differ by less may be ordered otherwise by rounding


def main() -> None:
    """Measure and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokens", type=int, default=512)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--recipe", default="gpt2-small")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    recipe = expect(find_recipe(given.recipe), LanguageModelRecipe)
    model = build_language_model(recipe.model, vocab=recipe.tokenizer.size or 100).eval()
    cached, plain = [], []
    for _ in range(given.rounds):
        seconds, tokens = with_cache(model, given.tokens)
        cached.append(seconds)
        plain.append(without_cache(model, tokens))
    figures = {
        f"cache_speedup_{given.tokens}": round(
            statistics.median(plain) / statistics.median(cached), 2
        ),
        "tokens_per_second": round(given.tokens / statistics.median(cached), 2),
        "tokens_per_second_without_cache": round(given.tokens / statistics.median(plain), 3),
    }
    print(json.dumps(figures, indent=1))
    if given.recipe == "gpt2-small":
        command = f"python bench/generation.py --tokens {given.tokens} --rounds {given.rounds}"
        command += f" --threads {given.threads}"
        details = {"threads": given.threads, "passes_timed_without_cache": PLACES}
        print(write_result("generation", figures, command=command, details=details))


def with_cache(model: LanguageModel[Any], count: int) -> tuple[float, list[int]]:
    """Return the seconds that `count` tokens take, and the tokens after the prompt."""
    began = time.perf_counter()
    drawn = [
        one.token
        for step in continuation(
            model,
            [0],
            choice=Choice(temperature=0.0),
            finished=lambda _: False,
            max_tokens=count,
            context=model.context,
        )
        for one in step
    ]
    return time.perf_counter() - began, [0, *drawn]


@torch.inference_mode()
def without_cache(model: LanguageModel[Any], tokens: list[int]) -> float:
    """Return the seconds that the same tokens would take if all were read again each time."""
    count = len(tokens) - 1
    lengths = [round(1 + place * (count - 1) / (PLACES - 1)) for place in range(PLACES)]
    times = []
    for length in lengths:
        began = time.perf_counter()
        step = model.read(torch.tensor([tokens[:length]]), model.start(1))
        best = float(step.logits[0].max())
        times.append(time.perf_counter() - began)
        if float(step.logits[0, tokens[length]]) < best - TIE:
            raise SystemExit(f"token {length} is another one without cache")
    return count * statistics.mean(times)


if __name__ == "__main__":
    main()
