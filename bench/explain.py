"""Methods of explanation, graded on the demo's models, and compared with inseq.

    pip install -c constraints.txt inseq
    python bench/explain.py --demo runs/demo

The runs are those of `regard demo --out runs/demo`. AER is the alignment error in percent; deletion
and insertion are areas under the probability of the target token. `inseq_difference` is the largest
difference between our numbers and those of inseq (gradient x input, integrated gradients and
occlusion of all tokens) on an untrained Transformer that was exported to Hugging Face's form.
Without inseq in the environment, the figure of the last run that had it is kept.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.studies.explanations import grade_explanations
from result import read_result, write_result


def main() -> None:
    """Measure and write bench/results/explain.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="the folder of regard demo")
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--only-inseq", action="store_true", help="keep the grades on record")
    options = parser.parse_args()
    record = read_result("explain")
    figures = dict(record.get("figures", {}))
    details = dict(record.get("details", {}))
    for name in () if options.only_inseq else ("attention", "transformer"):
        found = grade_explanations(options.demo / name, sentences=options.sentences)
        details[name] = found.to_dict()
        print(f"{name}\n{found}\n")
        for grade in found.grades:
            key = f"{name}_{grade.method.replace('-', '_')}"
            if grade.alignment_error is not None:
                figures[f"{key}_alignment_error"] = round(grade.alignment_error, 2)
            figures[f"{key}_deletion"] = round(grade.deletion.value, 4)
            figures[f"{key}_insertion"] = round(grade.insertion.value, 4)
    if find_spec("inseq") is not None:
        from inseq_peer import largest_differences

        with TemporaryDirectory() as folder:
            differences = largest_differences(Path(folder))
        details["inseq_differences"] = differences
        figures["inseq_difference"] = max(differences.values())
        print(differences)
    command = "python bench/explain.py --demo runs/demo"
    print(write_result("explain", figures, command=command, packages=("inseq", "captum"),
                       details=details))  # fmt: skip


if __name__ == "__main__":
    main()
