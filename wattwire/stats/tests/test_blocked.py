"""Test the blocked log-scale model against hand-computed numbers, and its invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats.blocked import Fit, fit_log


def fitted(response, blocks, factors) -> Fit:
    fit = fit_log(response, blocks, factors)
    assert isinstance(fit, Fit)
    return fit


def ratio_of(fit, *args, **more) -> stats.Ratio:
    found = stats.ratio(fit, *args, **more)
    assert isinstance(found, stats.Ratio), found
    return found


def campaign(rng, blocks, noise=0.05, patterns="xyz"):
    """Return the runs of a full factorial language × pattern in each block, with block drift."""
    rows = [
        (
            (0.5 if a == "fast" else 1.0) * math.exp(0.3 * b + 0.2 * i + rng.normal(0, noise)),
            b,
            a,
            p,
        )
        for b in range(blocks)
        for a in ("fast", "slow")
        for i, p in enumerate(patterns)
    ]
    values, block, language, pattern = zip(*rows, strict=True)
    return list(values), list(block), {"language": list(language), "pattern": list(pattern)}


def test_two_treatments_in_blocks_are_the_paired_t_interval_of_the_log_ratio() -> None:
    fast, slow = [2.0, 2.2, 2.5, 3.1], [4.1, 4.0, 5.2, 6.0]
    fit = fitted(fast + slow, [0, 1, 2, 3] * 2, {"language": ["fast"] * 4 + ["slow"] * 4})
    found = ratio_of(fit, "language", "fast", "slow").interval
    logs = np.log(np.array(fast) / np.array(slow))
    half = scipy_stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    assert found.estimate == pytest.approx(math.exp(logs.mean()))
    assert found.low == pytest.approx(math.exp(logs.mean() - half))
    assert found.high == pytest.approx(math.exp(logs.mean() + half))
    assert found.degrees == 3


def test_the_pooled_error_is_that_of_the_two_way_table_worked_by_hand() -> None:
    # Montgomery's form of the randomised block design: SSE = SST − SStreatments − SSblocks.
    logs = np.array([[1.0, 1.3, 0.8], [1.9, 2.4, 1.7], [3.1, 3.2, 2.9], [0.4, 0.9, 0.7]])
    blocks = [b for b in range(3) for _ in range(4)]
    levels = [t for _ in range(3) for t in "abcd"]
    fit = fitted(np.exp(logs.T.ravel()), blocks, {"kind": levels})
    grand = logs.mean()
    within = (
        ((logs - grand) ** 2).sum()
        - 3 * ((logs.mean(axis=1) - grand) ** 2).sum()
        - 4 * ((logs.mean(axis=0) - grand) ** 2).sum()
    )
    assert fit.degrees == 6
    assert fit.variance == pytest.approx(within / 6)
    found = ratio_of(fit, "kind", "b", "a")
    assert found.interval.estimate == pytest.approx(math.exp(logs[1].mean() - logs[0].mean()))


def test_an_incomplete_block_stays_in_and_gives_the_treatment_its_block_effect_back() -> None:
    # Block 1 is a hundred times slower and lacks "slow", so a naive mean would be far off.
    fit = fitted(
        [1.0, 2.0, 100.0, 400.0, 1.1, 2.1, 4.2],
        [0, 0, 1, 1, 2, 2, 2],
        {"kind": ["fast", "slow", "fast", "other", "fast", "slow", "other"]},
    )
    found = ratio_of(fit, "kind", "slow", "fast").interval
    assert 1.7 < found.estimate < 2.3


def test_levels_in_blocks_of_their_own_are_not_compared() -> None:
    fit = fitted([1.0, 1.1, 2.0, 2.1], [0, 0, 1, 1], {"kind": ["a", "a", "b", "b"]})
    assert isinstance(stats.ratio(fit, "kind", "b", "a"), stats.NotComputable)


def test_one_block_gives_main_effects_with_the_other_factors_as_replication() -> None:
    values, blocks, factors = campaign(np.random.default_rng(3), 1)
    fit = fitted(values, blocks, factors)
    found = ratio_of(fit, "language", "fast", "slow")
    assert found.kind == "main effects"
    assert found.block_count == 1
    assert found.interval.degrees == 2
    table = np.log(np.array(values).reshape(2, 3))
    assert found.interval.estimate == pytest.approx(math.exp((table[0] - table[1]).mean()))


def test_one_block_refuses_a_ratio_at_one_level_of_another_factor() -> None:
    fit = fitted(*campaign(np.random.default_rng(3), 1))
    found = stats.ratio(fit, "language", "fast", "slow", within=("pattern", "x"))
    assert isinstance(found, stats.TooFew)


def test_within_a_level_only_the_runs_at_that_level_are_averaged() -> None:
    values, blocks, factors = campaign(np.random.default_rng(5), 4, noise=0.01)
    values = [
        v * (3.0 if la == "fast" and p == "x" else 1.0)
        for v, la, p in zip(values, factors["language"], factors["pattern"], strict=True)
    ]
    fit = fitted(values, blocks, factors)
    at_x = ratio_of(fit, "language", "fast", "slow", within=("pattern", "x"))
    at_y = ratio_of(fit, "language", "fast", "slow", within=("pattern", "y"))
    assert at_x.strata == at_y.strata == 1
    assert at_x.interval.estimate == pytest.approx(1.5, rel=0.05)
    assert at_y.interval.estimate == pytest.approx(0.5, rel=0.05)


def test_a_missing_combination_changes_no_ratio_at_the_levels_of_another_factor() -> None:
    # The ratio depends on the pattern alone. Without fast, y, large, the levels of size must not
    # average different patterns.
    rng = np.random.default_rng(3)
    rows = [
        ((0.5 if (a, p) == ("fast", "x") else 1.0) * math.exp(rng.normal(0, 0.01)), b, a, p, s)
        for b in range(5)
        for a in ("fast", "slow")
        for p in "xy"
        for s in ("small", "large")
        if (a, p, s) != ("fast", "y", "large")
    ]
    values, blocks, languages, patterns, sizes = map(list, zip(*rows, strict=True))
    fit = fitted(values, blocks, {"language": languages, "pattern": patterns, "size": sizes})
    ratios = [ratio_of(fit, "language", "fast", "slow", within=("size", s)) for s in set(sizes)]
    assert [ratio.interval.estimate for ratio in ratios] == pytest.approx([0.5, 0.5], rel=0.03)
    assert [ratio.strata for ratio in ratios] == [1, 1]


@pytest.mark.parametrize(
    ("values", "word"),
    [([1.0, 0.0, 1.0, 2.0], "zero"), ([1.0, math.inf, 1.0, 2.0], "unbounded")],
)
def test_values_that_have_no_logarithm_give_a_reason_and_no_number(values, word) -> None:
    found = fit_log(values, [0, 0, 1, 1], {"kind": ["a", "b", "a", "b"]})
    assert isinstance(found, stats.NotComputable)
    assert word in str(found)


def test_without_degrees_of_freedom_there_is_no_interval() -> None:
    fit = fitted([1.0, 2.0], [0, 0], {"kind": ["a", "b"]})
    assert isinstance(stats.ratio(fit, "kind", "b", "a"), stats.TooFew)


def test_a_planted_slope_over_the_order_of_execution_is_found() -> None:
    values, blocks, factors = campaign(np.random.default_rng(8), 6, noise=0.01)
    order = np.random.default_rng(1).permutation(len(values)).astype(float).tolist()
    drifting = [value * 1.01**at for value, at in zip(values, order, strict=True)]
    fit = fit_log(drifting, blocks, factors, order)
    assert isinstance(fit, Fit)
    found = stats.slope(fit, 10.0)
    assert isinstance(found, stats.Interval)
    assert found.low < 1.01**10 < found.high
    assert found.excludes(1.0)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(18)), st.floats(1e-6, 1e6))
def test_neither_the_order_of_rows_nor_the_unit_changes_a_ratio(order, scale) -> None:
    values, blocks, factors = campaign(np.random.default_rng(11), 3)
    before = ratio_of(fitted(values, blocks, factors), "language", "fast", "slow").interval
    after = ratio_of(
        fitted(
            [values[i] * scale for i in order],
            [blocks[i] for i in order],
            {name: [levels[i] for i in order] for name, levels in factors.items()},
        ),
        "language",
        "fast",
        "slow",
    ).interval
    assert after.estimate == pytest.approx(before.estimate, rel=1e-7)
    assert after.low == pytest.approx(before.low, rel=1e-6)
    assert after.high == pytest.approx(before.high, rel=1e-6)


def test_swapping_level_and_baseline_inverts_the_ratio_and_its_limits() -> None:
    fit = fitted(*campaign(np.random.default_rng(2), 3))
    there = ratio_of(fit, "language", "fast", "slow").interval
    back = ratio_of(fit, "language", "slow", "fast").interval
    assert back.estimate == pytest.approx(1 / there.estimate)
    assert back.low == pytest.approx(1 / there.high)


def test_intervals_hold_the_planted_ratio_as_often_as_they_say() -> None:
    rng = np.random.default_rng(2024)
    trials, hits = 1000, 0
    for _ in range(trials):
        fit = fitted(*campaign(rng, 3, noise=0.2))
        found = ratio_of(fit, "language", "fast", "slow").interval
        hits += found.low <= 0.5 <= found.high
    # 99.9 % binomial limits around 950 of 1,000
    assert 926 <= hits <= 971


def test_bonferroni_parts_the_error_over_the_family() -> None:
    assert stats.bonferroni(0.95, 1) == pytest.approx(0.95)
    assert stats.bonferroni(0.95, 12) == pytest.approx(1 - 0.05 / 12)
    with pytest.raises(ValueError, match="family_size"):
        stats.bonferroni(0.95, 0)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.97, 1.04, "equivalent"), (0.3, 0.4, "different"), (0.9, 1.2, "undecided")],
)
def test_three_outcomes_of_a_margin(low, high, word) -> None:
    interval = stats.Interval((low * high) ** 0.5, low, high, 0.95, 10, "made up")
    assert stats.conclusion(interval, 0.05) == word


def test_without_a_margin_nothing_is_equivalent() -> None:
    interval = stats.Interval(1.0, 0.999, 1.001, 0.95, 10, "made up")
    assert stats.conclusion(interval, None) == "undecided"


def test_geometric_mean_of_three_runs_by_hand_and_refusal_of_two() -> None:
    found = stats.geometric_mean([1.0, 2.0, 4.0])
    assert isinstance(found, stats.Interval)
    half = 4.302652729911275 * math.log(2) / math.sqrt(3)
    assert found.estimate == pytest.approx(2.0)
    assert found.high == pytest.approx(2 * math.exp(half))
    assert isinstance(stats.geometric_mean([1.0, 2.0]), stats.TooFew)


def test_factors_that_always_change_together_are_named_as_the_reason() -> None:
    factors = {"language": ["a", "b"] * 3, "settings.compiler": ["x", "y"] * 3,
               "pattern": ["p", "p", "q", "q", "r", "r"]}  # fmt: skip
    fit = fitted([1.0, 2.1, 1.2, 2.2, 1.1, 2.4], [0] * 6, factors)
    found = stats.ratio(fit, "language", "b", "a", names=("B", "A"))
    assert str(found) == (
        "B and A cannot be separated: language and compiler always change together"
    )
    assert isinstance(stats.ratio(fit, "pattern", "p", "q"), stats.Ratio)


def test_a_contrast_counts_the_runs_and_blocks_that_decide_it() -> None:
    rng = np.random.default_rng(4)
    values, blocks, factors = campaign(rng, 4)
    # A third language, in two blocks and with one pattern only.
    values += list(np.exp(rng.normal(0, 0.05, 2)))
    blocks += [0, 1]
    factors["language"] += ["third", "third"]
    factors["pattern"] += ["x", "x"]
    fit = fitted(values, blocks, factors)
    both = ratio_of(fit, "language", "fast", "slow")
    assert (both.run_count, both.block_count, both.interval.count) == (24, 4, 24)
    within = ratio_of(fit, "language", "fast", "slow", within=("pattern", "x"))
    assert (within.run_count, within.block_count) == (8, 4)
