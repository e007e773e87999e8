"""The product's statistics over many campaigns at once, and the check that they are the product's.

Data have shape (trials, blocks, levels) and are logs. `same_as_product` takes a few trials through
`wattwire.stats` itself: a twin that drifted from its original would simulate something else.
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
    """The block analysis of each trial: contrasts with level 0, their error, and F."""

    contrasts: FloatArray
    error: FloatArray
    statistic: FloatArray
    degrees: int

    def limits(self, confidence: float) -> Limits:
        """Limits of each contrast, shape (trials, levels − 1)."""
        half = distributions.t.ppf(0.5 + confidence / 2, self.degrees) * self.error[:, None]
        return self.contrasts - half, self.contrasts + half


def block_analysis(data: FloatArray) -> Blocks:
    """Ordinary least squares on blocks and levels, for complete blocks."""
    trials, blocks, levels = data.shape
    inside = data - data.mean(axis=2, keepdims=True)
    means = inside.mean(axis=1)
    residuals = inside - means[:, None, :]
    degrees = (blocks - 1) * (levels - 1)
    variance = (residuals**2).sum(axis=(1, 2)) / degrees
    between = blocks * (means**2).sum(axis=1) / (levels - 1)
    error = np.sqrt(2.0 * variance / blocks)
    return Blocks(means[:, 1:] - means[:, :1], error, between / variance, degrees)


def block_ranks_p(data: FloatArray, name: str) -> FloatArray:
    """p of Friedman's or Quade's test of each trial; values are taken to have no ties."""
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
    """Hodges–Lehmann limits of level 1 − level 0, paired in blocks."""
    pairs = data[:, :, 1] - data[:, :, 0]
    first, second = np.triu_indices(pairs.shape[1])
    walsh = np.sort((pairs[:, first] + pairs[:, second]) / 2.0, axis=1)
    tail = np.cumsum(signed_rank_distribution(pairs.shape[1]))
    return _ends(walsh, tail, confidence)


def rank_sum_limits(data: FloatArray, confidence: float = 0.95) -> Limits:
    """Hodges–Lehmann limits of level 1 − level 0, unpaired."""
    count = data.shape[1]
    differences = data[:, :, None, 1] - data[:, None, :, 0]
    ordered = np.sort(differences.reshape(data.shape[0], -1), axis=1)
    return _ends(ordered, np.cumsum(rank_sum_distribution(count, count)), confidence)


def _ends(ordered: FloatArray, tail: FloatArray, confidence: float) -> Limits:
    allowed = np.flatnonzero(2.0 * tail <= 1.0 - confidence)
    cut = int(allowed[-1]) + 1 if allowed.size else 1
    return ordered[:, cut - 1], ordered[:, ordered.shape[1] - cut]


def delta_limits(data: FloatArray, confidence: float = 0.95) -> Limits:
    """Newcombe's limits of Cliff's delta of level 1 against level 0."""
    count = data.shape[1]
    shares = (data[:, :, None, 1] > data[:, None, :, 0]).mean(axis=(1, 2))
    low, high = newcombe_limits(shares, count, count, confidence)
    return 2.0 * low - 1.0, 2.0 * high - 1.0


def mean_limits(values: FloatArray, confidence: float = 0.95) -> Limits:
    """t limits of the mean of each row, shape (trials, runs)."""
    count = values.shape[1]
    half = (
        distributions.t.ppf(0.5 + confidence / 2, count - 1)
        * values.std(axis=1, ddof=1)
        / np.sqrt(count)
    )
    return values.mean(axis=1) - half, values.mean(axis=1) + half


def block_interval_limits(pairs: FloatArray, confidence: float = 0.95) -> Limits:
    """Limits of each group of contrasts as `block_intervals` prints them: (trials, groups).

    `pairs` has shape (trials, blocks, groups).
    """
    count, groups = pairs.shape[1:]
    own = pairs.var(axis=1, ddof=1)
    pooled = own.mean(axis=1, keepdims=True)
    alike = bartlett_p(own, count)[:, None] >= DIFFERENT_P
    borrowed = alike & (pooled >= own) & (groups > 1)
    variance = np.where(borrowed, pooled, own)
    degrees = np.where(borrowed, groups * (count - 1), count - 1)
    half = distributions.t.ppf(0.5 + confidence / 2, degrees) * np.sqrt(variance / count)
    return pairs.mean(axis=1) - half, pairs.mean(axis=1) + half


def bartlett_p(variances: FloatArray, count: int) -> FloatArray:
    """Bartlett's p of each row of `variances`, each of `count` values."""
    groups = variances.shape[1]
    if groups < 2:
        return np.zeros(variances.shape[0])
    pooled = variances.mean(axis=1)
    total = groups * (count - 1)
    found = total * np.log(pooled) - (count - 1) * np.log(variances).sum(axis=1)
    correction = 1.0 + (groups / (count - 1) - 1.0 / total) / (3.0 * (groups - 1))
    return np.asarray(distributions.chi2.sf(found / correction, groups - 1))


def unpaired_p(data: FloatArray, kept: NDArray[np.bool_] | None = None) -> FloatArray:
    """p of an analysis of variance that knows no blocks, over the values `kept`."""
    counts, total, groups = _sizes(data, kept)
    values = data if kept is None else np.where(kept, data, 0.0)
    sums = values.sum(axis=1)
    between = (sums**2 / counts).sum(axis=1) - sums.sum(axis=1) ** 2 / total
    within = (values**2).sum(axis=(1, 2)) - (sums**2 / counts).sum(axis=1)
    degrees = total - groups
    statistic = between / (groups - 1) / (np.maximum(within, 1e-300) / degrees)
    return np.asarray(distributions.f.sf(statistic, groups - 1, degrees))


def kruskal_p(data: FloatArray, kept: NDArray[np.bool_] | None = None) -> FloatArray:
    """p of Kruskal and Wallis by chi-squared, over the values `kept`, which have no ties."""
    counts, total, groups = _sizes(data, kept)
    values = data if kept is None else np.where(kept, data, np.inf)
    flat = values.reshape(data.shape[0], -1)
    ranks = (np.argsort(np.argsort(flat, axis=1), axis=1) + 1.0).reshape(data.shape)
    sums = (ranks if kept is None else np.where(kept, ranks, 0.0)).sum(axis=1)
    statistic = 12.0 / (total * (total + 1.0)) * (sums**2 / counts).sum(axis=1) - 3 * (total + 1.0)
    return np.asarray(distributions.chi2.sf(statistic, groups - 1))


def _sizes(data: FloatArray, kept: NDArray[np.bool_] | None) -> tuple[FloatArray, FloatArray, int]:
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
    """Values inside their group's quartiles ± 1.5 interquartile ranges."""
    low, high = np.quantile(data, [0.25, 0.75], axis=1, keepdims=True)
    reach = 1.5 * (high - low)
    return (data >= low - reach) & (data <= high + reach)


def same_as_product(data: FloatArray) -> None:
    """Raises AssertionError where a twin and the product's own function differ."""
    found = block_analysis(data)
    low, high = found.limits(0.95)
    _, blocks, levels = data.shape
    where = [block for block in range(blocks) for _ in range(levels)]
    names = [f"level {level}" for _ in range(blocks) for level in range(levels)]
    own = block_interval_limits(data[:, :, 1:] - data[:, :, :1])
    fenced = within_fences(data)
    ranked = {name: block_ranks_p(data, name) for name in ("Friedman", "Quade")}
    for trial in range(min(CHECKED, data.shape[0])):
        runs = data[trial]
        fit = stats.fit_log(np.exp(runs.ravel()), where, {"level": names})
        assert isinstance(fit, stats.Fit)
        ratio = stats.ratio(fit, "level", "level 1", "level 0")
        effect = stats.main_effect(fit, "level")
        assert isinstance(ratio, stats.Ratio)
        assert isinstance(effect, stats.Effect)
        _alike(ratio.interval, np.exp(low[trial, 0]), np.exp(high[trial, 0]))
        assert np.isclose(effect.statistic, found.statistic[trial])
        for name, test in (("Friedman", stats.friedman), ("Quade", stats.quade)):
            known = test(runs)
            if isinstance(known, stats.BlockRanks):
                assert np.isclose(known.p, ranked[name][trial])
        one, other = runs[:, 1], runs[:, 0]
        pairs = stats.paired_ratio_by_ranks(np.exp(one), np.exp(other))
        _alike(pairs, *(np.exp(end[trial]) for end in signed_rank_limits(data)))
        shift = stats.shift_by_ranks(one, other)
        _alike(shift, *(end[trial] for end in rank_sum_limits(data)))
        delta = stats.cliffs_delta(one, other)
        _alike(delta, *(end[trial] for end in delta_limits(data)))
        groups = (runs[:, 1:] - runs[:, :1]).T
        for place, found_ in enumerate(stats.block_intervals(list(groups), 0.95)):
            _alike(found_, *(end[trial, place] for end in own))
        for kept in (np.ones_like(fenced), fenced):
            values = [runs[kept[trial, :, level], level] for level in range(levels)]
            known_p = distributions.f_oneway(*values).pvalue
            assert np.isclose(known_p, unpaired_p(data, kept)[trial])
            known_p = distributions.kruskal(*values).pvalue
            assert np.isclose(known_p, kruskal_p(data, kept)[trial])
        mean = stats.mean_interval(one)
        _alike(mean, *(end[trial] for end in mean_limits(data[:, :, 1])))


def _alike(found: object, low: float, high: float) -> None:
    if isinstance(found, stats.Interval):
        assert np.allclose([found.low, found.high], [low, high], atol=1e-9), (found, low, high)
