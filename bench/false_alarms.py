"""Simulate false-positive rates of the default analysis and of the paper's method.

The promise for F under the block model is 4.4 to 5.6 %. (t has a variance per treatment and is
conservative with few blocks.) For every test, and for all contrasts
of a family together, it is at most 5.6 % on lognormal, normal, t3 and blocked runs. The other rates
are printed, including the rates of the page's warnings. Cliff's delta is an effect size and causes
no alarm on the page. The rate at which its interval excludes 0 is printed, and `bench.coverage` has
a promise for its coverage.
"""

from __future__ import annotations

import numpy as np
from scipy import stats as distributions

from bench import twins
from bench.populations import POPULATIONS, FloatArray, Population, generator
from wattwire import stats
from wattwire.analysis.topics.sensitivity.violations import ALARM, SERIAL_ALARM, SPREAD_MIN

RUNS = (3, 5, 10, 20)
LEVELS = (2, 3, 5)
LEAST, MOST = 0.044, 0.056
WARNED_TRIALS = 100
HEADINGS = ("t", "F", "family", "Friedman", "Quade", "signed rank", "rank sum", "δ",
            "ANOVA", "–IQR", "Kruskal–Wallis", "–IQR")  # fmt: skip
TESTS = HEADINGS[:7]


def main(trials: int) -> None:
    """Print a table for each number of levels, and the broken promises."""
    print(f"\n## False alarms of nominal 5 %, in per cent of {trials:,} campaigns a row\n")
    for population in POPULATIONS:
        print(f"- {population.name}: {population.says}" + ("" if population.held else " (printed)"))
    failures: list[str] = []
    for levels in LEVELS:
        print(f"\n### {levels} levels; the last four are the paper's way, on the same runs\n")
        print("| runs scatter as | n | " + " | ".join(HEADINGS) + " |")
        print("|---|---|" + "---|" * len(HEADINGS))
        for population in POPULATIONS:
            for runs in RUNS:
                rates = rates_of(population, trials, runs, levels)
                text = " | ".join("–" if r is None else f"{100 * r:.2f}" for r in rates)
                print(f"| {population.name} | {runs} | {text} |", flush=True)
                failures += judged(population, runs, levels, rates)
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")
    _warnings()


def rates_of(
    population: Population, trials: int, runs: int, levels: int
) -> tuple[float | None, ...]:
    """Return the false-positive rate of each statistic, in the order of HEADINGS.

    The rate is None if a statistic needs more runs.
    """
    rng = generator(population, runs, levels)
    data = population.draw(rng, trials, runs, levels)
    twins.same_as_product(data[: twins.CHECKED])
    analysis = twins.block_analysis(data)
    f_p = distributions.f.sf(analysis.statistic, levels - 1, analysis.degrees)
    family_limits = analysis.limits(stats.bonferroni(0.95, levels - 1))
    within_fences = twins.within_fences(data)
    enough_blocks = runs >= stats.block_ranks.blocks_needed(levels)

    def outside(limits: twins.Limits, runs_min: int) -> float | None:
        low, high = limits
        return float(np.mean((low > 0.0) | (high < 0.0))) if runs >= runs_min else None

    def rejected(p: FloatArray) -> float:
        return float(np.mean(p <= 0.05))

    first_limits = tuple(end[:, 0] for end in analysis.limits(0.95))
    return (
        outside((first_limits[0], first_limits[1]), 2),
        rejected(f_p),
        float(np.mean(((family_limits[0] > 0.0) | (family_limits[1] < 0.0)).any(axis=1))),
        rejected(twins.block_ranks_p(data, "Friedman")) if enough_blocks else None,
        rejected(twins.block_ranks_p(data, "Quade")) if enough_blocks else None,
        outside(twins.signed_rank_limits(data), 6),
        outside(twins.rank_sum_limits(data), 4),
        outside(twins.delta_limits(data), 5),
        rejected(twins.unpaired_p(data)),
        rejected(twins.unpaired_p(data, within_fences)),
        rejected(twins.kruskal_p(data)),
        rejected(twins.kruskal_p(data, within_fences)),
    )


def judged(
    population: Population, runs: int, levels: int, rates: tuple[float | None, ...]
) -> list[str]:
    """Return the broken promises of one row."""
    broken = []
    for position, (heading, rate) in enumerate(zip(HEADINGS, rates, strict=True)):
        if rate is None or position >= len(TESTS) or not population.held:
            continue
        rate_min = LEAST if population.own and heading == "F" else 0.0
        if not rate_min <= rate <= MOST:
            broken.append(f"{heading} {100 * rate:.2f} % ({population.name}, {levels} × {runs})")
    return broken


def _warnings() -> None:
    """Print the rates of the page's warnings for a sample of the same campaigns."""
    print(f"\n### Warnings of the page, in per cent of {WARNED_TRIALS} campaigns, 3 levels\n")
    print("| runs scatter as | n | unequal spread | a run far out | like neighbours | any |")
    print("|---|---|---|---|---|---|")
    for population in POPULATIONS:
        for runs in RUNS[1:]:
            data = population.draw(generator(population, runs, 3), WARNED_TRIALS, runs, 3)
            order = population.order(runs, 3)
            warned = np.array([_warned(trial, order) for trial in data])
            shares = [*warned.mean(axis=0), warned.any(axis=1).mean()]
            text = " | ".join(f"{100 * share:.0f}" for share in shares)
            print(f"| {population.name} | {runs} | {text} |", flush=True)


def _warned(runs: FloatArray, order: FloatArray) -> tuple[bool, bool, bool]:
    """Return whether the page warns of unequal variances, an outlier and serial correlation.

    `runs` has shape (blocks, levels). `order` is the run order, block by block.
    """
    blocks, levels = runs.shape
    block_of_run = [block for block in range(blocks) for _ in range(levels)]
    level_of_run = [f"level {level}" for _ in range(blocks) for level in range(levels)]
    fit = stats.fit_log(np.exp(runs.ravel()), block_of_run, {"level": level_of_run})
    assert isinstance(fit, stats.Fit)
    spread = stats.spread_between(fit, level_of_run)
    serial = stats.serial_correlation(fit, order)
    return (
        isinstance(spread, stats.Spread) and spread.p < ALARM and spread.ratio >= SPREAD_MIN,
        isinstance(stats.far_out(fit), stats.FarOut),
        isinstance(serial, stats.SerialCorrelation) and serial.p < SERIAL_ALARM,
    )
