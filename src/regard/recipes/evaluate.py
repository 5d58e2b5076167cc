"""A translator on a test set: BLEU, chrF, BLEU by length, and the error of its alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.corpora.parallel import SentencePair
from regard.recipes.align import align
from regard.recipes.loaded import LoadedTranslator, Translation
from regard.scoring.alignment import alignment_error_rate
from regard.scoring.bleu import Band, bleu_by_length, corpus_bleu, corpus_chrf
from regard.scoring.score import Score


@dataclass(frozen=True)
class Evaluation:
    """What a test found, with the translations behind it."""

    bleu: Score
    chrf: Score
    bands: list[Band]
    alignment: Score | None
    pairs: list[SentencePair]
    translations: list[Translation]

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the scores, and BLEU by the length of the sentence."""
        from regard.pictures.curves import length_curves_svg
        from regard.pictures.svg import notebook_picture

        scores = [self.bleu, self.chrf, *([self.alignment] if self.alignment else [])]
        drawn = length_curves_svg({"BLEU": self.bands})
        return "<br>".join(score._repr_html_() for score in scores) + notebook_picture(
            drawn, label="BLEU by the length of the source sentence"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values; the translations are left out."""
        return {
            "bleu": self.bleu.to_dict(),
            "chrf": self.chrf.to_dict(),
            "by_length": [band.to_dict() for band in self.bands],
            "alignment_error_rate": self.alignment.to_dict() if self.alignment else None,
        }


def evaluate(
    model: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    beam: int | None = None,
    bands: Sequence[tuple[int, int]] | None = None,
    tokenize: str = "13a",
) -> Evaluation:
    """Translate the sources, compare with the targets, and align the references.

    `tokenize` is BLEU's tokenizer: "none" where the texts are tokenised already.
    """
    sources, references = [p.source for p in pairs], [p.target for p in pairs]
    translations = model.translate(sources, beam=beam, attention=False)
    outputs = [translation.text for translation in translations]
    return Evaluation(
        bleu=corpus_bleu(outputs, references, tokenize=tokenize),
        chrf=corpus_chrf(outputs, references),
        bands=bleu_by_length(outputs, references, sources, bands=bands, tokenize=tokenize),
        alignment=_alignment(model, pairs),
        pairs=list(pairs),
        translations=translations,
    )


def _alignment(model: LoadedTranslator, pairs: Sequence[SentencePair]) -> Score | None:
    gold = [(pair, pair.alignment) for pair in pairs if pair.alignment is not None]
    if not gold or not model.attends:
        return None
    maps = align(model, [pair for pair, _ in gold])
    return alignment_error_rate([m.links() for m in maps], [links for _, links in gold])
