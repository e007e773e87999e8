"""Test that the detectors of modes, steps and contrasts have their nominal error rates."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import special
from scipy.stats import rankdata

from wattwire import stats
from wattwire.stats.series import warm_up


def test_a_heap_between_two_limits_is_a_mode_and_a_smooth_tail_is_none() -> None:
    rng = np.random.default_rng(1)
    fast = np.exp(rng.normal(5, 0.3, 400))
    heaped = np.where(rng.random(400) < 0.2, 41_000 * np.exp(rng.normal(0, 0.02, 400)), fast)
    found = stats.mode_between([heaped, heaped], 36_000, 48_000)
    assert found is not None
    assert found.total == 800 and found.runs_hit == found.runs == 2
    assert found.share == pytest.approx(0.2, abs=0.03)
    assert found.centre == pytest.approx(41_000, rel=0.01)
    tail = 5000 * (1 + rng.pareto(1.0, 5000))
    assert stats.mode_between([tail], 36_000, 48_000) is None
    assert stats.mode_between([fast], 36_000, 48_000) is None
    assert stats.mode_between([], 36_000, 48_000) is None


def test_lost_messages_count_in_the_share_of_a_mode() -> None:
    series = np.array([41_000.0] * 30 + [math.inf] * 70)
    series = series[np.random.default_rng(2).permutation(100)]
    found = stats.mode_between([series], 36_000, 48_000)
    assert found is not None and found.share == pytest.approx(0.3)


def test_a_mode_in_one_stretch_or_in_few_runs_is_none() -> None:
    stretch = np.full(400, 100.0)
    stretch[200:240] = 42_000.0
    assert stats.mode_between([stretch], 36_000, 48_000) is None
    spread = np.full(400, 100.0)
    spread[::10] = 42_000.0
    quiet = np.full(400, 100.0)
    assert stats.mode_between([spread, quiet, quiet], 36_000, 48_000) is None
    assert stats.mode_between([spread, quiet], 36_000, 48_000) is not None


@pytest.mark.parametrize("limits", [(0.0, 1.0), (2.0, 1.0), (1.0, 1.0)])
def test_limits_of_a_band_are_checked(limits: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="low, high"):
        stats.mode_between([np.ones(3)], *limits)


def test_costs_that_grow_with_the_size_make_no_step() -> None:
    sizes = np.array([64.0, 1024, 4096, 65_536, 1_048_576])
    rise, fall = stats.step_logs(sizes, 50 + 0.001 * sizes)
    assert (rise <= 0).all() and (fall >= 0).all()
    rise, fall = stats.step_logs(sizes, 0.001 * sizes)  # no fixed cost
    assert (rise <= 1e-12).all() and (fall > 0).all()


def test_a_jump_stands_out_by_its_size_in_both_directions() -> None:
    sizes = np.array([64.0, 1472, 1473, 4096, 65_536])
    values = np.array([50.0, 50, 150, 153, 215])
    rise, _ = stats.step_logs(sizes, values)
    assert rise[1] == pytest.approx(math.log(3), abs=0.01)
    assert (np.delete(rise, 1) < math.log(1.5)).all()
    _, fall = stats.step_logs(sizes, values[::-1])
    assert fall.argmin() == 2 and fall[2] == pytest.approx(-math.log(3), abs=0.01)


def test_at_the_largest_size_growth_in_proportion_is_no_step() -> None:
    rise, _ = stats.step_logs([64, 1024, 16_384], [50.0, 50.0, 700.0])
    assert rise[-1] < 0
    rise, _ = stats.step_logs([64, 1024, 16_384], [50.0, 50.0, 1600.0])
    assert rise[-1] == pytest.approx(math.log(2))


@pytest.mark.parametrize("sizes", [[1, 2], [1, 3, 2], [1, 1, 2]])
def test_sizes_must_ascend_and_be_enough(sizes: list[float]) -> None:
    with pytest.raises(ValueError, match="sizes"):
        stats.step_logs(sizes, [1.0] * len(sizes))


def test_loss_beyond_what_grows_with_the_size() -> None:
    excess = stats.loss_excess([1000, 2000, 4000], [0.01, 0.02, 0.5])
    assert excess == pytest.approx([0.0, 0.46])


def test_contrasts_of_blocks_share_their_error_only_where_they_scatter_alike() -> None:
    rng = np.random.default_rng(4)
    alike = [rng.normal(0, 1, 4) for _ in range(20)]
    pooled = stats.block_intervals(alike, 0.95)
    assert all(isinstance(one, stats.Interval) for one in pooled)
    assert max(one.degrees or 0 for one in pooled if isinstance(one, stats.Interval)) == 60
    uneven = [*alike, rng.normal(0, 100, 4)]
    own = stats.block_intervals(uneven, 0.95)
    assert {one.degrees for one in own if isinstance(one, stats.Interval)} == {3.0}
    few = stats.block_intervals([[1.0, 2.0], [1.0, 2.0, 3.0]], 0.95)
    assert isinstance(few[0], stats.TooFew) and isinstance(few[1], stats.Interval)


def test_contrasts_of_blocks_keep_their_level() -> None:
    rng = np.random.default_rng(5)
    misses = 0
    for _ in range(300):
        found = stats.block_intervals(rng.normal(0, 1, (6, 3)), 0.95)
        misses += sum(isinstance(one, stats.Interval) and one.excludes(0.0) for one in found)
    assert misses / 1800 < 0.06


def test_the_sign_test_is_exact() -> None:
    assert stats.sign_p(5, 5) == pytest.approx(1 / 32)
    assert stats.sign_p(4, 5) == pytest.approx(6 / 32)
    assert stats.sign_p(0, 0) == 1.0
    with pytest.raises(ValueError, match="higher, pairs"):
        stats.sign_p(3, 2)


def test_blocks_without_scatter_have_an_interval_of_no_width():
    (interval,) = stats.block_intervals([[0.5, 0.5, 0.5]], 0.95)
    assert (interval.low, interval.high, interval.degrees) == (0.5, 0.5, 2.0)


def test_values_just_above_multiples_of_a_period_are_at_its_ticks() -> None:
    rng = np.random.default_rng(6)
    multiples = np.repeat([1.0, 2.0], [30, 10])
    series = 10.0 * multiples + rng.uniform(0.0, 1.4, 40)
    found = stats.ticks_of([series, series], 10.0)
    assert found is not None
    assert (found.inside, found.total, found.runs) == (80, 80, 2)
    assert found.counts == ((1, 60), (2, 20))
    assert stats.ticks_of([series], 7.0) is None
    assert stats.ticks_of([series + 3.0], 10.0) is None
    assert stats.ticks_of([series[:19]], 10.0) is None


def test_long_series_need_little_more_memory_than_their_values() -> None:
    """A run of 10⁷ values took 600 MB, because several arrays of its size existed at once."""
    rng = np.random.default_rng(8)
    series = np.round(rng.lognormal(3.0, 0.1, 1 << 20), 3)
    tracemalloc.start()
    try:
        stats.ticks_of([series], 1000.0)
        ticks_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        course = stats.classify(series)
        course_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert course.name == "flat"
    assert ticks_bytes < series.nbytes and course_bytes < 3 * series.nbytes


def test_the_points_of_a_course_are_means_of_normal_quantiles_of_mean_ranks() -> None:
    rng = np.random.default_rng(9)
    series = np.round(rng.lognormal(3.0, 0.1, 300 * 700 + 11), 1)  # with ties
    quantiles = special.ndtri((rankdata(series) - 0.5) / series.size)
    width = math.ceil(series.size / 300)
    full = series.size // width * width
    expected = quantiles[:full].reshape(-1, width).mean(axis=1)
    assert warm_up._mean_scores(series) == pytest.approx(expected)


def test_losses_values_before_a_tick_and_runs_without_ticks_count_against_them() -> None:
    at_ticks = np.full(40, 10.1)
    lost = np.concatenate([at_ticks, np.full(11, math.inf)])
    assert stats.ticks_of([lost], 10.0) is None
    assert stats.ticks_of([lost[:-1]], 10.0) is not None
    early = np.full(40, 9.9)
    assert stats.ticks_of([early], 10.0) is None
    few = np.full(4, 3.0)
    assert stats.ticks_of([at_ticks, few, few], 10.0) is None
    with pytest.raises(ValueError, match="period"):
        stats.ticks_of([at_ticks], 0.0)
