"""The exercises in the order of the lectures, and what the command does with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from regard.base.errors import SettingsError
from regard.base.files import write_file
from regard.lectures.exercises import attention, scores, search, sequences
from regard.lectures.exercises.exercise import Exercise, load_solution
from regard.settings.recipe import require_known

TOPICS = (
    "from gated units to attention",
    "attention in recurrent decoders",
    "self-attention and the Transformer",
    "positions",
    "graphs",
)
EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for topic in TOPICS
    for module in (sequences, scores, attention, search)
    for exercise in module.EXERCISES
    if exercise.topic == topic
}
MARK = "# exercise: "
WIDTH = 88


@dataclass(frozen=True)
class Verdict:
    """What a check found: nothing, or the first mistake."""

    exercise: Exercise
    mistake: str | None

    @property
    def passed(self) -> bool:
        """Whether the solution is right."""
        return self.mistake is None

    def __str__(self) -> str:
        return f"{self.exercise.name}: {self.mistake or 'right.'}"


def exercise_named(name: str) -> Exercise:
    """Return the exercise of this name."""
    require_known(name, list(EXERCISES), what="exercise")
    return EXERCISES[name]


def start(name: str, path: str | Path | None = None) -> Path:
    """Write the file that a student begins with, and return its path."""
    exercise = exercise_named(name)
    path = Path(path or f"{exercise.function}.py")
    if path.exists():
        raise SettingsError(f"{path} exists already: choose another name with --out.")
    lines = [f"# {line}" for line in wrap(f"{exercise.title}. {exercise.task}", WIDTH)]
    lines += ["#", f"# Check it with: regard exercise check {path}"]
    write_file(path, f"{MARK}{name}\n" + "\n".join(lines) + f"\n\n{exercise.starter}")
    return path


def check(path: str | Path, name: str | None = None) -> Verdict:
    """Check the solution in a file; the file says which exercise it is, or `name` does."""
    path = Path(path)
    exercise = exercise_named(name or _name_in(path))
    return Verdict(exercise, exercise.check(load_solution(path, exercise.function)))


def _name_in(path: Path) -> str:
    if not path.is_file():
        raise SettingsError(f"There is no file {path}.")
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline().strip()
    if not first.startswith(MARK):
        raise SettingsError(
            f"{path} does not begin with {MARK!r}: name the exercise with --name, or begin with "
            "`regard exercise start`."
        )
    return first.removeprefix(MARK).strip()
