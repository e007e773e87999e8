"""Vectorised equivalents of the product's statistics, with a check that they agree.

Data have shape (trials, blocks, levels) and are logs. `same_as_product` compares a few trials with
`wattwire.stats`, because a function that differs would simulate another statistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as distributions

from wattwire import stats
from wattwire.stats.block_ranks import null_distribution
from wattwire.stats.paired import DIFFERENT_P
from wattwire.stats.ranks import signed_rank_distribution
from wattwire.stats.two_samples import newcombe_limits, rank_sum_distribution

FloatArray = NDArray[np.float64]
Limits = tuple[FloatArray, FloatArray]
CHECKED = 5


@dataclass(frozen=True)
class Blocks:
    """The block analysis of each trial.

    `contrasts` with level 0, their standard `errors` and these errors' `contrast_degrees` have
    shape (trials, levels − 1). The F `statistic` has shape (trials,). `degrees` are the residual
    degrees of freedom.
    """

    contrasts: FloatArray
    errors: FloatArray
    contrast_degrees: FloatArray
    statistic: FloatArray
    degrees: int

    def limits(self, confidence: float) -> Limits:
        """Return the confidence limits of each contrast, shape (trials, levels − 1) each."""
        half = distributions.t.ppf(0.5 + confidence / 2, self.contrast_degrees) * self.errors
        return self.contrasts - half, self.contrasts + half


def block_analysis(data: FloatArray) -> Blocks:
    """Return the least-squares fit on blocks and levels, for complete blocks."""
    trials, blocks, levels = data.shape
    inside = data - data.mean(axis=2, keepdims=True)
    means = inside.mean(axis=1)
    residuals = inside - means[:, None, :]
    degrees = (blocks - 1) * (levels - 1)
    variance = (residuals**2).sum(axis=(1, 2)) / degrees
    between = blocks * (means**2).sum(axis=1) / (levels - 1)
    own_degrees = degrees / levels
    own = (residuals**2).sum(axis=1) / own_degrees / blocks
    squares = own[:, 1:] + own[:, :1]
    freedom = squares**2 * own_degrees / (own[:, 1:] ** 2 + own[:, :1] ** 2)
    contrasts = means[:, 1:] - means[:, :1]
    return Blocks(contrasts, np.sqrt(squares), freedom, between / variance, degrees)


def block_ranks_p(data: FloatArray, name: str) -> FloatArray:
    """Return p of Friedman's or Quade's test, shape (trials,), for values without ties."""
    _, blocks, levels = data.shape
    scores = np.argsort(np.argsort(data, axis=2), axis=2) * 2 - (levels - 1)
    weights = np.ones(data.shape[:2], dtype=np.int64)
    row = tuple(range(1 - levels, levels, 2))
    if name == "Quade":
        weights = 2 * (np.argsort(np.argsort(np.ptp(data, axis=2), axis=1), axis=1) + 1)
    rows = [tuple(int(w) * s for s in row) for w in sorted(weights[0])]
    values, chances, _ = null_distribution(tuple(sorted(rows)))
    spread = ((scores * weights[:, :, None]).sum(axis=1) ** 2).sum(axis=1)
    above = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
    return np.minimum(1.0, above[np.searchsorted(values, spread)])


def signed_rank_limits(data: FloatArray, confidence: float = 0.95) -> Limits:
    """Return Hodges–Lehmann limits of level 1 − level 0, paired in blocks, shape (trials,) each."""
    pairs = data[:, :, 1] - data[:, :, 0]
    first, second = np.triu_indices(pairs.shape[1])
    walsh = np.sort((pairs[:, first] + pairs[:, second]) / 2.0, axis=1)
    tail = np.cumsum(signed_rank_distribution(pairs.shape[1]))
    return _ends(walsh, tail, confidence)


def rank_sum_limits(data: FloatArray, confidence: float = 0.95) -> Limits:
    """Return Hodges–Lehmann limits of level 1 − level 0, unpaired, shape (trials,) each."""
    count = data.shape[1]
    differences = data[:, :, None, 1] - data[:, None, :, 0]
    ordered = np.sort(differences.reshape(data.shape[0], -1), axis=1)
    return _ends(ordered, np.cumsum(rank_sum_distribution(count, count)), confidence)


def _ends(ordered: FloatArray, tail: FloatArray, confidence: float) -> Limits:
    """Return the order statistics that are the limits, from the tail probabilities of the test."""
    allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
    cut = int(allowed[-1]) + 1 if allowed.size else 1
    return ordered[:, cut - 1], ordered[:, ordered.shape[1] - cut]


def delta_limits(data: FloatArray, confidence: float = 0.95) -> Limits:
    """Return Newcombe's limits of Cliff's delta, level 1 against level 0, shape (trials,) each."""
    count = data.shape[1]
    shares = (data[:, :, None, 1] > data[:, None, :, 0]).mean(axis=(1, 2))
    low, high = newcombe_limits(shares, count, count, confidence)
    return 2.0 * low - 1.0, 2.0 * high - 1.0


def mean_limits(values: FloatArray, confidence: float = 0.95) -> Limits:
    """Return t limits of the mean of each row of `values`, shape (trials, runs)."""
    count = values.shape[1]
    half = (
        distributions.t.ppf(0.5 + confidence / 2, count - 1)
        * values.std(axis=1, ddof=1)
        / np.sqrt(count)
    )
    return values.mean(axis=1) - half, values.mean(axis=1) + half


def block_interval_limits(pairs: FloatArray, confidence: float = 0.95) -> Limits:
    """Return the limits of each group of contrasts, shape (trials, groups) each.

    The method is the same as in `block_intervals`. `pairs` has shape (trials, blocks, groups).
    """
    count, groups = pairs.shape[1:]
    variances = pairs.var(axis=1, ddof=1)
    pooled = variances.mean(axis=1, keepdims=True)
    similar = bartlett_p(variances, count)[:, None] >= DIFFERENT_P
    use_pooled = similar & (pooled >= variances) & (groups > 1)
    variance = np.where(use_pooled, pooled, variances)
    degrees = np.where(use_pooled, groups * (count - 1), count - 1)
    half = distributions.t.ppf(0.5 + confidence / 2, degrees) * np.sqrt(variance / count)
    return pairs.mean(axis=1) - half, pairs.mean(axis=1) + half


def bartlett_p(variances: FloatArray, count: int) -> FloatArray:
    """Return Bartlett's p of each row of `variances`, each of which is from `count` values."""
    groups = variances.shape[1]
    if groups < 2:
        return np.zeros(variances.shape[0])
    pooled = variances.mean(axis=1)
    total = groups * (count - 1)
    statistic = total * np.log(pooled) - (count - 1) * np.log(variances).sum(axis=1)
    correction = 1.0 + (groups / (count - 1) - 1.0 / total) / (3.0 * (groups - 1))
    return np.asarray(distributions.chi2.sf(statistic / correction, groups - 1))


def unpaired_p(data: FloatArray, kept: NDArray[np.bool_] | None = None) -> FloatArray:
    """Return p, shape (trials,), of an analysis of variance of the `kept` values.

    The analysis ignores blocks.
    """
    counts, total, groups = _sizes(data, kept)
    values = data if kept is None else np.where(kept, data, 0.0)
    sums = values.sum(axis=1)
    between = (sums**2 / counts).sum(axis=1) - sums.sum(axis=1) ** 2 / total
    within = (values**2).sum(axis=(1, 2)) - (sums**2 / counts).sum(axis=1)
    degrees = total - groups
    statistic = between / (groups - 1) / (np.maximum(within, 1e-300) / degrees)
    return np.asarray(distributions.f.sf(statistic, groups - 1, degrees))


def kruskal_p(data: FloatArray, kept: NDArray[np.bool_] | None = None) -> FloatArray:
    """Return p, shape (trials,), of Kruskal–Wallis by chi-squared, over the values `kept`.

    There are no ties.
    """
    counts, total, groups = _sizes(data, kept)
    values = data if kept is None else np.where(kept, data, np.inf)
    flat = values.reshape(data.shape[0], -1)
    ranks = (np.argsort(np.argsort(flat, axis=1), axis=1) + 1.0).reshape(data.shape)
    sums = (ranks if kept is None else np.where(kept, ranks, 0.0)).sum(axis=1)
    statistic = 12.0 / (total * (total + 1.0)) * (sums**2 / counts).sum(axis=1) - 3 * (total + 1.0)
    return np.asarray(distributions.chi2.sf(statistic, groups - 1))


def _sizes(data: FloatArray, kept: NDArray[np.bool_] | None) -> tuple[FloatArray, FloatArray, int]:
    """Return the sizes of the groups, shape (trials, groups), their sums, and the group count."""
    trials, blocks, groups = data.shape
    if kept is None:
        return (
            np.full((trials, groups), float(blocks)),
            np.full(trials, float(blocks * groups)),
            groups,
        )
    counts = kept.sum(axis=1).astype(np.float64)
    return counts, counts.sum(axis=1), groups


def within_fences(data: FloatArray) -> NDArray[np.bool_]:
    """Return whether each value is within 1.5 interquartile ranges of its group's quartiles."""
    low, high = np.quantile(data, [0.25, 0.75], axis=1, keepdims=True)
    reach = 1.5 * (high - low)
    return (data >= low - reach) & (data <= high + reach)


def same_as_product(data: FloatArray) -> None:
    """Raise AssertionError if a function here and the product's function differ."""
    analysis = block_analysis(data)
    low, high = analysis.limits(0.95)
    _, blocks, levels = data.shape
    block_of_run = [block for block in range(blocks) for _ in range(levels)]
    level_of_run = [f"level {level}" for _ in range(blocks) for level in range(levels)]
    block_limits = block_interval_limits(data[:, :, 1:] - data[:, :, :1])
    within = within_fences(data)
    ranks_p = {name: block_ranks_p(data, name) for name in ("Friedman", "Quade")}
    for trial in range(min(CHECKED, data.shape[0])):
        runs = data[trial]
        fit = stats.fit_log(np.exp(runs.ravel()), block_of_run, {"level": level_of_run})
        assert isinstance(fit, stats.Fit)
        ratio = stats.ratio(fit, "level", "level 1", "level 0")
        effect = stats.main_effect(fit, "level")
        assert isinstance(ratio, stats.Ratio)
        assert isinstance(effect, stats.Effect)
        _check_interval(ratio.interval, np.exp(low[trial, 0]), np.exp(high[trial, 0]))
        assert np.isclose(effect.statistic, analysis.statistic[trial])
        for name, test in (("Friedman", stats.friedman), ("Quade", stats.quade)):
            product_test = test(runs)
            if isinstance(product_test, stats.BlockRanks):
                assert np.isclose(product_test.p, ranks_p[name][trial])
        first, second = runs[:, 1], runs[:, 0]
        pairs = stats.paired_ratio_by_ranks(np.exp(first), np.exp(second))
        _check_interval(pairs, *(np.exp(end[trial]) for end in signed_rank_limits(data)))
        shift = stats.shift_by_ranks(first, second)
        _check_interval(shift, *(end[trial] for end in rank_sum_limits(data)))
        delta = stats.cliffs_delta(first, second)
        _check_interval(delta, *(end[trial] for end in delta_limits(data)))
        groups = (runs[:, 1:] - runs[:, :1]).T
        for group, interval in enumerate(stats.block_intervals(list(groups), 0.95)):
            _check_interval(interval, *(end[trial, group] for end in block_limits))
        for kept in (np.ones_like(within), within):
            values = [runs[kept[trial, :, level], level] for level in range(levels)]
            reference_p = distributions.f_oneway(*values).pvalue
            assert np.isclose(reference_p, unpaired_p(data, kept)[trial])
            reference_p = distributions.kruskal(*values).pvalue
            assert np.isclose(reference_p, kruskal_p(data, kept)[trial])
        mean = stats.mean_interval(first)
        _check_interval(mean, *(end[trial] for end in mean_limits(data[:, :, 1])))


def _check_interval(interval: object, low: float, high: float) -> None:
    """Raise AssertionError if an interval of the product differs from these limits."""
    if isinstance(interval, stats.Interval):
        assert np.allclose([interval.low, interval.high], [low, high], atol=1e-9), (
            interval,
            low,
            high,
        )
