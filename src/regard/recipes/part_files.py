"""Output files that grow under hidden names, with a journal by which an interrupted work goes on.

`.out.txt.part` holds what is done and `.out.txt.part.json` how far that is. The journal is written
after the lines that it speaks of are on the disk, under a temporary name that then takes its place,
so at any moment, also of a crash, it is true. What the part has beyond it is cut off on return.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from regard.base.errors import RunError
from regard.corpora.lines import Position

VERSION = 1


class PartFiles:
    """The outputs of one work; `terms` is all that the result depends on, beside the input."""

    def __init__(self, paths: Sequence[Path], *, terms: Mapping[str, Any]):
        self._paths = list(paths)
        self._terms = json.loads(json.dumps(terms))
        self._files: list[BinaryIO] = []

    def __enter__(self) -> PartFiles:
        try:
            for part in self.parts:
                self._files.append(part.open("r+b" if part.exists() else "w+b"))
                self._lock(part)
        except OSError as error:
            self._close()
            raise RunError(f"Cannot write {error.filename}: {error.strerror}.") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.begun:  # there is nothing to go on from
            for part in self.parts:
                part.unlink(missing_ok=True)
        self._close()

    @property
    def parts(self) -> list[Path]:
        """The unfinished files."""
        return [path.with_name(f".{path.name}.part") for path in self._paths]

    @property
    def journal(self) -> Path:
        """The file that says how far the work is."""
        part = self.parts[0]
        return part.with_name(f"{part.name}.json")

    def resume(self) -> Position | None:
        """Return how far an earlier work with the same terms came; None if there is none."""
        record = self._record()
        if record is None or record["terms"] != self._terms:
            return None
        for file, size in zip(self._files, record["sizes"], strict=True):
            if file.seek(0, os.SEEK_END) < size:
                return None
            file.truncate(size)
            file.seek(size)
        return Position(**record["position"])

    @property
    def begun(self) -> bool:
        """Whether an earlier work has left something."""
        return self.journal.exists()

    def restart(self) -> None:
        """Forget what an earlier work has done."""
        self.journal.unlink(missing_ok=True)
        for file in self._files:
            file.seek(0)
            file.truncate()

    def write(self, texts: Sequence[str]) -> None:
        """Write a text to each output."""
        for file, text in zip(self._files, texts, strict=True):
            file.write(text.encode("utf-8"))

    def commit(self, position: Position) -> None:
        """Put on record that everything up to this position of the input is done."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        record = {
            "version": VERSION,
            "terms": self._terms,
            "position": asdict(position),
            "sizes": [file.tell() for file in self._files],
        }
        temporary = self.journal.with_name(f"{self.journal.name}.writing")
        with temporary.open("w", encoding="utf-8") as journal:
            json.dump(record, journal, ensure_ascii=False, indent=1)
            journal.flush()
            os.fsync(journal.fileno())
        temporary.replace(self.journal)

    def finish(self) -> None:
        """Give the outputs their names; they are complete."""
        for file, part, path in zip(self._files, self.parts, self._paths, strict=True):
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        self.journal.unlink(missing_ok=True)

    def _record(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self.journal.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        known = isinstance(record, dict) and record.get("version") == VERSION
        return record if known and len(record["sizes"]) == len(self._paths) else None

    def _lock(self, part: Path) -> None:
        """Keep a second process from writing into the same part."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(self._files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise RunError(
                f"Another process is writing {part}: wait for it, or choose another output."
            ) from None

    def _close(self) -> None:
        for file in self._files:
            file.close()
        self._files = []
