"""Test differences of responses without a logarithm, and the reasons for missing results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire import stats
from wattwire.stats.blocked import GROUPED

BEFORE = np.array([-0.4, 1.1, 0.7, 2.0, 0.2, 1.6])
AFTER = np.array([0.3, 1.9, 1.2, 3.1, 0.6, 2.2])


def plain(values, factors, blocks=None) -> stats.Fit:
    fit = stats.fit_plain(values, blocks or [1] * len(values), factors)
    assert isinstance(fit, stats.Fit)
    return fit


def test_two_levels_in_blocks_give_the_paired_t_interval() -> None:
    fit = plain(
        np.concatenate([BEFORE, AFTER]),
        {"meter": ["before"] * 6 + ["after"] * 6},
        list(range(6)) * 2,
    )
    found = stats.difference(fit, "meter", "after", "before", 0.9)
    assert isinstance(found, stats.Difference)
    low, high = scipy_stats.ttest_rel(AFTER, BEFORE).confidence_interval(0.9)
    assert found.interval.estimate == pytest.approx(np.mean(AFTER - BEFORE))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert found.interval.degrees == 5


def test_two_levels_without_blocks_give_welchs_two_samples() -> None:
    fit = plain([*BEFORE, *AFTER], {"meter": ["before"] * 6 + ["after"] * 6})
    found = stats.difference(fit, "meter", "after", "before")
    assert isinstance(found, stats.Difference)
    low, high = scipy_stats.ttest_ind(AFTER, BEFORE, equal_var=False).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))


def test_a_value_without_logarithm_is_counted_and_a_difference_needs_none() -> None:
    values, factors = [*BEFORE, *AFTER], {"meter": ["before"] * 6 + ["after"] * 6}
    refused = stats.fit_log(values, [1] * 12, factors)
    assert isinstance(refused, stats.NotPositive)
    assert (refused.count, refused.runs) == (1, 12)
    assert str(refused) == "zero or negative in 1 of 12 runs"


def test_a_scale_that_was_not_fitted_is_no_answer() -> None:
    logs = stats.fit_log(np.exp(BEFORE), [1] * 6, {"meter": ["a", "b"] * 3})
    assert isinstance(logs, stats.Fit)
    with pytest.raises(ValueError, match="plain scale"):
        stats.difference(logs, "meter", "a", "b")


def test_reasons_call_levels_by_the_names_given() -> None:
    fit = plain(BEFORE, {"language": ["py", "rs"] * 3})
    names = ("C++", "Python")
    assert str(stats.difference(fit, "language", "cpp", "py", names=names)) == (
        "no run of C++ has a value"
    )
    flat = plain([1.0, 2.0] * 3, {"language": ["py", "cpp"] * 3})
    told = str(stats.difference(flat, "language", "cpp", "py", names=names))
    assert told.startswith("C++ minus Python is 1 without scatter")


def test_a_shift_by_ranks_takes_negative_values_and_a_ratio_is_one_of_logs() -> None:
    shift = stats.paired_shift_by_ranks(AFTER, BEFORE, 0.9)
    assert isinstance(shift, stats.Interval)
    # Six differences 0.4 … 1.1: the third Walsh averages from both ends have level 1 − 6/64.
    assert shift.estimate == pytest.approx(0.65)
    assert (shift.low, shift.high) == pytest.approx((0.5, 0.9))
    assert shift.level == pytest.approx(1 - 6 / 64)
    ratio = stats.paired_ratio_by_ranks(np.exp(AFTER), np.exp(BEFORE), 0.9)
    assert isinstance(ratio, stats.Interval)
    assert np.log([ratio.low, ratio.estimate, ratio.high]) == pytest.approx(
        [shift.low, shift.estimate, shift.high]
    )
    refused = stats.paired_ratio_by_ranks(AFTER, BEFORE)
    assert str(refused) == "a value is zero or negative in a block"


def test_a_block_that_has_neither_level_adds_no_degree_of_freedom_to_an_order_of_groups() -> None:
    # Both levels are in blocks 1 to 6 only; blocks 7 and 8 have only the third level.
    runs = [(block, level, size) for block in range(1, 7) for level in "abc" for size in (1, 2)]
    runs += [(block, "c", size) for block in (7, 8) for size in (1, 2)]
    values = np.random.default_rng(1).normal(10.0, 1.0, len(runs))
    columns = {"level": [level for _, level, _ in runs], "size": [size for _, _, size in runs]}
    fit = stats.fit_plain(values, [block for block, _, _ in runs], columns, order=GROUPED)
    assert isinstance(fit, stats.Fit)
    found = stats.difference(fit, "level", "b", "a")
    assert isinstance(found, stats.Difference)
    assert found.interval.degrees == 5
