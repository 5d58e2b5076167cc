from __future__ import annotations

import pytest
import torch

from regard.decoding.search import LengthPenalty


@pytest.mark.parametrize(
    ("penalty", "wanted"),
    [
        (LengthPenalty("none", 1.0), [1, 1, 1]),
        (LengthPenalty("average", 1.0), [1, 4, 7]),
        (LengthPenalty("average", 0.5), [1, 2, 7**0.5]),
        (LengthPenalty("wu", 1.0), [1, 1.5, 2]),
        (LengthPenalty("wu", 2.0), [1, 2.25, 4]),
    ],
    ids=str,
)
def test_divisors(penalty: LengthPenalty, wanted: list[float]) -> None:
    assert penalty.divisor(torch.tensor([1, 4, 7])).tolist() == pytest.approx(wanted)


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"length penalty \(sqrt\) must be one of: none, average"):
        LengthPenalty("sqrt")
    with pytest.raises(ValueError, match=r"alpha \(-1.0\) must not be negative"):
        LengthPenalty("wu", -1.0)
