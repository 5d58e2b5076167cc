"""Errors that a user can mend: each says what is wrong, where, and what to do about it."""

from pathlib import Path


class RegardError(Exception):
    """A user's mistake in one clear sentence; the command line prints it and exits with 2."""


class SettingsError(RegardError):
    """A recipe, an override or an option that cannot be used."""


class DataError(RegardError):
    """A corpus or input file that cannot be used; names the file, and where it can the line."""

    def __init__(self, problem: str, *, path: Path | str, line: int | None = None, remedy: str):
        self.path = Path(path)
        self.line = line
        self.remedy = remedy
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}. {remedy}")


class RunError(RegardError):
    """A run folder or checkpoint that cannot be read, or must not be overwritten."""
