"""What there is to see of a text classifier: which label is taken for which."""

import json

import numpy as np

from regard.base.errors import RunError
from regard.pictures.heat_map import draw_confusion
from regard.tasks import LookRequest, View


def confusion_view(request: LookRequest) -> View:
    """Show which label a classifier takes for which, as its test found."""
    path = request.run / "test.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        counts = np.array(record["confusion"], dtype=np.int64)
        labels = [str(label) for label in record["labels"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is missing or damaged: train again.") from error
    return View(record=record, save=lambda out: draw_confusion(counts, labels=labels, path=out))
