"""Test shares, ranks, energy per message and additivity against known values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattwire import stats
from wattwire.stats.ranks import signed_rank_distribution


def test_no_hit_in_three_hundred_by_the_closed_form() -> None:
    found = stats.share_interval(0, 300)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 300))
    every = stats.share_interval(300, 300)
    assert every.low == pytest.approx(0.025 ** (1 / 300))
    assert every.high == 1.0


@given(st.integers(0, 40), st.integers(1, 40))
def test_share_limits_mirror_each_other(hits, trials) -> None:
    if hits > trials:
        with pytest.raises(ValueError, match="allowed"):
            stats.share_interval(hits, trials)
        return
    one, other = stats.share_interval(hits, trials), stats.share_interval(trials - hits, trials)
    assert one.low == pytest.approx(1 - other.high)
    assert one.low <= hits / trials <= one.high


def test_fishers_tea_tasting() -> None:
    # Fisher 1935: three of four correct on both sides, p = 34/70.
    assert stats.same_share_p(3, 4, 1, 4) == pytest.approx(34 / 70)


def test_signed_rank_probabilities_of_three_pairs() -> None:
    assert signed_rank_distribution(3) * 8 == pytest.approx([1, 1, 1, 2, 1, 1, 1])


def test_hodges_lehmann_of_six_pairs_by_hand() -> None:
    logs = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.9])
    found = stats.paired_ratio_by_ranks(np.exp(logs), np.ones(6))
    assert isinstance(found, stats.Interval)
    # The exact level with six pairs is 1 − 2/64; the limits are the smallest and largest values.
    assert found.level == pytest.approx(1 - 2 / 64)
    assert found.low == pytest.approx(math.exp(0.1))
    assert found.high == pytest.approx(math.exp(0.9))
    # The median of the 21 Walsh averages is 0.35.
    assert found.estimate == pytest.approx(math.exp(0.35))


def test_five_pairs_are_too_few_for_a_rank_interval() -> None:
    assert isinstance(stats.paired_ratio_by_ranks(np.ones(5), np.ones(5)), stats.TooFew)


def test_rank_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(12)
    hits = 0
    for _ in range(1_000):
        found = stats.paired_ratio_by_ranks(np.exp(rng.standard_t(3, 10)), np.ones(10))
        assert isinstance(found, stats.Interval)
        hits += found.low <= 1.0 <= found.high
    # exact level 0.9512 with ten pairs; 99.9 % binomial limits
    assert 928 <= hits <= 973


def test_joules_per_message_by_hand() -> None:
    found = stats.joules_per_message([1.0, 1.1, 0.9], [100.0, 100.0, 100.0])
    assert isinstance(found, stats.Interval)
    assert found.estimate == pytest.approx(0.01)
    half = 4.302652729911275 * 0.001 / math.sqrt(3)
    assert found.high - found.estimate == pytest.approx(half)


def test_below_the_resolution_there_is_a_limit_and_no_number() -> None:
    found = stats.joules_per_message([0.1, -0.1, 0.05], [20.0, 20.0, 20.0])
    assert isinstance(found, stats.BelowResolution)
    assert "≤" in str(found)
    assert found.limit > 0


def test_two_blocks_of_power_are_too_few() -> None:
    assert isinstance(stats.joules_per_message([1.0, 1.0], [10.0, 10.0]), stats.TooFew)


def test_a_power_without_its_rate_is_an_error() -> None:
    with pytest.raises(ValueError, match="the same number of each"):
        stats.joules_per_message([1.0, 1.0, 1.0], [10.0])


def test_costs_that_add_up_have_a_ratio_about_one() -> None:
    found = stats.additivity([10.1, 9.9, 10.0], [10.0, 10.0, 10.0])
    assert isinstance(found, stats.Interval)
    assert found.low < 1.0 < found.high
    doubled = stats.additivity([20.1, 19.9, 20.0], [10.0, 10.0, 10.0])
    assert isinstance(doubled, stats.Interval)
    assert doubled.low > 1.9


def test_a_mean_of_two_runs_carries_no_interval() -> None:
    assert stats.mean_interval([1.0, 3.0]) == 2.0
    three = stats.mean_interval([1.0, 2.0, 3.0])
    assert isinstance(three, stats.Interval)
    assert three.high == pytest.approx(2 + 4.302652729911275 / math.sqrt(3))
