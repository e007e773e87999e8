"""Test the default statistics against values that R 4 computed from the same numbers.

Each test names the R call. Friedman's and Quade's statistics equal R's statistics. Their p-values
differ, because R uses chi-squared and F, and wattwire uses permutation.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats.block_ranks import friedman_scores, quade_scores

VALUES = [12.1, 15.3, 11.0, 18.2, 10.9, 14.8, 10.1, 19.5, 13.3, 15.9, 12.4, 17.1, 11.7, 16.6,
          10.8, 21.0, 12.9, 14.1, 11.9, 18.8]  # fmt: skip
BLOCKS = np.repeat(np.arange(5), 4).tolist()
FACTORS = {"a": ["x", "y"] * 10, "b": ["s", "s", "t", "t"] * 5}
UPPER = [5.1, 6.3, 7.9, 4.4, 6.6, 8.2, 5.8]
LOWER = [4.0, 3.7, 5.5, 4.9, 3.1, 5.0]
SHOPS = [[5, 4, 7, 10, 12], [1, 3, 1, 0, 2], [16, 12, 22, 22, 35], [5, 4, 3, 5, 4],
         [10, 9, 7, 13, 10], [19, 18, 28, 37, 58], [10, 7, 6, 8, 7]]  # fmt: skip


@pytest.mark.parametrize(
    ("scale", "sources"),
    [
        ("log", {"a": (120.10595, 1.3197e-07), "b": (3.50245, 0.0858488),
                 "a:b": (17.76668, 0.0011994)}),
        ("plain", {"a": (111.64074, 1.9693e-07), "b": (6.62174, 0.0243981),
                   "a:b": (19.41069, 0.0008567)}),
    ],
)  # fmt: skip
def test_the_table_of_variance_is_that_of_lm(scale, sources) -> None:
    # anova(lm(log(y) ~ block + a * b)) and anova(lm(y ~ block + a * b))
    fit = (stats.fit_log if scale == "log" else stats.fit_plain)(VALUES, BLOCKS, FACTORS)
    assert isinstance(fit, stats.Fit)
    found = {
        "a": stats.main_effect(fit, "a"),
        "b": stats.main_effect(fit, "b"),
        "a:b": stats.interaction(fit, "a", "b"),
    }
    for source, (statistic, p) in sources.items():
        effect = found[source]
        assert isinstance(effect, stats.Effect)
        assert (effect.degrees, effect.error_degrees) == (1, 12)
        assert effect.statistic == pytest.approx(statistic, rel=1e-6)
        assert effect.p == pytest.approx(p, rel=1e-4)


def test_the_ratio_and_the_pooled_error_are_those_of_confint() -> None:
    # exp(-2 * confint(lm(log(y) ~ block + a * b), "a1")) with sum contrasts
    fit = stats.fit_log(VALUES, BLOCKS, FACTORS)
    assert isinstance(fit, stats.Fit)
    found = stats.ratio(fit, "a", "y", "x")
    assert isinstance(found, stats.Ratio)
    estimate, low, high = (1.45687106645, 1.35185903671, 1.57004040112)
    assert found.interval.estimate == pytest.approx(estimate, rel=1e-9)
    # A ratio over 2 of 4 treatments in 5 blocks has the variance σ²/5.
    half = scipy_stats.t.ppf(0.975, 12) * np.sqrt(fit.variance / 5)
    assert (np.exp(np.log(estimate) - half), np.exp(np.log(estimate) + half)) == pytest.approx(
        (low, high), rel=1e-9
    )


def test_two_levels_in_one_block_are_those_of_welchs_t_test() -> None:
    # t.test(u, v), Welch, on the logs
    fit = stats.fit_log(UPPER + LOWER, [1] * 13, {"a": ["u"] * len(UPPER) + ["v"] * len(LOWER)})
    assert isinstance(fit, stats.Fit)
    found = stats.ratio(fit, "a", "u", "v")
    assert isinstance(found, stats.Ratio)
    known = scipy_stats.ttest_ind(np.log(UPPER), np.log(LOWER), equal_var=False)
    limits = known.confidence_interval()
    assert found.interval.degrees == pytest.approx(known.df)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (np.exp(limits.low), np.exp(limits.high))
    )


def test_the_shift_is_that_of_wilcox_test() -> None:
    # wilcox.test(u, v, exact = TRUE, conf.int = TRUE); 1 - 2 * pwilcox(qwilcox(.025, 7, 6) - 1, …)
    found = stats.shift_by_ranks(UPPER, LOWER)
    assert isinstance(found, stats.Interval)
    assert (found.estimate, found.low, found.high) == pytest.approx((1.9, 0.3, 3.5))
    assert found.level == pytest.approx(0.965034965035)


def test_the_paired_ratio_is_that_of_wilcox_test() -> None:
    # exp(wilcox.test(log(u[1:6]), log(v), paired = TRUE, conf.int = TRUE)$conf.int)
    found = stats.paired_ratio_by_ranks(UPPER[:6], LOWER)
    assert isinstance(found, stats.Interval)
    known = (1.47341302626, 0.897959183673, 2.129032258065)
    assert (found.estimate, found.low, found.high) == pytest.approx(known)
    assert found.level == pytest.approx(1 - 2 * 0.015625)


@pytest.mark.parametrize(
    ("statistic", "degrees", "error_degrees", "count", "low", "high"),
    [
        (6.0, 2, 27, 30, 0.0309583083623, 0.5014416260432),
        (1.2, 3, 16, 20, 0.0, 0.388073494886),
        (11.5, 1, 38, 40, 0.0387300138023, 0.4282679874575),
    ],
)
def test_omega_squareds_limits_are_those_of_pf(
    statistic, degrees, error_degrees, count, low, high
) -> None:
    # uniroot of pf(F, df1, df2, ncp) - .975 and - .025, as ncp / (ncp + N)
    found = stats.omega_squared(statistic, degrees, error_degrees, count)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_deltas_limits_solve_newcombes_equation_as_uniroot_does() -> None:
    found = stats.cliffs_delta(UPPER, LOWER)
    assert isinstance(found, stats.Interval)
    known = (0.809523809524, 0.166945193335, 0.964858094936)
    assert (found.estimate, found.low, found.high) == pytest.approx(known)


def test_friedmans_and_quades_statistics_are_those_of_r() -> None:
    # friedman.test(m): chi-squared 8.328358209; quade.test(m): F 3.829251584 (Conover's shops)
    data = np.array(SHOPS, dtype=float)
    scores = friedman_scores(data).astype(float)
    blocks, levels = data.shape
    sums = scores.sum(axis=0)
    assert (levels - 1) * (sums**2).sum() / (scores**2).sum() == pytest.approx(8.328358209)
    weighted = quade_scores(data).astype(float)
    between = (weighted.sum(axis=0) ** 2).sum() / blocks
    statistic = (blocks - 1) * between / ((weighted**2).sum() - between)
    assert statistic == pytest.approx(3.829251584)
    ranked, spread = stats.friedman(data), stats.quade(data)
    assert isinstance(ranked, stats.BlockRanks)
    assert isinstance(spread, stats.BlockRanks)
    assert ranked.p == pytest.approx(0.0803, abs=0.02)
    assert spread.p == pytest.approx(0.0152, abs=0.02)
