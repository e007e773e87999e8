"""Test the break-even against exact crossings and against simulated devices."""

import math

import numpy as np
import pytest

from wattwire.stats import Interval
from wattwire.stats.break_even import (
    InSomeBlocks,
    NeverUpTo,
    Without,
    break_even,
    crossing,
    unit_time,
)

UNITS = np.array([-2.0, 0.0, 2.0, 10.0, 100.0, 1000.0])


def test_the_crossing_of_a_line_is_exact():
    # 50 + 0.5 k = 2 k at k = 100 / 3.
    assert crossing(UNITS, 50 + 0.5 * UNITS, 2.0) == pytest.approx(100 / 3)


def test_the_first_of_several_crossings_counts():
    # The round trip rises by a step between 10 and 100 units.
    round_trips = np.array([5.0, 5.0, 5.0, 5.0, 500.0, 500.0])
    assert crossing(UNITS, round_trips, 1.0) == pytest.approx(5.0)


@pytest.mark.parametrize(("saved", "expected"), [(0.4, math.inf), (-1.0, math.inf), (80.0, 1.0)])
def test_a_worker_that_is_never_or_always_faster(saved, expected):
    assert crossing(UNITS, 50 + 0.5 * UNITS, saved) == expected


def test_a_crossing_below_the_first_size_is_not_extrapolated():
    assert crossing(np.array([4.0, 8.0]), np.array([1.0, 1.0]), 10.0) == 4.0


def test_the_time_per_unit_is_the_slope_of_the_difference():
    units = np.array([1.0, 10.0, 100.0])
    idle = 40 + 0.3 * units
    assert unit_time(units, idle, idle + 1.7 * units) == pytest.approx(1.7)


def test_blocks_without_a_crossing_leave_no_interval():
    never = break_even(np.array([math.inf, math.inf]), 65_533)
    assert never == NeverUpTo(65_533, 2)
    assert break_even(np.array([8.0, math.inf, 2.0]), 10) == InSomeBlocks(2.0, 8.0, 2, 3, 10)
    assert break_even(np.array([2.0, 8.0]), 10) == Without(pytest.approx(4.0), 2)


def test_no_limit_is_below_one_unit():
    interval = break_even(np.array([1.0, 1.0, 6.0]), 10)
    assert isinstance(interval, Interval)
    assert interval.low == 1.0 < interval.estimate < interval.high


def test_the_interval_holds_the_true_break_even_of_simulated_devices():
    """A device that spins t µs per unit, on a robot that needs more, in campaigns of 5 blocks."""
    rng = np.random.default_rng(18)
    sizes, campaigns, held, widths = 2.0 ** np.arange(1, 13), 20, 0, []
    for _ in range(campaigns):
        fixed_us, per_unit_us = 60.0, 0.05
        own_us, device_us = 2.0, float(rng.uniform(0.2, 1.2))
        true = fixed_us / (own_us - device_us - per_unit_us)
        crossings = []
        for _ in range(5):
            noise = rng.normal(1.0, 0.03, (2, sizes.size))
            idle = (fixed_us + per_unit_us * sizes) * noise[0]
            busy = (fixed_us + (per_unit_us + device_us) * sizes) * noise[1]
            saved = own_us * rng.normal(1.0, 0.02) - unit_time(sizes, idle, busy)
            crossings.append(crossing(sizes, idle, saved))
        interval = break_even(np.array(crossings), float(sizes[-1]))
        assert isinstance(interval, Interval)
        held += interval.low <= true <= interval.high
        widths.append(interval.high / interval.low)
    assert held >= 17
    assert np.median(widths) <= 1.5
