"""What there is to see of a text classifier: what decided on a text, and its confusion matrix."""

import json
import warnings

import numpy as np

from regard.base.errors import RunError, SettingsError
from regard.pictures.heat_map import draw_confusion
from regard.pictures.studies import draw_evidence
from regard.tasks.attention import AttentionHeads, view_of_arcs, view_of_heads, view_of_word
from regard.tasks.language_modelling.views import text_heads
from regard.tasks.looking import LookRequest, View
from regard.tasks.text_classification.model import Evidence, load

BAR = 24  # characters


def map_view(request: LookRequest) -> View:
    """Show which words of a text decided; without a text, which label is taken for which."""
    return confusion_view(request) if request.text is None else evidence_view(request)


def evidence_view(request: LookRequest) -> View:
    """Show how much each word of a text speaks for its label."""
    model = load(request.run)
    found = model.explain(request.sentence)
    count = model.unknown_count()
    count.add(found.unknown)
    if count.parts:
        warnings.warn(str(count), stacklevel=2)
    title = f"{found.label} ({found.probability:.0%}), rather than {found.other}"
    return View(
        record=found.to_dict(),
        save=lambda path: draw_evidence(found.words, found.values, path=path, title=title),
        text=_verdict(found),
        shown=lambda width: "\n".join([_verdict(found), "", *evidence_lines(found)]),
    )


def _verdict(found: Evidence) -> str:
    return f"{found.label} ({found.probability:.1%})"


def evidence_lines(found: Evidence) -> list[str]:
    """Return each word with what it does to the log-odds, drawn as a bar."""
    most = max((abs(value) for value in found.values), default=0.0) or 1.0
    width = max((len(word) for word in found.words), default=0)

    def bar(value: float) -> str:
        return ("█" if value > 0 else "░") * round(BAR * abs(value) / most)

    lines = [
        f"{word:<{width}}  {value:+6.2f}  {bar(value)}"
        for word, value in zip(found.words, found.values, strict=True)
    ]
    return [
        *lines,
        "",
        f"█ speaks for {found.label}, ░ for {found.other}: by how much their log-odds, "
        f"{found.log_odds:+.2f}, would fall without the word.",
    ]


def _request_heads(request: LookRequest) -> AttentionHeads:
    if request.part is not None:
        raise SettingsError("--part is for translators: a text classifier has one part only.")
    return text_heads(load(request.run).heads(request.sentence))


def heads_view(request: LookRequest) -> View:
    """Show all heads, those of a layer, or one."""
    heads = _request_heads(request)
    record = {"pieces": list(heads.source), "weights": heads.weights.tolist()}
    return view_of_heads(heads, request, record=record)


def word_view(request: LookRequest) -> View:
    """Show what one word of the text looks at."""
    return view_of_word(_request_heads(request), request)


def arcs_view(request: LookRequest) -> View:
    """Show the self-attention of the whole text."""
    return view_of_arcs(_request_heads(request), request)


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
