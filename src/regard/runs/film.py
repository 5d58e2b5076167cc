"""A film of a training: what the model looks at, kept after a few updates as small JSON.

`training.film = true` writes film.jsonl into the run, a line a frame: at updates 0, 25, 50, 75, 100
and then about four times while the number of updates doubles, and at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from regard.base.files import write_file
from regard.training.progress import Progress
from regard.training.update import UpdateResult

FILM = "film.jsonl"
FIRST, SPACING = 100, 25
MOST_BYTES = 64_000_000  # of a film that is shown


def is_frame(step: int) -> bool:
    """Return whether the film has a frame after this update."""
    doublings = max(0, (max(1, step) - 1) // FIRST).bit_length()
    return step % (SPACING << max(0, doublings - 1)) == 0


class FilmLog:
    """Writes frames while a training runs; the training itself is the same with and without."""

    def __init__(self, path: Path, model: torch.nn.Module, frame: Callable[[], list[Any]]):
        self._path = path
        self._model = model
        self._frame = frame

    def starting(self, start: Any) -> None:
        """Write the frame of the untrained model."""
        self._write(0, 0.0)

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Write a frame if it is time for one."""
        if is_frame(progress.step):
            self._write(progress.step, progress.seconds)

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Do nothing at a validation."""

    def finished(self, progress: Progress, reason: str) -> None:
        """Write the last frame."""
        if not is_frame(progress.step):
            self._write(progress.step, progress.seconds)

    def noted(self, line: str) -> None:
        """Do nothing with a note."""

    def _write(self, step: int, seconds: float) -> None:
        """Write a frame in place of any that was written after this step before a crash."""
        random, training = torch.get_rng_state(), self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                texts = self._frame()
        finally:
            self._model.train(training)
            torch.set_rng_state(random)
        frames = [frame for frame in film_of(self._path.parent) if frame["step"] < step]
        frames.append({"step": step, "seconds": round(seconds, 1), "texts": texts})
        lines = (json.dumps(frame, ensure_ascii=False) + "\n" for frame in frames)
        write_file(self._path, "".join(lines))


def film_of(run: Path) -> list[dict[str, Any]]:
    """Return the frames of a run in their order; none if it has no film, or one that is damaged."""
    path = run / FILM
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return []
    frames = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(frame, dict) and type(frame.get("step")) is int and _is_list(frame, "texts"):
            frames.append(frame)
    return sorted(frames, key=lambda frame: int(frame["step"]))


def _is_list(frame: Mapping[str, Any], name: str) -> bool:
    return isinstance(frame.get(name), list)
