"""Fine-tuning a published translator: what is gained in a domain, and what is lost outside it.

    python bench/finetune.py [--runs FOLDER]

There is no English-Portuguese corpus here, so the domain is made by rule. Its texts are photo
captions (Multi30k), which the en-pt student translates itself; its outputs are Brazilian, and a
fixed rule turns them into a European house style: a glossary of terms, and "a caminhar" for
"caminhando". The reference is thus the student's own translation in another style. General text is
Tatoeba and the Bible, and its references are the student's own outputs as they are: it scores
BLEU 100 there before, and every word that it puts in another way afterwards counts as lost, also
one that is as good. So a loss is an upper bound of what is forgotten.

Trained by `regard.train(start_from=...)` with nothing but the data: on the domain alone, and with
general pairs mixed in. The default rate was chosen by validation losses alone. FLORES, which no
training has seen, is a second general test. Adds its figures to results/exchange.json. What was
stopped goes on; everything is kept in FOLDER.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import regard
from regard.scoring.bootstrap import bleu_change
from regard.training.progress import read_metrics
from result import commit, read_result, write_result

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
STUDENT = DATA / "weights" / "marian-enpt"
NAME = "exchange"
SIZES = {"train": 400, "valid": 60, "test": 200, "general": 800, "general-test": 200}
# Brazilian terms and what the house style has for them.
GLOSSARY = {
    "ônibus": "autocarro", "trem": "comboio", "caminhão": "camião", "celular": "telemóvel",
    "cachorro": "cão", "cachorros": "cães", "garoto": "rapaz", "garotos": "rapazes",
    "menino": "rapaz", "meninos": "rapazes", "garota": "rapariga", "garotas": "raparigas",
    "menina": "rapariga", "meninas": "raparigas", "terno": "fato", "ternos": "fatos",
    "camiseta": "t-shirt", "camisetas": "t-shirts", "calçada": "passeio", "time": "equipa",
    "grama": "relva", "gramado": "relvado", "sorvete": "gelado", "banheiro": "casa de banho",
    "xícara": "chávena", "goleiro": "guarda-redes", "motocicleta": "mota", "moto": "mota",
    "jaqueta": "casaco", "shorts": "calções", "tênis": "ténis", "esporte": "desporto",
    "pedestres": "peões", "pedestre": "peão", "trilha": "trilho",
    "fantasia": "disfarce", "suéter": "camisola", "geladeira": "frigorífico",
}  # fmt: skip
GERUND = re.compile(r"\b(\w{2,})([aei])ndo\b")
NO_GERUNDS = {"quando", "lindo", "bando", "comando", "brando", "bem-vindo", "vendo", "sendo"}


def house_style(text: str) -> str:
    """Return a Portuguese text in the style of the domain."""

    def infinitive(found: re.Match[str]) -> str:
        return found[0] if found[0].lower() in NO_GERUNDS else f"a {found[1]}{found[2]}r"

    def term(found: re.Match[str]) -> str:
        word = found[0]
        other = GLOSSARY.get(word.lower(), word)
        return other.capitalize() if word[0].isupper() and other != word else other

    return re.sub(r"[\w-]+", term, GERUND.sub(infinitive, text))


def captions() -> Iterator[str]:
    """Yield the English captions of Multi30k."""
    with gzip.open(DATA / "multi30k" / "raw" / "train.en.gz", "rt", encoding="utf-8") as file:
        yield from (line.strip() for line in file)


def general_texts() -> Iterator[str]:
    """Yield sentences of Tatoeba, and of the Bible, of 4 to 40 words."""
    with zipfile.ZipFile(DATA / "tatoeba" / "fra-eng.zip") as archive:
        rows = archive.read("fra.txt").decode("utf-8").splitlines()
    with gzip.open(DATA / "bible" / "eng-engwebp.txt.gz", "rt", encoding="utf-8") as file:
        verses = [line.strip() for line in file if line.strip() not in ("", "<range>")]
    sentences = [row.split("\t")[0] for row in rows]
    yield from (text for text in (*sentences, *verses) if 4 <= len(text.split()) <= 40)


def drawn(texts: Iterator[str], count: int, *, seed: int) -> list[str]:
    """Return texts of a corpus, each once."""
    return Random(seed).sample(sorted(set(texts)), count)


def write_pairs(folder: Path, student: Any) -> dict[str, Path]:
    """Write the pairs of all parts, which the student translates greedily."""
    files = {part: folder / f"{part}.tsv" for part in SIZES}
    if all(path.exists() for path in files.values()):
        return files
    domain = drawn(captions(), sum(SIZES[part] for part in ("train", "valid", "test")), seed=1)
    general = drawn(general_texts(), SIZES["general"] + SIZES["general-test"], seed=2)
    for texts, parts in ((domain, ("train", "valid", "test")), (general, list(SIZES)[3:])):
        found = [one.text for one in student.translate(texts, beam=1, attention=False)]
        style = house_style if texts is domain else str
        pairs = [f"{text}\t{style(output)}\n" for text, output in zip(texts, found, strict=True)]
        for part in parts:
            files[part].write_text("".join(pairs[: SIZES[part]]), encoding="utf-8")
            pairs = pairs[SIZES[part] :]
    return files


def tuned(out: Path, start: Path, files: dict[str, Path], *, mix: bool) -> Any:
    """Fine-tune the student, or go on where that was stopped; return the finished run."""
    if (out / "test.json").exists():
        return regard.load(out)
    if (out / "recipe.toml").exists():
        return regard.train(resume=out).model
    data: dict[str, Any] = {part: str(files[part]) for part in ("train", "valid", "test")}
    data["general_test"] = str(files["general-test"])
    if mix:
        data["mix"] = str(files["general"])
    changes = {"training.processes": 1}
    return regard.train(start_from=start, data=data, out=out, set=changes).model


def flores(model: Any) -> dict[str, float]:
    """Return how far a model has moved from the student's outputs on FLORES."""
    table = (STUDENT / "enpt.flores100.greedy.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in table]
    found = [one.text for one in model.translate([row[0] for row in rows], beam=1, attention=False)]
    references = [row[1] for row in rows]
    change = bleu_change(found, references, references)
    return {
        "bleu": change.bleu,
        "low": 100 + change.interval.low,
        "high": 100 + change.interval.high,
    }


def measure(folder: Path) -> None:
    """Make the data, fine-tune twice, and record what was gained and lost."""
    start = folder / "en-pt"
    if not start.exists():
        regard.import_model(STUDENT, out=start, weights="enpt.float32.npz")
    files = write_pairs(folder, regard.load(start))
    details: dict[str, Any] = {}
    for name, mix in (("domain", False), ("mixed", True)):
        model = tuned(folder / name, start, files, mix=mix)
        history = read_metrics(folder / name / "metrics.jsonl")
        tests = json.loads((folder / name / "test.json").read_text("utf-8"))["fine_tuning"]["tests"]
        details[name] = {
            "tests": tests,
            "flores": flores(model),
            "learning_rate": model.recipe.training.learning_rate,
            "updates": history[-1]["step"],
            "minutes": round(history[-1]["seconds"] / 60, 1),
        }
        shown = {test["test"]: round(test["bleu_difference"], 1) for test in tests}
        sys.stdout.write(f"{name}: {shown}, FLORES {details[name]['flores']['bleu']:.1f}\n")
    record(details)


def record(details: dict[str, Any]) -> None:
    """Add the figures to those of the other parts."""
    before = read_result(NAME)
    gained, lost, lost_mixed = (
        details[case]["tests"][place]["bleu_difference"]
        for case, place in (("domain", 0), ("domain", 1), ("mixed", 1))
    )
    figures = {
        **before.get("figures", {}),
        "finetune_gain_in_domain": gained,
        "finetune_gain_in_domain_mixed": details["mixed"]["tests"][0]["bleu_difference"],
        "finetune_loss_general": -lost,
        "finetune_loss_general_mixed": -lost_mixed,
    }
    others = before.get("details", {})
    parts = {**others.get("parts", {}), "finetune": commit()}
    write_result(
        NAME,
        figures,
        command=before.get("command", "python bench/finetune.py"),
        packages=("transformers", "ctranslate2", "onnxruntime"),
        details={**others, "finetune": details, "parts": parts},
    )


def main() -> None:
    """Measure in the folder that was named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=Path, default=ROOT / "runs" / "finetune")
    folder = options.parse_args().runs
    folder.mkdir(parents=True, exist_ok=True)
    measure(folder)


if __name__ == "__main__":
    main()
