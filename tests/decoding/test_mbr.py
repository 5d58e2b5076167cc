from __future__ import annotations

from regard.decoding.sampling import expected_utilities


def test_the_output_most_like_all_draws_is_first() -> None:
    calls = []

    def utility(output: str, reference: str) -> float:
        calls.append((output, reference))
        return float(len(set(output) & set(reference)))

    found = expected_utilities(["ab", "bc", "ab", "xy"], utility)
    assert found == {"ab": (2 + 1 + 2 + 0) / 4, "bc": (1 + 2 + 1) / 4, "xy": 2 / 4}
    assert list(found) == ["ab", "bc", "xy"]
    assert len(calls) == 9  # each pair of different texts once
