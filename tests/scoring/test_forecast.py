from __future__ import annotations

import numpy as np
import pytest

from regard.scoring.measures import score_forecast


def test_errors_are_compared_with_those_of_the_last_value() -> None:
    score = score_forecast(
        np.array([[1.0, 2.0], [3.0, 5.0]]),
        np.array([[1.0, 2.0], [3.0, 3.0]]),
        last=np.array([0.0, 3.0]),
        unit=10.0,
    )
    assert score.mse == pytest.approx(1.0)
    assert score.naive_mse == pytest.approx((1 + 4 + 0 + 0) / 4)
    assert score.windows == 2
    assert score.rmse == pytest.approx(10.0)
    assert score._repr_html_() == "<b>MSE 1</b>, of the naive forecast 1.25; 2 windows"
    assert score.to_dict() == {
        "mse": score.mse,
        "naive_mse": score.naive_mse,
        "windows": 2,
        "unit": 10.0,
        "rmse": score.rmse,
        "naive_rmse": score.naive_rmse,
    }
