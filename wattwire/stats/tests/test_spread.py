"""Test that error variances are equal with and without the runs × runs matrix."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire import stats
from wattwire.stats.diagnostics import _lag_one_traces, _mixing

RUNS = 70


@pytest.fixture(params=[1, 7], ids=["one block", "incomplete blocks"])
def case(request):
    """Return a fit of three factors with some missing runs, and the levels of the factors."""
    rng = np.random.default_rng(3)
    factors = {
        "language": rng.choice(["a", "b", "c"], RUNS).tolist(),
        "rate": rng.choice([1, 2], RUNS).tolist(),
        "clients": rng.choice([1, 2, 4], RUNS).tolist(),
    }
    blocks = [at % request.param for at in range(RUNS)]
    scale = np.where(np.array(factors["language"]) == "b", 0.3, 0.1)
    fit = stats.fit_log(np.exp(scale * rng.normal(size=RUNS)), blocks, factors)
    assert isinstance(fit, stats.Fit)
    return fit, factors


def projection(fit):
    same_block = fit.block_of_run[:, None] == fit.block_of_run
    blocks = same_block / fit.block_sizes[fit.block_of_run]
    return np.eye(fit.run_count) - blocks - fit.design @ fit.covariance_base @ fit.design.T


def test_what_levels_share_is_the_sum_over_the_whole_matrix(case):
    fit, factors = case
    for levels in factors.values():
        names = list(dict.fromkeys(levels))
        member = np.array([[float(level == name) for name in names] for level in levels])
        whole = member.T @ projection(fit) ** 2 @ member
        assert _mixing(fit, member) == pytest.approx(whole, rel=1e-10)


def test_lag_one_traces_are_those_of_the_whole_matrix(case):
    fit, _ = case
    order = np.random.default_rng(4).permutation(RUNS)
    lag = 0.5 * (np.eye(RUNS, k=1) + np.eye(RUNS, k=-1))
    form = projection(fit)[np.ix_(order, order)] @ lag
    found = _lag_one_traces(fit, order)
    assert found == pytest.approx((np.trace(form), np.trace(form @ form)), rel=1e-10)


def test_factors_together_are_told_what_each_is_told_alone(case):
    fit, factors = case
    together = stats.spreads_between(fit, factors)
    assert list(together) == list(factors)
    for name, levels in factors.items():
        assert together[name] == stats.spread_between(fit, levels)
    assert isinstance(together["language"], stats.Spread)
    assert together["language"].noisiest == "b"
    assert stats.spreads_between(fit, {"cell": ["a"] * RUNS})["cell"] == stats.NotComputable(
        "only one level, so there is nothing to compare"
    )
