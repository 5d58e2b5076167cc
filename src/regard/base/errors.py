"""Errors that a user can mend: each says what is wrong, where, and what to do about it."""

import errno
import signal
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


REMEDIES = {
    errno.ENOSPC: ("there is no space left on the disk", "Free some, or choose another folder"),
    errno.EDQUOT: ("your share of the disk is used up", "Free some, or choose another folder"),
    errno.EROFS: ("the file system is read-only", "Choose another folder"),
    errno.EACCES: ("there is no permission", "Change its permissions, or choose another one"),
    errno.EPERM: ("this is not permitted", "Change its permissions, or choose another one"),
    errno.ENOENT: ("there is no such file or folder", "Check the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Check the path"),
    errno.EISDIR: ("this is a folder", "Name a file"),
    errno.EEXIST: ("this exists already", "Choose another name, or remove it"),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one"),
    errno.EMFILE: ("too many files are open", "Raise the limit, as with ulimit -n 4096"),
    errno.EIO: ("the disk does not work properly", "Check it, and copy your files elsewhere"),
}


def system_problem(error: OSError) -> str:
    """Return what the operating system refused, and what to do about it, in two sentences."""
    said = error.strerror or str(error) or type(error).__name__
    problem, remedy = REMEDIES.get(error.errno or 0, (said[:1].lower() + said[1:], "Try again"))
    path = Path(str(error.filename)) if error.filename else None
    if path is not None and path.name.endswith(".writing"):  # the temporary name of a new file
        path = path.parent
    return f"{f'{path}: ' if path else ''}{problem}. {remedy}."


class DamagedError(RunError):
    """A file of a run that is missing, cut short or changed since it was written."""

    def __init__(self, path: Path, problem: str):
        self.problem = f"{path} is missing or damaged ({problem})."
        super().__init__(
            f"{self.problem} `regard train --resume` goes on from the newest checkpoint that is "
            "whole; or train again."
        )


class NonFiniteError(RegardError):
    """Scores or weights that are infinite or not a number, of a model that has diverged."""


class Interrupted(KeyboardInterrupt):
    """A training that a signal has stopped; the message says how to go on."""

    def __init__(self, message: str = "", *, number: int = signal.SIGINT, step: int | None = None):
        super().__init__(message)
        self.number = number
        self.step = step
        """The update whose checkpoint was written because of the signal."""

    @property
    def exit_code(self) -> int:
        """The code that a shell expects of a program that a signal has ended."""
        return 128 + self.number
