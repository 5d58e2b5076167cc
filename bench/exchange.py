"""Models of other programs: imported, they must give the outputs of the programs they are from.

    python bench/exchange.py [--only PART ...] [--runs FOLDER]

Every part measures one kind of model and adds its figures to results/exchange.json, so parts can
be measured one by one. What a part counts:

marian       a published student (en-pt): greedy outputs of 100 sentences that equal the reference,
             from the npz and from the binary int8 file, and the greatest difference of a
             log-probability
fairseq      a published Transformer (latin2nqo): greedy outputs that equal the reference
gat          the authors' model on Cora: test accuracy
marianmt     random models made by `transformers`: logits, and greedy outputs that equal `generate`
layouts      the same for BART, mBART, Pegasus, M2M100, T5, Llama, Qwen2 and Qwen3
ctranslate2  a Transformer is trained for a minute, exported and imported: equal outputs of 200
onnx         the demo's Transformer, trained and exported, and the en-pt student, exported:
             greedy outputs in onnxruntime that equal ours
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import regard
from result import commit, read_result, write_result

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
WEIGHTS = DATA / "weights"
NAME = "exchange"
# Figures, and of random models of `transformers`: architecture to difference, equal and total.
Found = tuple[dict[str, float], dict[str, dict[str, float]]]


def measure_marian(folder: Path) -> Found:
    """Count the outputs of the student that equal its reference."""
    source = WEIGHTS / "marian-enpt"
    table = (source / "enpt.flores100.greedy.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in table]
    figures: dict[str, float] = {}
    worst = 0.0
    for kind, name in (("npz", "enpt.float32.npz"), ("bin", "model.enpt.intgemm.alphas.bin")):
        regard.import_model(source, out=folder / kind, weights=name)
        found = regard.load(folder / kind).translate([row[0] for row in rows], beam=1)
        pairs = list(zip(found, rows, strict=True))
        figures[f"marian_{kind}_of_100"] = sum(one.text == row[1] for one, row in pairs)
        worst = max(worst, *(abs(one.log_probability - float(row[2])) for one, row in pairs))
    files = [folder / kind / "best" / "model.safetensors" for kind in ("npz", "bin")]
    figures["marian_log_probability_difference_max"] = worst
    figures["marian_bin_bit_equal"] = files[0].read_bytes() == files[1].read_bytes()
    return figures, {}


def measure_fairseq(folder: Path) -> Found:
    """Count the outputs of the published model that equal its reference."""
    source = WEIGHTS / "latin2nqo"
    table = (source / "reference_greedy.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in table]
    regard.import_model(source, out=folder / "run")
    found = regard.load(folder / "run").translate([row[0] for row in rows], beam=1)
    equal = sum(one.text == row[1] for one, row in zip(found, rows, strict=True))
    return {"fairseq_equal": equal, "fairseq_total": len(rows)}, {}


def measure_gat(folder: Path) -> Found:
    """Return the test accuracy of the authors' model."""
    graph = DATA / "planetoid" / "cora.npz"
    regard.import_model(WEIGHTS / "gat-cora", out=folder / "run", data=graph)
    loaded = regard.load(folder / "run")
    return {"gat_cora_accuracy": loaded.accuracy(loaded.graph.split.test)}, {}


def measure_marianmt(folder: Path) -> Found:
    """Compare random models with one and two vocabularies and unequal depths."""
    sys.path.insert(0, str(ROOT))
    from tests.parity import test_hugging_face_marian as parity

    found: dict[str, dict[str, float]] = {}
    for number, (name, options) in enumerate(parity.CASES.items()):
        theirs = parity.marian_folder(folder / str(number), **options)
        ours = parity.read_foreign(folder / str(number))
        found[f"MarianMT, {name}"] = {
            "logits_difference": parity.logits_difference(ours, theirs),
            "equal": parity.equal_outputs(ours, theirs),
            "total": 50,
        }
    return {}, found


def measure_ctranslate2(folder: Path) -> Found:
    """Train, export and import a Transformer; count its equal greedy outputs."""
    from regard.tasks.translation.export import export_ctranslate2

    changes = {
        "training.steps": 300,
        "training.warmup": 50,
        "training.validate_every": 300,
        "training.average": 0,
        "data.grammar.size": 4_000,
        "data.grammar.test_size": 200,
        "model.layers": 2,
    }
    out = folder / "run"
    trained = regard.train("transformer-tiny", set=changes, out=out, progress=False)
    export_ctranslate2(out, output=folder / "exported")
    regard.import_model(folder / "exported", out=folder / "imported")
    pairs = regard.corpus(size=10, test_size=200).test
    texts = [pair.source for pair in pairs[:200]]
    outputs = [
        model.translate(texts, beam=1)
        for model in (trained.model, regard.load(folder / "imported"))
    ]
    equal = sum(one.text == other.text for one, other in zip(*outputs, strict=True))
    return {"ctranslate2_equal_of_200": equal}, {}


def measure_layouts(folder: Path) -> Found:
    """Compare random models of the other architectures."""
    sys.path.insert(0, str(ROOT))
    from tests.parity import hugging_face_models as parity

    from regard.exchange.formats import read_foreign

    found: dict[str, dict[str, float]] = {}
    for number, (name, (kind, options, pairs)) in enumerate(parity.CASES.items()):
        theirs = parity.random_model(folder / str(number), kind, options, pairs=pairs)
        compare = parity.compare_pairs if pairs else parity.compare_texts
        one = compare(theirs, read_foreign(folder / str(number)))
        found[name] = {
            "logits_difference": one.difference,
            "equal": one.equal,
            "total": one.total,
        }
    return {}, found


def measure_onnx(folder: Path) -> Found:
    """Count greedy outputs in onnxruntime that equal those of the model itself."""
    from regard.tasks.translation.data import read_splits

    trained = regard.train("demo-transformer", out=folder / "demo", progress=False)
    pairs = read_splits(trained.model.recipe.data).test
    demo = _equal_in_onnx(trained.run.folder, [pair.source for pair in pairs[:200]])
    source = WEIGHTS / "marian-enpt"
    regard.import_model(source, out=folder / "en-pt", weights="enpt.float32.npz")
    table = (source / "enpt.flores100.greedy.tsv").read_text(encoding="utf-8").splitlines()
    student = _equal_in_onnx(folder / "en-pt", [line.split("\t")[0] for line in table])
    return {"onnx_equal_of_200": demo, "onnx_marian_of_100": student}, {}


def _equal_in_onnx(run: Path, texts: list[str]) -> int:
    from regard.tasks.translation.export import export_onnx, onnx_engine

    model = regard.load(run)
    expected = model.translate(texts, beam=1, attention=False)
    model.engine = onnx_engine(export_onnx(run).path)
    found = model.translate(texts, beam=1, attention=False)
    return sum(one.text == other.text for one, other in zip(found, expected, strict=True))


PARTS: dict[str, Callable[[Path], Found]] = {
    "marian": measure_marian,
    "fairseq": measure_fairseq,
    "gat": measure_gat,
    "marianmt": measure_marianmt,
    "layouts": measure_layouts,
    "ctranslate2": measure_ctranslate2,
    "onnx": measure_onnx,
}


def merged(part: str, figures: dict[str, float], models: dict[str, Any]) -> None:
    """Add the figures of a part to the result file; totals are over all architectures."""
    before = read_result(NAME)
    details = before.get("details", {})
    architectures = {**details.get("hugging_face", {}), **models}
    parts = {**details.get("parts", {}), part: commit()}
    whole = {**before.get("figures", {}), **figures}
    if architectures:
        worst = max(one["logits_difference"] for one in architectures.values())
        whole["hf_logits_difference_max"] = worst
        whole["hf_generate_equal"] = sum(one["equal"] for one in architectures.values())
        whole["hf_generate_total"] = sum(one["total"] for one in architectures.values())
    write_result(
        NAME,
        whole,
        command="python bench/exchange.py",
        packages=("transformers", "ctranslate2", "onnxruntime"),
        details={**details, "hugging_face": architectures, "parts": parts},
    )


def main() -> None:
    """Measure the parts that are asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options.add_argument("--runs", type=Path, help="folder for the runs; else a temporary one")
    given = options.parse_args()
    for part in given.only:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (given.runs or Path(temporary)) / part
            folder.mkdir(parents=True)
            figures, models = PARTS[part](folder)
        merged(part, figures, models)
        sys.stdout.write(f"{part}: {figures or models}\n")


if __name__ == "__main__":
    main()
