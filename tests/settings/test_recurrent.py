"""Settings of recurrent translators and language models."""

from typing import Any

import pytest
from pydantic import ValidationError

from regard.base.errors import SettingsError
from regard.models.build import build_translator
from regard.settings.language_models import RecurrentLanguageModelSettings
from regard.settings.models import RecurrentSettings

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "cell": ({"cell": "gru", "cell_rank": 4}, 'are for cell = "lstm" (given: "gru")'),
    "both": ({"cell_rank": 4, "cell_groups": 2}, "cell_rank and cell_groups exclude each other"),
    "hidden": (
        {"hidden": 10, "cell_groups": 4},
        "hidden (10) must be divisible by cell_groups (4)",
    ),
    "embedding": (
        {"hidden": 8, "embedding": 6, "cell_groups": 4},
        "embedding (6) must be divisible by cell_groups (4)",
    ),
}


@pytest.mark.parametrize("kind", [RecurrentSettings, RecurrentLanguageModelSettings])
@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_cells_that_do_not_fit_are_refused(
    kind: Any, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        kind(**changes)
    assert message in str(caught.value)


def test_a_shared_matrix_is_whole() -> None:
    with pytest.raises(ValidationError, match="leave out cell_rank and cell_groups"):
        RecurrentSettings(decoder="shared", bidirectional=False, cell_rank=4)


def test_each_direction_is_divided_into_groups() -> None:
    settings = RecurrentSettings(hidden=8, embedding=8, cell_groups=8)
    with pytest.raises(SettingsError, match=r"hidden \(4\) must be divisible by cell_groups \(8\)"):
        build_translator(settings, source_vocab=9, target_vocab=9)
