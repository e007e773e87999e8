"""Test the ratio of treatments against `blocked.ratio`, paired t intervals and planted ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire import stats

SIZES = ("small", "large")


def fitted(rng: np.random.Generator, blocks: int) -> stats.Fit:
    """Return the fit of udp and tcp at two sizes, where tcp takes 3 and large 10 times as long."""
    rows = [
        (
            (3.0 if protocol == "tcp" else 1.0)
            * (10.0 if size == "large" else 1.0)
            * math.exp(0.3 * block + rng.normal(0, 0.05)),
            block,
            protocol,
            size,
        )
        for block in range(blocks)
        for protocol in ("udp", "tcp")
        for size in SIZES
    ]
    values, block, protocols, sizes = zip(*rows, strict=True)
    fit = stats.fit_log(values, block, {"protocol": list(protocols), "size": list(sizes)})
    assert isinstance(fit, stats.Fit)
    return fit


def test_pairs_that_differ_in_one_factor_give_the_ratio_of_an_answer():
    fit = fitted(np.random.default_rng(1), 4)
    pairs = [(("tcp", size), ("udp", size)) for size in SIZES]
    answer = stats.ratio(fit, "protocol", "tcp", "udp", 0.99)
    assert isinstance(answer, stats.Ratio)
    ratio = stats.treatment_ratio(fit, pairs, 0.99)
    assert ratio == answer.interval


DIAGONAL = [(("tcp", "large"), ("udp", "small"))]


def test_the_interval_of_a_pair_that_differs_in_two_factors_covers_the_planted_ratio():
    intervals = [
        stats.treatment_ratio(fitted(np.random.default_rng(seed), 3), DIAGONAL, 0.95)
        for seed in range(200)
    ]
    covered = sum(interval.low < 30.0 < interval.high for interval in intervals)
    assert 180 <= covered <= 199


def test_a_multiple_multiplies_the_ratio_and_its_interval():
    fit = fitted(np.random.default_rng(2), 6)
    plain, twice = (stats.treatment_ratio(fit, DIAGONAL, 0.95, times) for times in (1.0, 2.0))
    assert (twice.estimate, twice.low, twice.high) == pytest.approx(
        (2 * plain.estimate, 2 * plain.low, 2 * plain.high)
    )


def test_with_two_treatments_it_is_the_paired_t_interval():
    fast, slow = [2.0, 2.2, 2.5, 3.1], [4.1, 4.0, 5.2, 6.0]
    fit = stats.fit_log(fast + slow, [0, 1, 2, 3] * 2, {"cell": ["fast"] * 4 + ["slow"] * 4})
    ratio = stats.treatment_ratio(fit, [(("fast",), ("slow",))], 0.95)
    logs = np.log(np.array(fast) / np.array(slow))
    half = scipy_stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    assert (ratio.low, ratio.high) == pytest.approx(
        (math.exp(logs.mean() - half), math.exp(logs.mean() + half))
    )


def test_one_block_and_treatments_of_different_blocks_give_no_ratio():
    few = stats.treatment_ratio(fitted(np.random.default_rng(3), 1), DIAGONAL, 0.95)
    assert few == stats.TooFew(1, 2, few.what)
    apart = stats.fit_log([1.0, 1.1, 2.0, 2.1], [0, 0, 1, 1], {"cell": ["a", "a", "b", "b"]})
    assert isinstance(stats.treatment_ratio(apart, [(("a",), ("b",))], 0.95), stats.NotComputable)


def test_a_plain_fit_is_refused():
    fit = stats.fit_plain([1.0, 2.0, 1.1, 2.2], [0, 0, 1, 1], {"cell": ["a", "b", "a", "b"]})
    with pytest.raises(ValueError, match="allowed: the log scale"):
        stats.treatment_ratio(fit, [(("a",), ("b",))], 0.95)
