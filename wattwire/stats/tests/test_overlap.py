"""Test the level at which disjoint intervals show a difference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from wattwire import stats


@pytest.mark.parametrize("count", [2, 5, 10])
def test_intervals_of_one_true_value_are_disjoint_at_the_stated_rate(count: int) -> None:
    confidence = stats.disjoint_confidence(count, 0.05)
    margin = special.ndtri(0.5 + confidence / 2)
    estimates = np.random.default_rng(count).standard_normal((20_000, count))
    rate = float(np.mean(np.ptp(estimates, axis=1) > 2.0 * margin))
    assert rate == pytest.approx(0.05, abs=0.006)


def test_more_intervals_need_a_higher_level_and_one_has_none() -> None:
    levels = [stats.disjoint_confidence(count, 0.05) for count in (2, 5, 10, 50)]
    assert levels == sorted(levels)
    assert levels[0] == pytest.approx(0.834, abs=1e-3)
    with pytest.raises(ValueError, match="at least 2"):
        stats.disjoint_confidence(1, 0.05)


def test_the_limit_of_two_equal_runs_is_that_of_their_own_treatment() -> None:
    rng = np.random.default_rng(1)
    spreads = {"calm": 0.01, "wild": 1.0, "other": 0.01}
    blocks = [block for block in range(200) for _ in spreads]
    names = [name for _ in range(200) for name in spreads]
    values = np.exp([rng.normal(0.0, spreads[name]) for name in names])
    fit = stats.fit_log(values, blocks, {"level": names})
    assert isinstance(fit, stats.Fit)
    limit = stats.repeat_limit(fit, ("wild",), 0.95)
    pooled = 1.96 * np.sqrt(2.0 * fit.variance)
    # Two runs of "wild" differ by more than 1.96·√2 in 5 % of blocks; the pooled variance is about
    # half of its own.
    assert limit == pytest.approx(1.96 * np.sqrt(2.0), rel=0.25)
    assert limit > 1.2 * pooled
