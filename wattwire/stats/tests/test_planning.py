"""Test planning, stopping and classification against figures from independent simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import signal

from wattwire import stats
from wattwire.stats import planning, sequential
from wattwire.stats.planning import Pilot
from wattwire.stats.series import warm_up

NEIGHBOURS = 2 * 0.05**2
"""Variance of a block's log ratio if two runs vary by 5 % each."""


def test_power_for_equivalence_is_that_of_five_and_of_twenty_runs() -> None:
    # Margin 5 %, runs that vary by 5 %, two unpaired groups, test at 5 %: power .06 and .84.
    pilot = Pilot(NEIGHBOURS, 8, 2, 5)
    assert planning.equivalence_power(pilot, 0.05, 5, 0.90) == pytest.approx(0.06, abs=0.01)
    assert planning.equivalence_power(pilot, 0.05, 20, 0.90) == pytest.approx(0.84, abs=0.01)
    # The report requires the whole 95 % interval within the margin, which needs more blocks.
    blocks = planning.blocks_for_equivalence(pilot, 0.05)
    assert isinstance(blocks, int)
    assert planning.equivalence_power(pilot, 0.05, blocks) >= 0.8
    assert planning.equivalence_power(pilot, 0.05, blocks - 1) < 0.8
    assert blocks > 20


def test_energy_per_message_takes_nineteen_thousand_runs_at_twenty_a_second() -> None:
    # 0.1 W between runs gives √2 · 0.1 W between pairs; 1 mJ per message to ± 10 %.
    delta_w = 0.1 * math.sqrt(2)
    found = planning.blocks_for_message_energy(delta_w, 20.0, 1e-3, 0.10)
    assert found == pytest.approx(19_000, rel=0.02)
    # The normal quantile would give 8 blocks at 1 kHz; the t quantile is larger for few runs.
    assert math.ceil((1.96 * delta_w / (1000 * 1e-4)) ** 2) == 8
    assert planning.blocks_for_message_energy(delta_w, 1000.0, 1e-3, 0.10) == 11
    assert isinstance(
        planning.blocks_for_message_energy(delta_w, 0.01, 1e-3, 0.10), stats.NotComputable
    )


def test_the_blocks_that_are_planned_give_the_width_that_was_wanted() -> None:
    pilot = Pilot(0.02, 10, 1, 11)
    blocks = planning.blocks_for_width(pilot, 0.05)
    assert isinstance(blocks, int)
    assert planning.half_width(pilot, blocks, 0.95) <= 0.05
    assert planning.half_width(pilot, blocks - 1, 0.95) > 0.05
    cautious = planning.blocks_for_width(pilot.cautious, 0.05)
    assert isinstance(cautious, int)
    assert cautious > blocks


def test_a_pilots_variance_is_that_of_its_contrast() -> None:
    rng = np.random.default_rng(2)
    logs = rng.normal(0, 0.1, (12, 2))
    blocks = np.repeat(np.arange(12), 2).tolist()
    fit = stats.fit_log(np.exp(logs.ravel()), blocks, {"language": ["a", "b"] * 12})
    assert isinstance(fit, stats.Fit)
    pilot = planning.pilot_of(fit, "language", "b", "a")
    assert isinstance(pilot, Pilot)
    assert pilot.block_variance == pytest.approx(np.var(logs[:, 1] - logs[:, 0], ddof=1))
    # A campaign as long as the pilot has the interval of the pilot.
    ratio = stats.ratio(fit, "language", "b", "a")
    assert isinstance(ratio, stats.Ratio)
    known = ratio.interval.high / ratio.interval.estimate - 1
    assert planning.half_width(pilot, 12, 0.95) == pytest.approx(known)


def test_a_campaign_stops_by_width_and_never_before_ten_blocks() -> None:
    narrow = np.tile([0.1, 0.1001], 10)
    assert not sequential.look(narrow[:9], 0.05).reached
    found = sequential.look(narrow[:10], 0.05)
    assert found.reached
    assert found.block_count == 10
    wide = narrow + np.tile([0.5, -0.5], 10)
    assert not sequential.look(wide, 0.05).reached
    assert math.isinf(sequential.look([], 0.05).width)
    assert math.isinf(sequential.look([0.1], 0.05).width)
    with pytest.raises(ValueError, match="at least 10"):
        sequential.look(narrow, 0.05, blocks_min=5)


def test_width_is_the_reach_of_the_interval_at_the_inner_level() -> None:
    values = np.random.default_rng(4).normal(0, 0.2, 16)
    found = stats.geometric_mean(np.exp(values), sequential.INNER_CONFIDENCE)
    assert isinstance(found, stats.Interval)
    assert sequential.look(values, 0.05).width == pytest.approx(found.high / found.estimate - 1)


def correlated(rng: np.random.Generator, count: int, rho: float) -> np.ndarray:
    return signal.lfilter([1], [1, -rho], rng.normal(size=count + 100))[100:]


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_a_stationary_series_is_not_said_to_warm_up(rho: float) -> None:
    rng = np.random.default_rng(11)
    found = [warm_up.classify(correlated(rng, 300, rho)).name for _ in range(60)]
    assert sum(name not in (warm_up.FLAT, warm_up.CANNOT_TELL) for name in found) <= 3


def test_a_warm_up_a_slowdown_and_one_late_change_are_told_apart() -> None:
    rng = np.random.default_rng(12)
    values = rng.normal(size=400)
    values[:80] += 6
    found = warm_up.classify(values)
    assert found.name == warm_up.WARM_UP
    assert found.settled_after == pytest.approx(0.2, abs=0.02)
    assert warm_up.classify(-values).name == warm_up.SLOWDOWN
    assert warm_up.classify(values[::-1][:350]).name == warm_up.UNSETTLED


def spiky(rng: np.random.Generator, count: int, slow_share: float) -> np.ndarray:
    """Return latencies with 3 % spikes, ten times slower in the first `slow_share` of them."""
    values = 150 * np.exp(rng.normal(0, 0.2, count))
    values[: int(slow_share * count)] *= 10
    return values + (rng.random(count) < 0.03) * rng.exponential(3000, count)


@pytest.mark.parametrize("count", [360, 1125])
def test_spikes_are_no_change_and_do_not_hide_a_slow_start(count: int) -> None:
    rng = np.random.default_rng(13)
    stationary = [warm_up.classify(spiky(rng, count, 0.0)).name for _ in range(60)]
    assert stationary.count(warm_up.FLAT) >= 57
    slow_start = [warm_up.classify(spiky(rng, count, 0.2)).name for _ in range(60)]
    assert slow_start.count(warm_up.WARM_UP) >= 57


def test_too_short_a_series_and_runs_that_disagree_cannot_be_told() -> None:
    assert warm_up.classify(np.ones(59)).name == warm_up.CANNOT_TELL
    assert warm_up.classify(np.ones(60)).name == warm_up.FLAT
    assert warm_up.classify([math.nan, math.inf] * 100).name == warm_up.CANNOT_TELL
    assert warm_up.consensus(["flat"] * 3 + ["warm-up"]) == "flat"
    assert warm_up.consensus(["flat", "flat", "warm-up"]) == warm_up.CANNOT_TELL
    assert warm_up.consensus(["flat"] * 2) == warm_up.CANNOT_TELL
