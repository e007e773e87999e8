"""Tests of the measurement of the harness's cost, in interleaved pairs on one core."""

from __future__ import annotations

import os

from wattwire.cli.round_trips import measured_cost


def test_the_cost_is_the_mean_difference_of_interleaved_pairs() -> None:
    order: list[str] = []
    allowed = os.sched_getaffinity(0)

    def ours() -> float:
        order.append("ours")
        assert len(os.sched_getaffinity(0)) == 1
        return 12_000.0 + len(order)

    def bare() -> float:
        order.append("bare")
        return 10_000.0 + len(order)

    cost = measured_cost(ours, bare, 4)
    assert order == ["ours", "bare", "bare", "ours"] * 2
    assert abs(cost.added_us - 2.0) < 0.001
    assert cost.added_us_low < cost.added_us < cost.added_us_high
    assert os.sched_getaffinity(0) == allowed
