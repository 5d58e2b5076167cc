"""What looking at a run asks for, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class LookRequest:
    """What is to be looked at: a text or node, which part of the model, and which picture."""

    run: Path
    text: str | None = None
    pieces: bool = False
    part: str | None = None
    layer: int | None = None
    head: int | None = None
    word: str | None = None
    node: str | None = None
    embeddings: str | None = None
    step: int | None = None
    where: str | None = None

    @property
    def sentence(self) -> str:
        """The text that was given."""
        if self.text is None:
            raise SettingsError("Give a sentence to look at.")
        return self.text


@dataclass(frozen=True, kw_only=True)
class View:
    """What a look has found: plain values, a picture to save, and text for a terminal."""

    record: Mapping[str, Any]
    save: Callable[[Path], None]
    text: str = ""
    """What is printed with a picture, as the translation that it shows."""
    shown: Callable[[int], Any] | None = None
    """Returns what a terminal of this width shows in place of a picture."""
    remedy: str = "Name a picture to write with --out, or ask for --json."
    """The message where nothing can be shown."""

    def _repr_html_(self) -> str:
        from tempfile import TemporaryDirectory

        from regard.pictures.svg import notebook_lines, notebook_picture

        shown = notebook_lines(("", self.text)) if self.text else ""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "view.svg"
            try:
                self.save(path)
            except SettingsError:  # a table, which has no picture
                return shown
            return shown + notebook_picture(path.read_text(encoding="utf-8"), label=self.text)
