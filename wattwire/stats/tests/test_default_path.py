"""Test the default ranks, shares of variance and block tests against known values."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats import block_ranks, ranks
from wattwire.stats.block_ranks import blocks_needed
from wattwire.stats.ranks import rank_cut
from wattwire.stats.two_samples import newcombe_limits, rank_sum_distribution

RNG = np.random.default_rng(20_060_101)
ON_DEMAND = ("scipy.stats", "scipy.optimize")
"""Packages whose import takes as long as half of a small page."""


def blocked(effects: dict[tuple[str, int], float], blocks: int, seed: int = 1):
    """Return the runs of two factors in blocks: response, blocks, factors."""
    rng = np.random.default_rng(seed)
    rows = [(block, *key) for block in range(blocks) for key in effects]
    level = rng.normal(0.0, 0.05, blocks)
    values = [
        math.exp(1.0 + level[block] + effects[(a, b)] + rng.normal(0.0, 0.1))
        for block, a, b in rows
    ]
    factors = {"language": [a for _, a, _ in rows], "clients": [b for _, _, b in rows]}
    return np.array(values), [block for block, _, _ in rows], factors


def test_rank_sum_probabilities_of_four_and_four() -> None:
    # There are 70 ways to choose four of eight; counts 0 … 16 have 1, 1, 2, 3, 5, … of them.
    found = rank_sum_distribution(4, 4) * 70
    assert found[:5] == pytest.approx([1, 1, 2, 3, 5])
    assert found == pytest.approx(found[::-1])


def test_shift_limits_turn_where_the_rank_sum_test_turns() -> None:
    upper, lower = RNG.normal(1, 1, 7), RNG.normal(0, 1, 9)
    found = stats.shift_by_ranks(upper, lower)
    assert isinstance(found, stats.Interval)
    for limit, rejected in ((found.low, -1e-9), (found.high, 1e-9)):
        outside = scipy_stats.mannwhitneyu(upper - limit - rejected, lower, method="exact")
        inside = scipy_stats.mannwhitneyu(upper - limit + rejected, lower, method="exact")
        assert outside.pvalue <= 1 - found.level + 1e-12 < inside.pvalue


def test_shift_of_four_and_four_says_its_level_and_three_are_too_few() -> None:
    found = stats.shift_by_ranks([5, 6, 7, 8.5], [1, 2, 3, 4.25])
    assert isinstance(found, stats.Interval)
    assert found.level == pytest.approx(1 - 2 / 70)
    assert (found.low, found.high) == (0.75, 7.5)
    assert isinstance(stats.shift_by_ranks([1, 2, 3], [4, 5, 6, 7]), stats.TooFew)
    tied = stats.shift_by_ranks([1, 1, 2, 2], [1, 2, 3, 3])
    assert isinstance(tied, stats.Interval)
    assert "ties" in tied.method


def test_delta_of_separate_samples_is_one_and_its_limit_solves_newcombes_equation() -> None:
    found = stats.cliffs_delta([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert isinstance(found, stats.Interval)
    assert (found.estimate, found.high) == (1.0, 1.0)
    at = (found.low + 1) / 2
    variance = at * (1 - at) * (1 + 4 * (1 - at) / (2 - at) + 4 * at / (1 + at)) / 25
    assert (1 - at) / math.sqrt(variance) == pytest.approx(1.959964, rel=1e-5)
    mirrored = stats.cliffs_delta([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert isinstance(mirrored, stats.Interval)
    assert mirrored.high == pytest.approx(-found.low)
    low, high = newcombe_limits(np.array([0.5]), 5, 5, 0.95)
    assert low + high == pytest.approx(1.0)


def test_friedman_agrees_with_the_exact_table() -> None:
    # Four blocks of three: chi-squared 6.5 has p = .042, and 8 has .0046 (Hollander & Wolfe, A.22).
    ranks = [[1, 2, 3], [1, 2, 3], [1, 2, 3], [2, 1, 3]]
    found = stats.friedman(ranks)
    assert isinstance(found, stats.BlockRanks)
    assert found.p == pytest.approx(0.0417, abs=5e-5)
    best = stats.friedman([[1, 2, 3]] * 4)
    assert isinstance(best, stats.BlockRanks)
    assert best.p == pytest.approx(6 / 6**4)


def test_quade_over_two_levels_is_the_signed_rank_test() -> None:
    table = RNG.normal(size=(8, 2)) + [0.0, 0.8]
    found = stats.quade(table)
    known = scipy_stats.wilcoxon(table[:, 1] - table[:, 0], method="exact")
    assert isinstance(found, stats.BlockRanks)
    assert found.exact
    assert found.p == pytest.approx(known.pvalue)


def test_drawn_permutations_agree_with_the_large_sample_limit() -> None:
    table = RNG.normal(size=(40, 6)) + np.linspace(0, 0.35, 6)
    found = stats.friedman(table)
    assert isinstance(found, stats.BlockRanks)
    assert not found.exact
    assert found.p == pytest.approx(scipy_stats.friedmanchisquare(*table.T).pvalue, abs=0.02)


def test_ranks_ask_for_as_many_blocks_as_a_p_below_five_percent_takes() -> None:
    assert [blocks_needed(levels) for levels in (2, 3, 4)] == [6, 3, 2]
    assert isinstance(stats.friedman([[1, 2]] * 5), stats.TooFew)
    assert isinstance(stats.friedman([[1, 1, 1]] * 5), stats.NotComputable)


def test_one_factors_f_is_that_of_a_randomised_block_analysis() -> None:
    values, blocks, factors = blocked({("a", 1): 0, ("b", 1): 0.1, ("c", 1): 0.3}, 6)
    fit = stats.fit_log(values, blocks, {"language": factors["language"]})
    assert isinstance(fit, stats.Fit)
    found = stats.main_effect(fit, "language")
    assert isinstance(found, stats.Effect)
    table = np.log(values).reshape(6, 3)
    rows = table - table.mean(axis=1, keepdims=True)
    between = 6 * np.sum(rows.mean(axis=0) ** 2)
    within = np.sum((rows - rows.mean(axis=0)) ** 2)
    assert found.statistic == pytest.approx(between / 2 / (within / 10))
    assert (found.degrees, found.error_degrees) == (2, 10)


def test_omega_squared_has_the_limits_of_the_noncentral_f() -> None:
    found = stats.omega_squared(6.0, 2, 27, 30)
    assert found.estimate == pytest.approx(10 / 40)
    for limit, chance in ((found.low, 0.975), (found.high, 0.025)):
        noncentrality = 30 * limit / (1 - limit)
        assert scipy_stats.ncf.cdf(6.0, 2, 27, noncentrality) == pytest.approx(chance, abs=1e-4)
    none = stats.omega_squared(0.3, 2, 27, 30)
    assert (none.estimate, none.low) == (0.0, 0.0)


def test_an_interaction_of_ratios_is_found_and_one_of_differences_only_is_not() -> None:
    apart = {("a", 1): 0.0, ("b", 1): 0.5, ("a", 4): 1.5, ("b", 4): 2.6}
    values, blocks, factors = blocked(apart, 6)
    found = stats.interaction(fitted(values, blocks, factors), "language", "clients")
    assert isinstance(found, stats.Effect)
    assert found.p < 0.001
    assert found.permuted_p == pytest.approx(1 / 500)
    parallel = {("a", 1): 0.0, ("b", 1): 1.0, ("a", 4): 1.5, ("b", 4): 2.5}
    values, blocks, factors = blocked(parallel, 6, seed=3)
    log = stats.interaction(fitted(values, blocks, factors), "language", "clients")
    plain_fit = stats.fit_plain(values, blocks, factors)
    assert isinstance(plain_fit, stats.Fit)
    plain = stats.interaction(plain_fit, "language", "clients")
    assert isinstance(log, stats.Effect)
    assert isinstance(plain, stats.Effect)
    assert log.p > 0.05
    assert abs(log.p - (log.permuted_p or 0)) < 0.1
    assert plain.p < 0.01


def fitted(values, blocks, factors) -> stats.Fit:
    fit = stats.fit_log(values, blocks, factors)
    assert isinstance(fit, stats.Fit)
    return fit


def test_one_block_shows_no_interaction_and_runs_without_scatter_no_effect() -> None:
    values, blocks, factors = blocked({("a", 1): 0, ("b", 1): 1, ("a", 4): 2, ("b", 4): 4}, 1)
    one = stats.interaction(fitted(values, blocks, factors), "language", "clients")
    assert isinstance(one, stats.TooFew)
    still = stats.fit_log([1, 2] * 4, [0, 0, 1, 1, 2, 2, 3, 3], {"language": ["a", "b"] * 4})
    assert isinstance(still, stats.Fit)
    assert isinstance(stats.main_effect(still, "language"), stats.NotComputable)
    for high in (1, 2):
        still = fitted([1, high] * 4, [0, 0, 1, 1, 2, 2, 3, 3], {"language": ["a", "b"] * 4})
        refused = stats.ratio(still, "language", "b", "a")
        assert isinstance(refused, stats.NotComputable)
        assert f"b to a is {high} without scatter" in str(refused)


def test_a_plain_fit_gives_no_ratio() -> None:
    fit = stats.fit_plain([1.0, 2, 3, 5], [0, 0, 1, 1], {"language": ["a", "b"] * 2})
    assert isinstance(fit, stats.Fit)
    with pytest.raises(ValueError, match="log scale"):
        stats.ratio(fit, "language", "b", "a")


def test_a_predecessors_mark_is_found_where_it_is_and_only_there() -> None:
    rng = np.random.default_rng(5)
    languages, values, blocks, before = [], [], [], []
    previous = None
    for block in range(20):
        for name in rng.permutation(["a", "b", "c", "a", "b", "c"]):
            mark = 0.2 if previous == "c" else 0.0
            values.append(math.exp(0.05 * rng.normal() + mark))
            languages.append(str(name))
            blocks.append(block)
            before.append(previous)
            previous = str(name)
    found = stats.predecessor_effect(values, blocks, {"language": languages}, before)
    assert isinstance(found, stats.Effect)
    assert found.p < 1e-6
    clean = np.exp(0.05 * rng.normal(size=len(values)))
    without = stats.predecessor_effect(clean, blocks, {"language": languages}, before)
    assert isinstance(without, stats.Effect)
    assert without.p > 0.05
    tied = stats.predecessor_effect(values, blocks, {"language": languages}, ["a"] * len(values))
    assert isinstance(tied, stats.NotComputable)


def test_bootstrap_takes_twenty_runs_and_an_alarm_rate_three_hundred_pairs() -> None:
    values = RNG.lognormal(0, 0.3, 25)
    found = stats.bootstrap_interval(values, np.mean, resamples=999)
    assert isinstance(found, stats.Interval)
    assert found.low < found.estimate < found.high
    assert isinstance(stats.bootstrap_interval(values[:19], np.mean), stats.TooFew)
    assert isinstance(stats.bootstrap_interval(np.ones(20), np.mean), stats.NotComputable)
    assert isinstance(stats.alarm_rate(14, 299), stats.TooFew)
    rate = stats.alarm_rate(15, 300)
    assert isinstance(rate, stats.Interval)
    assert rate.low < 0.05 < rate.high


def test_unequal_spread_far_runs_and_like_neighbours_are_noticed() -> None:
    rng = np.random.default_rng(8)
    levels = ["a", "b", "c"] * 15
    blocks = [i // 3 for i in range(45)]
    scale = np.array([1.0, 1.0, 6.0] * 15)
    noisy = fitted(np.exp(0.05 * scale * rng.normal(size=45)), blocks, {"language": levels})
    spread = stats.spread_between(noisy, levels)
    assert isinstance(spread, stats.Spread)
    assert spread.noisiest == "c"
    assert spread.p < 0.01
    assert spread.ratio == pytest.approx(6.0, rel=0.5)
    still = np.exp(0.05 * rng.normal(size=45))
    like = fitted(still, blocks, {"language": levels})
    assert stats.far_out(like) is None
    still[7] *= 1.5
    found = stats.far_out(fitted(still, blocks, {"language": levels}))
    assert isinstance(found, stats.FarOut)
    assert found.run == 7
    waves = np.exp(0.2 * np.sin(np.arange(200) / 6.0) + 0.02 * rng.normal(size=200))
    order = list(range(200))
    drawn = [str(n) for n in rng.permutation(["a", "b"] * 100)]
    drifting = fitted(waves, [i // 40 for i in order], {"language": drawn})
    serial = stats.serial_correlation(drifting, order)
    assert isinstance(serial, stats.SerialCorrelation)
    assert serial.correlation > 0.5
    assert serial.p < 1e-6
    two = fitted(np.exp(rng.normal(size=40)), [i // 2 for i in range(40)], {"f": ["a", "b"] * 20})
    assert isinstance(stats.spread_between(two, ["a", "b"] * 20), stats.NotComputable)


def test_more_runs_than_memory_holds_are_refused_and_many_runs_are_answered() -> None:
    pairs = 3_000
    levels = {"language": ["a", "b"] * pairs}
    values = [1.0, 2.0, 1.5, 2.5] * (pairs // 2)
    blocked = fitted(values, [at // 2 for at in range(2 * pairs)], levels)
    assert blocked.degrees == pairs - 1
    found = stats.ratio(blocked, "language", "b", "a")
    assert isinstance(found, stats.Ratio)
    # Half of the blocks have a ratio of 2, and half have a ratio of 5/3.
    assert found.interval.estimate == pytest.approx(np.sqrt(2.0 * 5.0 / 3.0))
    lonely = stats.fit_log(values, [1] * (2 * pairs), {"name": list(range(2 * pairs))})
    assert "6000 runs of 6000 treatments" in str(lonely)
    ranked = stats.paired_ratio_by_ranks(values, [1.0] * (2 * pairs))
    assert "6000 blocks" in str(ranked)
    together = fitted(values, [1] * (2 * pairs), levels)
    assert isinstance(stats.ratio(together, "language", "b", "a"), stats.Ratio)
    assert isinstance(stats.spread_between(together, levels["language"]), stats.NotComputable)
    independent = stats.serial_correlation(together, range(2 * pairs))
    assert isinstance(independent, stats.SerialCorrelation)
    assert independent.p > 0.01
    by_residual = np.argsort(np.argsort(together.residuals))
    sorted_runs = stats.serial_correlation(together, by_residual)
    assert isinstance(sorted_runs, stats.SerialCorrelation)
    assert sorted_runs.correlation > 0.9 and sorted_runs.p < 0.01


@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_many_pairs_have_the_exact_level_but_for_rounding(confidence, monkeypatch) -> None:
    exact = rank_cut.__wrapped__(300, confidence)
    monkeypatch.setattr(ranks, "EXACT_MAX", 299)
    cut, level = rank_cut.__wrapped__(300, confidence)
    assert abs(cut - exact[0]) <= 8
    tail = np.cumsum(ranks.signed_rank_distribution(300))
    assert level == pytest.approx(1.0 - 2.0 * tail[cut - 1], abs=2e-4)


@pytest.mark.parametrize("test", [stats.friedman, stats.quade])
def test_many_blocks_have_the_p_of_permuting_them(test, monkeypatch) -> None:
    rng = np.random.default_rng(8)
    table = rng.normal(size=(600, 3)) + [0.0, 0.05, 0.1]
    quick = test(table)
    monkeypatch.setattr(block_ranks, "CHI_SQUARED_MIN", 601)
    assert quick.p == pytest.approx(test(table).p, abs=0.01)


def test_a_page_imports_the_tests_of_scipy_only_when_it_uses_them() -> None:
    program = "import sys, wattwire.report.page, wattwire.report.page_parts as parts; "
    program += "parts.topics_with_section(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert "scipy.special" in modules
    assert not set(ON_DEMAND) & set(modules)
