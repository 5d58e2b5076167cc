"""Methods of explanation, graded on the demo's models, and compared with inseq.

    python bench/explain.py --demo runs/demo
    python bench/inseq_peer.py --out inseq.json              # where inseq is installed
    python bench/explain.py --inseq inseq.json               # takes it over, keeps the grades

The runs are those of `regard demo --out runs/demo`. AER is the alignment error in percent; deletion
and insertion are areas under the probability of the target token. `inseq_difference` is the largest
difference between our numbers and those of inseq (gradient x input, integrated gradients and
occlusion of all tokens) on an untrained Transformer that was exported to Hugging Face's form.
inseq may need an environment of its own, so it is compared by a script that writes a file; the
versions in that file are those of its environment.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from regard.studies.explanations import grade_explanations
from result import read_result, write_result


def main() -> None:
    """Measure and write bench/results/explain.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, help="the folder of regard demo")
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--inseq", type=Path, help="what bench/inseq_peer.py has written")
    options = parser.parse_args()
    record = read_result("explain")
    figures = dict(record.get("figures", {}))
    details = dict(record.get("details", {}))
    for name in ("attention", "transformer") if options.demo else ():
        found = grade_explanations(options.demo / name, sentences=options.sentences)
        details[name] = found.to_dict()
        print(f"{name}\n{found}\n")
        for grade in found.grades:
            key = f"{name}_{grade.method.replace('-', '_')}"
            if grade.alignment_error is not None:
                figures[f"{key}_alignment_error"] = round(grade.alignment_error, 2)
            figures[f"{key}_deletion"] = round(grade.deletion.value, 4)
            figures[f"{key}_insertion"] = round(grade.insertion.value, 4)
    if options.inseq:
        found = json.loads(options.inseq.read_text(encoding="utf-8"))
        details["inseq_differences"] = found["differences"]
        details["inseq_versions"] = found["versions"]
        figures["inseq_difference"] = max(found["differences"].values())
        print(found["differences"])
    command = "python bench/explain.py --demo runs/demo --inseq inseq.json"
    print(write_result("explain", figures, command=command, details=details))


if __name__ == "__main__":
    main()
