"""How often each printed interval holds the truth, and how wide it is.

Promised: 93 % or more of nominal 95 % on lognormal, normal, t3 and blocked runs, wherever the page
prints the interval. Contrasts shift with the truth, so theirs is asked once; Cliff's delta and
omega squared are asked at several truths, and the worst stands in the table.
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
"""Truths of delta and omega squared: shifts of level 1, in standard deviations of the errors."""
TRUTH_PAIRS = 2_000_000
BOOTSTRAPS, RESAMPLES = 1_000, 999
WIDTHS_SAMPLED = 50
SERIES, MESSAGES, WARM_UP = 500, 5_000, 500
SIGNED_RANK_MIN = 6
Cell = tuple[float, float] | None
"""Coverage and median width, in standard deviations of the errors; None where not printed."""


def main(trials: int) -> None:
    """Print the intervals of contrasts, then those of one or two levels."""
    print(f"\n## Coverage of nominal 95 %, in per cent of {trials:,} campaigns a row\n")
    print("After each the median width: in standard deviations of the errors on the log scale;")
    print("delta's and omega squared's as they are.")
    failures = _contrasts(trials) + _samples(trials) + _percentiles()
    _bootstrap()
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")


def _contrasts(trials: int) -> list[str]:
    headings = ("ratio", "family of ratios", "block intervals", "ω²")
    failures = []
    for levels in LEVELS:
        print(f"\n### {levels} levels\n")
        _head(headings)
        for population in POPULATIONS:
            for runs in RUNS:
                rng = generator(population, runs, levels)
                data = population.draw(rng, trials, runs, levels)
                cells = _of_contrasts(population, data)
                failures += _row(population, runs, headings, cells)
    return failures


def _of_contrasts(population: Population, data: FloatArray) -> tuple[Cell, ...]:
    levels = data.shape[2]
    found = twins.block_analysis(data)
    pairs = data[:, :, 1:] - data[:, :, :1]
    single = tuple(end[:, 0] for end in found.limits(0.95))
    low, high = found.limits(stats.bonferroni(0.95, levels - 1))
    grouped = tuple(end[:, 0] for end in twins.block_interval_limits(pairs))
    return (
        _cell(single, 0.0, population.sigma),
        (
            float(np.mean(((low <= 0.0) & (high >= 0.0)).all(axis=1))),
            float(np.median(high - low)) / population.sigma,
        ),
        _cell(grouped, 0.0, population.sigma),
        _omega(population, data) if population.held else None,
    )


def _omega(population: Population, data: FloatArray) -> Cell:
    """Worst coverage over SHIFTS, and the median width at a shift of one."""
    blocks, levels = data.shape[1:]
    worst, width = 1.0, 0.0
    for shift in SHIFTS:
        moved = data.copy()
        moved[:, :, 1] += shift * population.sigma
        found = twins.block_analysis(moved)
        means = np.zeros(levels)
        means[1] = shift
        truth = blocks * float(np.sum((means - means.mean()) ** 2))
        known = known_degrees(found.degrees)
        held = _holds_noncentrality(found.statistic, levels - 1, known, truth)
        worst = min(worst, float(held.mean()))
        if shift == 1.0:
            sampled = [
                stats.omega_squared(
                    float(f), levels - 1, found.degrees, blocks * levels, 0.95, known
                )
                for f in found.statistic[:WIDTHS_SAMPLED]
            ]
            width = float(np.median([one.high - one.low for one in sampled]))
    return worst, width


def _holds_noncentrality(
    statistic: FloatArray, degrees: int, error_degrees: float, truth: float
) -> FloatArray:
    """Whether the limits of omega squared hold `truth`: both tails are at least 2.5 % there.

    Where the lower limit is 0 it holds 0; limits are monotone in the noncentrality.
    """
    if truth == 0.0:
        below = distributions.f.cdf(statistic, degrees, error_degrees)
        return np.asarray(below <= 0.975)
    below = distributions.ncf.cdf(statistic, degrees, error_degrees, truth)
    below = np.where(np.isnan(below), 1.0, below)
    return np.asarray((below >= 0.025) & (below <= 0.975))


def _samples(trials: int) -> list[str]:
    headings = ("signed rank", "rank sum", "δ", "geometric mean", "mean")
    print("\n### One level, or two\n")
    _head(headings)
    failures = []
    for population in POPULATIONS:
        truths = [_delta_of(population, shift) for shift in SHIFTS]
        for runs in RUNS:
            data = population.draw(generator(population, runs, 2), trials, runs, 2)
            cells = _of_samples(population, data, truths)
            failures += _row(population, runs, headings, cells)
    return failures


def _of_samples(population: Population, data: FloatArray, truths: list[float]) -> tuple[Cell, ...]:
    runs, sigma = data.shape[1], population.sigma
    logs = data[:, :, 0]
    # A mean of responses: the logs themselves, but for lognormal runs what they are logs of.
    plain, mean = logs, 0.0
    if population.name == "lognormal":
        plain, mean = np.exp(logs), float(np.exp(sigma**2 / 2.0))
    return (
        _cell(twins.signed_rank_limits(data), 0.0, sigma) if runs >= SIGNED_RANK_MIN else None,
        _cell(twins.rank_sum_limits(data), 0.0, sigma) if runs >= SHIFT_RUNS_MIN else None,
        _delta(population, data, truths) if runs >= DELTA_RUNS_MIN else None,
        _cell(twins.mean_limits(logs), 0.0, sigma),
        _cell(twins.mean_limits(plain), mean, sigma),
    )


def _delta(population: Population, data: FloatArray, truths: list[float]) -> Cell:
    worst, width = 1.0, 0.0
    for shift, truth in zip(SHIFTS, truths, strict=True):
        moved = data.copy()
        moved[:, :, 1] += shift * population.sigma
        found = _cell(twins.delta_limits(moved), truth, 1.0)
        assert found is not None
        worst = min(worst, found[0])
        width = found[1] if shift == 0.0 else width
    return worst, width


def _delta_of(population: Population, shift: float) -> float:
    """Delta between runs of different blocks, from many drawn pairs of them."""
    rng = generator(population, 0)
    data = population.draw(rng, 1, TRUTH_PAIRS, 2)[0]
    # Neighbours of the next block over: no run is paired with one of its own block.
    upper, lower = data[:, 1] + shift * population.sigma, np.roll(data[:, 0], 1_000)
    return float(np.mean(upper > lower) - np.mean(upper < lower))


def _percentiles() -> list[str]:
    """Percentiles of one run's lognormal latencies, whose neighbours may resemble each other."""
    print(f"\n### Percentiles of one run, {SERIES:,} runs of {MESSAGES:,} messages\n")
    print(
        "| correlation of neighbours | percentile | coverage, % | too few, % |\n|---|---|---|---|"
    )
    failures = []
    for correlation in (0.0, 0.6, 0.9):
        for share in (0.5, 0.9, 0.99):
            rng = np.random.default_rng([SEED, round(100 * correlation), round(100 * share)])
            truth = float(np.exp(distributions.norm.ppf(share)))
            runs = [stats.percentile(_latencies(rng, correlation), share) for _ in range(SERIES)]
            found = [one.interval for one in runs if isinstance(one, stats.Percentile)]
            few = 1.0 - len(found) / SERIES
            held = float(np.mean([one.low <= truth <= one.high for one in found] or [True]))
            print(f"| {correlation:g} | {share:.0%} | {100 * held:.1f} | {100 * few:.0f} |")
            if held < LEAST:
                failures.append(f"percentile {share:.0%} at {correlation:g}: {100 * held:.1f} %")
    return failures


def _latencies(rng: np.random.Generator, correlation: float) -> FloatArray:
    noise = rng.standard_normal(MESSAGES + WARM_UP) * np.sqrt(1.0 - correlation**2)
    return np.exp(signal.lfilter([1.0], [1.0, -correlation], noise)[WARM_UP:])


def _bootstrap() -> None:
    """BCa is offered from 20 runs on and printed nowhere by itself: shown, not held."""
    print(f"\n### BCa bootstrap of the mean, {BOOTSTRAP_RUNS_MIN} runs, {BOOTSTRAPS:,} campaigns\n")
    _head(("BCa",))
    for population in POPULATIONS:
        rng = generator(population, BOOTSTRAP_RUNS_MIN)
        data = population.draw(rng, BOOTSTRAPS, BOOTSTRAP_RUNS_MIN, 2)[:, :, 0]
        found = [stats.bootstrap_interval(row, np.mean, resamples=RESAMPLES) for row in data]
        held = [one for one in found if isinstance(one, stats.Interval)]
        low, high = np.array([one.low for one in held]), np.array([one.high for one in held])
        _row(population, BOOTSTRAP_RUNS_MIN, ("BCa",), (_cell((low, high), 0.0, population.sigma),))


def _cell(limits: tuple[FloatArray, ...], truth: float, unit: float) -> Cell:
    low, high = limits
    width = float(np.median(high - low)) / unit
    return float(np.mean((low <= truth) & (high >= truth))), width


def _head(headings: tuple[str, ...]) -> None:
    print("| runs scatter as | n | " + " | ".join(headings) + " |")
    print("|---|---|" + "---|" * len(headings))


def _row(
    population: Population, runs: int, headings: tuple[str, ...], cells: tuple[Cell, ...]
) -> list[str]:
    """Print a row; returns what it promises and does not keep."""
    told = " | ".join("–" if c is None else f"{100 * c[0]:.2f} ({c[1]:.2f})" for c in cells)
    print(f"| {population.name} | {runs} | {told} |", flush=True)
    return [
        f"{heading} {100 * cell[0]:.2f} % ({population.name}, n = {runs})"
        for heading, cell in zip(headings, cells, strict=True)
        if cell is not None and population.held and cell[0] < LEAST
    ]
