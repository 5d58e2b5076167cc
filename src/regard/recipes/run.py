"""A run: a folder that is complete in itself.

recipe.toml        how it was made
source.*, target.* the tokenizers, as plain files
metrics.jsonl      the course of the training
checkpoints/       to continue from
best/              the weights that validation chose
test.json          scores on the test part, with their signatures
report.html        all of it as pictures
examples.txt       a few sentences to try it with
"""

from __future__ import annotations

import shutil
from pathlib import Path

from regard.base.errors import RunError
from regard.base.protocols import Tokenizer
from regard.settings.read import read_recipe
from regard.settings.schema import AnyRecipe, Recipe, expect
from regard.settings.write import recipe_text
from regard.text.tokenizers import load_tokenizer

RECIPE = "recipe.toml"


class Run:
    """The files of one run."""

    def __init__(self, folder: Path):
        self.folder = folder

    @staticmethod
    def require_free(folder: Path) -> None:
        """Refuse a folder in which something would be overwritten."""
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder} is a file; choose another folder with --out.")
        if (folder / RECIPE).exists():
            raise RunError(
                f"{folder} already holds a run: continue it with --resume, or choose another "
                "folder with --out."
            )
        if folder.exists() and any(folder.iterdir()):
            raise RunError(f"{folder} is not empty; choose another folder with --out.")

    @classmethod
    def create(cls, folder: Path, recipe: Recipe) -> Run:
        """Start a run in a new or empty folder; what is there is never overwritten."""
        cls.require_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RECIPE).write_text(recipe_text(recipe), encoding="utf-8")
        return cls(folder)

    def discard(self) -> None:
        """Remove a run that has no checkpoint yet, so that its folder can be used again."""
        if not (self.folder / "checkpoints").exists():
            shutil.rmtree(self.folder)

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open a run that exists."""
        if not folder.is_dir():
            raise RunError(f"There is no run at {folder}: no such folder.")
        if not (folder / RECIPE).is_file():
            raise RunError(f"There is no run at {folder}: it has no {RECIPE}.")
        return cls(folder)

    def recipe(self, kind: type[AnyRecipe]) -> AnyRecipe:
        """Return the recipe that the run was made with, which must be of this kind."""
        return expect(read_recipe(self.folder / RECIPE), kind)

    @property
    def task(self) -> str:
        """What the run was trained for."""
        return read_recipe(self.folder / RECIPE).task

    def rewrite(self, recipe: Recipe) -> None:
        """Record the recipe that a resumed training or a tuned search goes on with."""
        (self.folder / RECIPE).write_text(recipe_text(recipe), encoding="utf-8")

    def _repr_html_(self) -> str:
        """Show itself in a notebook: what was trained, how it learned and what the test found."""
        from regard.recipes.run_page import run_html

        return run_html(self)

    @property
    def metrics(self) -> Path:
        """The course of the training, a line of JSON a row."""
        return self.folder / "metrics.jsonl"

    def has_tokenizers(self) -> bool:
        """Return whether both tokenizers were written."""
        return all((self.folder / f"{side}.json").is_file() for side in ("source", "target"))

    def save_tokenizers(self, source: Tokenizer, target: Tokenizer) -> None:
        """Write both tokenizers; the source's last file is written last, as a sign of both."""
        target.save(self.folder, "target")
        source.save(self.folder, "source")

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the source and the target tokenizer."""
        return load_tokenizer(self.folder, "source"), load_tokenizer(self.folder, "target")

    def weights(self) -> Path:
        """Return the folder of the weights to use: the best, or else the newest checkpoint."""
        newest = sorted((self.folder / "checkpoints").glob("step-*"))[-1:]
        for folder in (self.folder / "best", *newest):
            if folder.is_dir():
                return folder
        raise RunError(
            f"{self.folder} has no weights yet: its training was stopped before the first "
            "checkpoint. Continue it with --resume."
        )
