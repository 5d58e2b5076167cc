"""Every setting that a task defines has one line of documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regard.tasks import TASKS, task_of

LONGEST = 200


def tables_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the tables that a field may hold: one, several by family, or none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [table for part in get_args(annotation) for table in tables_in(part)]


def settings_of(schema: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in schema.model_fields.items():
        tables = tables_in(field.annotation)
        for table in tables:
            if table.__module__.startswith("regard.tasks."):
                assert table.__doc__, table
                yield from settings_of(table, f"{path}{name}.")
        if not tables and name != "task":
            yield path + name, field


@pytest.mark.parametrize("name", TASKS)
def test_every_setting_is_described_in_one_line(name: str) -> None:
    missing = [
        key
        for key, field in settings_of(task_of(name).schema)
        if not field.description or "\n" in field.description or len(field.description) > LONGEST
    ]
    assert not missing
