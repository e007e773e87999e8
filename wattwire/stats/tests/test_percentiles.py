"""Test percentiles: required sample sizes, losses, dependence, and the distribution's curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats.series import dependence
from wattwire.stats.series.percentiles import _binomial_ranks, stable_size, two_sided_size


@pytest.mark.parametrize(
    ("share", "two_sided", "stable"),
    [(0.99, 368, 6_086), (0.999, 3_688, 61_405), (0.9999, 36_888, 614_595)],
)
def test_the_sizes_are_those_laid_down(share, two_sided, stable) -> None:
    assert two_sided_size(share) == two_sided
    assert stable_size(share) == stable


def test_nearest_rank_on_one_to_hundred() -> None:
    values = np.arange(1.0, 101.0)
    assert stats.nearest_rank(values, 0.5) == 50
    assert stats.nearest_rank(values, 0.99) == 99
    assert stats.nearest_rank(values, 0.991) == 100


def test_a_median_of_independent_values_and_its_order_statistics() -> None:
    values = np.random.default_rng(1).permutation(np.arange(1.0, 102.0))
    found = stats.percentile(values, 0.5)
    assert isinstance(found, stats.Percentile)
    assert found.interval.estimate == 51
    # Binomial(101, 0.5): the 41st and 61st of 101 are the 95 % limits of the median, ± one rank.
    assert 38 <= found.interval.low <= 42
    assert 60 <= found.interval.high <= 64
    assert found.interval.level >= 0.95


@pytest.mark.parametrize("count", [1, 7, 367, 368, 20_011, 2_000_003])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_ranks_of_a_percentile_are_the_quantiles_of_the_binomial(count, share, confidence) -> None:
    low, high, level = _binomial_ranks(count, share, confidence)
    binomial = scipy_stats.binom(count, share)
    tail = (1 - confidence) / 2
    assert (low, high) == (binomial.ppf(tail), binomial.ppf(1 - tail) + 1)
    assert level == pytest.approx(binomial.cdf(high - 1) - binomial.cdf(low - 1), rel=1e-12)


def test_a_tail_percentile_of_too_few_messages_is_refused_with_what_it_takes() -> None:
    found = stats.percentile(np.random.default_rng(1).random(367), 0.99)
    assert found == stats.TooFew(367, 1_000, "messages")
    assert str(found) == "there are only 367 messages, and at least 1\u202f000 are needed"


def test_few_clusters_above_are_refused_even_with_enough_messages() -> None:
    values = np.random.default_rng(4).random(2_000)
    values[500:530] += 10.0  # a single burst contains the whole tail
    found = stats.percentile(values, 0.99)
    assert isinstance(found, stats.TooFew)


def test_a_stable_tail_needs_thousands_of_effective_messages() -> None:
    rng = np.random.default_rng(9)
    found = stats.percentile(rng.exponential(size=20_000), 0.99)
    assert isinstance(found, stats.Percentile)
    assert found.stable
    assert found.interval.low < -math.log(0.01) < found.interval.high
    smaller = stats.percentile(rng.exponential(size=3_000), 0.99)
    assert isinstance(smaller, stats.Percentile)
    assert not smaller.stable


def test_losses_stand_above_everything_and_move_the_percentile() -> None:
    rng = np.random.default_rng(3)
    values = rng.random(5_000)
    lost = np.where(rng.random(5_000) < 0.03, np.inf, values)
    clean, lossy = stats.percentile(values, 0.5), stats.percentile(lost, 0.5)
    assert isinstance(clean, stats.Percentile) and isinstance(lossy, stats.Percentile)
    assert lossy.interval.estimate > clean.interval.estimate
    tail = stats.percentile(lost, 0.99)
    assert isinstance(tail, stats.Percentile)
    assert math.isinf(tail.interval.estimate)


def autoregressive(rng, count, coefficient):
    noise = rng.normal(size=count)
    series = np.zeros(count)
    for at in range(1, count):
        series[at] = coefficient * series[at - 1] + noise[at]
    return series


def test_effective_size_of_an_autoregressive_series_is_the_known_one() -> None:
    series = autoregressive(np.random.default_rng(6), 100_000, 0.9)
    # n (1 − ρ) / (1 + ρ)
    assert stats.effective_size(series) == pytest.approx(100_000 * 0.1 / 1.9, rel=0.1)


def test_effective_size_of_a_series_in_segments_is_the_known_one(monkeypatch) -> None:
    series = autoregressive(np.random.default_rng(6), 100_003, 0.9)
    monkeypatch.setattr(dependence, "SEGMENT_MAX", 9_000)
    assert stats.effective_size(series) == pytest.approx(100_000 * 0.1 / 1.9, rel=0.1)
    independent = np.random.default_rng(7).random(50_000)
    assert stats.effective_size(independent) == pytest.approx(50_000, rel=0.05)
    # Every stretch is constant, so the effective size is about one value per segment.
    assert stats.effective_size(np.repeat([1.0, 5.0, 2.0, 7.0], 9_000)) < 10


def test_dependence_widens_the_interval_of_a_percentile() -> None:
    rng = np.random.default_rng(6)
    series = autoregressive(rng, 50_000, 0.9)
    shuffled = rng.permutation(series)
    bound, free = stats.percentile(series, 0.99), stats.percentile(shuffled, 0.99)
    assert isinstance(bound, stats.Percentile) and isinstance(free, stats.Percentile)
    assert bound.interval.estimate == free.interval.estimate
    bound_width = bound.interval.high - bound.interval.low
    assert bound_width > 2 * (free.interval.high - free.interval.low)


def test_intervals_of_dependent_series_hold_the_truth_nearly_as_often_as_they_say() -> None:
    rng = np.random.default_rng(77)
    truth = 2.3263478740408408 / math.sqrt(1 - 0.9**2)
    hits = total = 0
    for _ in range(150):
        found = stats.percentile(autoregressive(rng, 20_000, 0.9), 0.99)
        if isinstance(found, stats.Percentile):
            total += 1
            hits += found.interval.low <= truth <= found.interval.high
    assert total >= 140
    # An interval for independent values covers the percentile in only 59 % of the cases.
    assert hits / total >= 0.88


def test_clusters_part_where_more_than_the_gap_lies_below() -> None:
    series = np.array([9, 9, 0, 9, 0, 0, 0, 9, 0], dtype=float)
    assert stats.clusters_above(series, 1.0, 1) == 3
    assert stats.clusters_above(series, 1.0, 2) == 2
    assert stats.clusters_above(series, 10.0, 2) == 0


def test_a_constant_series_counts_in_full() -> None:
    assert stats.effective_size(np.ones(500)) == 500


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0.1, 1e9), min_size=40, max_size=80),
    st.sampled_from([0.5, 0.9]),
    st.sampled_from([2.0, 1024.0, 0.25]),
)
def test_a_change_of_unit_scales_a_percentile(values, share, scale) -> None:
    one = stats.percentile(np.array(values), share)
    other = stats.percentile(np.array(values) * scale, share)
    assert isinstance(one, stats.TooFew) == isinstance(other, stats.TooFew)
    if isinstance(one, stats.Percentile) and isinstance(other, stats.Percentile):
        assert other.interval.estimate == one.interval.estimate * scale


def test_not_a_number_is_an_error_and_not_a_latency() -> None:
    with pytest.raises(ValueError, match="NaN"):
        stats.percentile(np.array([1.0, math.nan] * 50), 0.5)
    with pytest.raises(ValueError, match="NaN"):
        stats.ecdf(np.array([1.0, math.nan]))


def test_a_curve_ends_at_the_share_that_arrived() -> None:
    curve = stats.ecdf(np.array([3.0, 1.0, np.inf, 2.0]))
    assert curve.values.tolist() == [1.0, 2.0, 3.0]
    assert curve.shares.tolist() == [0.25, 0.5, 0.75]
    assert (curve.expected, curve.lost, curve.thinned) == (4, 1, False)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5_000), st.integers(0, 50), st.integers(20, 400))
def test_thinning_keeps_both_ends_and_only_true_points(arrived, lost, points_max) -> None:
    values = np.random.default_rng(arrived).random(arrived)
    curve = stats.ecdf(np.concatenate([values, np.full(lost, np.inf)]), points_max)
    assert len(curve.values) <= points_max or not curve.thinned
    assert curve.values[0] == values.min() and curve.values[-1] == values.max()
    assert curve.shares[-1] == arrived / (arrived + lost)
    for value, share in zip(curve.values, curve.shares, strict=True):
        assert share == np.sum(values <= value) / (arrived + lost)


def test_a_curve_of_losses_only_has_no_points() -> None:
    curve = stats.ecdf(np.array([np.inf, np.inf]))
    assert curve.values.size == 0
    assert curve.lost == 2


def test_a_percentile_among_losses_needs_ten_bursts_of_them() -> None:
    values = np.random.default_rng(6).exponential(1.0, 4_000)
    values[::37] = np.inf
    spread_out = stats.percentile(values, 0.99)
    assert isinstance(spread_out, stats.Percentile)
    assert np.isinf(spread_out.interval.estimate)
    assert spread_out.clusters == len(values[::37])
    once = np.sort(values)
    assert isinstance(stats.percentile(once, 0.99), stats.TooFew)


@pytest.mark.parametrize(
    ("share", "needed"), [(0.5, 6), (0.9, 100), (0.99, 1_000), (0.999, 10_000)]
)
def test_the_fewest_messages_that_carry_a_percentile_carry_it_and_one_less_does_not(share, needed):
    assert stats.carried_size(share) == needed
    values = np.random.default_rng(7).permutation(np.arange(float(needed)))
    independent = [v for v in (values, values[::-1]) if stats.effective_size(v) >= needed]
    found = [stats.percentile(v, share) for v in independent]
    assert all(not isinstance(one, stats.TooFew) for one in found)
    assert isinstance(stats.percentile(values[:-1], share), stats.TooFew)
