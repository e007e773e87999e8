"""Test that the settling time equals the planted length of a slow beginning."""

import numpy as np
import pytest

from wattwire.model.warm_up import STEPS
from wattwire.stats.series.settling import drifts, settle


def cell(seed: int, cold: int, calls: int = 8000, slow: float = 3.0, rho: float = 0.5):
    """Return three runs whose first `cold` calls are `slow` times slower, with AR(1) noise."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(3):
        noise = rng.standard_normal(calls)
        for at in range(1, calls):
            noise[at] = rho * noise[at - 1] + np.sqrt(1 - rho**2) * noise[at]
        level = np.where(np.arange(calls) < cold, slow, 1.0)
        runs.append(100.0 * level * np.exp(0.2 * noise))
    return runs


@pytest.mark.parametrize(
    ("cold", "wanted"), [(0, 10), (18, 20), (40, 50), (300, 500), (1400, 2000), (2900, 5000)]
)
def test_the_warm_up_is_the_first_step_after_the_planted_end(cold, wanted):
    for seed in range(5):
        found = settle(cell(seed, cold))
        assert (found.calls, found.settled) == (wanted, True)


def test_a_cell_that_is_fast_at_first_needs_a_warm_up_too():
    assert settle(cell(1, 300, slow=0.5)).calls == 500


def test_a_cell_that_is_slow_until_the_end_has_not_settled():
    found = settle(cell(1, 6000))
    assert (found.calls, found.settled) == (STEPS[-1], False)
    creeping = [run * np.linspace(2.0, 1.0, run.size) for run in cell(2, 0)]
    assert not settle(creeping).settled


def test_one_disturbed_run_of_three_changes_nothing():
    quiet, other, disturbed = cell(1, 40)
    disturbed[2000:6000] *= 2.0
    found = settle([quiet, other, disturbed])
    assert (found.calls, found.settled) == (50, True)


def test_single_slow_calls_and_lost_ones_change_nothing():
    runs = cell(3, 40)
    for run in runs:
        run[500::100] *= 1000.0
        run[501::100] = np.nan
        run[502::100] = np.inf
    assert settle(runs).calls == 50


def test_runs_that_ended_early_say_what_they_saw():
    found = settle([run[:220] for run in cell(1, 40)])
    assert (found.calls, found.settled) == (50, True)
    cut_short = settle([run[:220] for run in cell(1, 164)])
    assert (cut_short.calls, cut_short.settled) == (STEPS[-1], False)


def test_too_few_calls_tell_nothing():
    found = settle([np.ones(59)] * 3)
    assert (found.calls, found.settled) == (None, False)
    assert settle([]).calls is None
    assert settle([np.full(500, np.nan)]).calls is None


def test_windows_drift_only_where_most_of_them_move_one_way_by_more_than_the_tolerance():
    rng = np.random.default_rng(3)
    flat = [rng.lognormal(5.0, 0.1, 400) for _ in range(8)]
    falling = [window * np.linspace(1.5, 1.0, 400) for window in flat]
    assert not drifts(flat) and not drifts([])
    assert drifts(falling)
    assert drifts([window[::-1] for window in falling])
    assert not drifts([*falling[:4], *(window[::-1] for window in falling[4:])])
    assert not drifts([window * np.linspace(1.05, 1.0, 400) for window in flat])
