from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import DataError, RegardError, RunError, SettingsError


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (None, "a.en: the file is empty. Fill it."),
        (7, "a.en, line 7: the file is empty. Fill it."),
    ],
)
def test_a_data_error_says_where_what_and_what_to_do(line: int | None, message: str) -> None:
    error = DataError("the file is empty", path="a.en", line=line, remedy="Fill it.")
    assert str(error) == message
    assert (error.path, error.line, error.remedy) == (Path("a.en"), line, "Fill it.")


@pytest.mark.parametrize("kind", [SettingsError, DataError, RunError])
def test_every_user_error_can_be_caught_as_one(kind: type[Exception]) -> None:
    assert issubclass(kind, RegardError)
