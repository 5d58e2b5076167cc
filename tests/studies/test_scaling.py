"""Laws of scale: found again in losses that follow one, and small trainings that are compared."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from regard.base.errors import DataError, RegardError
from regard.cli.app import app
from regard.settings.language_models import CausalTransformerSettings
from regard.studies.scaling import (
    ScaledRun,
    ScalingLaw,
    exponent_intervals,
    exponents,
    fit_law,
    frontier,
    scaled_runs,
)
from regard.studies.small_models import Characters, MeanOverSeeds, TrainingBudget, train_small

LAW = ScalingLaw(floor=1.2, size_factor=8.0, data_factor=60.0, alpha=0.35, beta=0.4)
SIZES = (6_000, 25_000, 98_000, 393_000)
TOKENS = (65_536, 131_072, 262_144, 524_288)
TEXT = Characters.of("the cat sat on a mat. the dog lay on a rug. " * 60)


def runs(law: ScalingLaw = LAW, *, noise: float = 0.0) -> list[ScaledRun]:
    generator = np.random.default_rng(1)
    return [
        ScaledRun(0, n, d, seed, float(law.loss(n, d)) * (1 + noise * generator.normal()), 1.0)
        for seed in (1, 2, 3)
        for n in SIZES
        for d in TOKENS
    ]


def test_a_law_is_found_again() -> None:
    found = fit_law(runs())
    assert found.alpha == pytest.approx(LAW.alpha, rel=0.02)
    assert found.beta == pytest.approx(LAW.beta, rel=0.02)
    assert found.floor == pytest.approx(LAW.floor, rel=0.02)
    np.testing.assert_allclose(found.loss(SIZES, TOKENS), LAW.loss(SIZES, TOKENS), rtol=1e-3)


def test_the_intervals_hold_what_was_put_in() -> None:
    noisy = runs(noise=0.002)
    intervals = exponent_intervals(noisy, samples=30)
    for name, wanted in {"alpha": LAW.alpha, "beta": LAW.beta}.items():
        low, high = intervals[name]
        assert low < high
        assert low - 0.05 < wanted < high + 0.05
    assert set(intervals) == set(exponents(noisy))


def test_the_best_size_has_the_lowest_loss_of_its_compute() -> None:
    for compute in (1e11, 1e12):
        best = float(LAW.best_size(compute))
        sizes = best * np.array([0.8, 1.0, 1.25])
        losses = LAW.loss(sizes, compute / 6 / sizes)
        assert losses.argmin() == 1
    assert LAW.size_exponent == pytest.approx(0.4 / 0.75)


def test_the_frontier_is_what_no_cheaper_run_has_beaten() -> None:
    best = frontier(runs())
    for one, other in pairwise(best):
        assert one.compute <= other.compute
        assert one.loss > other.loss


def test_too_few_or_hopeless_runs_are_refused() -> None:
    with pytest.raises(RegardError, match="models of at least 3 sizes and 3 numbers of tokens"):
        fit_law(runs()[:8])
    rising = [ScaledRun(0, n, d, 1, -float(LAW.loss(n, d)), 1.0) for n in SIZES for d in TOKENS]
    with pytest.raises(RegardError, match="No scaling law fits"):
        fit_law(rising)


def test_a_grid_is_trained() -> None:
    heard: list[ScaledRun] = []
    found = scaled_runs(
        TEXT, widths=(8, 16), tokens=(1_024, 2_048), seeds=(1,), on_run=heard.append
    )
    assert found == heard
    assert [run.tokens for run in found] == [1_024, 2_048] * 2
    assert found[0].parameters < found[-1].parameters
    assert all(run.compute == 6 * run.parameters * run.tokens for run in found)


def test_a_small_training_is_a_function_of_its_seed() -> None:
    settings = CausalTransformerSettings.model_validate(
        {"layers": 1, "model_dim": 8, "heads": 2, "context": 16}
    )
    budget = TrainingBudget(updates=6, batch_size=4, measure_every=2)
    one, same = (train_small(settings, TEXT, budget) for _ in range(2))
    assert [point.loss for point in one.points] == [point.loss for point in same.points]
    assert [point.updates for point in one.points] == [2, 4, 6]
    assert one.last.tokens == 6 * 4 * 16
    assert one.last.loss < np.log(TEXT.vocab) + 0.5
    shares: list[float] = []
    train_small(settings, TEXT, TrainingBudget(seconds=0.05), on_update=shares.append)
    assert shares[-1] == 1.0


def test_a_text_that_is_too_short_is_refused() -> None:
    with pytest.raises(DataError, match="too few for windows of 64"):
        scaled_runs(Characters.of("short"), widths=(8,), tokens=(1_024,))


def test_intervals_over_seeds() -> None:
    found = MeanOverSeeds.of([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.high - found.mean == pytest.approx(4.303 / np.sqrt(3))
    assert MeanOverSeeds.of([5.0]).to_dict() == {"mean": 5.0, "low": 5.0, "high": 5.0}


def test_the_command_draws_the_law(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.studies.scaling.scaled_runs", lambda text, **_: runs(noise=0.01))
    folder = tmp_path_factory.mktemp("scaling")
    (folder / "book.txt").write_text("some text\n" * 50)
    command = ["study", "scaling", "--data", str(folder / "book.txt"), "--out"]
    found = CliRunner().invoke(app, [*command, str(folder / "law.png")])
    assert found.exit_code == 0, found.output
    assert "L = " in found.output
    assert "best_size_exponent" in found.output
    assert (folder / "law.png").stat().st_size > 10_000
