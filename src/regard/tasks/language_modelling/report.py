"""The report of a language model: how well it predicts, what it writes and what it looks at."""

from collections.abc import Iterator
from pathlib import Path

from regard.base.errors import RegardError
from regard.models.inspection import parameter_count
from regard.pictures.head_grid import head_grid_svg
from regard.pictures.report import Heading, Passage, Picture, Section, Table, write_page
from regard.runs.report import learning_section, making_section, minutes
from regard.tasks.language_modelling.model import SAMPLES, TrainedLanguageModel
from regard.training.progress import read_metrics

SHOWN_SAMPLES = 3
SHOWN_TOKENS = 24
NAMES = {
    "loss": "loss (nats per token)",
    "perplexity": "perplexity",
    "bits_per_character": "bits a character",
    "bits_per_byte": "bits a byte",
}


def write_report(trained: TrainedLanguageModel, path: Path, *, title: str) -> None:
    """Write one HTML file about a trained language model."""
    write_page(path, title=title, sections=list(_sections(trained)))


def _sections(trained: TrainedLanguageModel) -> Iterator[Section]:
    name, history = trained.run.folder.name, read_metrics(trained.run.metrics)
    yield Heading("Validation")
    found = [[NAMES.get(key, key), f"{value:.4f}"] for key, value in trained.metrics.items()]
    size = parameter_count(trained.model.model)
    found += [["parameters", f"{size:,}"], ["minutes of training", f"{minutes(history):.2f}"]]
    yield Table("The best model on the validation text", ["measure", "value"], found)
    samples = read_metrics(trained.run.folder / SAMPLES)
    if samples:
        yield Heading("What it writes")
        for row in samples[-SHOWN_SAMPLES:][::-1]:
            yield Passage(f"After {row['step']:,} updates", f"{row['prompt']}{row['text']}")
        yield from _looks(trained, f"{samples[-1]['prompt']}{samples[-1]['text']}")
    yield from learning_section({name: history})
    yield from making_section(name, trained.model.model, trained.model.recipe)


def _looks(trained: TrainedLanguageModel, text: str) -> Iterator[Section]:
    """Yield what every head looks at in the beginning of a text, if the model has heads."""
    model = trained.model
    ids = model.text.encode(text)[:SHOWN_TOKENS]
    try:
        view = model.heads(model.text.decode(ids))
    except RegardError:  # a recurrent network, or no text
        return
    yield Heading("What it looks at")
    yield Picture(
        "Every layer and head; each token (a row) looks at itself and at those before it",
        head_grid_svg(view.weights.numpy(), source=view.pieces, target=view.pieces),
    )
