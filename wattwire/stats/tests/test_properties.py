"""Test invariants of every default statistic with arbitrary numbers."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattwire import stats

FEW = settings(max_examples=30, deadline=None)
WILD = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 1.0, 1.0, 2.5, 1e-300, 1e300])
POSITIVE = st.floats(0.01, 100.0)
SEEDS = st.integers(0, 2**32 - 1)
UNANSWERED = (stats.TooFew, stats.NotComputable)
TWO_SAMPLES = (stats.shift_by_ranks, stats.ratio_by_ranks, stats.cliffs_delta)


def numbers(found) -> list[float]:
    """Return the numbers of a result; empty for a result without numbers."""
    if isinstance(found, stats.Ratio):
        found = found.interval
    if isinstance(found, stats.Effect):
        return [found.statistic, found.p, *numbers(found.omega_squared)]
    if isinstance(found, stats.BlockRanks):
        return [found.p]
    if isinstance(found, stats.Interval):
        return [found.estimate, found.low, found.high, found.level]
    assert isinstance(found, UNANSWERED)
    return []


@FEW
@given(st.lists(WILD, max_size=8), st.lists(WILD, max_size=8))
def test_two_wild_samples_never_crash_nor_give_a_number_without_meaning(upper, lower) -> None:
    for statistic in TWO_SAMPLES:
        found = statistic(upper, lower)
        assert all(math.isfinite(number) for number in numbers(found))
        if isinstance(found, stats.Interval):
            assert found.low <= found.estimate <= found.high
            assert not np.isnan([*upper, *lower]).any()
            assert len(set([*upper, *lower])) > 1


@FEW
@given(st.integers(0, 8), st.integers(0, 4), st.data())
def test_wild_blocks_never_crash_nor_give_a_number_without_meaning(blocks, levels, data) -> None:
    table = np.array(
        data.draw(st.lists(WILD, min_size=blocks * levels, max_size=blocks * levels))
    ).reshape(blocks, levels)
    for test in (stats.friedman, stats.quade):
        found = test(table)
        assert all(0.0 < p <= 1.0 for p in numbers(found))
    where = [row for row in range(blocks) for _ in range(levels)]
    names = [str(level) for _ in range(blocks) for level in range(levels)]
    for fitted in (stats.fit_log, stats.fit_plain):
        with np.errstate(over="ignore", invalid="ignore"):
            fit = fitted(table.ravel(), where, {"level": names})
            if isinstance(fit, stats.Fit):
                found = stats.main_effect(fit, "level")
                assert not np.isnan(numbers(found)).any()


@pytest.mark.parametrize("groups", [([], []), ([1.0], [2.0]), ([1.0, 2.0], [2.0, 1.0])])
def test_no_one_and_two_values_are_too_few(groups) -> None:
    for statistic in TWO_SAMPLES:
        assert isinstance(statistic(*groups), UNANSWERED)
    assert isinstance(stats.bootstrap_interval(groups[0], np.mean), stats.TooFew)


@pytest.mark.parametrize("statistic", TWO_SAMPLES)
def test_groups_of_one_and_the_same_value_give_no_number(statistic) -> None:
    assert isinstance(statistic([3.0] * 6, [3.0] * 6), stats.NotComputable)


@FEW
@given(
    st.lists(POSITIVE, min_size=5, max_size=9), st.lists(POSITIVE, min_size=5, max_size=9), SEEDS
)
def test_order_of_the_runs_changes_nothing_in_two_samples(upper, lower, seed) -> None:
    rng = np.random.default_rng(seed)
    for statistic in TWO_SAMPLES:
        found = statistic(upper, lower)
        shuffled = statistic(rng.permutation(upper), rng.permutation(lower))
        assert numbers(found) == pytest.approx(numbers(shuffled))


@FEW
@given(st.lists(POSITIVE, min_size=5, max_size=9), st.lists(POSITIVE, min_size=5, max_size=9),
       st.floats(-50, 50), st.floats(0.1, 10))  # fmt: skip
def test_shift_and_scale_move_two_samples_as_they_must(upper, lower, shift, scale) -> None:
    if len(set([*upper, *lower])) == 1:
        return
    above, below = np.array(upper), np.array(lower)
    plain = np.array(numbers(stats.shift_by_ranks(above, below))[:3])
    moved = numbers(stats.shift_by_ranks(above + shift, below))[:3]
    # Values that differ by one rounding may become equal after a shift, and are then refused.
    if moved and plain.size:
        assert moved == pytest.approx(plain + shift, abs=1e-9)
    ratio = np.array(numbers(stats.ratio_by_ranks(above, below))[:3])
    scaled = numbers(stats.ratio_by_ranks(above * scale, below))[:3]
    if scaled and ratio.size:
        assert scaled == pytest.approx(ratio * scale)
    # Doubling is exact in binary, so no tie appears or disappears, and delta must not change.
    delta = stats.cliffs_delta(above, below)
    assert stats.cliffs_delta(above * 2, below * 2) == delta
    swapped = numbers(stats.cliffs_delta(below, above))
    assert [-swapped[0], -swapped[2], -swapped[1]] == pytest.approx(numbers(delta)[:3])


@FEW
@given(SEEDS, st.integers(3, 6), st.integers(2, 4), st.floats(0.1, 10))
def test_order_and_unit_change_no_test_over_blocks(seed, blocks, levels, scale) -> None:
    rng = np.random.default_rng(seed)
    table = rng.lognormal(0, 0.3, (blocks, levels))
    for test in (stats.friedman, stats.quade):
        found = test(table)
        assert test(rng.permutation(table)) == found
        assert test(table[:, ::-1]) == found
    assert stats.quade(table * 4) == stats.quade(table)
    # Friedman's test uses only ranks, so a whole block may be in another unit.
    assert stats.friedman(table * rng.lognormal(0, 2, (blocks, 1))) == stats.friedman(table)
    where = np.repeat(np.arange(blocks), levels)
    names = np.tile(np.arange(levels), blocks)
    order = rng.permutation(where.size)
    one = _effect(table.ravel(), where, names)
    assert numbers(_effect(table.ravel() * scale, where, names)) == pytest.approx(numbers(one))
    assert numbers(_effect(table.ravel()[order], where[order], names[order])) == pytest.approx(
        numbers(one)
    )


def _effect(values, blocks, levels):
    fit = stats.fit_log(values, blocks.tolist(), {"level": levels.tolist()})
    assert isinstance(fit, stats.Fit)
    return stats.main_effect(fit, "level")


@FEW
@given(SEEDS, st.floats(0.2, 5.0))
def test_an_interaction_of_ratios_does_not_hang_on_the_unit_nor_on_one_factors_effect(
    seed, scale
) -> None:
    rng = np.random.default_rng(seed)
    language, clients = ["a", "b"] * 8, [1, 1, 4, 4] * 4
    blocks = np.repeat(np.arange(4), 4).tolist()
    values = rng.lognormal(0, 0.2, 16)
    found = []
    # A multiplicative effect does not change interactions on the log scale.
    for factor in (1.0, scale, np.where(np.array(language) == "b", scale, 1.0)):
        fit = stats.fit_log(values * factor, blocks, {"language": language, "clients": clients})
        assert isinstance(fit, stats.Fit)
        effect = stats.interaction(fit, "language", "clients", permutations=0)
        assert isinstance(effect, stats.Effect)
        found.append(effect)
    for other in found[1:]:
        assert numbers(other) == pytest.approx(numbers(found[0]), rel=1e-6, abs=1e-9)


@FEW
@given(st.lists(WILD, max_size=80))
def test_the_course_of_a_wild_series_is_a_class_and_nothing_else(values) -> None:
    found = stats.classify(np.clip(values, -1e6, 1e6))
    assert found.name in {"flat", "warm-up", "slowdown", "no steady state", "cannot tell"}
    if len(values) < 60:
        assert astuple(found) == ("cannot tell", None)
