"""What stands in for scipy.stats gives what scipy.stats gives."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats as theirs

from wattwire.stats import association, distributions

DEGREES = (1, 2, 5.5, 40, 1e5)


@pytest.mark.parametrize("degrees", DEGREES)
def test_tails_and_quantiles_are_the_same_to_the_last_bit(degrees):
    for share in (1e-9, 0.025, 0.5, 0.9, 0.975, 0.9999):
        assert distributions.t.ppf(share, degrees) == theirs.t.ppf(share, degrees)
        assert distributions.chi2.ppf(share, degrees) == theirs.chi2.ppf(share, degrees)
        assert distributions.norm.ppf(share) == theirs.norm.ppf(share)
        mirrored = theirs.beta.isf(share, 0.5, degrees)
        assert distributions.beta_isf(share, 0.5, degrees) == mirrored
    for value in (-3.0, 0.0, 0.7, 50.0, np.inf):
        assert distributions.t.sf(value, degrees) == theirs.t.sf(value, degrees)
        assert distributions.f.sf(value, 3, degrees) == theirs.f.sf(value, 3, degrees)
        assert distributions.chi2.sf(value, degrees) == theirs.chi2.sf(value, degrees)
        assert distributions.norm.sf(value) == theirs.norm.sf(value)
        assert distributions.norm.cdf(value) == theirs.norm.cdf(value)
    assert np.isnan(distributions.f.sf(np.nan, 3, degrees))


def samples():
    rng = np.random.default_rng(1)
    drawn = [rng.normal, rng.exponential, rng.standard_cauchy, rng.random]
    for size in [*range(3, 14), 20, 51, 300, 4_999]:
        for draw in drawn:
            yield draw(size=size) * 10.0 ** rng.integers(-5, 6) + 7.0
            yield np.round(3.0 * draw(size=size)) + np.arange(size) % 2


def test_royston_s_w_is_theirs_but_for_their_shorter_normal_quantiles():
    for values in samples():
        found, wanted = distributions.royston(values), theirs.shapiro(values)
        assert found[0] == pytest.approx(wanted.statistic, abs=1e-8)
        # Of three values W is never below 3/4, where p is 0 but for rounding.
        rounding = 1e-14 if values.size == 3 else 0.0
        assert found[1] == pytest.approx(wanted.pvalue, rel=1e-5, abs=rounding)


def test_ranks_and_what_rests_on_them_are_theirs():
    rng = np.random.default_rng(2)
    table = rng.integers(0, 4, (6, 5)).astype(float)
    table[2, 1:3] = table[4, 2:] = np.inf
    table[3, :2] = -np.inf
    assert distributions.rankdata(table, axis=1).tolist() == theirs.rankdata(table, axis=1).tolist()
    assert distributions.rankdata(table).tolist() == theirs.rankdata(table).tolist()
    assert distributions.rankdata([]).tolist() == []
    with pytest.raises(ValueError, match="axis: 0"):
        distributions.rankdata(table, axis=0)
    for digits in (0, 1, 8):
        groups = [np.round(rng.normal(size=size), digits) for size in (4, 9, 6)]
        ranked = distributions.rankdata(np.concatenate(groups))
        wanted = theirs.kruskal(*groups)
        found = distributions.kruskal_h(ranked, (4, 9, 6))
        assert found == pytest.approx((wanted.statistic, wanted.pvalue), rel=1e-11)


def test_correlation_and_slope_are_theirs():
    rng = np.random.default_rng(3)
    for size in (4, 9, 60):
        x, y = rng.lognormal(size=size), rng.lognormal(size=size)
        wanted = theirs.pearsonr(x, y)
        found = distributions.pearson(x, y)
        assert found == pytest.approx((wanted.statistic, wanted.pvalue), rel=1e-13)
        line = theirs.linregress(np.log(x), np.log(y))
        interval = association.exponent(x, y)
        half = theirs.t.ppf(0.975, size - 2) * line.stderr
        assert interval.estimate == pytest.approx(line.slope, rel=1e-13)
        assert interval.high - interval.estimate == pytest.approx(half, rel=1e-12)
    exact = association.exponent([1.0, 2.0, 4.0, 8.0], [3.0, 6.0, 12.0, 24.0])
    assert exact.low == pytest.approx(1.0) and exact.high == pytest.approx(1.0)


def test_scipy_stats_is_loaded_when_something_else_is_asked_for():
    told = "import sys, wattwire.stats; from wattwire.stats import distributions as d\n"
    told += "before = 'scipy.stats' in sys.modules; d.binom.sf(1, 2, 0.5)\n"
    told += "print(before, 'scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError):
        distributions.no_such_test  # noqa: B018 - asked for, to be refused
