"""A model made ready to translate with the options of the command line, and short texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from regard.cli.options import as_json, print_json
from regard.cli.translate_options import EngineChoice, QuantizationChoice
from regard.engines.choice import PlannedSearch, choose_engine
from regard.scoring.alignment import format_links
from regard.tasks.translation.constraints import TranslationConstraints
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.results import Translation


@dataclass(frozen=True)
class ReadyModel:
    """A loaded run, and the options of the search that were asked for."""

    run: Path
    translator: LoadedTranslator
    changes: dict[str, Any]
    n_best: int
    quantization: str | None
    constraints: TranslationConstraints

    @property
    def attends(self) -> bool:
        """Whether there is attention to align by."""
        return self.translator.attends

    def stream(
        self, *, attention: bool, scores: bool = False
    ) -> Callable[[Sequence[str]], Iterable[tuple[int, Translation]]]:
        """Return the function that translates sentences."""

        def translate(texts: Sequence[str]) -> Iterable[tuple[int, Translation]]:
            return self.translator.stream(
                texts,
                n_best=self.n_best,
                attention=attention,
                scores=scores or self.n_best > 1,
                constraints=(
                    [self.constraints.for_sentence(text) for text in texts]
                    if self.constraints
                    else None
                ),
                **self.changes,
            )

        return translate

    def terms(self) -> dict[str, Any]:
        """Return what a translation depends on, beside its source."""
        from regard import __version__
        from regard.documents.segments import run_fingerprint

        return {
            "version": __version__,
            "model": run_fingerprint(self.run),
            "search": {**self.changes, "n_best": self.n_best, "quantization": self.quantization},
            "constraints": self.constraints.to_dict(),
        }


def ready_model(
    run: Path,
    changes: dict[str, Any],
    *,
    constraints: TranslationConstraints,
    n_best: int,
    engine: EngineChoice,
    quantization: QuantizationChoice | None,
    threads: int | None,
    verbose: bool,
    measure: bool,
) -> ReadyModel:
    """Load a run and choose its engine; a short text is not worth a measurement."""
    model = load(run)
    if n_best > 1:
        width = changes.get("beam") or model.recipe.decoding.beam
        changes = {**changes, "beam": max(width, n_best)}
    settings = model.decoding(n_best=n_best, **changes)
    model.engine = choose_engine(
        model,
        PlannedSearch(settings, constrained=bool(constraints), short=not measure),
        folder=run,
        engine=engine.value,
        threads=threads,
        quantization=quantization.value if quantization else None,
        report=(lambda sentence: typer.echo(sentence, err=True)) if verbose else None,
    )
    return ReadyModel(run, model, changes, n_best, quantization and quantization.value, constraints)


def translate_text(
    model: ReadyModel,
    lines: Sequence[str],
    *,
    output: Path | None,
    align: Path | None,
    json: bool,
) -> None:
    """Translate lines that fit into memory, and print or write them."""
    stream = model.stream(attention=align is not None or json, scores=json)
    results = dict(stream(lines))
    found = [results[index] for index in range(len(lines))]
    if align is not None:
        write_file(align, "".join(f"{alignment(translation)}\n" for translation in found))
    if json and output is None:
        print_json([translation.to_dict() for translation in found])
        return
    if json:
        written = as_json([translation.to_dict() for translation in found]) + "\n"
    else:
        written = "".join(f"{shown(translation, model.n_best)}\n" for translation in found)
    if output is not None:
        write_file(output, written)
    else:
        typer.echo(written, nl=False)


def shown(translation: Translation, n_best: int) -> str:
    """Return the lines of one sentence; n-best lists carry their scores, as `score ||| text`."""
    if n_best == 1:
        return translation.text
    every = (translation, *translation.alternatives)
    return "\n".join(f"{each.score:.4f} ||| {each.text}" for each in every)


def alignment(translation: Translation) -> str:
    """Return the word alignment of a translation, empty if nothing is known."""
    return format_links(translation.attention.links()) if translation.attention else ""


def write_file(path: Path, content: str) -> None:
    """Write to a temporary name first, so that a file is complete or not there."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text(content, encoding="utf-8", newline="")
    temporary.replace(path)
