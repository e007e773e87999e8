"""Simulate the power and the error rates of a comparison of variants within blocks.

A block has two variants of 1, 4, 12 or 36 treatments. Its runs are in random order, or the variants
of each treatment are next to each other, in random order within and between the pairs. Errors are
independent, AR(1) over all runs, or have a linear drift besides. The margin is 5 %. The promise for
the order of wattwire's plans is that all ratios are within their intervals in at least 94 % of
campaigns, and that a change of exactly the margin is worse in at most 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import signal

from bench.populations import SEED, FloatArray
from bench.twins import block_interval_limits
from wattwire import stats

LEAST_COVERED, MOST_FALSE = 0.94, 0.05
CAMPAIGNS = 10_000
CHECKED = 5
TREATMENTS = (1, 4, 12, 36)
BLOCKS = (5, 10)
MARGIN = 0.05
SPREAD, DRIFT = 0.05, 0.20
"""Standard deviation of a run's logarithm, and the drift of the logarithm over a campaign."""
CHANGES = (0.10, 0.20)
WARM_UP = 60
RANDOM, ADJACENT = "random", "adjacent"


@dataclass(frozen=True)
class Noise:
    """The autocorrelation of the errors of successive runs, and a linear drift."""

    name: str
    correlation: float = 0.0
    drift: float = 0.0

    def errors(self, rng: np.random.Generator, runs: int) -> FloatArray:
        """Return the logarithms of CAMPAIGNS campaigns in run order, shape (campaigns, runs)."""
        noise = rng.standard_normal((CAMPAIGNS, WARM_UP + runs))
        series = signal.lfilter(
            [np.sqrt(1.0 - self.correlation**2)], [1.0, -self.correlation], noise, axis=1
        )[:, WARM_UP:]
        return np.asarray(SPREAD * series + self.drift * np.linspace(0.0, 1.0, runs))


NOISES = (
    Noise("independent"),
    Noise("AR 0.5", 0.5),
    Noise("AR 0.8", 0.8),
    Noise("AR 0.8, drift of 20 %", 0.8, DRIFT),
)


@dataclass(frozen=True)
class Rates:
    """Shares of campaigns or treatments, and the median half width of the intervals' logarithms."""

    covered: float
    width: float
    worse_at_margin: float
    power: tuple[float, ...]


def positions(
    rng: np.random.Generator, order: str, blocks: int, treatments: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the position in the block, shape (campaigns, blocks, treatments, variants)."""
    shape = (CAMPAIGNS, blocks, treatments)
    if order == RANDOM:
        places = rng.random((CAMPAIGNS, blocks, 2 * treatments))
        return np.argsort(np.argsort(places, axis=2), axis=2).reshape(*shape, 2)
    first = 2 * np.argsort(np.argsort(rng.random(shape), axis=2), axis=2)
    later = rng.integers(0, 2, shape)
    return np.stack([first + later, first + 1 - later], axis=-1)


def rates_of(noise: Noise, order: str, blocks: int, treatments: int) -> Rates:
    """Return the rates of one row."""
    rng = np.random.default_rng([SEED, *f"{noise.name} {order}".encode(), blocks, treatments])
    errors = noise.errors(rng, 2 * blocks * treatments).reshape(CAMPAIGNS, blocks, -1)
    placed = positions(rng, order, blocks, treatments).reshape(CAMPAIGNS, blocks, -1)
    values = np.take_along_axis(errors, placed, axis=2).reshape(CAMPAIGNS, blocks, treatments, 2)
    ratios = values[..., 1] - values[..., 0]
    level = stats.bonferroni(0.95, treatments)
    low, high = block_interval_limits(ratios, level)
    _check(ratios, level, low, high)
    limit = np.log1p(MARGIN)

    def worse(change: float) -> FloatArray:
        return np.asarray(low + np.log1p(change) > limit)

    return Rates(
        float(((low <= 0.0) & (high >= 0.0)).all(axis=1).mean()),
        float(np.median((high - low) / 2)),
        float(worse(MARGIN).any(axis=1).mean()),
        tuple(float(worse(change).mean()) for change in CHANGES),
    )


def _check(ratios: FloatArray, level: float, low: FloatArray, high: FloatArray) -> None:
    """Raise AssertionError if an interval of the product differs in the first campaigns."""
    for campaign in range(CHECKED):
        intervals = stats.block_intervals(list(ratios[campaign].T), level)
        limits = [(i.low, i.high) for i in intervals if isinstance(i, stats.Interval)]
        assert np.allclose(limits, np.stack([low[campaign], high[campaign]], axis=1), rtol=1e-7)


def main(_trials: int) -> None:
    """Print a row for each block size and noise, and the broken promises."""
    print(f"\n## Comparison of variants, {CAMPAIGNS:,} campaigns a row\n")
    print("Each pair of cells: random order, then variants next to each other.\n")
    powers = " | ".join(f"a change of {change:.0%} found, %" for change in CHANGES)
    print(
        f"| errors | treatments | blocks | covered, % | width | worse at the margin, % | {powers} |"
    )
    print("|---|---|---|---|---|---|" + "---|" * len(CHANGES))
    failures = []
    for noise in NOISES:
        for treatments in TREATMENTS:
            for blocks in BLOCKS:
                pair = [rates_of(noise, order, blocks, treatments) for order in (RANDOM, ADJACENT)]
                cells = [
                    "{:.1f}, {:.1f}".format(*(100 * rates.covered for rates in pair)),
                    "{:.3f}, {:.3f}".format(*(rates.width for rates in pair)),
                    "{:.1f}, {:.1f}".format(*(100 * rates.worse_at_margin for rates in pair)),
                    *(
                        "{:.0f}, {:.0f}".format(*(100 * rates.power[index] for rates in pair))
                        for index in range(len(CHANGES))
                    ),
                ]
                name = f"{noise.name} | {treatments} | {blocks}"
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
                kept = pair[1]
                if kept.covered < LEAST_COVERED or kept.worse_at_margin > MOST_FALSE:
                    failures.append(name)
    print(f"\n{'failed: ' + '; '.join(failures) if failures else 'All promises kept.'}")
