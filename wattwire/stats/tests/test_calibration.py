"""Test that load steps recover c despite drift, and that an unresponsive counter is refused."""

import numpy as np
import pytest

from wattwire.stats.calibration import Calibrated, Step, joules_per_cpu_second
from wattwire.stats.results import BelowResolution, NotComputable, TooFew

LEVELS = (0.0, 0.5, 0.0, 2.0, 0.0, 1.0, 0.0)


def steps(c, blocks=5, noise_w=0.0, drift_w=0.0, other=0.0, curve=0.0, seed=1):
    rng = np.random.default_rng(seed)
    made = []
    for block in range(blocks):
        for level in LEVELS:
            busy = level + other * float(rng.uniform(0, 1))
            watts = 5.0 + drift_w * block + c * busy - curve * busy**2
            made.append(Step(block, level, busy, watts + noise_w * float(rng.normal())))
    return made


@pytest.mark.parametrize("c", [0.4, 3.5, 25.0])
def test_a_planted_c_comes_out_exactly_without_noise(c):
    found = joules_per_cpu_second(steps(c))
    assert found.slope.estimate == pytest.approx(c)
    assert found.low == pytest.approx(c) and found.high == pytest.approx(c)


def test_drift_between_blocks_and_other_load_make_no_slope():
    found = joules_per_cpu_second(steps(3.0, drift_w=4.0, other=0.5))
    assert found.slope.estimate == pytest.approx(3.0)


def test_the_interval_covers_the_planted_c_as_often_as_it_says():
    covered = 0
    for seed in range(400):
        found = joules_per_cpu_second(steps(3.0, noise_w=0.3, seed=seed))
        assert isinstance(found, Calibrated)
        covered += not found.slope.excludes(3.0)
    # 380 of 400 are expected; the limits are five standard deviations away
    assert 358 <= covered <= 399


def test_the_range_covers_one_core_and_all_of_them():
    found = joules_per_cpu_second(steps(6.0, curve=1.0))
    assert found.levels[0.5] == pytest.approx(5.5)
    assert found.levels[2.0] == pytest.approx(4.0)
    assert found.low <= 4.0 and found.high >= 5.5


def test_a_counter_that_does_not_respond_gives_an_upper_limit_only():
    found = joules_per_cpu_second(steps(0.0, noise_w=0.2))
    assert isinstance(found, BelowResolution)
    assert 0 < found.limit < 1


def test_chance_makes_no_counter_respond():
    alarms = sum(
        isinstance(joules_per_cpu_second(steps(0.0, blocks=3, noise_w=0.2, seed=s)), Calibrated)
        for s in range(1000)
    )
    assert alarms <= 5  # at most 1 is expected; an interval above 0 alone gives 25


def test_too_few_blocks_and_a_load_that_did_not_show_are_said():
    assert isinstance(joules_per_cpu_second(steps(3.0, blocks=2)), TooFew)
    flat = [Step(b, level, 0.1, 5.0) for b in range(3) for level in LEVELS]
    assert "other programs used 0.1 cores" in str(joules_per_cpu_second(flat))
    loaded = [Step(b, 1.0 + k, 1.0 + k, 5.0) for b in range(3) for k in range(3)]
    assert isinstance(joules_per_cpu_second(loaded), NotComputable)
