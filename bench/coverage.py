"""Simulate the coverage and width of each confidence interval of the page.

The promise is at least 93 % for a nominal 95 % on lognormal, normal, t3 and blocked runs, wherever
the page prints the interval. Contrasts shift with the true value, so one true value is sufficient
for them. Cliff's delta and omega squared have several true values, and the table shows the lowest
coverage.
"""

from __future__ import annotations

import numpy as np
from scipy import signal
from scipy import stats as distributions

from bench import twins
from bench.false_alarms import LEVELS, RUNS
from bench.populations import POPULATIONS, SEED, FloatArray, Population, generator
from wattwire import stats
from wattwire.stats.bootstrap import RUNS_MIN as BOOTSTRAP_RUNS_MIN
from wattwire.stats.two_samples import DELTA_RUNS_MIN, SHIFT_RUNS_MIN
from wattwire.stats.variance import known_degrees

LEAST = 0.93
SHIFTS = (0.0, 0.5, 1.0, 2.0)
"""True values of delta and omega squared: shifts of level 1, in standard deviations."""
TRUTH_PAIRS = 2_000_000
BOOTSTRAPS, RESAMPLES = 1_000, 999
WIDTHS_SAMPLED = 50
SERIES, MESSAGES, WARM_UP = 500, 5_000, 500
SIGNED_RANK_MIN = 6
Cell = tuple[float, float] | None
"""Coverage (0 to 1) and median width in standard deviations of the errors; None: not printed."""


def main(trials: int) -> None:
    """Print tables of the intervals of contrasts, then of the intervals of one or two levels."""
    print(f"\n## Coverage of nominal 95 %, in per cent of {trials:,} campaigns a row\n")
    print("After each the median width: in standard deviations of the errors on the log scale;")
    print("delta's and omega squared's as they are.")
    failures = _contrasts(trials) + _samples(trials) + _percentiles()
    _bootstrap()
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")


def _contrasts(trials: int) -> list[str]:
    """Print the tables of intervals of contrasts, and return the broken promises."""
    headings = ("ratio", "family of ratios", "block intervals", "ω²")
    failures = []
    for levels in LEVELS:
        print(f"\n### {levels} levels\n")
        _head(headings)
        for population in POPULATIONS:
            for runs in RUNS:
                rng = generator(population, runs, levels)
                data = population.draw(rng, trials, runs, levels)
                cells = _contrast_cells(population, data)
                failures += _row(population, runs, headings, cells)
    return failures


def _contrast_cells(population: Population, data: FloatArray) -> tuple[Cell, ...]:
    """Return the cells of one row for `data`, shape (trials, blocks, levels), without a shift."""
    levels = data.shape[2]
    analysis = twins.block_analysis(data)
    pairs = data[:, :, 1:] - data[:, :, :1]
    ratio_limits = tuple(end[:, 0] for end in analysis.limits(0.95))
    low, high = analysis.limits(stats.bonferroni(0.95, levels - 1))
    block_limits = tuple(end[:, 0] for end in twins.block_interval_limits(pairs))
    return (
        _cell(ratio_limits, 0.0, population.sigma),
        (
            float(np.mean(((low <= 0.0) & (high >= 0.0)).all(axis=1))),
            float(np.median(high - low)) / population.sigma,
        ),
        _cell(block_limits, 0.0, population.sigma),
        _omega(population, data) if population.held else None,
    )


def _omega(population: Population, data: FloatArray) -> Cell:
    """Return the lowest coverage of omega squared over SHIFTS, and the median width at shift 1."""
    blocks, levels = data.shape[1:]
    worst, width = 1.0, 0.0
    for shift in SHIFTS:
        shifted = data.copy()
        shifted[:, :, 1] += shift * population.sigma
        analysis = twins.block_analysis(shifted)
        means = np.zeros(levels)
        means[1] = shift
        truth = blocks * float(np.sum((means - means.mean()) ** 2))
        error_degrees = known_degrees(analysis.degrees)
        covered = _holds_noncentrality(analysis.statistic, levels - 1, error_degrees, truth)
        worst = min(worst, float(covered.mean()))
        if shift == 1.0:
            intervals = [
                stats.omega_squared(
                    float(f), levels - 1, analysis.degrees, blocks * levels, 0.95, error_degrees
                )
                for f in analysis.statistic[:WIDTHS_SAMPLED]
            ]
            width = float(np.median([interval.high - interval.low for interval in intervals]))
    return worst, width


def _holds_noncentrality(
    statistic: FloatArray, degrees: int, error_degrees: float, truth: float
) -> FloatArray:
    """Return whether the limits of omega squared contain the noncentrality `truth`, (trials,).

    This is the case if both tails at `truth` are at least 2.5 %, because the limits are monotone in
    the noncentrality. A lower limit of 0 contains 0.
    """
    if truth == 0.0:
        below = distributions.f.cdf(statistic, degrees, error_degrees)
        return np.asarray(below <= 0.975)
    below = distributions.ncf.cdf(statistic, degrees, error_degrees, truth)
    below = np.where(np.isnan(below), 1.0, below)
    return np.asarray((below >= 0.025) & (below <= 0.975))


def _samples(trials: int) -> list[str]:
    """Print the table of intervals of one or two levels, and return the broken promises."""
    headings = ("signed rank", "rank sum", "δ", "geometric mean", "mean")
    print("\n### One level, or two\n")
    _head(headings)
    failures = []
    for population in POPULATIONS:
        truths = [_delta_of(population, shift) for shift in SHIFTS]
        for runs in RUNS:
            data = population.draw(generator(population, runs, 2), trials, runs, 2)
            cells = _sample_cells(population, data, truths)
            failures += _row(population, runs, headings, cells)
    return failures


def _sample_cells(
    population: Population, data: FloatArray, truths: list[float]
) -> tuple[Cell, ...]:
    """Return the cells of a row for `data`, shape (trials, runs, 2); `truths` are deltas."""
    runs, sigma = data.shape[1], population.sigma
    logs = data[:, :, 0]
    # The mean is taken over responses, which are exponentials for lognormal runs.
    responses, mean = logs, 0.0
    if population.name == "lognormal":
        responses, mean = np.exp(logs), float(np.exp(sigma**2 / 2.0))
    return (
        _cell(twins.signed_rank_limits(data), 0.0, sigma) if runs >= SIGNED_RANK_MIN else None,
        _cell(twins.rank_sum_limits(data), 0.0, sigma) if runs >= SHIFT_RUNS_MIN else None,
        _delta(population, data, truths) if runs >= DELTA_RUNS_MIN else None,
        _cell(twins.mean_limits(logs), 0.0, sigma),
        _cell(twins.mean_limits(responses), mean, sigma),
    )


def _delta(population: Population, data: FloatArray, truths: list[float]) -> Cell:
    """Return the lowest coverage of Cliff's delta over SHIFTS, and the median width at shift 0."""
    worst, width = 1.0, 0.0
    for shift, truth in zip(SHIFTS, truths, strict=True):
        shifted = data.copy()
        shifted[:, :, 1] += shift * population.sigma
        cell = _cell(twins.delta_limits(shifted), truth, 1.0)
        assert cell is not None
        worst = min(worst, cell[0])
        width = cell[1] if shift == 0.0 else width
    return worst, width


def _delta_of(population: Population, shift: float) -> float:
    """Return delta between runs of different blocks, from TRUTH_PAIRS random pairs."""
    rng = generator(population, 0)
    data = population.draw(rng, 1, TRUTH_PAIRS, 2)[0]
    # Rolling by many blocks pairs each run with a run of another block.
    upper, lower = data[:, 1] + shift * population.sigma, np.roll(data[:, 0], 1_000)
    return float(np.mean(upper > lower) - np.mean(upper < lower))


def _percentiles() -> list[str]:
    """Print the coverage of the percentiles of a run, and return the broken promises.

    The latencies are lognormal. Their logs are AR(1) with the given correlation of neighbours.
    """
    print(f"\n### Percentiles of one run, {SERIES:,} runs of {MESSAGES:,} messages\n")
    print(
        "| correlation of neighbours | percentile | coverage, % | too few, % |\n|---|---|---|---|"
    )
    failures = []
    for correlation in (0.0, 0.6, 0.9):
        for share in (0.5, 0.9, 0.99):
            rng = np.random.default_rng([SEED, round(100 * correlation), round(100 * share)])
            truth = float(np.exp(distributions.norm.ppf(share)))
            percentiles = [
                stats.percentile(_latencies(rng, correlation), share) for _ in range(SERIES)
            ]
            intervals = [
                percentile.interval
                for percentile in percentiles
                if isinstance(percentile, stats.Percentile)
            ]
            missing = 1.0 - len(intervals) / SERIES
            coverage = float(
                np.mean(
                    [interval.low <= truth <= interval.high for interval in intervals] or [True]
                )
            )
            print(f"| {correlation:g} | {share:.0%} | {100 * coverage:.1f} | {100 * missing:.0f} |")
            if coverage < LEAST:
                failures.append(
                    f"percentile {share:.0%} at {correlation:g}: {100 * coverage:.1f} %"
                )
    return failures


def _latencies(rng: np.random.Generator, correlation: float) -> FloatArray:
    """Return one run's latencies after its warm-up, shape (MESSAGES,)."""
    noise = rng.standard_normal(MESSAGES + WARM_UP) * np.sqrt(1.0 - correlation**2)
    return np.exp(signal.lfilter([1.0], [1.0, -correlation], noise)[WARM_UP:])


def _bootstrap() -> None:
    """Print the coverage of the BCa bootstrap.

    The library offers it from 20 runs. No page prints it, so it has no promise.
    """
    print(f"\n### BCa bootstrap of the mean, {BOOTSTRAP_RUNS_MIN} runs, {BOOTSTRAPS:,} campaigns\n")
    _head(("BCa",))
    for population in POPULATIONS:
        rng = generator(population, BOOTSTRAP_RUNS_MIN)
        data = population.draw(rng, BOOTSTRAPS, BOOTSTRAP_RUNS_MIN, 2)[:, :, 0]
        estimates = [stats.bootstrap_interval(row, np.mean, resamples=RESAMPLES) for row in data]
        intervals = [interval for interval in estimates if isinstance(interval, stats.Interval)]
        low, high = (
            np.array([interval.low for interval in intervals]),
            np.array([interval.high for interval in intervals]),
        )
        _row(population, BOOTSTRAP_RUNS_MIN, ("BCa",), (_cell((low, high), 0.0, population.sigma),))


def _cell(limits: tuple[FloatArray, ...], truth: float, unit: float) -> Cell:
    """Return the coverage of `truth` by limits of shape (trials,), and their median width."""
    low, high = limits
    width = float(np.median(high - low)) / unit
    return float(np.mean((low <= truth) & (high >= truth))), width


def _head(headings: tuple[str, ...]) -> None:
    print("| runs scatter as | n | " + " | ".join(headings) + " |")
    print("|---|---|" + "---|" * len(headings))


def _row(
    population: Population, runs: int, headings: tuple[str, ...], cells: tuple[Cell, ...]
) -> list[str]:
    """Print a row, and return its broken promises."""
    row_text = " | ".join("–" if c is None else f"{100 * c[0]:.2f} ({c[1]:.2f})" for c in cells)
    print(f"| {population.name} | {runs} | {row_text} |", flush=True)
    return [
        f"{heading} {100 * cell[0]:.2f} % ({population.name}, n = {runs})"
        for heading, cell in zip(headings, cells, strict=True)
        if cell is not None and population.held and cell[0] < LEAST
    ]
