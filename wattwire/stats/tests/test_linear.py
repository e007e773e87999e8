"""Test lines within blocks: formulas, coverage of intercept and slope, and lack of fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from wattwire import stats

NODES = [3.0, 5.0, 9.0, 17.0]
CAMPAIGNS = 800
TABLE = np.array(
    [[10.2, 13.9, 22.4, 38.0], [11.5, 15.1, 22.9, 40.3], [9.1, 13.2, 20.0, 37.7]]
)  # three blocks at four levels


def fitted(table, levels=NODES, confidence=0.95) -> stats.LinearFit:
    fit = stats.linear_fit(table, levels, confidence)
    assert isinstance(fit, stats.LinearFit), fit
    return fit


def squares_left(design, values) -> float:
    coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
    return float(np.sum((values - design @ coefficients) ** 2))


def designs(table):
    """Return the responses and both models' designs, written out with numpy alone."""
    block, level = np.nonzero(np.isfinite(table))
    blocks = (block[:, None] == np.arange(len(table))).astype(float)
    line = np.column_stack([blocks, np.array(NODES)[level]])
    means = np.hstack([blocks, (level[:, None] == np.arange(1, len(NODES))).astype(float)])
    return table[block, level], line, means


def simulated(seed, curve=0.0, intercept=4.0, slope=2.0, blocks=6, campaigns=CAMPAIGNS):
    """Yield tables with planted coefficients, block effects (sd 3) and errors (sd 1)."""
    rng = np.random.default_rng(seed)
    x = np.array(NODES)
    line = intercept + slope * x + curve * (x - x.mean()) ** 2
    for _ in range(campaigns):
        yield line + 3.0 * rng.normal(size=(blocks, 1)) + rng.normal(size=(blocks, x.size))


def share(flags) -> float:
    return float(np.mean(list(flags)))


def test_a_complete_design_gives_the_textbook_anova() -> None:
    fit = fitted(TABLE)
    x = np.array(NODES) - np.mean(NODES)
    level_means, grand_mean = TABLE.mean(axis=0), TABLE.mean()
    slope = float(level_means @ x / (x @ x))
    of_levels = 3 * float(np.sum((level_means - grand_mean) ** 2))
    of_line = 3 * slope**2 * float(x @ x)
    residuals = TABLE - TABLE.mean(axis=1, keepdims=True) - level_means + grand_mean
    error = float(np.sum(residuals**2)) / 6
    assert fit.slope.estimate == pytest.approx(slope)
    margin = special.stdtrit(6, 0.975) * np.sqrt(error / (3 * x @ x))
    assert (fit.slope.low, fit.slope.high) == pytest.approx((slope - margin, slope + margin))
    assert fit.intercept.estimate == pytest.approx(grand_mean - slope * np.mean(NODES))
    of_blocks = float(np.var(TABLE.mean(axis=1), ddof=1)) / 3
    of_slope = error * np.mean(NODES) ** 2 / (3 * x @ x)
    margin = special.stdtrit(2, 0.975) * np.sqrt(of_blocks + of_slope)
    assert fit.intercept.high - fit.intercept.estimate == pytest.approx(margin)
    assert (fit.lack_of_fit.degrees, fit.lack_of_fit.error_degrees) == (2, 6)
    assert fit.lack_of_fit.statistic == pytest.approx((of_levels - of_line) / 2 / error)
    assert fit.lack_of_fit.p == pytest.approx(special.fdtrc(2, 6, fit.lack_of_fit.statistic))
    assert fit.at(4.0) == pytest.approx(fit.intercept.estimate + 4.0 * slope)


def test_missing_values_give_the_extra_sum_of_squares_of_two_regressions() -> None:
    table = np.vstack([TABLE, [12.0, np.nan, 25.0, 41.0]])
    table[1, 3] = np.nan
    values, line, means = designs(table)
    coefficients, *_ = np.linalg.lstsq(line, values, rcond=None)
    error_degrees = values.size - np.linalg.matrix_rank(means)
    error = squares_left(means, values) / error_degrees
    fit = fitted(table)
    assert fit.slope.estimate == pytest.approx(coefficients[-1])
    assert fit.intercept.estimate == pytest.approx(np.mean(coefficients[:-1]))
    assert fit.slope.degrees == fit.lack_of_fit.error_degrees == error_degrees
    extra = squares_left(line, values) - squares_left(means, values)
    assert fit.lack_of_fit.statistic == pytest.approx(extra / 2 / error)


@pytest.mark.parametrize("blocks", [3, 6])
def test_intervals_cover_the_planted_coefficients(blocks) -> None:
    fits = [fitted(table) for table in simulated(5, blocks=blocks)]
    assert 0.933 <= share(not fit.slope.excludes(2.0) for fit in fits) <= 0.967
    assert share(not fit.intercept.excludes(4.0) for fit in fits) >= 0.945
    assert np.mean([fit.slope.estimate for fit in fits]) == pytest.approx(2.0, abs=0.01)


def test_lack_of_fit_has_its_level_under_a_line_and_detects_a_curve() -> None:
    straight = share(fitted(table).lack_of_fit.p < 0.05 for table in simulated(6))
    assert 0.033 <= straight <= 0.067
    curved = share(
        fitted(table).lack_of_fit.p < 0.05 for table in simulated(7, 0.05, campaigns=100)
    )
    assert curved > 0.95


def test_block_effects_do_not_affect_the_slope() -> None:
    shifted = TABLE + np.array([[0.0], [100.0], [-1000.0]])
    assert fitted(shifted).slope.low == pytest.approx(fitted(TABLE).slope.low)
    assert fitted(shifted).lack_of_fit.p == pytest.approx(fitted(TABLE).lack_of_fit.p)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (TABLE[:2], "there are only 2 blocks for a line, and at least 3 are needed"),
        (TABLE[:, :2], "there are only 2 levels for a line, and at least 3 are needed"),
        (np.where(TABLE > 40, np.inf, TABLE), "unbounded in 1 of 12 values (loss)"),
        (np.tile(TABLE[0], (3, 1)), "the blocks do not scatter, so the error of the line"),
    ],
)
def test_a_line_that_cannot_be_fitted_has_a_reason(table, reason) -> None:
    levels = NODES[: table.shape[1]]
    assert reason in str(stats.linear_fit(table, levels))


def test_blocks_with_one_value_and_levels_without_a_value_do_not_count() -> None:
    table = TABLE.copy()
    table[2, 1:] = np.nan
    assert isinstance(stats.linear_fit(table, NODES), stats.TooFew)
    table = TABLE.copy()
    table[:, 2:] = np.nan
    assert str(stats.linear_fit(table, NODES)).startswith("there are only 2 levels")
    # Each value is alone at its level or without scatter within block × level.
    apart = np.full((3, 6), np.nan)
    for block in range(3):
        apart[block, 2 * block : 2 * block + 2] = [1.0 + block, 2.5]
    assert str(stats.linear_fit(apart, range(6))).startswith("there are only 6 values for an error")


def test_wrong_shapes_and_levels_are_errors() -> None:
    with pytest.raises(ValueError, match=r"allowed: \(blocks, 4\)"):
        stats.linear_fit(TABLE[:, :3], NODES)
    for levels in ([3, 3, 5, 7], [3, 5, 7, np.nan]):
        with pytest.raises(ValueError, match="distinct finite"):
            stats.linear_fit(TABLE, levels)
