"""Test Welch's interval on the logarithms of unpaired runs; degenerate data are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire.stats import Interval, NotComputable, TooFew, welch_difference, welch_ratio

UPPER = [110.0, 121.0, 115.0, 108.0, 130.0]
LOWER = [100.0, 101.0, 99.0, 104.0]


def test_it_is_welchs_interval_of_the_logarithms():
    found = welch_ratio(UPPER, LOWER, 0.99)
    logs = scipy_stats.ttest_ind(np.log(UPPER), np.log(LOWER), equal_var=False)
    wanted = logs.confidence_interval(0.99)
    assert isinstance(found, Interval)
    assert np.log([found.low, found.high]) == pytest.approx([wanted.low, wanted.high], rel=1e-9)
    assert found.estimate == pytest.approx(np.exp(np.mean(np.log(UPPER)) - np.mean(np.log(LOWER))))
    assert (found.level, found.count) == (0.99, 9)


def test_the_other_way_round_it_is_the_reciprocal_and_units_cancel():
    one, other = welch_ratio(UPPER, LOWER), welch_ratio(LOWER, UPPER)
    scaled = welch_ratio([1e-6 * v for v in UPPER], [1e-6 * v for v in LOWER])
    assert isinstance(one, Interval) and isinstance(other, Interval)
    assert isinstance(scaled, Interval)
    assert other.low == pytest.approx(1 / one.high)
    assert (scaled.low, scaled.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_its_limits_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(20)
    held = 0
    for _ in range(400):
        upper, lower = np.exp(rng.normal(0.2, 0.1, 5)), np.exp(rng.normal(0.0, 0.02, 7))
        found = welch_ratio(upper, lower)
        assert isinstance(found, Interval)
        held += found.low < np.exp(0.2) < found.high
    assert 365 <= held <= 397  # 380 ± 3.5 standard deviations


@pytest.mark.parametrize(
    ("upper", "lower", "says"),
    [
        ([1.0], [1.0, 2.0], "there is only 1 run"),
        ([], [], "there are only 0 runs"),
        ([1.0, np.inf], [1.0, 2.0], "unbounded in 1 of 4"),
        ([1.0, 0.0], [1.0, np.nan], "zero, negative or missing in 2 of 4"),
        ([3.0, 3.0], [3.0, 3.0], ""),
    ],
)
def test_what_means_nothing_is_no_number(upper, lower, says):
    found = welch_ratio(upper, lower)
    assert isinstance(found, (TooFew, NotComputable))
    assert says in str(found)


def test_a_difference_is_welchs_interval_of_the_values_and_takes_zeros():
    upper, lower = [0.1, 0.12, 0.09], [0.0, 0.0, 0.0, 0.01]
    found = welch_difference(upper, lower, 0.99)
    test = scipy_stats.ttest_ind(upper, lower, equal_var=False)
    wanted = test.confidence_interval(0.99)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9)
    assert isinstance(welch_difference([0.1], lower), TooFew)
    assert isinstance(welch_difference([0.1, 0.1], [0.0, 0.0]), NotComputable)
