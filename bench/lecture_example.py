"""Record how a trained model reads one sentence, for the guide's figures without a run.

    regard demo
    python bench/lecture_example.py runs/demo/attention

It writes src/regard/lectures/example.json: words, weights with three digits, and the model.
"""

import argparse
import json
from pathlib import Path

import regard

SENTENCE = "Cats do not like dogs."
OUT = Path(__file__).parent.parent / "src" / "regard" / "lectures" / "example.json"


def main() -> None:
    """Write the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    model = regard.load(run)
    translation = model.translate(SENTENCE)
    seen = translation.by_word()
    record = {
        "made_by": "python bench/lecture_example.py runs/demo/attention",
        "model": model.recipe.title,
        "regard": regard.__version__,
        "source_text": SENTENCE,
        "target_text": translation.text,
        "source": list(seen.source),
        "target": list(seen.target),
        "weights": [[round(float(weight), 3) for weight in row] for row in seen.weights],
    }
    OUT.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
