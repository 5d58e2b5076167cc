from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.settings.recipe import require_known, suggestion


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hiden", "Did you mean 'hidden'?"),
        ("layer", "Did you mean 'layers'?"),
        ("zzz", "Known: hidden, layers."),
    ],
)
def test_the_nearest_name_or_all(name: str, sentence: str) -> None:
    assert suggestion(name, ["layers", "hidden"]) == sentence


def test_known_names_pass_and_others_are_refused() -> None:
    require_known("grammar", ["grammar"], what="corpus")
    with pytest.raises(SettingsError, match=r"Unknown corpus 'gramar'\. Did you mean 'grammar'\?"):
        require_known("gramar", ["grammar"], what="corpus")
