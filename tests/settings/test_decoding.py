from __future__ import annotations

from typing import Any

import pytest

from regard.base.errors import SettingsError
from regard.settings.decoding import DecodingSettings
from regard.settings.recipe import validate

# Name of the case: what is asked for, what the message must say.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a name with a slip": ({"lenght_penalty": 1.0}, "Did you mean 'length_penalty'?"),
    "groups that do not fill the beam": (
        {"beam": 5, "diversity_groups": 2},
        r"beam \(5\) must be divisible by diversity_groups \(2\)",
    ),
    "no length is long enough": (
        {"min_length": 9, "max_length": 8},
        r"min_length \(9\) must not exceed max_length \(8\)",
    ),
    "no ratio is great enough": (
        {"min_ratio": 3.0},
        r"min_ratio \(3.0\) must not exceed max_ratio \(2.0\)",
    ),
    "sampling without sampling": (
        {"top_k": 5},
        r'top_k \(5\) has an effect only with method = "sample" or "mbr"',
    ),
    "diverse beams without beams": (
        {"method": "sample", "beam": 4, "diversity_groups": 2},
        r'diversity_groups \(2\) has an effect only with method = "beam"',
    ),
    "an unknown kind": ({"length_penalty_kind": "sqrt"}, "'none', 'average' or 'wu'"),
    "no mass to sample from": ({"method": "sample", "top_p": 0.0}, "top_p: .*greater than 0"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_done_is_refused(case: str) -> None:
    table, message = MISTAKES[case]
    with pytest.raises(SettingsError, match=message):
        validate(table, DecodingSettings, origin="decoding")


def test_the_defaults_are_a_beam_of_five_scored_by_the_mean() -> None:
    settings = DecodingSettings()
    assert (settings.method, settings.beam) == ("beam", 5)
    assert (settings.length_penalty_kind, settings.length_penalty) == ("average", 1.0)
