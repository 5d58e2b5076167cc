"""English to German on the full grammar: attention against none, under the same budget.

    python bench/grammar_en_de.py [--minutes 20] [--runs runs/bench/grammar]

Trains both models for the given minutes (a stopped training is continued), tests them on sentences
of 3 to 60 words, and writes results/grammar-en-de.json. With --demo it also times `make demo` in a
fresh clone; with --demo-only it does that alone and keeps the other figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console

from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import grammar_splits
from regard.tasks.translation.evaluation import TrainedTranslator, evaluate
from regard.tasks.translation.report import report_runs
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import tested, train_translator
from result import RESULTS, commit, write_result

RECIPES = {"plain": "grammar-plain", "attention": "grammar-attention"}
BANDS = [(3, 10), (11, 20), (21, 30), (31, 39), (40, 60)]


def main() -> None:
    """Train, test and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=20.0)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/grammar"))
    options.add_argument("--demo", action="store_true", help="time `make demo` in a fresh clone")
    options.add_argument("--only", choices=list(RECIPES), help="train just this model")
    options.add_argument("--demo-only", action="store_true", help="only that")
    given = options.parse_args()
    if given.demo_only:
        record_demo()
        return
    names = [given.only] if given.only else list(RECIPES)
    trained = {name: train(name, given.runs, given.minutes) for name in names}
    if given.only:
        return
    figures, details = {}, {"threads": torch.get_num_threads()}
    for name, run in trained.items():
        found = evaluate(run.model, run.evaluation.pairs, bands=BANDS)
        by_band = {band.label: band.score.value for band in found.bands}
        figures[f"{name}_bleu"] = round(found.bleu.value, 2)
        figures[f"{name}_bleu_40_60"] = round(by_band["40–60"], 2)
        details[name] = {label: round(value, 2) for label, value in by_band.items()}
        details["signature"] = found.bleu.signature
        if found.alignment:
            figures["alignment_error_rate"] = round(found.alignment.value, 2)
    figures["training_minutes"] = given.minutes
    figures.update(demo_figures(run=given.demo))
    path = write_result(
        "grammar-en-de",
        figures,
        command=f"OMP_NUM_THREADS={torch.get_num_threads()} python bench/grammar_en_de.py "
        f"--minutes {given.minutes:g}{' --demo' if given.demo else ''}",
        details=details,
    )
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def record_demo() -> None:
    """Measure the demo and put its figures in the place of the old ones."""
    path = RESULTS / "grammar-en-de.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["figures"] |= demo_figures(run=True)
    record["details"]["demo"] = f"the demo_ figures: `make demo` in a fresh clone of {commit()}"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(record["figures"], indent=1), f"\nwrote {path}")


def train(name: str, folder: Path, minutes: float) -> TrainedTranslator:
    """Train one model for some minutes, or continue an interrupted training."""
    recipe = expect(
        find_recipe(RECIPES[name], overrides=[f"training.minutes={minutes}"]), TranslationRecipe
    )
    run = finish_or_start(folder / name, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=name) as display:
        splits = grammar_splits(recipe.data.grammar)
        trained = train_translator(recipe, run, splits=splits, observers=[display])
    trained = tested(trained, splits.test)
    report_runs({name: trained}, run.folder / "report.html", title=recipe.title)
    return trained


def demo_figures(*, run: bool) -> dict[str, float]:
    """Return how the demo does from a fresh clone: measured now, or as recorded before."""
    if not run:
        path = RESULTS / "grammar-en-de.json"
        recorded = json.loads(path.read_text())["figures"] if path.exists() else {}
        return {key: value for key, value in recorded.items() if key.startswith("demo_")}
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "regard"
        subprocess.run(["git", "clone", "-q", str(root), str(clone)], check=True)
        began = time.monotonic()
        subprocess.run(["make", "demo"], cwd=clone, check=True, stdout=sys.stderr)
        minutes = (time.monotonic() - began) / 60
        scores = {
            name: json.loads((clone / "runs/demo" / name / "test.json").read_text())
            for name in RECIPES
        }
    last = {name: found["by_length"][-1]["score"]["value"] for name, found in scores.items()}
    return {
        "demo_minutes": round(minutes, 2),
        "demo_attention_bleu": round(scores["attention"]["bleu"]["value"], 2),
        "demo_plain_bleu": round(scores["plain"]["bleu"]["value"], 2),
        "demo_attention_bleu_longest": round(last["attention"], 2),
        "demo_plain_bleu_longest": round(last["plain"], 2),
    }


if __name__ == "__main__":
    main()
