"""Test the computations of the bench of links."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from bench.rigs.links import order, over_share, verdict_of


def test_limits_of_the_median_are_order_statistics() -> None:
    low, high, _ = verdict_of(list(range(1, 21)), 10)
    assert (low, high) == (6, 15)  # at most 5 of 20 values below the median: p = 0.021
    assert stats.binom.cdf(5, 20, 0.5) < 0.05 < stats.binom.cdf(6, 20, 0.5)


def test_a_slow_round_does_not_change_the_verdict() -> None:
    values = [30.0] * 19
    assert verdict_of([*values, 30.0], 40)[2] == verdict_of([*values, 9e9], 40)[2] == "passed"
    assert verdict_of([*values, 9e9], 29)[2] == "failed"
    assert verdict_of([30.0, 50.0] * 10, 40)[2] == "undecided"


@pytest.mark.parametrize("count", [2, 4])
def test_few_rounds_are_undecided(count: int) -> None:
    assert verdict_of([1.0] * count, 40) == (-math.inf, math.inf, "undecided")


def test_the_share_of_what_a_peer_adds_is_compared_within_rounds() -> None:
    assert over_share([10.0, 40.0], [60.0, 60.0], 1 / 3) == [-10.0, 20.0]


def test_each_network_is_first_middle_and_last_equally_often() -> None:
    orders = [order("abc", number) for number in range(6)]
    for place in range(3):
        assert sorted(turn[place] for turn in orders) == [*"aabbcc"]
